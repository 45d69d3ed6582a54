//! A model that is a function of Python's: for callers with a client of their own, and for tests.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::execution_hooks::text;
use super::lane_calls::Lanes;
use crate::conversation::Object;
use crate::dispatch::{Answer, Registered};
use crate::hooks::{AnyPayload, FailureCause, HandlerId, ToolCallPayload};
use crate::python::PyHandler;
use crate::step::{Model, ModelError, ModelReply, ModelRequest, RequestedCall, Tokens, Usage};

/// Under this name the function's call tells what it has answered (`tenterhook.execution.models`).
const REPLY: &str = "reply";

/// A model whose answers a function gives.
pub(crate) struct LaneModel {
    name: String,
    lanes: Lanes,
    runs: Arc<Registered<PyHandler>>,
}

/// An answer, as `tenterhook.execution.models` writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    text: Option<String>,
    calls: Vec<Called>,
    /// Tokens that were read and written.
    usage: Option<(u64, u64)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    id: Option<String>,
    name: String,
    /// An object, or the text that stands where one was expected.
    arguments: Value,
}

impl LaneModel {
    /// The model of a function that runs on `lanes`.
    pub(crate) fn new(lanes: Lanes, id: HandlerId, handler: PyHandler) -> Self {
        Self { name: id.function.clone(), lanes, runs: Registered::new(id, handler) }
    }

    fn broken(&self, message: impl Into<String>) -> ModelError {
        ModelError::Broken { model: self.name.clone(), message: message.into() }
    }

    fn reply(&self, answer: Answer) -> Result<ModelReply, ModelError> {
        let mut told = match answer {
            Answer::Changed(AnyPayload::ToolCall(payload)) => payload.arguments,
            Answer::Failure(FailureCause::Timeout { .. }) => {
                let (model, limit) = (self.name.clone(), self.runs.id.timeout);
                return Err(ModelError::Timeout { model, what: "finish its answer", limit });
            }
            Answer::Failure(cause) => return Err(self.broken(cause.to_string())),
            _ => return Err(self.broken("it gave no answer")),
        };
        let reply = serde_json::from_value::<Reply>(told.remove(REPLY).unwrap_or_default());
        let Reply { text, calls, usage } = reply.map_err(|error| self.broken(error.to_string()))?;
        let call = |call: Called| RequestedCall {
            id: call.id,
            tool_name: call.name,
            arguments: match call.arguments {
                Value::Object(arguments) => Ok(arguments),
                Value::String(written) => serde_json::from_str(&written).map_err(|_| written),
                other => Err(other.to_string()),
            },
        };
        let usage = usage.map(|(input, output)| Usage { input, output });
        Ok(ModelReply { text, calls: calls.into_iter().map(call).collect(), usage, latency: None })
    }
}

impl Model for LaneModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        tokens: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let tools: Vec<_> = request.tools.iter().map(|tool| tool.as_function()).collect();
            let given = json!({"messages": text(&request.messages), "tools": text(&tools)});
            let Value::Object(arguments) = given else { unreachable!("it is written as an object") };
            let asked: Object = arguments;
            let reply = self.reply(self.lanes.asked(&self.runs, ToolCallPayload::new("", &*self.name, asked)).await)?;
            if let (Some(tokens), Some(text)) = (tokens, &reply.text) {
                tokens(text);
            }
            Ok(reply)
        })
    }
}

impl fmt::Debug for LaneModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LaneModel").field("name", &self.name).finish_non_exhaustive()
    }
}
