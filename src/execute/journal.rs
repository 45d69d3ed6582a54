//! The iteration that runs: its state, and what has happened in it, told once and in order.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::event::ExecutionEvent;
use super::hooks::{ExecutionHook, HookFailure};
use super::iteration::Iteration;
use super::running::{Running, now_ms};
use super::status::Status;
use super::trace::{Trace, Traced};
use crate::conversation::Object;
use crate::step::{Outgoing, outgoing};
use crate::telemetry::EXECUTE;

/// One iteration, as all that happens in it sees and writes it.
pub(super) struct Journal {
    pub(super) running: Arc<Running>,
    pub(super) number: u32,
    iteration: Mutex<Arc<Iteration>>,
    /// One trace is told after the other, whoever makes it.
    telling: Mutex<()>,
    abort_told: AtomicBool,
}

/// How an iteration ends.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: Box<Status>,
    /// Why the execution ends with it, whatever the status.
    pub(super) fatal: Option<String>,
}

impl Ended {
    /// It ends so, and the status decides what comes next.
    pub(super) fn so(status: Status) -> Self {
        Self { status: Box::new(status), fatal: None }
    }

    /// It ends with an error, and the execution with it.
    pub(super) fn fatal(message: String) -> Self {
        let status = Status::ExecutionError { message: message.clone(), stack: String::new() };
        Self { status: Box::new(status), fatal: Some(message) }
    }
}

impl Journal {
    pub(super) fn new(running: Arc<Running>, iteration: Iteration) -> Self {
        let number = iteration.number;
        let iteration = Mutex::new(Arc::new(iteration));
        Self { running, number, iteration, telling: Mutex::new(()), abort_told: AtomicBool::new(false) }
    }

    /// The iteration as it stands.
    pub(super) fn now(&self) -> Arc<Iteration> {
        Arc::clone(&self.lock())
    }

    /// Changes it.
    pub(super) fn change(&self, change: impl FnOnce(&mut Iteration)) {
        change(Arc::make_mut(&mut *self.lock()));
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Iteration>> {
        self.iteration.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something has happened just now.
    pub(super) fn trace(&self, what: Traced) {
        self.tell(Trace { what, started_at: now_ms(), ended_at: None });
    }

    /// Something that began then has ended.
    pub(super) fn trace_since(&self, started_at: u64, what: Traced) {
        self.tell(Trace { what, started_at, ended_at: Some(now_ms()) });
    }

    fn tell(&self, trace: Trace) {
        let running = &self.running;
        let told = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        if running.hooks().has(ExecutionHook::OnTrace) {
            let hears = || running.hooks().on_trace(&trace, self.number, &running.controller);
            // What is only told of cannot be kept from happening.
            if panic::catch_unwind(AssertUnwindSafe(hears)).is_err() {
                tracing::warn!(target: EXECUTE, "`on_trace` has panicked");
            }
        }
        self.change(|iteration| iteration.traces.push(trace.clone()));
        running.tell(ExecutionEvent::Traced { iteration: self.number, trace: Box::new(trace) });
        drop(told);
    }

    /// Something has gone wrong that may still be caught.
    pub(super) fn went_wrong(&self, what: impl Into<String>) {
        let what = what.into();
        self.change(|iteration| iteration.errors.push(what));
    }

    /// Says something to the user, as the agent's own hooks leave it. Where the execution is no chat, nobody hears it.
    pub(super) async fn say(&self, text: &str) {
        let running = &self.running;
        if !running.plan.chat || running.controller.is_aborted() || text.trim().is_empty() {
            return;
        }
        let text = match outgoing(running.hooked(), text).await {
            Outgoing::Say(text) | Outgoing::Rejected { response: Some(text) } => text,
            Outgoing::Rejected { response: None } => return,
        };
        running.said.store(true, Ordering::Relaxed);
        self.trace(Traced::MessageDelivery { value: text.clone() });
        running.tell(ExecutionEvent::Message { text });
    }

    /// Ends the iteration where the execution has been aborted.
    pub(super) fn unless_aborted(&self) -> Result<(), Ended> {
        let Some(reason) = self.running.controller.reason() else { return Ok(()) };
        let reason = reason.to_owned();
        if !self.abort_told.swap(true, Ordering::Relaxed) {
            self.trace(Traced::AbortSignal { reason: reason.clone() });
        }
        Err(Ended::so(Status::Aborted { reason }))
    }

    /// How the iteration ends that a hook has failed in, outside of tool calls.
    pub(super) fn refused(&self, hook: ExecutionHook, failure: HookFailure) -> Ended {
        let message = format!("Error in {} hook: {}", hook.name(), failure.message());
        match failure {
            HookFailure::Think { reason, context } => {
                let variables = shown(&context);
                self.trace(Traced::ThinkSignal { reason: reason.clone(), context });
                Ended::so(Status::ThinkingRequested { reason: Some(reason), variables })
            }
            HookFailure::Critical { .. } => Ended::fatal(message),
            HookFailure::Failed { .. } | HookFailure::TimedOut { .. } => {
                Ended::so(Status::ExecutionError { message, stack: String::new() })
            }
        }
    }
}

/// What somebody wants the model to look at, by names.
pub(super) fn shown(context: &Value) -> Object {
    match context {
        Value::Object(object) => object.clone(),
        Value::Null => Object::new(),
        other => Object::from_iter([("value".to_owned(), other.clone())]),
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Journal").field("number", &self.number).finish_non_exhaustive()
    }
}
