//! What generated code reaches: its tools, the exits, and the one who looks at what it shows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Notify;

use super::exiting::{Reached, reached};
use super::journal::Journal;
use super::plan::LISTEN;
use super::runner::{CodeHost, HostCall, HostRefusal};
use super::trace::Traced;

/// The function with which code ends the execution.
pub(super) const EXIT: &str = "exit";
/// The function with which code shows a value to the model.
pub(super) const INSPECT: &str = "inspect";

/// Answers the code of one iteration.
pub(super) struct Desk {
    pub(super) journal: Arc<Journal>,
    /// The id under which the model asked for the code, where it did so by a native call.
    pub(super) native_call_id: Option<String>,
    stop: Mutex<Option<Stop>>,
    thoughts: Mutex<Vec<(String, Value)>>,
    pub(super) under_way: AtomicUsize,
    pub(super) idle: Notify,
}

/// Why code was stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// It has reached an exit.
    Exit(Reached),
    /// It has shown a value.
    Inspect(Value),
    /// A hook wants the execution to end.
    Critical(String),
    /// It went on calling tools that it may not call any more.
    Overspent(String),
}

impl Desk {
    pub(super) fn new(journal: Arc<Journal>, native_call_id: Option<String>) -> Self {
        Self {
            journal,
            native_call_id,
            stop: Mutex::default(),
            thoughts: Mutex::default(),
            under_way: AtomicUsize::new(0),
            idle: Notify::new(),
        }
    }

    /// Why the code was stopped, and what the model is to look at.
    pub(super) fn closed(self) -> (Option<Stop>, Vec<(String, Value)>) {
        let stop = self.stop.into_inner().unwrap_or_else(PoisonError::into_inner);
        (stop, self.thoughts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops the code; only the first reason counts.
    pub(super) fn stops(&self, stop: Stop) -> HostRefusal {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(stop);
        HostRefusal::Stop
    }

    /// Whether nothing of the code is to go on.
    pub(super) fn is_over(&self) -> bool {
        let stopped = self.stop.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        stopped || self.journal.running.controller.is_aborted()
    }

    /// The model is to look at something when the code is done.
    pub(super) fn thinks(&self, reason: String, context: Value) {
        self.journal.trace(Traced::ThinkSignal { reason: reason.clone(), context: context.clone() });
        self.thoughts.lock().unwrap_or_else(PoisonError::into_inner).push((reason, context));
    }

    /// Raises in the code.
    pub(super) fn raises(&self, kind: &str, message: String) -> HostRefusal {
        self.journal.went_wrong(format!("{kind}: {message}"));
        HostRefusal::Raise { kind: kind.to_owned(), message }
    }

    /// Ends when no tool call is under way.
    pub(super) async fn idles(&self) {
        loop {
            let idle = self.idle.notified();
            if self.under_way.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }

    fn exit(&self, call: HostCall) -> HostRefusal {
        let running = &self.journal.running;
        match reached(&running.plan, call) {
            Ok(reached) => {
                let silent = running.plan.exits[reached.exit].name == LISTEN && !running.said.load(Ordering::Relaxed);
                if running.plan.chat && silent {
                    let text =
                        "The user has been told nothing yet: write what they are to read as text beside your code";
                    return self.raises("ValueError", text.to_owned());
                }
                self.stops(Stop::Exit(reached))
            }
            Err((kind, text)) => self.raises(kind, text),
        }
    }

    fn inspect(&self, call: HostCall) -> HostRefusal {
        let value = match (call.positional.len(), call.named.is_empty()) {
            (1, true) => call.positional.into_iter().next().unwrap_or_default(),
            (0, false) => Value::Object(call.named),
            (_, true) => Value::Array(call.positional),
            (_, false) => {
                let mut shown = call.named;
                shown.insert("values".into(), call.positional.into());
                Value::Object(shown)
            }
        };
        self.stops(Stop::Inspect(value))
    }
}

impl CodeHost for Desk {
    fn call(&self, call: HostCall) -> BoxFuture<'_, Result<Value, HostRefusal>> {
        Box::pin(async move {
            if self.is_over() {
                return Err(HostRefusal::Stop);
            }
            match call.name.as_str() {
                EXIT => Err(self.exit(call)),
                INSPECT => Err(self.inspect(call)),
                _ => self.tool(call).await,
            }
        })
    }

    fn printed(&self, text: &str) {
        self.journal.trace(Traced::Log { message: text.to_owned() });
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Desk").field("journal", &self.journal).finish_non_exhaustive()
    }
}
