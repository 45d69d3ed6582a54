//! One call of one handler: waiting, started, settled. It is settled exactly once, by whoever comes first.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::clock::{self, Expire};
use super::dispatcher::Registered;
use super::lanes::LaneId;
use super::queue::LaneQueue;
use crate::hooks::{AnyPayload, FailureCause, HandlerId, Lane, Signal};
use crate::telemetry::DISPATCH;

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a payload on the stack is cheaper than one more allocation a call")]
pub(crate) enum Answer {
    /// The handler gave back what it got.
    Unchanged,
    /// The handler gave back another payload of the same point.
    Changed(AnyPayload),
    /// The handler raised a control signal.
    Signal(Signal),
    /// The handler failed.
    Failure(FailureCause),
    /// The observation was dropped from a full queue.
    Dropped,
    /// The caller gave the call up.
    Withdrawn,
}

/// Hears of a call's end: the answer, and how long after dispatch it fell.
pub(super) type Reply = Box<dyn FnOnce(Answer, Duration) + Send>;

const WAITING: u8 = 0;
const STARTED: u8 = 1;
const SETTLED: u8 = 2;

/// One call of a handler that runs on something of type `H`.
pub(crate) struct Call<H: Send + Sync + 'static> {
    handler: Arc<Registered<H>>,
    payload: Arc<AnyPayload>,
    serial: u64,
    dispatched: Instant,
    started: OnceLock<Instant>,
    /// The lane that has begun it; 0: none.
    lane: AtomicU32,
    state: AtomicU8,
    reply: Mutex<Option<Reply>>,
    queue: Weak<LaneQueue<H>>,
    span: tracing::Span,
}

impl<H: Send + Sync + 'static> Call<H> {
    pub(super) fn new(
        handler: Arc<Registered<H>>,
        payload: Arc<AnyPayload>,
        queue: &Arc<LaneQueue<H>>,
        reply: Option<Reply>,
    ) -> Arc<Self> {
        let id = &handler.id;
        let span = tracing::debug_span!(
            target: DISPATCH, "dispatch",
            point = id.point.name(), lane = id.lane.name(), module = id.module, function = id.function,
            outcome = tracing::field::Empty, changed = tracing::field::Empty, elapsed_ms = tracing::field::Empty,
        );
        Arc::new(Self {
            payload,
            serial: queue.next_serial(),
            dispatched: Instant::now(),
            started: OnceLock::new(),
            lane: AtomicU32::new(0),
            state: AtomicU8::new(WAITING),
            reply: Mutex::new(reply),
            queue: Arc::downgrade(queue),
            handler,
            span,
        })
    }

    /// What runs the handler.
    pub(crate) fn handler(&self) -> &Registered<H> {
        &self.handler
    }

    /// The payload as it entered the point.
    pub(crate) fn payload(&self) -> &AnyPayload {
        &self.payload
    }

    /// The call's number; unique within its queue.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// Claims the call for the lane that asks first. `false`: it is over, or another lane has it.
    ///
    /// An observer's time runs from here: it must not pay for the queue in front of it.
    pub(crate) fn begin(self: &Arc<Self>, lane: LaneId) -> bool {
        let claimed = self.claim(lane);
        if claimed && self.handler.id.lane == Lane::Observe {
            self.limit(Instant::now());
        }
        claimed
    }

    /// As [`Call::begin`], but an observer's time is left to whoever runs it.
    pub(crate) fn claim(&self, lane: LaneId) -> bool {
        let observer = self.handler.id.lane == Lane::Observe;
        let claimed = self.state.compare_exchange(WAITING, STARTED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if let Some(queue) = self.queue.upgrade() {
            queue.begun(lane, self.serial, claimed, observer);
        }
        if !claimed {
            return false;
        }
        self.lane.store(lane, Ordering::Release);
        self.started.set(Instant::now()).expect("the exchange above succeeds once");
        true
    }

    /// Sets the call's deadline, one time-out after `from`.
    pub(super) fn limit(self: &Arc<Self>, from: Instant) {
        let call: Weak<Self> = Arc::downgrade(self);
        let margin = self.queue.upgrade().map_or(Duration::ZERO, |queue| queue.patience.margin);
        // A time-out beyond what the clock can count never comes.
        if let Some(deadline) = from.checked_add(self.handler.id.timeout + margin) {
            clock::expire_at(deadline, call);
        }
    }

    /// When the call was dispatched.
    pub(crate) fn dispatched(&self) -> Instant {
        self.dispatched
    }

    /// How long ago the handler was started; nothing where it was not.
    pub(crate) fn running(&self) -> Duration {
        self.started.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// The handler's own code begins.
    pub(crate) fn enter(&self) {
        if let Some(queue) = self.queue.upgrade() {
            queue.occupancy().enter();
        }
    }

    /// The handler's own code has ended, `time` after it began.
    pub(crate) fn leave(&self, time: Duration) {
        self.handler.counts.in_handler(time);
        if let Some(queue) = self.queue.upgrade() {
            queue.occupancy().leave();
        }
        self.leave_lane();
    }

    /// Nothing of the call runs on its lane any more.
    pub(crate) fn leave_lane(&self) {
        if let Some(queue) = self.queue.upgrade() {
            queue.left(self.lane.load(Ordering::Acquire), self.serial);
        }
    }

    /// Ends the call. Only the first end counts; the answer is whether this was it.
    pub(crate) fn settle(&self, answer: Answer) -> bool {
        self.end(answer, false)
    }

    /// As [`Call::settle`]; with `cancel` the task of a call that has started is cancelled, before the end is told.
    fn end(&self, answer: Answer, cancel: bool) -> bool {
        let before = self.state.swap(SETTLED, Ordering::AcqRel);
        if before == SETTLED {
            return false;
        }
        let queue = self.queue.upgrade();
        if let Some(queue) = &queue
            && cancel
            && before == STARTED
        {
            queue.overrun(self.lane.load(Ordering::Acquire), self.serial, &self.handler);
        }
        let from = match self.handler.id.lane {
            Lane::Observe => *self.started.get().unwrap_or(&self.dispatched),
            Lane::Modify => self.dispatched,
        };
        let elapsed = from.elapsed();
        self.handler.counts.record(&self.handler.id, &answer, elapsed);
        let told = Told::of(&self.handler.id, &answer);
        let reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reply) = reply {
            match &queue {
                // The lane's own answers may wait for the end of its drain; a verdict never does.
                Some(queue) if before == STARTED && !cancel => {
                    queue.held.give(self.lane.load(Ordering::Acquire), reply, answer, elapsed);
                }
                _ => reply(answer, elapsed),
            }
        }
        if let Some(queue) = queue {
            queue.settled(self.handler.id.lane, before == STARTED);
        }
        // After the reply: where logs go may be slow, and no verdict waits for it.
        self.report(&told, elapsed);
        true
    }

    /// Whether the engine is being shut down.
    pub(crate) fn shutting_down(&self) -> bool {
        self.queue.upgrade().is_none_or(|queue| queue.stopping())
    }

    fn report(&self, told: &Told, elapsed: Duration) {
        let elapsed_ms = (elapsed.as_secs_f64() * 1e6).round() / 1e3;
        self.span.record("outcome", told.outcome).record("elapsed_ms", elapsed_ms);
        if told.changed {
            self.span.record("changed", true);
        }
        let id = &self.handler.id;
        match &told.warning {
            Some(warning) => tracing::warn!(
                target: DISPATCH, parent: &self.span,
                point = id.point.name(), lane = id.lane.name(), module = id.module, function = id.function,
                outcome = told.outcome, elapsed_ms, "{warning}",
            ),
            None => tracing::debug!(
                target: DISPATCH, parent: &self.span, outcome = told.outcome, elapsed_ms, "Dispatched",
            ),
        }
    }
}

