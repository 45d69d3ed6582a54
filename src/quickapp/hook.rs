//! One run of one hook: its arguments rendered, its tool called, within its time. Whatever goes wrong is told in the log, by the hook's name
//! and its event alone, and the request goes on.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Either, select};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::context::{Moment, context};
use super::engine::Ready;
use super::tools::{AppTools, Called};
use crate::conversation::Object;
use crate::dispatch::sleep;
use crate::telemetry::{TURN, fails};
use crate::tools::ToolContext;

/// Renders templates. It may take long, and is dropped where it takes too long.
pub(crate) trait Templates: Send + Sync {
    /// The arguments that a template, which is JSON, gives in this context.
    ///
    /// # Errors
    ///
    /// Why it gives none, without a value of the context.
    fn render<'a>(&'a self, template: &'a str, context: Object) -> BoxFuture<'a, Result<Object, String>>;
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

/// Why a hook was skipped.
#[derive(Debug)]
enum Skipped {
    /// Its arguments cannot be rendered for this request.
    Unrendered(String),
    /// There is no tool of this name.
    UnknownTool(String),
    /// Its tool gave nothing.
    NoResult,
    /// Its tool failed, and the tool set stops there.
    Stopped,
    /// It was not done in its time.
    Timeout,
    /// Its tool panicked. What it says then may hold what no log is to hold.
    Raised,
}

/// What a hook's run needs of its request.
pub(super) struct Running<'a> {
    pub(super) tools: &'a AppTools,
    pub(super) templates: &'a dyn Templates,
    pub(super) context: Arc<dyn ToolContext>,
}

impl Running<'_> {
    /// Runs a hook; `None`: it is skipped.
    pub(super) async fn run(&self, ready: &Ready, moment: Moment, messages: &[Arc<Object>]) -> Option<Given> {
        let (label, event) = (ready.hook.label(), moment.name());
        let span = tracing::info_span!(
            target: TURN, "execute_hook", otel.name = format!("execute_hook {event}"), otel.status_code = Empty,
            error.type = Empty, hook.point = event, hook.name = label, hook.outcome = Empty,
        );
        let (run, start) = (ready.counts.begin(), Instant::now());
        let given = self.within_its_time(ready, moment, messages, &span).instrument(span.clone()).await;
        let outcome = if given.is_ok() { "ran" } else { "skipped" };
        span.record("hook.outcome", outcome);
        tracing::debug!(target: TURN, hook = label, event, outcome, elapsed = ?start.elapsed(), "A hook of the manifest");
        match given {
            Ok(given) => {
                run.gave(given.is_fallback);
                Some(given)
            }
            Err(why) => {
                fails(&span, why.word());
                run.failed(why.word());
                span.in_scope(|| tell(ready, moment, &why));
                None
            }
        }
    }

    /// A hook never fails its request: a tool of the caller's own may do anything, and shares nothing with what comes after it.
    async fn within_its_time(
        &self,
        ready: &Ready,
        moment: Moment,
        messages: &[Arc<Object>],
        span: &Span,
    ) -> Result<Given, Skipped> {
        let call = AssertUnwindSafe(self.call(ready, moment, messages, span)).catch_unwind();
        match select(pin!(call), pin!(sleep(ready.hook.timeout))).await {
            Either::Left((called, _)) => called.unwrap_or(Err(Skipped::Raised)),
            Either::Right(_) => Err(Skipped::Timeout),
        }
    }

    /// Calls the hook's tool.
    async fn call(
        &self,
        ready: &Ready,
        moment: Moment,
        messages: &[Arc<Object>],
        span: &Span,
    ) -> Result<Given, Skipped> {
        let arguments = match &ready.template {
            Some((template, named)) => {
                let rendered = self.templates.render(template, context(moment, messages, *named)).await;
                rendered.map_err(Skipped::Unrendered)?
            }
            None => ready.hook.arguments.clone(),
        };
        let Some(tool) = self.tools.for_hook(&ready.function) else {
            return Err(Skipped::UnknownTool(ready.function.clone()));
        };
        let output = tool.call(arguments.clone(), Arc::clone(&self.context), None).await;
        if output.is_error {
            // What it said may hold what no log is to hold.
            fails(span, "tool_error");
            let (label, event) = (ready.hook.label(), moment.name());
            tracing::warn!(target: TURN, "Hook `{label}` (event={event}): its tool failed, and the fallback of its tool set applies");
        }
        match tool.settled(output) {
            Called::Stop => Err(Skipped::Stopped),
            Called::Output { output, .. } if output.value.is_null() && moment == Moment::RequestStart => {
                Err(Skipped::NoResult)
            }
            Called::Output { output, is_fallback } => Ok(Given { arguments, content: output.text(), is_fallback }),
        }
    }
}

/// Tells the log why a hook was skipped.
fn tell(ready: &Ready, moment: Moment, why: &Skipped) {
    let (label, event) = (ready.hook.label(), moment.name());
    match why {
        Skipped::Raised => tracing::error!(target: TURN, "Hook `{label}` failed (event={event}): skipped"),
        Skipped::Timeout => {
            let seconds = ready.hook.timeout.as_secs_f64();
            tracing::warn!(target: TURN, "Hook `{label}` timed out (event={event}, timeout={seconds} s): skipped");
        }
        why => tracing::warn!(target: TURN, "Hook `{label}` skipped (event={event}): {why}"),
    }
}

impl Skipped {
    /// The cause in a word, for spans and statistics.
    const fn word(&self) -> &'static str {
        match self {
            Self::Unrendered(_) => "unrendered",
            Self::UnknownTool(_) => "unknown-tool",
            Self::NoResult => "no-result",
            Self::Stopped => "stopped",
            Self::Timeout => "timeout",
            Self::Raised => "raised",
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrendered(why) => out.write_str(why),
            Self::UnknownTool(name) => write!(out, "tool '{name}' not found in initialized tools"),
            Self::NoResult => out.write_str("its tool gave nothing"),
            Self::Stopped => out.write_str("its tool failed, and the tool set says `stop`"),
            Self::Timeout => out.write_str("it was not done in its time"),
            Self::Raised => out.write_str("its tool panicked"),
        }
    }
}
