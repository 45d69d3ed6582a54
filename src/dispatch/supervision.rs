//! What is done about a lane that does not answer: its calls are moved, the culprit is interrupted, its thread parked or given up.
//!
//! All of it runs on the clock's thread and never attaches to the interpreter. Only the handler whose step is running is to blame.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use super::call::{Answer, Call};
use super::clock::{self, Expire};
use super::dispatcher::Registered;
use super::lanes::{FIRST, LaneId, LaneState, Order, Overdue, Stage};
use super::queue::LaneQueue;
use super::waiting::{Phase, Waiting};
use crate::hooks::FailureCause;
use crate::telemetry::DISPATCH;

/// How long things may take before something is done about them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Patience {
    /// A lane that leaves a wake-up unanswered for so long does not answer; a call must have waited so long to be moved; a task that has
    /// been cancelled has so long to end before its thread is interrupted, and again before that is repeated. 20 ms: four switch intervals of the interpreter.
    pub(crate) answer: Duration,
    /// The part of its time after which a call that has not started is moved to another lane.
    pub(crate) share: f64,
    /// How long after a handler's deadline a thread that cannot be interrupted is given up.
    pub(crate) give_up: Duration,
    /// How long what runs outside of any task may keep a lane from answering.
    pub(crate) callback: Duration,
    /// How many threads may be lost at once.
    pub(crate) threads: usize,
    /// How long after a modify call's deadline the answer of whoever runs it may still come.
    pub(crate) margin: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            answer: Duration::from_millis(20),
            share: 0.25,
            give_up: Duration::from_millis(200),
            callback: Duration::from_secs(1),
            threads: 8,
            margin: Duration::ZERO,
        }
    }
}

/// Threads that a handler may cost before it is quarantined.
pub(super) const MOST_RETIRED: u32 = 3;

/// What is to be done once the lock is given back.
struct Aftermath<H: Send + Sync + 'static> {
    settle: Vec<(Arc<Call<H>>, FailureCause)>,
    log: Vec<String>,
}

impl<H: Send + Sync + 'static> Aftermath<H> {
    const fn new() -> Self {
        Self { settle: Vec::new(), log: Vec::new() }
    }

    fn finish(self) {
        for (call, cause) in self.settle {
            call.settle(Answer::Failure(cause));
        }
        for line in self.log {
            tracing::warn!(target: DISPATCH, "{line}");
        }
    }
}

