//! Tools of an execution that are written in Python. The code that calls them sees what they raise.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::execution_hooks::{CONTEXT, THINK};
use super::lane_calls::{Lanes, NoResult};
use super::tooling::{COMPLAINT, LoadedTool, RESULT};
use crate::conversation::Object;
use crate::dispatch::Registered;
use crate::execute::ExecutionTool;
use crate::hooks::{FailureCause, Signal};
use crate::python::{PyHandler, ToolFound};
use crate::telemetry::TURN;
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec};

/// Exceptions of tools that the code may catch by their names; any other is told by its type and text.
const BUILTIN: [&str; 17] = [
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "ConnectionError",
    "FileNotFoundError",
    "IndexError",
    "KeyError",
    "LookupError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PermissionError",
    "RuntimeError",
    "TimeoutError",
    "TypeError",
    "ValueError",
    "ZeroDivisionError",
];

/// A tool that generated code may call.
pub(crate) struct LaneTool {
    spec: Arc<ToolSpec>,
    lanes: Lanes,
    runs: Arc<Registered<PyHandler>>,
}

impl LaneTool {
    /// A tool that runs on `lanes`, with what it gives.
    pub(crate) fn found(lanes: &Lanes, found: ToolFound) -> ExecutionTool {
        let (lanes, runs) = (lanes.clone(), Registered::new(found.id, found.handler));
        ExecutionTool { tool: Arc::new(Self { spec: Arc::new(found.spec), lanes, runs }), returns: found.returns }
    }

    /// A tool of an agent that has been loaded.
    pub(super) fn loaded(lanes: &Lanes, tool: &LoadedTool) -> ExecutionTool {
        let (spec, runs) = (Arc::clone(&tool.spec), Arc::clone(&tool.runs));
        ExecutionTool { tool: Arc::new(Self { spec, lanes: lanes.clone(), runs }), returns: tool.returns.clone() }
    }

    fn output(&self, called: Result<Object, NoResult>) -> ToolOutput {
        let name = &self.spec.name;
        let mut result = match called {
            Ok(result) => result,
            Err(NoResult::Cancelled) => return ToolOutput::error(format!("`{name}` was cancelled")),
            Err(NoResult::Failed(FailureCause::Timeout { limit_ms })) => {
                return ToolOutput::raised("TimeoutError", format!("`{name}` was not done after {limit_ms} ms"));
            }
            Err(NoResult::Failed(FailureCause::Raised { kind, message, .. })) => return raised(kind, message),
            Err(NoResult::Failed(cause)) => return ToolOutput::error(format!("`{name}` failed: {cause}")),
            Err(NoResult::Signalled(Signal::Retry { feedback: why } | Signal::Rejection { reason: why, .. })) => {
                return ToolOutput::error(why);
            }
        };
        if let Some(complaint) = result.remove(COMPLAINT) {
            return ToolOutput { is_error: true, refused: true, ..ToolOutput::of(complaint) };
        }
        if let Some(Value::String(reason)) = result.remove(THINK) {
            return ToolOutput::thinking(reason, result.remove(CONTEXT).unwrap_or_default());
        }
        match result.remove(RESULT) {
            Some(value) => ToolOutput::of(value),
            None => {
                tracing::error!(target: TURN, tool = name, "The tool's result is missing");
                ToolOutput::error(format!("`{name}` failed"))
            }
        }
    }
}

/// The account of an exception, with its type.
fn raised(kind: String, message: String) -> ToolOutput {
    match BUILTIN.into_iter().find(|builtin| *builtin == kind) {
        Some(builtin) => ToolOutput::raised(builtin, message),
        None if message.is_empty() => ToolOutput::error(kind),
        None => ToolOutput::error(format!("{kind}: {message}")),
    }
}

impl Tool for LaneTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call(&self, arguments: Object, context: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let called = self.lanes.called(&self.runs, &self.spec.name, arguments, context).await;
            self.output(called)
        })
    }

    fn unwinds(&self) -> bool {
        true
    }

    fn timeout(&self) -> Option<Duration> {
        // Its own clock is dispatch's, which knows what to do with a thread that does not come back.
        Some(Duration::MAX)
    }
}

impl fmt::Debug for LaneTool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LaneTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_told_by_its_type_and_its_text() {
        for (kind, message, expected) in [
            ("ValueError", "too long", ToolOutput::raised("ValueError", "too long")),
            ("shop.SoldOut", "no tea", ToolOutput::error("shop.SoldOut: no tea")),
            ("shop.SoldOut", "", ToolOutput::error("shop.SoldOut")),
        ] {
            assert_eq!(raised(kind.into(), message.into()), expected);
        }
    }
}
