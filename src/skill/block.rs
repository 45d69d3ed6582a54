//! Ordered blocks: steps that are taken one after the other, by the engine where it can.

use serde_json::Value;

use crate::condition::Condition;
use crate::conversation::Object;

/// A named list of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OrderedBlock {
    /// Its id within the skill.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: Option<String>,
    /// What it is for, in words.
    pub(crate) description: Option<String>,
    /// Its steps; the first is where it begins.
    pub(crate) steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// Its id within the block.
    pub(crate) id: String,
    /// What is done.
    pub(crate) kind: StepKind,
    /// What comes then. The step below, or the end after the last, where nothing else is written; of no use after a link and an end.
    pub(crate) next: Next,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StepKind {
    /// The model converses.
    Instructions {
        /// The text, with its mentions as they are written.
        text: String,
        /// What must hold for the step to be done. None: it is done once the model has answered the user.
        complete_when: Option<Condition>,
    },
    /// The user is asked for one entry of the skill's memory, which the model may set for it even where it is not `llm_settable`.
    Collect {
        /// The entry.
        entry: String,
        /// The response that asks. None: the model asks.
        utterance: Option<String>,
    },
    /// A response is said.
    Action {
        /// Its name.
        response: String,
    },
    /// A tool is called without the model; its gates hold here too.
    ExecuteTool {
        /// Its name.
        tool: String,
        /// Its arguments, in the order in which they stand.
        parameters: Vec<(String, Argument)>,
    },
    /// Values are written to memory: to the skill's own entry of that name, else to the project's.
    SetMemory {
        /// The values as they stand there, by entry; null clears.
        values: Object,
    },
    /// Another block or skill runs, and this one goes on when it is done.
    Call(Target),
    /// Another block or skill runs in the place of this one.
    Link(Target),
    /// Nothing, but `next` decides where to go.
    Noop,
    /// The block is done.
    End,
}

/// What an argument of a tool is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    /// This value.
    Value(Value),
    /// The value of a memory entry: `session.<namespace>.<entry>`.
    Entry {
        /// The skill's id, or `project`.
        namespace: String,
        /// The entry's own name.
        entry: String,
    },
}

/// A skill, or a block of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The skill's id: the own one for a block beside this one.
    pub(crate) skill: String,
    /// The block's id. None: the skill as a whole.
    pub(crate) block: Option<String>,
}

/// What comes after a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// Always the same.
    Always(Goto),
    /// The first branch that holds.
    Branches {
        /// The branches, in order.
        branches: Vec<Branch>,
        /// Where to go where none holds: what `else` says, or on to what is below.
        otherwise: Goto,
    },
}

/// One way to go on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Branch {
    /// What must hold.
    pub(crate) condition: Condition,
    /// Where to go then.
    pub(crate) then: Goto,
}

/// Where to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Goto {
    /// To the step of that id, which is there.
    Step(String),
    /// Out of the block: it is done.
    End,
}

impl OrderedBlock {
    /// One of its steps.
    pub(crate) fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }
}

impl Next {
    /// Where to go by the memory that `read` gives, as for [`Condition::holds`].
    pub(crate) fn choose(&self, read: &dyn Fn(&str, &str) -> Option<Value>) -> &Goto {
        match self {
            Self::Always(goto) => goto,
            Self::Branches { branches, otherwise } => {
                let holds = |branch: &&Branch| branch.condition.holds(read);
                branches.iter().find(holds).map_or(otherwise, |branch| &branch.then)
            }
        }
    }

    /// All ways that lead on.
    pub(crate) fn ways(&self) -> impl Iterator<Item = &Goto> {
        let (branches, last) = match self {
            Self::Always(goto) => (&[][..], goto),
            Self::Branches { branches, otherwise } => (&branches[..], otherwise),
        };
        branches.iter().map(|branch| &branch.then).chain([last])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_branch_that_holds_is_taken_else_the_otherwise() {
        let branch = |condition: &str, then: &str| Branch {
            condition: Condition::parse(condition).unwrap(),
            then: Goto::Step(then.to_owned()),
        };
        let next = Next::Branches {
            branches: vec![branch("session.a.x > 3", "large"), branch("session.a.x > 1", "middle")],
            otherwise: Goto::End,
        };
        let chosen = |value: i32| next.choose(&|_, _| Some(value.into())).clone();
        let step = |id: &str| Goto::Step(id.to_owned());
        assert_eq!([chosen(9), chosen(2), chosen(0)], [step("large"), step("middle"), Goto::End]);
    }
}