impl<H: Send + Sync + 'static> LaneQueue<H> {
    /// Has the lanes looked at soon.
    pub(super) fn watch(&self, state: &mut Waiting<H>, now: Instant) {
        let at = now + self.patience.answer;
        if state.looks_at.is_none_or(|other| at < other) {
            state.looks_at = Some(at);
            clock::expire_at(at, self.me.clone());
        }
    }

    /// A call that has started is over for its caller while its task runs on: the task is cancelled, and where that does not help its
    /// thread is struck.
    pub(super) fn overrun(&self, lane: LaneId, serial: u64, handler: &Arc<Registered<H>>) {
        let mut state = self.lock();
        let Some(serving) = state.lanes.get(lane) else { return };
        serving.cancels.push(serial);
        serving.overdue.push(Overdue { serial, handler: Arc::clone(handler), at: Instant::now(), used: None });
        self.wake_lane(state, lane);
    }

    /// The handler of a call has ended.
    pub(super) fn left(&self, lane: LaneId, serial: u64) {
        if let Some(lane) = self.lock().lanes.get(lane) {
            lane.begun.remove(&serial);
            lane.overdue.retain(|overdue| overdue.serial != serial);
        }
    }

    /// Why a call that has started on `lane` is not done at its deadline.
    pub(super) fn cause_at_deadline(&self, lane: LaneId, serial: u64, began: Instant, time: Duration) -> FailureCause {
        let mut state = self.lock();
        let lost = state.lanes.get(lane).is_none_or(|lane| lane.is_innocent(serial, began, time));
        if !lost {
            return FailureCause::Timeout { limit_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) };
        }
        state.loop_lost += 1;
        FailureCause::LoopLost
    }

    /// An order about `lane` has been carried out; `running` is the call whose step was running.
    pub(crate) fn looked(&self, lane: LaneId, running: Option<u64>) {
        if let Some(lane) = self.lock().lanes.get(lane) {
            lane.ordered = None;
            if lane.since.is_some() {
                (lane.running, lane.looked) = (running, true);
            }
        }
    }

    /// Where the thread of a retired lane is stuck.
    pub(crate) fn reported(&self, lane: LaneId, stack: &[String]) {
        let mut state = self.lock();
        let Some(lane) = state.lanes.get(lane) else { return };
        let culprit = lane.culprit.as_ref().map(|handler| handler.id.to_string());
        lane.stack = stack.to_vec();
        drop(state);
        let who = culprit.map_or_else(|| "What a hook has started".to_owned(), |handler| format!("`{handler}`"));
        tracing::warn!(target: DISPATCH, "{who} has blocked its thread, which is given up; it is at\n{}", stack.join("\n"));
    }

    /// The thread of `lane` could not be started.
    pub(crate) fn not_started(&self, lane: LaneId, reason: &str) {
        let mut after = Aftermath::new();
        after.log.push(format!("No thread could be started for hooks: {reason}"));
        let mut state = self.lock();
        state.lanes.all.retain(|other| other.id != lane);
        if state.lanes.active == lane {
            state.lanes.active = state.lanes.all.last().map_or(lane, |last| last.id);
            self.exhaust(&mut state, &mut after);
        }
        drop(state);
        after.finish();
    }

    /// The first lane's thread was not ready in time: whatever runs there is interrupted, and parked where that does not help.
    pub(crate) fn give_up(&self) {
        let Some(me) = self.me.upgrade() else { return };
        self.crew.order(&me, FIRST, Order::Interrupt(None));
        let mut state = self.lock();
        if let Some(lane) = state.lanes.get(FIRST) {
            // From now on it is looked after as one that does not answer.
            lane.stage = Stage::Stuck;
            lane.since = Some(Instant::now());
        }
        self.watch(&mut state, Instant::now());
    }

    fn supervise(&self) {
        let Some(me) = self.me.upgrade() else { return };
        let now = Instant::now();
        let mut after = Aftermath::new();
        let mut state = self.lock();
        state.looks_at = None;
        let mut again = false;
        let mut silent = Vec::new();
        let ids: Vec<_> = state.lanes.all.iter().map(|lane| lane.id).collect();
        for id in ids {
            let Some(lane) = state.lanes.get(id) else { continue };
            let quiet = match (lane.stage, lane.since) {
                (Stage::Retired | Stage::Starting, _) | (_, None) => continue,
                (_, Some(since)) => now.saturating_duration_since(since),
            };
            again = true;
            if quiet < self.patience.answer {
                continue;
            }
            silent.push(id);
            self.pursue(&me, &mut state, id, quiet, now, &mut after);
            if id == state.lanes.active && self.is_due(&state, id, now) {
                self.take_over(&me, &mut state, &mut after);
            }
        }
        if again {
            self.watch(&mut state, now);
        }
        let over = state.phase == Phase::Stopping && state.lanes.all.iter().all(|lane| lane.stage == Stage::Retired);
        if over {
            state.advance(Phase::Ended);
        }
        drop(state);
        for lane in silent {
            self.held.flush(lane);
        }
        if over {
            self.ended.notify_waiters();
        }
        after.finish();
    }

    /// What is done about what runs on a lane that does not answer.
    fn pursue(
        &self,
        me: &Arc<Self>,
        state: &mut MutexGuard<'_, Waiting<H>>,
        id: LaneId,
        quiet: Duration,
        now: Instant,
        after: &mut Aftermath<H>,
    ) {
        let patience = self.patience;
        let stopping = state.phase >= Phase::Stopping;
        let Some(lane) = state.lanes.get(id) else { return };
        let give = |lane: &mut LaneState<H>, order| {
            // An order that waits for the interpreter's lock says all that can be said.
            if lane.ordered.is_none() {
                lane.ordered = Some(now);
                self.crew.order(me, id, order);
            }
        };
        if !lane.looked {
            give(lane, Order::Look);
            // An order that is not carried out waits for the interpreter's lock, which C code keeps.
            let waits = lane.ordered.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
            let overdue = lane.overdue.iter().map(|overdue| now.saturating_duration_since(overdue.at)).max();
            let grace = if overdue.is_some() { patience.give_up } else { patience.callback + patience.give_up };
            if waits.min(overdue.unwrap_or(waits)) >= grace {
                let culprits: Vec<_> = lane.overdue.iter().map(|overdue| Arc::clone(&overdue.handler.id)).collect();
                self.crew.lose(&culprits);
            }
            return;
        }
        let running = lane.running;
        let overdue = lane.overdue.iter_mut().find(|overdue| running == Some(overdue.serial));
        let (over, used) = match overdue {
            Some(overdue) => {
                let used = *overdue.used.get_or_insert_with(|| self.crew.processor_time(id).unwrap_or_default());
                // It may have been kept from its clean-up by another: what counts is how long it keeps the lane itself.
                (now.saturating_duration_since(overdue.at).min(quiet), used)
            }
            // It has time left.
            None if running.is_some_and(|serial| lane.begun.contains(&serial)) && !stopping => {
                return give(lane, Order::Look);
            }
            // What a handler has started and left behind, a task or a callback; or all is to end.
            None => {
                let grace = if stopping { Duration::ZERO } else { patience.callback };
                if quiet < grace {
                    return give(lane, Order::Look);
                }
                (quiet.saturating_sub(grace), Duration::ZERO)
            }
        };
        if over < patience.answer && running.is_some() {
            return;
        }
        if over < patience.give_up {
            give(lane, Order::Interrupt(running));
            return;
        }
        let culprit = lane.overdue.iter().find(|overdue| Some(overdue.serial) == running);
        let culprit = culprit.map(|overdue| Arc::clone(&overdue.handler));
        let blamed: Vec<_> = culprit.iter().map(|handler| Arc::clone(&handler.id)).collect();
        if !stopping && self.crew.lose(&blamed) {
            return;
        }
        let spins = self.crew.processor_time(id).is_some_and(|now| now.saturating_sub(used) > patience.give_up / 20);
        if spins {
            self.crew.order(me, id, Order::Park(running));
        }
        self.crew.order(me, id, Order::Report);
        lane.stage = Stage::Retired;
        lane.retired_at = Some(now);
        lane.culprit = culprit;
        if let Some(handler) = &lane.culprit
            && let Some(told) = handler.blame()
        {
            after.log.push(told);
        }
        if id == state.lanes.active {
            self.take_over(me, state, after);
        }
    }

    /// Whether a call waits on the active lane that has waited long enough to be moved.
    fn is_due(&self, state: &Waiting<H>, active: LaneId, now: Instant) -> bool {
        let due = |call: &Arc<Call<H>>| {
            let share = call.handler().id.timeout.mul_f64(self.patience.share);
            now.saturating_duration_since(call.dispatched()) >= share.max(self.patience.answer)
        };
        let limbo = state.lanes.all.iter().filter(|lane| lane.id == active).flat_map(|lane| &lane.limbo);
        let watched = state.watch.iter().filter_map(|observation| observation.calls.front());
        limbo.chain(&state.moved).chain(state.turn.iter().map(|(_, call)| call)).chain(watched).any(due)
    }

    /// Gives the calls that wait to a fresh lane.
    fn take_over(&self, me: &Arc<Self>, state: &mut Waiting<H>, after: &mut Aftermath<H>) {
        if state.phase >= Phase::Stopping {
            return;
        }
        let id = state.lanes.next_id();
        if let Some(old) = state.lanes.active() {
            if old.stage == Stage::Serving {
                old.stage = Stage::Stuck;
            }
            let limbo = std::mem::take(&mut old.limbo);
            state.moved.extend(limbo);
        }
        let wake = (state.lanes.lost() <= self.patience.threads).then(|| self.crew.hire(me, id)).flatten();
        match wake {
            Some(wake) => {
                state.lanes.add(wake);
                state.exhausted = false;
                state.taken_over += 1;
                after.log.push("The hooks' thread does not answer: the calls that wait go to another".to_owned());
            }
            None => self.exhaust(state, after),
        }
    }

    /// No lane answers, and no further thread may be had: what waits is answered by policy.
    fn exhaust(&self, state: &mut Waiting<H>, after: &mut Aftermath<H>) {
        if !std::mem::replace(&mut state.exhausted, true) {
            after.log.push(format!(
                "{} threads are stuck in hooks, and {} may be: calls fail until one comes back",
                state.lanes.lost(),
                self.patience.threads
            ));
        }
        let waiting = state.empty();
        after.settle.extend(waiting.into_iter().map(|call| (call, FailureCause::ThreadsExhausted)));
    }

    /// A lane that did not answer does: it is given the calls again, and the one in its place ends when its tasks have.
    /// That one is to be woken.
    pub(super) fn recovered(state: &mut Waiting<H>, id: LaneId) -> Option<LaneId> {
        let active = state.lanes.active;
        let replaced = state.lanes.active().is_none_or(|lane| matches!(lane.stage, Stage::Stuck | Stage::Retired));
        let lane = state.lanes.get(id)?;
        if id > active && !replaced {
            lane.stage = Stage::Leaving;
            return None;
        }
        lane.stage = Stage::Serving;
        state.lanes.active = id;
        state.exhausted = false;
        let other = state.lanes.get(active).filter(|_| active != id && !replaced)?;
        other.stage = Stage::Leaving;
        Some(other.id)
    }

    /// A thread has ended and none answers: there may be room for another.
    pub(super) fn replace(&self) {
        let Some(me) = self.me.upgrade() else { return };
        let mut after = Aftermath::new();
        self.take_over(&me, &mut self.lock(), &mut after);
        after.finish();
    }
}

impl<H: Send + Sync + 'static> Expire for LaneQueue<H> {
    fn expire(&self) {
        self.supervise();
    }
}
