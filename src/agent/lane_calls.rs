//! Calls of handlers by what is no point of the catalogue: an agent's tools, and the hooks, tools and models of an execution.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use tokio::sync::oneshot;

use super::engine::{LoadedHooks, Run};
use crate::conversation::Object;
use crate::dispatch::{Answer, Dispatcher, Registered, Withdraw, sleep};
use crate::hooks::{AnyPayload, FailureCause, Payload as _, Signal, ToolCallPayload};
use crate::python::PyHandler;
use crate::tools::{Invocation, Said, ToolContext};

/// How long a tool that has been cancelled is waited for: its thread may be one that does not answer.
const UNWINDING: Duration = Duration::from_secs(1);

/// Where handlers run.
#[derive(Clone)]
pub(crate) enum Lanes {
    /// On the lanes of an agent.
    Agent(Arc<LoadedHooks>),
    /// On a loop of the caller's.
    Caller(Arc<Dispatcher<PyHandler>>),
}

impl Lanes {
    fn dispatcher(&self) -> &Dispatcher<PyHandler> {
        match self {
            Self::Caller(dispatcher) => dispatcher,
            Self::Agent(loaded) => {
                let Run::Here(dispatcher) = &loaded.hooks else { unreachable!("what is no hook runs on threads") };
                dispatcher
            }
        }
    }

    /// Calls a handler; `then` hears the answer, on whatever thread it falls.
    pub(super) fn ask(
        &self,
        handler: &Arc<Registered<PyHandler>>,
        payload: ToolCallPayload,
        then: impl FnOnce(Answer) + Send + 'static,
    ) -> Arc<dyn Withdraw> {
        self.dispatcher().ask(handler, payload.into_any(), Duration::ZERO, move |answer, _| then(answer))
    }

    /// Calls a handler and waits for its answer. Dropping the future cancels the handler.
    pub(super) async fn asked(&self, handler: &Arc<Registered<PyHandler>>, payload: ToolCallPayload) -> Answer {
        let (tell, told) = oneshot::channel();
        let _withdrawing = Withdrawing(self.ask(handler, payload, move |answer| drop(tell.send(answer))));
        match told.await {
            Ok(Answer::Failure(cause)) => Answer::Failure(of_value(cause)),
            Ok(answer) => answer,
            Err(_) => Answer::Failure(FailureCause::Lost),
        }
    }

    /// Calls a tool in the turn, or the execution, of `context`.
    pub(super) async fn called(
        &self,
        tool: &Arc<Registered<PyHandler>>,
        name: &str,
        arguments: Object,
        context: Arc<dyn ToolContext>,
    ) -> Result<Object, NoResult> {
        let mut invocation = Invocation::begin(Arc::clone(&context));
        let mut payload = ToolCallPayload::new(context.sender_id(), name, arguments);
        payload.headers.insert("invocation".to_owned(), invocation.number.to_string());
        let given = payload.arguments.clone();
        let (tell, mut told) = oneshot::channel();
        let withdrawing = Withdrawing(self.ask(tool, payload, move |answer| drop(tell.send(answer))));
        let (mut cancelled, mut over) = (context.cancelled(), false);
        let answer = loop {
            tokio::select! {
                biased;
                Some(said) = invocation.said.recv() => {
                    over |= matches!(said, Said::Over);
                    hear(&*context, said).await;
                }
                answer = &mut told => break answer,
                () = &mut cancelled => {
                    drop(withdrawing);
                    if !over {
                        let (unwound, late) = (pin!(unwind(&mut invocation, &*context)), pin!(sleep(UNWINDING)));
                        select(unwound, late).await;
                    }
                    return Err(NoResult::Cancelled);
                }
            }
        };
        // What it said last stands before its result.
        while let Ok(said) = invocation.said.try_recv() {
            hear(&*context, said).await;
        }
        match answer.unwrap_or(Answer::Failure(FailureCause::Lost)) {
            Answer::Unchanged => Ok(given),
            Answer::Changed(AnyPayload::ToolCall(payload)) => Ok(payload.arguments),
            Answer::Changed(_) | Answer::Dropped | Answer::Withdrawn => Err(NoResult::Failed(FailureCause::Lost)),
            Answer::Signal(signal) => Err(NoResult::Signalled(signal)),
            Answer::Failure(cause) => Err(NoResult::Failed(of_value(cause))),
        }
    }
}

/// What is wrong with a value that was given, without the payload that it was carried in.
fn of_value(cause: FailureCause) -> FailureCause {
    const CARRIED: &str = "It returned a `ToolCallPayload` in which `arguments.";
    let FailureCause::InvalidResult { message } = &cause else { return cause };
    let Some((place, wrong)) = message.strip_prefix(CARRIED).and_then(|rest| rest.split_once('`')) else {
        return cause;
    };
    // The name under which it was carried comes first.
    let inside = place.find(['.', '[']).map(|at| place[at..].trim_start_matches('.'));
    let place = inside.map(|inside| format!(" at `{inside}`")).unwrap_or_default();
    FailureCause::InvalidResult { message: format!("It gave a value that{place}{wrong}") }
}

/// Why a call of a tool gives no result.
#[derive(Debug)]
pub(super) enum NoResult {
    /// The turn was cancelled.
    Cancelled,
    /// It failed.
    Failed(FailureCause),
    /// It raised a signal that no tool raises.
    Signalled(Signal),
}

async fn hear(context: &dyn ToolContext, said: Said) {
    match said {
        Said::Whole(utterance) => context.send(utterance).await,
        Said::Piece(piece) => context.write(&piece),
        Said::Buttons(buttons) => context.set_buttons(buttons),
        Said::Over => {}
    }
}

/// Waits until a tool that has been cancelled is over: until then it is within its turn, so that what it writes to memory stays.
async fn unwind(invocation: &mut Invocation, context: &dyn ToolContext) {
    while let Some(said) = invocation.said.recv().await {
        if matches!(said, Said::Over) {
            break;
        }
        hear(context, said).await;
    }
}

/// Withdraws its call when it is dropped; a call that is over does not mind.
struct Withdrawing(Arc<dyn Withdraw>);

impl Drop for Withdrawing {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Self::Agent(_) => "Agent",
            Self::Caller(_) => "Caller",
        };
        out.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_value_is_told_without_what_carried_it() {
        let invalid = |message: &str| FailureCause::InvalidResult { message: message.to_owned() };
        let carried = |rest: &str| invalid(&format!("It returned a `ToolCallPayload` in which `arguments.{rest}"));
        for (cause, expected) in [
            (carried("llm_response` is nan"), invalid("It gave a value that is nan")),
            (carried("given[0].total` is nan"), invalid("It gave a value that at `[0].total` is nan")),
            (carried("given.total` is nan"), invalid("It gave a value that at `total` is nan")),
            (invalid("It returned a `str`"), invalid("It returned a `str`")),
            (FailureCause::Lost, FailureCause::Lost),
        ] {
            assert_eq!(of_value(cause), expected);
        }
    }
}
