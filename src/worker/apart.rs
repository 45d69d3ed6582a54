//! A handler that runs in another process, as the queue of its calls sees it.

use std::sync::Arc;
use std::time::Duration;

use crate::dispatch::{Crew, LaneId, LaneQueue, Order, Patience, Wake};
use crate::hooks::HandlerId;

/// How long after a deadline the worker's own verdict may still come: it knows better why a handler is not done. Twenty times what a
/// frame takes.
const MARGIN: Duration = Duration::from_millis(2);

/// What runs a handler in a worker: its place in the worker's list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Apart(pub(super) u32);

/// The queue's one lane is served by whoever wakes it: it always answers.
pub(super) const PATIENCE: Patience = Patience {
    answer: Duration::from_hours(1),
    share: 1.0,
    give_up: Duration::from_hours(1),
    callback: Duration::from_hours(1),
    threads: 0,
    margin: MARGIN,
};

/// No thread is ever hired, and none is struck.
#[derive(Debug)]
pub(super) struct Alone;

impl Crew<Apart> for Alone {
    fn hire(&self, _: &Arc<LaneQueue<Apart>>, _: LaneId) -> Option<Wake> {
        None
    }

    fn order(&self, _: &Arc<LaneQueue<Apart>>, _: LaneId, _: Order) {}

    fn is_awake(&self, _: LaneId) -> bool {
        false
    }

    fn processor_time(&self, _: LaneId) -> Option<Duration> {
        None
    }

    fn lose(&self, _: &[Arc<HandlerId>]) -> bool {
        false
    }
}
