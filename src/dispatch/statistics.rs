//! What happened to the calls of one handler, counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::call::Answer;
use crate::hooks::{HandlerId, Signal};

/// What happened to the calls of one handler since it was loaded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandlerStatistics {
    /// The handler.
    #[serde(flatten)]
    pub handler: Arc<HandlerId>,
    /// Calls that have ended, dropped observations not among them.
    pub calls: u64,
    /// Calls that changed the payload.
    pub changed: u64,
    /// Calls that gave it back as it was; for an observer, calls that ended well.
    pub unchanged: u64,
    /// Accepted `RetryModel` signals.
    pub retries: u64,
    /// Accepted `HookRejection` signals.
    pub rejections: u64,
    /// Signals that the point does not take.
    pub discarded_signals: u64,
    /// Failures by cause.
    pub failures: BTreeMap<&'static str, u64>,
    /// Observations that were dropped because the queue was full.
    pub dropped: u64,
    /// Calls that the caller gave up.
    pub withdrawn: u64,
    /// Time from the handler's first step to its last, in milliseconds; what it awaits included.
    pub handler_ms: f64,
    /// Median time from dispatch (for an observer, from its start) to the answer, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile of the same.
    pub p99_ms: f64,
}

/// Counts as calls end.
#[derive(Debug)]
pub(super) struct Counts(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    changed: u64,
    unchanged: u64,
    retries: u64,
    rejections: u64,
    discarded_signals: u64,
    failures: BTreeMap<&'static str, u64>,
    dropped: u64,
    withdrawn: u64,
    in_handler: Duration,
    elapsed: Elapsed,
}

/// How long calls have taken, in bounded memory.
#[derive(Debug)]
pub(crate) struct Elapsed(Histogram<u64>);

/// How long at least one handler has been running: what handlers wait for at the same time counts once.
#[derive(Debug, Default)]
pub(super) struct Occupancy(Mutex<Occupied>);

#[derive(Debug, Default)]
struct Occupied {
    running: usize,
    since: Option<Instant>,
    total: Duration,
}

impl Occupancy {
    /// A handler begins.
    pub(super) fn enter(&self) {
        let mut occupied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        occupied.running += 1;
        occupied.since.get_or_insert_with(Instant::now);
    }

    /// A handler has ended.
    pub(super) fn leave(&self) {
        let mut occupied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        occupied.running = occupied.running.saturating_sub(1);
        if occupied.running == 0 {
            let time = occupied.since.take().map_or(Duration::ZERO, |since| since.elapsed());
            occupied.total += time;
        }
    }

    pub(super) fn total(&self) -> Duration {
        let occupied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        occupied.total + occupied.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// The longest time the histogram tells apart, in microseconds: one hour.
const LONGEST_US: u64 = 3_600_000_000;

impl Default for Elapsed {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_US, 2).expect("the bounds are constants"))
    }
}

impl Elapsed {
    /// A call has taken this long.
    pub(crate) fn record(&mut self, elapsed: Duration) {
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(LONGEST_US);
        self.0.saturating_record(micros.max(1));
    }

    /// How many calls were recorded.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// A quantile, from 0 to 1, in milliseconds.
    pub(crate) fn millis(&self, quantile: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an hour in microseconds is below 2^53")]
        let micros = self.0.value_at_quantile(quantile) as f64;
        micros / 1e3
    }
}

impl Counts {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Inner {
            changed: 0,
            unchanged: 0,
            retries: 0,
            rejections: 0,
            discarded_signals: 0,
            failures: BTreeMap::new(),
            dropped: 0,
            withdrawn: 0,
            in_handler: Duration::ZERO,
            elapsed: Elapsed::default(),
        }))
    }

    /// Counts the end of a call of the handler `id`.
    pub(super) fn record(&self, id: &HandlerId, answer: &Answer, elapsed: Duration) {
        let mut inner = self.lock();
        match answer {
            Answer::Unchanged => inner.unchanged += 1,
            Answer::Changed(_) => inner.changed += 1,
            Answer::Signal(signal) => match signal {
                _ if !id.takes(signal) => inner.discarded_signals += 1,
                Signal::Retry { .. } => inner.retries += 1,
                Signal::Rejection { .. } => inner.rejections += 1,
            },
            Answer::Failure(cause) => *inner.failures.entry(cause.word()).or_default() += 1,
            Answer::Dropped => {
                inner.dropped += 1;
                return;
            }
            Answer::Withdrawn => {
                inner.withdrawn += 1;
                return;
            }
        }
        inner.elapsed.record(elapsed);
    }

    /// Adds time that was spent in the handler itself.
    pub(super) fn in_handler(&self, time: Duration) {
        self.lock().in_handler += time;
    }

    pub(super) fn read(&self, handler: Arc<HandlerId>) -> HandlerStatistics {
        let inner = self.lock();
        HandlerStatistics {
            handler,
            calls: inner.elapsed.count(),
            changed: inner.changed,
            unchanged: inner.unchanged,
            retries: inner.retries,
            rejections: inner.rejections,
            discarded_signals: inner.discarded_signals,
            failures: inner.failures.clone(),
            dropped: inner.dropped,
            withdrawn: inner.withdrawn,
            handler_ms: inner.in_handler.as_secs_f64() * 1e3,
            p50_ms: inner.elapsed.millis(0.5),
            p99_ms: inner.elapsed.millis(0.99),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
