//! What waits for an agent's lanes: calls of the turn path first, observations in their order, the oldest dropped when too many wait.
//!
//! A modify call overtakes observations of *other* conversations; those of its own conversation that came before it start
//! before it, so that a modifier sees the state that observers filled earlier in the same turn.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::call::{Answer, Call};
use super::held::Held;
use super::lanes::{Crew, LaneId, Lanes, Wake};
use super::statistics::Occupancy;
use super::supervision::Patience;
use super::waiting::{Phase, Waiting};
use crate::hooks::{AnyPayload, FailureCause, Lane};

/// How long a lane looks for work before it sleeps, and a caller whose call is the only one for its answer. To wake a thread and be
/// woken by it takes 20 to 40 µs on common machines: longer than a short handler and all that is around it.
pub(crate) const SPIN: Duration = Duration::from_micros(50);

/// How much may wait and run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// Modify calls that may wait; more are answered by policy at once.
    pub(crate) turn: usize,
    /// Observations that may wait; for more the oldest are dropped.
    pub(crate) watch: usize,
    /// Bytes that the payloads of waiting observations may hold, about.
    pub(crate) watch_bytes: usize,
    /// Observers that may run at once.
    pub(crate) running: i64,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self { turn: 16_384, watch: 4_096, watch_bytes: 64 << 20, running: 1_024 }
    }
}

/// The calls that wait for an agent's lanes.
pub(crate) struct LaneQueue<H: Send + Sync + 'static> {
    state: Mutex<Waiting<H>>,
    serial: AtomicU64,
    pub(super) limits: QueueLimits,
    pub(super) patience: Patience,
    pub(super) crew: Arc<dyn Crew<H>>,
    pub(super) me: Weak<Self>,
    hasher: RandomState,
    pub(super) room: Notify,
    idle: Notify,
    pub(super) ended: Notify,
    occupancy: Occupancy,
    pub(super) held: Held,
    pub(super) spins: AtomicBool,
    down: AtomicBool,
}

