//! Gates before a tool, and what is said once it has run.

use crate::condition::Condition;

/// What a skill demands of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ToolConstraint {
    /// What must hold for the model to see the tool, and for anybody to call it.
    pub(crate) requires: Option<Condition>,
    /// Whether the user is asked first.
    pub(crate) confirmation: Option<Confirmation>,
    /// The response that is said when it has succeeded.
    pub(crate) on_success: Option<String>,
    /// The response that is said when it has failed.
    pub(crate) on_failure: Option<String>,
}

/// How the user is asked before a tool runs. None stands where the gate is not enabled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Confirmation {
    /// The response that asks. None: the model asks.
    pub(crate) utter_for_confirmation: Option<String>,
    /// The response that follows a no, and ends the turn. None: the model answers.
    pub(crate) utter_on_user_denial: Option<String>,
}
