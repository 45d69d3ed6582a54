//! One run of one hook: its arguments rendered, its tool called, within its time. Whatever goes wrong is told in the log, by the hook's name
//! and its event alone, and the request goes on.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Either, select};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::app::AppHook;
use super::context::{Moment, context};
use super::tools::{AppTools, Called};
use crate::conversation::Object;
use crate::dispatch::sleep;
use crate::telemetry::{TURN, fails};
use crate::tools::ToolContext;

/// Renders templates. It may take long, and is dropped where it takes too long.
pub(crate) trait Templates: Send + Sync {
    /// The arguments that a template gives in this context.
    ///
    /// # Errors
    ///
    /// Why it gives none, without a value of the context.
    fn render(&self, template: &Object, context: Object) -> BoxFuture<'_, Result<Object, String>>;
}

/// What a hook's run has given.
#[derive(Debug)]
pub(crate) struct Given {
    /// The arguments as the tool got them.
    pub(crate) arguments: Object,
    /// The result's text.
    pub(crate) content: String,
    /// Whether it is what a fallback says of a failure.
    pub(crate) is_fallback: bool,
}

/// What a hook's run needs of its request.
pub(super) struct Running<'a> {
    pub(super) tools: &'a AppTools,
    pub(super) templates: &'a dyn Templates,
    pub(super) context: Arc<dyn ToolContext>,
}

impl Running<'_> {
    /// Runs a hook; `None`: it is skipped.
    pub(super) async fn run(&self, hook: &AppHook, moment: Moment, messages: &[Arc<Object>]) -> Option<Given> {
        let (label, event) = (hook.label(), moment.name());
        let span = tracing::info_span!(
            target: TURN, "execute_hook", otel.name = format!("execute_hook {event}"), otel.status_code = Empty,
            error.type = Empty, hook.point = event, hook.name = label, hook.outcome = Empty,
        );
        let start = Instant::now();
        let given = self.within_its_time(hook, moment, messages, &span).instrument(span.clone()).await;
        let outcome = if given.is_some() { "ran" } else { "skipped" };
        span.record("hook.outcome", outcome);
        tracing::debug!(target: TURN, hook = label, event, outcome, elapsed = ?start.elapsed(), "A hook of the manifest");
        given
    }

    async fn within_its_time(
        &self,
        hook: &AppHook,
        moment: Moment,
        messages: &[Arc<Object>],
        span: &Span,
    ) -> Option<Given> {
        let (label, event) = (hook.label(), moment.name());
        // A hook never fails its request: a tool of the caller's own may do anything, and shares nothing with what comes after it.
        let call = AssertUnwindSafe(self.call(hook, moment, messages, span)).catch_unwind();
        match select(pin!(call), pin!(sleep(hook.timeout))).await {
            Either::Left((Ok(Ok(given)), _)) => Some(given),
            Either::Left((Err(_), _)) => {
                fails(span, "panic");
                tracing::error!(target: TURN, "Hook `{label}` failed (event={event}): skipped");
                None
            }
            Either::Left((Ok(Err(why)), _)) => {
                fails(span, "skipped");
                tracing::warn!(target: TURN, "Hook `{label}` skipped (event={event}): {why}");
                None
            }
            Either::Right(_) => {
                fails(span, "timeout");
                let seconds = hook.timeout.as_secs_f64();
                tracing::warn!(target: TURN, "Hook `{label}` timed out (event={event}, timeout={seconds} s): skipped");
                None
            }
        }
    }

    /// Calls the hook's tool; an error says why it was not, or gave nothing.
    async fn call(
        &self,
        hook: &AppHook,
        moment: Moment,
        messages: &[Arc<Object>],
        span: &Span,
    ) -> Result<Given, String> {
        let arguments = if hook.is_template {
            self.templates.render(&hook.arguments, context(moment, messages)).await?
        } else {
            hook.arguments.clone()
        };
        let name = hook.function_name();
        let Some(tool) = self.tools.for_hook(&name) else {
            return Err(format!("tool '{name}' not found in initialized tools"));
        };
        let output = tool.call(arguments.clone(), Arc::clone(&self.context), None).await;
        if output.is_error {
            // What it said may hold what no log is to hold.
            fails(span, "tool_error");
            let (label, event) = (hook.label(), moment.name());
            tracing::warn!(target: TURN, "Hook `{label}` (event={event}): its tool failed, and the fallback of its tool set applies");
        }
        match tool.settled(output) {
            Called::Stop => Err("its tool failed, and the tool set says `stop`".to_owned()),
            Called::Output { output, is_fallback } => {
                let gives = moment == Moment::RequestStart;
                if output.value.is_null() && gives {
                    return Err("its tool gave nothing".to_owned());
                }
                Ok(Given { arguments, content: output.text(), is_fallback })
            }
        }
    }
}
