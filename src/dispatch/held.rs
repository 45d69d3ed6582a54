//! Answers that are given during a drain, held back until it is over: a caller that sleeps is woken once for all of them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::call::{Answer, Reply};
use super::lanes::LaneId;

/// The longest that an answer is held back by the answers after it. Longer than a drain of fast handlers takes; a handler that
/// computes for long must not keep the answers of others.
const LONGEST: Duration = Duration::from_micros(200);

/// Answers of one drain.
#[derive(Default)]
pub(super) struct Held(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// The lane whose drain is not over.
    draining: Option<LaneId>,
    since: Option<Instant>,
    answers: Vec<(Reply, Answer, Duration)>,
}

impl Held {
    /// A drain of `lane` begins.
    pub(super) fn begin(&self, lane: LaneId) {
        self.lock().draining = Some(lane);
    }

    /// Holds an answer of `lane` back while its drain is not over; gives it otherwise, after those that wait.
    pub(super) fn give(&self, lane: LaneId, reply: Reply, answer: Answer, elapsed: Duration) {
        let mut inner = self.lock();
        if inner.draining != Some(lane) {
            drop(inner);
            reply(answer, elapsed);
            return;
        }
        inner.answers.push((reply, answer, elapsed));
        let now = Instant::now();
        if now.saturating_duration_since(*inner.since.get_or_insert(now)) > LONGEST {
            inner.since = None;
            let answers = std::mem::take(&mut inner.answers);
            drop(inner);
            tell(answers);
        }
    }

    /// A drain is over, or must not be waited for any longer.
    pub(super) fn flush(&self, lane: LaneId) {
        let mut inner = self.lock();
        if inner.draining == Some(lane) {
            inner.draining = None;
        }
        inner.since = None;
        let answers = std::mem::take(&mut inner.answers);
        drop(inner);
        tell(answers);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let answers = std::mem::take(&mut self.lock().answers);
        tell(answers);
    }
}

/// Never under the lock: who hears may call the engine at once.
fn tell(answers: Vec<(Reply, Answer, Duration)>) {
    for (reply, answer, elapsed) in answers {
        reply(answer, elapsed);
    }
}
