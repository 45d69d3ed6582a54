//! One hooked batch of tool calls: every call passes the hooks before any of them runs, and each result after.

use serde_json::Value;

use super::completion::Call;
use super::hooks::{Hooked, Passed, tell};
use crate::conversation::Object;
use crate::hooks::{ToolCallPayload, ToolResultPayload};

/// What comes of a batch before anything of it runs.
#[derive(Debug)]
pub(crate) enum Preflight {
    /// The calls as the hooks have left them, in their order.
    Ready(Vec<Call>),
    /// A hook has discarded the batch and the text beside it.
    Retry { feedback: String },
    /// A hook failed: nothing runs.
    Failed,
}

/// Has every call of a batch pass the hooks, one after the other. Ids and types stay the engine's, and headers reach nobody.
pub(crate) async fn preflight(hooked: Hooked<'_>, mut calls: Vec<Call>) -> Preflight {
    let identity = hooked.identity;
    for call in &mut calls {
        let payload = ToolCallPayload::new(&identity.sender_id, &call.tool_name, call.arguments.clone());
        match hooked.pass(payload).await {
            Passed::On { changed: false, .. } => {}
            Passed::On { payload, .. } => {
                if payload.arguments != call.arguments {
                    call.broken = None;
                }
                (call.tool_name, call.arguments) = (payload.tool_name, payload.arguments);
            }
            Passed::Retry { feedback } => return Preflight::Retry { feedback },
            Passed::Failed(failure) => {
                tell(&failure);
                return Preflight::Failed;
            }
            Passed::Rejected { .. } => unreachable!("a tool call takes no rejection"),
        }
    }
    Preflight::Ready(calls)
}

/// A call and its result, as it is stored and replayed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolResult {
    pub(crate) arguments: Object,
    pub(crate) value: Value,
    pub(crate) is_error: bool,
}

/// Has a result pass the hooks. `value` is what the model would read: a text, unless it was recorded in another form.
pub(crate) async fn result(hooked: Hooked<'_>, call: &Call, value: Value, is_error: bool) -> ToolResult {
    let identity = hooked.identity;
    let mut payload =
        ToolResultPayload::new(&identity.sender_id, &call.tool_name, call.arguments.clone(), value.clone());
    payload.is_error = is_error;
    match hooked.pass(payload).await {
        Passed::On { payload, .. } => {
            ToolResult { arguments: payload.arguments, value: payload.value, is_error: payload.is_error }
        }
        // The point is open.
        Passed::Retry { .. } | Passed::Rejected { .. } | Passed::Failed(_) => {
            ToolResult { arguments: call.arguments.clone(), value, is_error }
        }
    }
}
