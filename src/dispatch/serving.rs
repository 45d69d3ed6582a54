//! What the threads of lanes ask of the queue: to be told what there is to do, calls to start, and when to end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::call::Call;
use super::lanes::{LaneId, Stage};
use super::queue::LaneQueue;
use super::waiting::{Next, Phase};

/// What a lane finds when it has been woken.
#[derive(Debug)]
pub(crate) struct Woken {
    /// Calls whose tasks are to be cancelled.
    pub(crate) cancels: Vec<u64>,
    /// Whether the lane is to cancel what runs and end.
    pub(crate) stop: bool,
    /// Whether the lane is to end when its tasks have.
    pub(crate) leave: bool,
}

impl<H: Send + Sync + 'static> LaneQueue<H> {
    /// Whether `lane` is the last whose thread is expected to end.
    pub(crate) fn is_last(&self, lane: LaneId) -> bool {
        let state = self.lock();
        let others = state.lanes.all.iter().filter(|other| other.id != lane && other.stage != Stage::Retired);
        state.phase >= Phase::Stopping && others.count() == 0
    }

    /// The lane has ended: its tasks are over and what was printed has been written.
    pub(crate) fn end(&self, lane: LaneId) {
        self.held.flush(lane);
        let mut state = self.lock();
        state.lanes.all.retain(|other| other.id != lane);
        let none = !state.lanes.all.iter().any(|lane| lane.stage != Stage::Retired);
        if none && state.phase >= Phase::Stopping {
            state.advance(Phase::Ended);
        }
        let needed = state.exhausted || state.lanes.active().is_none();
        drop(state);
        if needed {
            self.replace();
        }
        self.ended.notify_waiters();
    }

    /// `lane` has begun a call that it had taken.
    pub(super) fn begun(&self, lane: LaneId, serial: u64, claimed: bool, observer: bool) {
        let mut state = self.lock();
        state.running += i64::from(observer && claimed);
        if let Some(lane) = state.lanes.get(lane) {
            if claimed {
                lane.begun.insert(serial);
            }
            match lane.limbo.front() {
                Some(front) if front.serial() == serial => drop(lane.limbo.pop_front()),
                _ => lane.limbo.retain(|call| call.serial() != serial),
            }
        }
    }

    /// The lane has been woken and answers: the next push wakes it again.
    pub(crate) fn woken(&self, id: LaneId) -> Woken {
        let now = Instant::now();
        self.held.begin(id);
        let mut state = self.lock();
        let stopping = state.phase >= Phase::Stopping;
        let Some(lane) = state.lanes.get(id) else { return Woken { cancels: Vec::new(), stop: true, leave: true } };
        lane.answered(now);
        let cancels = std::mem::take(&mut lane.cancels);
        let mut replaced = None;
        match lane.stage {
            Stage::Starting => lane.stage = Stage::Serving,
            Stage::Stuck => replaced = Self::recovered(&mut state, id),
            // It has come back: what is suspended on its loop goes on.
            Stage::Retired => lane.come_back(),
            Stage::Serving | Stage::Leaving => {}
        }
        let leave = state.lanes.get(id).is_some_and(|lane| lane.stage == Stage::Leaving);
        if let Some(other) = replaced {
            self.wake_lane(state, other);
        }
        Woken { cancels, stop: stopping, leave }
    }

    /// The next call for `lane` to start, if there is one. It is not claimed yet: while it has not begun, it may be moved.
    pub(crate) fn take(&self, lane: LaneId) -> Option<Arc<Call<H>>> {
        let mut state = self.lock();
        if state.lanes.active != lane {
            return None;
        }
        let waiting = state.watch.len();
        let call = match state.next(self.limits.running) {
            Next::Moved => state.moved.pop_front(),
            Next::Turn => state.turn.pop_front().map(|(_, call)| call),
            Next::Watch(index) => state.take_watch(index),
            Next::Nothing => None,
        };
        if let Some(lane) = state.lanes.active() {
            lane.at_step(Instant::now());
            lane.limbo.extend(call.clone());
        }
        let room = state.watch.len() < waiting;
        drop(state);
        if room {
            self.room.notify_one();
        }
        call
    }

    /// A drain of `lane` is over. If there is more to take, it is woken again. Whether it may look for work for a while before it
    /// sleeps: nothing is open, callers are in Rust, and there is a processor to spare.
    pub(crate) fn drained(&self, lane: LaneId) -> bool {
        let mut state = self.lock();
        let mut again = state.lanes.active == lane && !matches!(state.next(self.limits.running), Next::Nothing);
        if let Some(lane) = state.lanes.get(lane) {
            lane.drained(Instant::now());
            // It may have been blocked at one of the first steps, and has come back: it is to look again.
            again |= matches!(lane.stage, Stage::Stuck | Stage::Retired);
        }
        let idle = state.open == 0 && state.phase == Phase::Open;
        if again {
            self.wake_lane(state, lane);
        } else {
            drop(state);
        }
        idle && self.spins.load(Ordering::Relaxed)
    }

    /// `lane` can take nothing for now, and looks again by itself.
    pub(crate) fn rests(&self, lane: LaneId) {
        if let Some(lane) = self.lock().lanes.get(lane) {
            lane.rest();
        }
        self.tell(lane);
    }

    /// Tells the answers of a drain that is over.
    pub(crate) fn tell(&self, lane: LaneId) {
        self.held.flush(lane);
    }
}
