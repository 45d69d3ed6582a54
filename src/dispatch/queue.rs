//! What waits for a lane: calls of the turn path first, observations in their order, the oldest dropped when too many wait.
//!
//! A modify call overtakes observations of *other* conversations; those of its own conversation that came before it start
//! before it, so that a modifier sees the state that observers filled earlier in the same turn.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::call::{Answer, Call};
use crate::hooks::{AnyPayload, FailureCause, Lane, Point};

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
    state: Mutex<State<H>>,
    serial: AtomicU64,
    limits: QueueLimits,
    wake: Box<dyn Fn() + Send + Sync>,
    hasher: RandomState,
    room: Notify,
    idle: Notify,
    ended: Notify,
}

/// What a lane finds when it has been woken.
#[derive(Debug)]
pub(crate) struct Woken {
    /// Calls whose tasks are to be cancelled.
    pub(crate) cancels: Vec<u64>,
    /// Whether the lane is to cancel what runs and end.
    pub(crate) stop: bool,
}

/// The calls of all observers for one occurrence of a point.
struct Observation<H: Send + Sync + 'static> {
    calls: VecDeque<Arc<Call<H>>>,
    payload: Arc<AnyPayload>,
    serial: u64,
    sender: u64,
    untouched: bool,
}

struct State<H: Send + Sync + 'static> {
    turn: VecDeque<(u64, Arc<Call<H>>)>,
    watch: VecDeque<Observation<H>>,
    /// How many observations of each conversation wait.
    senders: HashMap<u64, usize>,
    /// Turns whose start was dropped: their end is dropped as well.
    unstarted: HashSet<(String, Option<String>)>,
    cancels: Vec<u64>,
    running: i64,
    open: usize,
    /// The lane has been woken and has not looked yet.
    armed: bool,
    phase: Phase,
}

/// How far the end has come; only ever later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Open,
    /// New calls are refused.
    Closed,
    /// The lane has been told to cancel what runs and to end.
    Stopping,
    /// The lane has ended.
    Ended,
}

