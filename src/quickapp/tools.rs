//! The tools of an app: which the model is shown, which hooks alone may call, and what becomes of a failure.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::fallback::{Fallback, FallbackConfiguration, resolve};
use crate::conversation::Object;
use crate::dispatch::sleep;
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec};

/// A tool of one of the app's sets.
#[derive(Clone)]
pub(crate) struct AppTool {
    /// What the model and hooks know it by: its name among all tools of the app.
    pub(crate) spec: Arc<ToolSpec>,
    /// What is called.
    pub(crate) tool: Arc<dyn Tool>,
    /// What its set makes of failures.
    pub(crate) fallback: Arc<FallbackConfiguration>,
}

/// The tools of one request. What is hidden has a list of its own, so that nothing that is made from the other can show it.
#[derive(Clone, Default)]
pub(crate) struct AppTools {
    /// Those that the model is offered.
    pub(crate) visible: Vec<AppTool>,
    /// Those that only hooks call.
    pub(crate) hidden: Vec<AppTool>,
}

/// Where an app's tools are from. They are asked for at each request: a server may have changed its list.
pub(crate) trait ToolSource: Send + Sync {
    /// The tools as they are now.
    fn tools(&self) -> AppTools;
}

/// What a call has come to.
#[derive(Debug)]
pub(crate) enum Called {
    /// This is its result, or the account of its failure that a fallback gives.
    Output {
        output: Box<ToolOutput>,
        /// Whether it is a fallback's: then the next turn is to ask again.
        is_fallback: bool,
    },
    /// Its set wants the turn to end.
    Stop,
}

impl AppTools {
    /// A tool that a hook names: of those that the model is shown before those that it is not.
    pub(crate) fn for_hook(&self, name: &str) -> Option<&AppTool> {
        self.visible.iter().chain(&self.hidden).find(|tool| tool.spec.name == name)
    }

    /// A tool that the model names.
    pub(crate) fn for_model(&self, name: &str) -> Option<&AppTool> {
        self.visible.iter().find(|tool| tool.spec.name == name)
    }

    /// Whether a name is that of a hidden tool.
    pub(crate) fn is_hidden(&self, name: &str) -> bool {
        self.hidden.iter().any(|tool| tool.spec.name == name)
    }
}

impl AppTool {
    /// Calls it, within its own time where it has one, else within `limit`. A hook has a limit of its own around all that it does.
    pub(crate) async fn call(
        &self,
        arguments: Object,
        context: Arc<dyn ToolContext>,
        limit: Option<Duration>,
    ) -> ToolOutput {
        let called = self.tool.call(arguments, context);
        let Some(limit) = self.tool.timeout().or(limit) else { return called.await };
        match select(called, pin!(sleep(limit))).await {
            Either::Left((output, _)) => output,
            Either::Right(_) => {
                ToolOutput::error(format!("`{}` was not done after {} ms", self.spec.name, limit.as_millis()))
            }
        }
    }

    /// What becomes of what a call gave.
    pub(crate) fn settled(&self, output: ToolOutput) -> Called {
        if !output.is_error {
            return Called::Output { output: Box::new(output), is_fallback: false };
        }
        match resolve(&self.fallback.strategies, &output.text()) {
            Fallback::Stop => Called::Stop,
            Fallback::Result(text) | Fallback::Retry { instructions: text } => {
                Called::Output { output: Box::new(ToolOutput::error(text)), is_fallback: true }
            }
            Fallback::None => Called::Output { output: Box::new(output), is_fallback: true },
        }
    }
}

impl std::fmt::Debug for AppTool {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("AppTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}
