//! What a skill is, once its files have been read: plain values for the turn, which know nothing of YAML.
//!
//! ```text
//! skills/refund/skill.md      front matter: name, description, gates, tools, triggers
//!                             body: prose in parts, some under a condition; ordered blocks
//! skills/refund/memory.yml    what it remembers, public and private
//! memory.yml                  what all skills remember
//! ```

mod block;
mod gate;
mod memory;
mod mention;
mod reference;

use std::collections::BTreeMap;

pub(crate) use block::{Argument, Branch, Goto, Next, OrderedBlock, Step, StepKind, Target};
pub(crate) use gate::{Confirmation, ToolConstraint};
pub(crate) use memory::{MemoryEntry, MemoryKind, MemorySchema, Visibility};
pub(crate) use mention::{Mention, mentions, with_memory};
pub(crate) use reference::{Reference, References, Referent};

use crate::condition::Condition;

/// The namespace of what all skills remember.
pub(crate) const PROJECT: &str = "project";

/// One thing that an agent can help with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Skill {
    /// The name of its folder, by which conditions, mentions and tools know it.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
    /// When it is to be activated, in words for the model.
    pub(crate) description: String,
    /// What must hold for it to be eligible.
    pub(crate) requires: Option<Condition>,
    /// When it is done. None: when the model says so.
    pub(crate) complete_when: Option<CompleteWhen>,
    /// Tools from outside its folder that it may call.
    pub(crate) import_tools: Vec<Import>,
    /// Gates before its tools, by their names.
    pub(crate) constraints: BTreeMap<String, ToolConstraint>,
    /// Responses that are said word for word when something happens, in the order in which they stand.
    pub(crate) utter: Vec<Utter>,
    /// Whether it is out of use.
    pub(crate) disabled: bool,
    /// Whether the engine alone starts it, as it does with `default_session_start`: the model is not offered it.
    pub(crate) engine_managed: bool,
    /// Its instructions, without the ordered blocks that stand between them.
    pub(crate) body: Vec<Part>,
    /// Its ordered blocks, in the order in which they stand.
    pub(crate) blocks: Vec<OrderedBlock>,
    /// What it remembers.
    pub(crate) memory: MemorySchema,
    /// What its `skill.md` names that stands elsewhere.
    pub(crate) references: References,
}

/// When a skill is done. Where both are given, both must be so.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CompleteWhen {
    /// What must hold.
    pub(crate) condition: Option<Condition>,
    /// What a model must find to be so, in words.
    pub(crate) criteria: Vec<String>,
}

/// A tool from outside the skill's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Import {
    /// One of the agent's folder `tools/`.
    Shared(String),
    /// One that a server offers: `mcp/<server>:<tool>`.
    Mcp {
        /// The server's name in `integrations.yml`.
        server: String,
        /// The tool's name there, which is its name here as well.
        tool: String,
    },
}

/// A response that is said without the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Utter {
    /// Its name.
    pub(crate) response: String,
    /// When it is said.
    pub(crate) trigger: Trigger,
}

/// When a response is said without the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trigger {
    /// Each time that the skill is activated; not when it is resumed, nor when one of its blocks begins.
    Activation,
    /// Once, when a write to memory makes this true.
    When(Condition),
}

/// Some of a skill's instructions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// What must hold for the model to be shown it.
    pub(crate) condition: Option<Condition>,
    /// The text, with its mentions as they are written and no blank lines around it.
    pub(crate) text: String,
}

impl Skill {
    /// One of its ordered blocks.
    pub(crate) fn block(&self, id: &str) -> Option<&OrderedBlock> {
        self.blocks.iter().find(|block| block.id == id)
    }

    /// The block that it begins with: the only one of a skill that has no instructions beside it.
    pub(crate) fn opening(&self) -> Option<&OrderedBlock> {
        match &*self.blocks {
            [only] if self.body.is_empty() => Some(only),
            _ => None,
        }
    }
}

impl Import {
    /// The name by which the model calls it.
    pub(crate) fn tool(&self) -> &str {
        match self {
            Self::Shared(tool) | Self::Mcp { tool, .. } => tool,
        }
    }
}