impl<H: Send + Sync + 'static> LaneQueue<H> {
    /// A queue whose lane is woken by `wake`.
    pub(crate) fn new(limits: QueueLimits, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            state: Mutex::new(State {
                turn: VecDeque::new(),
                watch: VecDeque::new(),
                senders: HashMap::new(),
                unstarted: HashSet::new(),
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

    /// Puts the calls of one occurrence in; drops the oldest observations when there is no room.
    pub(super) fn push_watch(&self, calls: VecDeque<Arc<Call<H>>>, payload: Arc<AnyPayload>) {
        let mut state = self.lock();
        state.open += calls.len();
        let dropped = self.admit(&mut state, calls, payload);
        if state.watch.is_empty() {
            drop(state);
        } else {
            self.wake(state);
        }
        for (call, answer) in dropped {
            call.settle(answer);
        }
    }

    /// Whether an observation could be put in without dropping another.
    pub(super) fn has_room(&self) -> bool {
        let state = self.lock();
        state.phase > Phase::Open || state.watch.len() < self.limits.watch
    }

    /// Ends when [`LaneQueue::has_room`] may have become true.
    pub(super) fn room(&self) -> tokio::sync::futures::Notified<'_> {
        self.room.notified()
    }

    /// How many calls have not been settled.
    pub(super) fn open(&self) -> usize {
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

    /// Makes room for an observation and puts it in; gives back what is to be settled without having run.
    fn admit(
        &self,
        state: &mut State<H>,
        calls: VecDeque<Arc<Call<H>>>,
        payload: Arc<AnyPayload>,
    ) -> Vec<(Arc<Call<H>>, Answer)> {
        let refused = |calls: VecDeque<Arc<Call<H>>>, answer: &Answer| -> Vec<_> {
            calls.into_iter().map(|call| (call, answer.clone())).collect()
        };
        if state.phase > Phase::Open {
            return refused(calls, &Answer::Failure(FailureCause::ShutDown));
        }
        let point = payload.point();
        let mut dropped = Vec::new();
        let doomed = point == Point::TurnFinished && state.unstarted.contains(&turn_of(&payload));
        if state.watch.len() >= self.limits.watch && !doomed {
            match state.watch.iter().position(Observation::may_be_dropped) {
                Some(index) => dropped = refused(state.drop_watch(index), &Answer::Dropped),
                None if point == Point::TurnFinished => {}
                None => {
                    if point == Point::TurnStarted {
                        state.unstarted.insert(turn_of(&payload));
                    }
                    return refused(calls, &Answer::Dropped);
                }
            }
        }
        // Its start may just have been dropped to make room for it.
        if point == Point::TurnFinished && state.unstarted.remove(&turn_of(&payload)) {
            dropped.extend(refused(calls, &Answer::Dropped));
            return dropped;
        }
        if let Some(first) = calls.front() {
            let (serial, sender) = (first.serial(), self.hasher.hash_one(payload.sender_id()));
            *state.senders.entry(sender).or_default() += 1;
            state.watch.push_back(Observation { calls, payload, serial, sender, untouched: true });
        }
        dropped
    }

    fn wake(&self, mut state: MutexGuard<'_, State<H>>) {
        let sleeping = !std::mem::replace(&mut state.armed, true);
        drop(state);
        if sleeping {
            (self.wake)();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Send + Sync + 'static> Observation<H> {
    /// A turn's end is dropped with its start only, and what has begun is not dropped at all.
    fn may_be_dropped(&self) -> bool {
        self.untouched && self.payload.point() != Point::TurnFinished
    }
}

/// What is to start next.
enum Next {
    Turn,
    /// A call of the observation with this index.
    Watch(usize),
    Nothing,
}

impl<H: Send + Sync + 'static> State<H> {
    fn advance(&mut self, phase: Phase) {
        self.phase = self.phase.max(phase);
    }

    fn next(&self, most_running: i64) -> Next {
        let may_watch = self.running < most_running;
        let Some((sender, modify)) = self.turn.front() else {
            return if may_watch && !self.watch.is_empty() { Next::Watch(0) } else { Next::Nothing };
        };
        if may_watch && self.senders.contains_key(sender) {
            let earlier = self.watch.iter().take_while(|observation| observation.serial < modify.serial());
            if let Some(index) = earlier.into_iter().position(|observation| observation.sender == *sender) {
                return Next::Watch(index);
            }
        }
        Next::Turn
    }

    fn take_watch(&mut self, index: usize) -> Option<Arc<Call<H>>> {
        let observation = self.watch.get_mut(index)?;
        observation.untouched = false;
        let call = observation.calls.pop_front();
        if observation.calls.is_empty() {
            self.remove_watch(index);
        }
        call
    }

    /// Takes an observation out unstarted; with a turn's start its end goes as well, now or when it comes.
    fn drop_watch(&mut self, index: usize) -> VecDeque<Arc<Call<H>>> {
        let Some(observation) = self.remove_watch(index) else { return VecDeque::new() };
        let mut calls = observation.calls;
        if observation.payload.point() == Point::TurnStarted {
            let turn = turn_of(&observation.payload);
            let end = self
                .watch
                .iter()
                .position(|later| later.payload.point() == Point::TurnFinished && turn_of(&later.payload) == turn);
            match end.and_then(|end| self.remove_watch(end)) {
                Some(end) => calls.extend(end.calls),
                None => {
                    self.unstarted.insert(turn);
                }
            }
        }
        calls
    }

    fn remove_watch(&mut self, index: usize) -> Option<Observation<H>> {
        let observation = self.watch.remove(index)?;
        if let Some(waiting) = self.senders.get_mut(&observation.sender) {
            *waiting -= 1;
            if *waiting == 0 {
                self.senders.remove(&observation.sender);
            }
        }
        Some(observation)
    }
}

/// Which turn a start or an end belongs to.
fn turn_of(payload: &AnyPayload) -> (String, Option<String>) {
    let turn_id = match payload {
        AnyPayload::TurnStarted(started) => started.turn_id.clone(),
        AnyPayload::TurnFinished(finished) => finished.turn_id.clone(),
        _ => None,
    };
    (payload.sender_id().to_owned(), turn_id)
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
