//! Traces on their way to `on_trace`: each once, in order, one call after the other, and nobody waits for what it starts.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::select;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::execution_hooks::{payload, text};
use super::lane_calls::Lanes;
use crate::conversation::Object;
use crate::dispatch::{Registered, sleep};
use crate::execute::{Controller, ExecutionHook, Trace};
use crate::python::PyHandler;

/// Traces that wait for the hook, and the call that has some of them.
pub(super) struct TraceDelivery {
    lanes: Lanes,
    runs: Arc<Registered<PyHandler>>,
    state: Mutex<State>,
    heard: Notify,
}

#[derive(Default)]
struct State {
    waiting: Vec<Value>,
    /// Those that a call has now; 0: there is none.
    under_way: usize,
    put: u64,
    heard: u64,
}

impl TraceDelivery {
    pub(super) fn new(lanes: Lanes, runs: Arc<Registered<PyHandler>>) -> Arc<Self> {
        Arc::new(Self { lanes, runs, state: Mutex::default(), heard: Notify::new() })
    }

    /// Hands a trace over; never waits.
    pub(super) fn put(self: &Arc<Self>, trace: &Trace, iteration: u32, controller: &Controller) {
        let mut state = self.lock();
        state.waiting.push(json!([iteration, text(trace)]));
        state.put += 1;
        self.next(state, controller);
    }

    /// Ends when every trace so far has been heard, or when `within` is over.
    pub(super) async fn heard_within(&self, within: Duration) {
        let wanted = self.lock().put;
        let heard = async {
            loop {
                let notified = self.heard.notified();
                if self.lock().heard >= wanted {
                    return;
                }
                notified.await;
            }
        };
        select(pin!(heard), pin!(sleep(within))).await;
    }

    /// Gives all that wait to one call, unless there is one already.
    fn next(self: &Arc<Self>, mut state: MutexGuard<'_, State>, controller: &Controller) {
        if state.under_way > 0 || state.waiting.is_empty() {
            return;
        }
        let traces = std::mem::take(&mut state.waiting);
        state.under_way = traces.len();
        drop(state);
        let arguments = Object::from_iter([("traces".to_owned(), Value::Array(traces))]);
        let call = payload(ExecutionHook::OnTrace.name(), arguments, controller);
        let (me, controller) = (Arc::clone(self), controller.clone());
        // What has come of it is the hook's own affair; dispatch has told of a failure.
        self.lanes.ask(&self.runs, call, move |_| {
            let mut state = me.lock();
            state.heard += std::mem::take(&mut state.under_way) as u64;
            me.next(state, &controller);
            me.heard.notify_waiters();
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TraceDelivery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        out.debug_struct("TraceDelivery").field("put", &state.put).field("heard", &state.heard).finish_non_exhaustive()
    }
}