/// A call that is under way, whatever runs it.
pub(crate) trait Withdraw: Send + Sync {
    /// Nobody waits for it any more: its task is cancelled.
    fn withdraw(&self);
}

impl<H: Send + Sync + 'static> Withdraw for Call<H> {
    fn withdraw(&self) {
        self.end(Answer::Withdrawn, true);
    }
}

/// What the log says of a call's end.
struct Told {
    /// The published words `success`, `error`, `timeout`, `rejection` and `retry`; ours for what has none.
    outcome: &'static str,
    changed: bool,
    warning: Option<String>,
}

impl Told {
    fn of(handler: &HandlerId, answer: &Answer) -> Self {
        let changed = matches!(answer, Answer::Changed(_));
        let (outcome, warning) = match answer {
            Answer::Unchanged | Answer::Changed(_) => ("success", None),
            Answer::Signal(signal) if handler.takes(signal) => match signal {
                Signal::Retry { .. } => ("retry", None),
                Signal::Rejection { .. } => ("rejection", None),
            },
            Answer::Signal(signal) => {
                let (signal, who) = (
                    signal.kind().name(),
                    match handler.lane {
                        Lane::Observe => "an observer raises no signals",
                        Lane::Modify => "this point does not take it",
                    },
                );
                ("discarded", Some(format!("{signal} discarded: {who}")))
            }
            Answer::Failure(cause @ FailureCause::Timeout { .. }) => {
                ("timeout", Some(format!("Handler failed: {cause}")))
            }
            Answer::Failure(cause) => ("error", Some(format!("Handler failed: {cause}"))),
            Answer::Dropped => ("dropped", None),
            Answer::Withdrawn => ("withdrawn", None),
        };
        Self { outcome, changed, warning }
    }
}

impl<H: Send + Sync + 'static> Expire for Call<H> {
    fn expire(&self) {
        let limit_ms = u64::try_from(self.handler.id.timeout.as_millis()).unwrap_or(u64::MAX);
        let lane = self.lane.load(Ordering::Acquire);
        let cause = match self.queue.upgrade() {
            Some(queue) if self.state.load(Ordering::Acquire) == STARTED && lane != 0 => {
                let began = *self.started.get().unwrap_or(&self.dispatched);
                queue.cause_at_deadline(lane, self.serial, began, self.handler.id.timeout)
            }
            Some(queue) if queue.is_down() => FailureCause::WorkerRestarted,
            _ => FailureCause::Timeout { limit_ms },
        };
        self.end(Answer::Failure(cause), true);
    }
}

impl<H: Send + Sync + 'static> Drop for Call<H> {
    fn drop(&mut self) {
        self.settle(Answer::Failure(FailureCause::Lost));
    }
}

impl<H: Send + Sync + 'static> fmt::Debug for Call<H> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Call")
            .field("handler", &self.handler.id)
            .field("serial", &self.serial)
            .finish_non_exhaustive()
    }
}