impl<H: Send + Sync + 'static> LaneQueue<H> {
    /// A queue whose first lane is woken by `wake`; further ones are hired from `crew`.
    pub(crate) fn new(limits: QueueLimits, patience: Patience, crew: Arc<dyn Crew<H>>, wake: Wake) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            state: Mutex::new(Waiting {
                turn: VecDeque::new(),
                watch: VecDeque::new(),
                watch_bytes: 0,
                senders: HashMap::new(),
                paired: false,
                begun: HashMap::new(),
                unstarted: HashMap::new(),
                moved: VecDeque::new(),
                lanes: Lanes::new(wake),
                looks_at: None,
                exhausted: false,
                taken_over: 0,
                loop_lost: 0,
                running: 0,
                open: 0,
                phase: Phase::Open,
            }),
            serial: AtomicU64::new(1),
            limits,
            patience,
            crew,
            me: me.clone(),
            hasher: RandomState::new(),
            room: Notify::new(),
            idle: Notify::new(),
            ended: Notify::new(),
            occupancy: Occupancy::default(),
            held: Held::default(),
            spins: AtomicBool::new(false),
            down: AtomicBool::new(false),
        })
    }

    pub(super) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Puts a modify call in, or settles it at once when there is no room or the engine is shut down.
    pub(super) fn push_turn(&self, call: Arc<Call<H>>) {
        let sender = self.hasher.hash_one(call.payload().sender_id());
        let mut state = self.lock();
        state.open += 1;
        let refusal = match () {
            () if state.phase > Phase::Open => FailureCause::ShutDown,
            () if call.handler().is_quarantined() => FailureCause::Quarantined,
            () if state.exhausted => FailureCause::ThreadsExhausted,
            () if state.turn.len() >= self.limits.turn => FailureCause::EngineFull,
            () => {
                state.turn.push_back((sender, call));
                self.wake(state);
                return;
            }
        };
        drop(state);
        call.settle(Answer::Failure(refusal));
    }

    /// Says whether both the starts and the ends of turns are observed.
    pub(super) fn pair_turns(&self, paired: bool) {
        self.lock().paired = paired;
    }

    /// Puts the calls of one occurrence in; drops the oldest observations when there is no room.
    pub(super) fn push_watch(&self, calls: VecDeque<Arc<Call<H>>>, payload: Arc<AnyPayload>) {
        self.put_watch(self.lock(), calls, payload);
    }

    /// As [`LaneQueue::push_watch`], but gives the calls back when there is no room.
    pub(super) fn offer_watch(
        &self,
        calls: VecDeque<Arc<Call<H>>>,
        payload: Arc<AnyPayload>,
    ) -> Result<(), VecDeque<Arc<Call<H>>>> {
        let state = self.lock();
        if state.phase == Phase::Open && state.is_full(payload.weight(), &self.limits) {
            return Err(calls);
        }
        self.put_watch(state, calls, payload);
        Ok(())
    }

    fn put_watch(
        &self,
        mut state: MutexGuard<'_, Waiting<H>>,
        calls: VecDeque<Arc<Call<H>>>,
        payload: Arc<AnyPayload>,
    ) {
        state.open += calls.len();
        let sender = self.hasher.hash_one(payload.sender_id());
        let open = state.phase == Phase::Open;
        let refusal = |call: &Arc<Call<H>>| match () {
            () if open && call.handler().is_quarantined() => Some(FailureCause::Quarantined),
            () if open && state.exhausted => Some(FailureCause::ThreadsExhausted),
            () => None,
        };
        let mut dropped = Vec::new();
        let mut admitted = VecDeque::with_capacity(calls.len());
        for call in calls {
            match refusal(&call) {
                Some(cause) => dropped.push((call, Answer::Failure(cause))),
                None => admitted.push_back(call),
            }
        }
        dropped.extend(state.admit(admitted, payload, sender, &self.limits));
        if state.watch.is_empty() {
            drop(state);
        } else {
            self.wake(state);
        }
        for (call, answer) in dropped {
            call.settle(answer);
        }
    }

    /// Ends when [`LaneQueue::offer_watch`] may find room.
    pub(super) fn room(&self) -> tokio::sync::futures::Notified<'_> {
        self.room.notified()
    }

    /// How many calls have not been settled.
    pub(crate) fn open(&self) -> usize {
        self.lock().open
    }

    /// Ends when [`LaneQueue::open`] may have become 0.
    pub(super) fn idle(&self) -> tokio::sync::futures::Notified<'_> {
        self.idle.notified()
    }

    /// Refuses everything from now on.
    pub(crate) fn close(&self) {
        self.lock().advance(Phase::Closed);
        self.room.notify_waiters();
    }

    /// Refuses everything from now on, and has the lanes end when what is open has ended.
    pub(crate) fn finish_open(&self) {
        let mut state = self.lock();
        state.advance(Phase::Finishing);
        let idle = state.open == 0;
        drop(state);
        self.room.notify_waiters();
        if idle {
            self.stop();
        }
    }

    /// Has the lanes cancel what runs and end.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.advance(Phase::Stopping);
        let waiting = state.empty();
        let lanes: Vec<_> = state.lanes.all.iter().map(|lane| lane.id).collect();
        drop(state);
        for lane in lanes {
            self.wake_lane(self.lock(), lane);
        }
        for call in waiting {
            call.settle(Answer::Failure(FailureCause::ShutDown));
        }
    }

    /// Ends when the lane has.
    pub(super) async fn ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.lock().phase == Phase::Ended {
                return;
            }
            ended.await;
        }
    }

    /// Whether the lane has been told to end.
    pub(crate) fn stopping(&self) -> bool {
        self.lock().phase >= Phase::Stopping
    }

    /// Says whether callers wait in Rust: they may, then, look for the answer for a while before they sleep.
    pub(crate) fn let_spin(&self, spins: bool) {
        let spare = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
        self.spins.store(spins && spare, Ordering::Relaxed);
    }

    /// Says whether what serves the queue is being started again: what waits until its deadline has not failed by itself.
    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Release);
    }

    /// Whether what serves the queue is being started again.
    pub(super) fn is_down(&self) -> bool {
        self.down.load(Ordering::Acquire)
    }

    /// Whether a call that is made now, as the only one, may be answered before it is worth sleeping.
    pub(super) fn answers_soon(&self) -> bool {
        let state = self.lock();
        let (alone, lane) = (state.open == 0, state.lanes.active);
        drop(state);
        alone && self.spins.load(Ordering::Relaxed) && self.crew.is_awake(lane)
    }

    /// How long at least one handler has been running.
    pub(super) fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    /// A call has ended.
    pub(super) fn settled(&self, lane: Lane, started: bool) {
        let mut state = self.lock();
        state.open -= 1;
        let idle = state.open == 0;
        let finished = idle && state.phase == Phase::Finishing;
        let mut waits = false;
        if lane == Lane::Observe && started {
            state.running -= 1;
            waits = state.running + 1 == self.limits.running && !state.watch.is_empty();
        }
        if waits {
            self.wake(state);
        } else {
            drop(state);
        }
        if finished {
            self.stop();
        }
        // Never under the lock: who is woken may run at once, on this thread.
        if idle {
            self.idle.notify_waiters();
        }
    }

    /// Wakes the lane that is given calls.
    pub(super) fn wake(&self, state: MutexGuard<'_, Waiting<H>>) {
        let active = state.lanes.active;
        self.wake_lane(state, active);
    }

    /// Wakes a lane that has not been woken yet, and has it looked at soon whether it answers.
    pub(super) fn wake_lane(&self, mut state: MutexGuard<'_, Waiting<H>>, lane: LaneId) {
        let now = Instant::now();
        let wake = state.lanes.get(lane).and_then(|lane| lane.arm(now));
        if wake.is_some() {
            self.watch(&mut state, now);
        }
        drop(state);
        if let Some(wake) = wake {
            wake();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Waiting<H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Send + Sync + 'static> fmt::Debug for LaneQueue<H> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        out.debug_struct("LaneQueue")
            .field("turn", &state.turn.len())
            .field("watch", &state.watch.len())
            .field("running", &state.running)
            .field("open", &state.open)
            .finish_non_exhaustive()
    }
}
