//! What waits for a lane: calls of the turn path first, observations in their order, the oldest dropped when too many wait.
//!
//! A modify call overtakes observations of *other* conversations; those of its own conversation that came before it start
//! before it, so that a modifier sees the state that observers filled earlier in the same turn.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::call::{Answer, Call};
use super::statistics::Occupancy;
use super::waiting::{Next, Phase, Waiting};
use crate::hooks::{AnyPayload, FailureCause, Lane};

/// How much may wait and run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// Modify calls that may wait; more are answered by policy at once.
    pub(crate) turn: usize,
    /// Observations that may wait; for more the oldest are dropped.
    pub(crate) watch: usize,
    /// Observers that may run at once.
    pub(crate) running: i64,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self { turn: 16_384, watch: 4_096, running: 1_024 }
    }
}

/// The calls that wait for one lane.
pub(crate) struct LaneQueue<H: Send + Sync + 'static> {
    state: Mutex<Waiting<H>>,
    serial: AtomicU64,
    limits: QueueLimits,
    wake: Box<dyn Fn() + Send + Sync>,
    hasher: RandomState,
    room: Notify,
    idle: Notify,
    ended: Notify,
    occupancy: Occupancy,
}

/// What a lane finds when it has been woken.
#[derive(Debug)]
pub(crate) struct Woken {
    /// Calls whose tasks are to be cancelled.
    pub(crate) cancels: Vec<u64>,
    /// Whether the lane is to cancel what runs and end.
    pub(crate) stop: bool,
}

impl<H: Send + Sync + 'static> LaneQueue<H> {
    /// A queue whose lane is woken by `wake`.
    pub(crate) fn new(limits: QueueLimits, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            state: Mutex::new(Waiting {
                turn: VecDeque::new(),
                watch: VecDeque::new(),
                senders: HashMap::new(),
                paired: false,
                begun: HashMap::new(),
                unstarted: HashMap::new(),
                cancels: Vec::new(),
                running: 0,
                open: 0,
                armed: false,
                phase: Phase::Open,
            }),
            serial: AtomicU64::new(1),
            limits,
            wake: Box::new(wake),
            hasher: RandomState::new(),
            room: Notify::new(),
            idle: Notify::new(),
            ended: Notify::new(),
            occupancy: Occupancy::default(),
        }
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
        if state.phase == Phase::Open && state.watch.len() >= self.limits.watch {
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
        let dropped = state.admit(calls, payload, sender, self.limits.watch);
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

    /// Has the lane cancel what runs and end.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.advance(Phase::Stopping);
        let waiting: Vec<_> = state.turn.drain(..).map(|(_, call)| call).collect();
        let watched: Vec<_> = state.watch.drain(..).flat_map(|observation| observation.calls).collect();
        state.senders.clear();
        self.wake(state);
        for call in waiting.into_iter().chain(watched) {
            call.settle(Answer::Failure(FailureCause::ShutDown));
        }
    }

    /// The lane has ended: its tasks are over and what was printed has been written.
    pub(crate) fn end(&self) {
        self.lock().advance(Phase::Ended);
        self.ended.notify_waiters();
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

    /// Has the task of a started call cancelled.
    pub(super) fn cancel(&self, serial: u64) {
        let mut state = self.lock();
        state.cancels.push(serial);
        self.wake(state);
    }

    /// How long at least one handler has been running.
    pub(super) fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    /// An observer has started.
    pub(super) fn started(&self) {
        self.lock().running += 1;
    }

    /// A call has ended.
    pub(super) fn settled(&self, lane: Lane, started: bool) {
        let mut state = self.lock();
        state.open -= 1;
        let idle = state.open == 0;
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
        // Never under the lock: who is woken may run at once, on this thread.
        if idle {
            self.idle.notify_waiters();
        }
    }

    /// The lane has been woken: the next push wakes it again.
    pub(crate) fn woken(&self) -> Woken {
        let mut state = self.lock();
        state.armed = false;
        Woken { cancels: std::mem::take(&mut state.cancels), stop: state.phase >= Phase::Stopping }
    }

    /// The next call to start, if there is one. It is not claimed yet.
    pub(crate) fn take(&self) -> Option<Arc<Call<H>>> {
        let mut state = self.lock();
        let waiting = state.watch.len();
        let call = match state.next(self.limits.running) {
            Next::Turn => state.turn.pop_front().map(|(_, call)| call),
            Next::Watch(index) => state.take_watch(index),
            Next::Nothing => None,
        };
        let room = state.watch.len() < waiting;
        drop(state);
        if room {
            self.room.notify_one();
        }
        call
    }

    /// Whether [`LaneQueue::take`] would give a call; if so the lane is to be woken again.
    pub(crate) fn rearm(&self) {
        let state = self.lock();
        if !matches!(state.next(self.limits.running), Next::Nothing) {
            self.wake(state);
        }
    }

    fn wake(&self, mut state: MutexGuard<'_, Waiting<H>>) {
        let sleeping = !std::mem::replace(&mut state.armed, true);
        drop(state);
        if sleeping {
            (self.wake)();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<H>> {
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
