//! How an engine's threads are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::dispatcher::Dispatcher;
use super::lanes::Stage;
use crate::hooks::HandlerId;

/// How an engine's threads are, and what waits for them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineHealth {
    /// Calls and observations that wait or run.
    pub open: usize,
    /// Threads that run handlers, or are being started for it.
    pub serving: usize,
    /// Threads that do not answer, but have not been given up.
    pub stuck: usize,
    /// Threads that have been given up and have not come back.
    pub retired: Vec<StuckThread>,
    /// How many threads may be stuck or given up at once.
    pub most_lost: usize,
    /// No thread answers, and no further one may be had: calls fail by policy.
    pub exhausted: bool,
    /// How often waiting calls have been moved to a fresh thread.
    pub taken_over: u64,
    /// Calls that were suspended on an event loop which another handler blocked until their deadline.
    pub loop_lost: u64,
    /// Handlers that are not called any more, since each has cost three threads.
    pub quarantined: Vec<Arc<HandlerId>>,
    /// The process that the hooks run in, where it is one of their own. Then what is told of threads is theirs in that process, as it said
    /// last, and none is ever given up.
    pub worker: Option<WorkerHealth>,
}

/// The process that an agent's hooks run in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerHealth {
    /// Its number; none while it is being started.
    pub process: Option<u32>,
    /// How often it was started again.
    pub restarts: u64,
    /// Where the thread was that it was last killed for, the innermost frame last; empty where nobody could look.
    pub stack: Vec<String>,
}

/// A thread that has been given up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StuckThread {
    /// The handler whose step it is stuck in; none: what a handler has started outside of any task.
    pub handler: Option<Arc<HandlerId>>,
    /// How long ago it was given up.
    #[serde(rename = "for_ms", serialize_with = "crate::hooks::as_millis")]
    pub since: Duration,
    /// Where it is stuck, the innermost frame last; empty while nobody could look.
    pub stack: Vec<String>,
}

impl<H: Send + Sync + 'static> Dispatcher<H> {
    /// How the lanes are.
    pub(crate) fn health(&self) -> EngineHealth {
        let now = Instant::now();
        let state = self.queue().lock();
        let count = |stages: &[Stage]| state.lanes.all.iter().filter(|lane| stages.contains(&lane.stage)).count();
        let retired = state.lanes.all.iter().filter(|lane| lane.stage == Stage::Retired).map(|lane| StuckThread {
            handler: lane.culprit.as_ref().map(|handler| Arc::clone(&handler.id)),
            since: lane.retired_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at)),
            stack: lane.stack.clone(),
        });
        EngineHealth {
            open: state.open,
            serving: count(&[Stage::Starting, Stage::Serving, Stage::Leaving]),
            stuck: count(&[Stage::Stuck]),
            retired: retired.collect(),
            most_lost: self.queue().patience.threads,
            exhausted: state.exhausted,
            taken_over: state.taken_over,
            loop_lost: state.loop_lost,
            quarantined: self
                .handlers()
                .filter(|handler| handler.is_quarantined())
                .map(|handler| Arc::clone(&handler.id))
                .collect(),
            worker: None,
        }
    }
}
