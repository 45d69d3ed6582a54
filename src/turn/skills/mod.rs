//! Skills in a turn: which is active, what the model is offered and told for it, and what the engine does without the model.

#[cfg(test)]
mod fold_tests;
mod memory;
mod offering;
mod state;
mod stepping;

pub(super) use memory::Written;
pub(super) use offering::{EngineTool, Focus, eligible, focus, replayed_from, settable};
pub(super) use state::{Pending, State};
pub(super) use stepping::Stepped;

use serde_json::Value;

use crate::skill::{MemorySchema, PROJECT, Skill, ToolConstraint};

/// The skill that begins with a session, where an agent has it (Mantle's documentation, project structure).
pub(super) const SESSION_SKILL: &str = "default_session_start";

/// The skills of an agent, and what they share.
#[derive(Clone, Debug, Default)]
pub(crate) struct SkillSet {
    /// The skills that are in use.
    pub(crate) skills: Vec<Skill>,
    /// What all of them remember.
    pub(crate) project: MemorySchema,
}

impl SkillSet {
    /// One of the skills.
    pub(super) fn skill(&self, id: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.id == id)
    }

    /// What a namespace remembers.
    pub(super) fn schema(&self, namespace: &str) -> Option<&MemorySchema> {
        if namespace == PROJECT { Some(&self.project) } else { self.skill(namespace).map(|skill| &skill.memory) }
    }

    /// Whether the gate of a skill before a tool is open.
    pub(super) fn is_open(&self, state: &State, skill: &str, tool: &str) -> bool {
        let requires = self.gate(skill, tool).and_then(|gate| gate.requires.as_ref());
        requires.is_none_or(|requires| requires.holds(&|namespace, entry| self.read(state, namespace, entry)))
    }

    /// The gate of a skill before a tool.
    pub(super) fn gate(&self, skill: &str, tool: &str) -> Option<&ToolConstraint> {
        self.skill(skill)?.constraints.get(tool)
    }

    /// The value that an entry has at first.
    pub(super) fn initial(&self, namespace: &str, entry: &str) -> Option<Value> {
        self.schema(namespace)?.get(entry)?.initial_value.clone()
    }
}
