//! What waits in a lane's queue, and which of it goes first, next, or not at all.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use super::call::{Answer, Call};
use super::lanes::Lanes;
use super::queue::QueueLimits;
use crate::hooks::{AnyPayload, FailureCause, Point};

/// The calls of all observers for one occurrence of a point.
pub(super) struct Observation<H: Send + Sync + 'static> {
    pub(super) calls: VecDeque<Arc<Call<H>>>,
    payload: Arc<AnyPayload>,
    serial: u64,
    sender: u64,
    untouched: bool,
    bytes: usize,
    /// The end of a turn whose start has not been dropped.
    closes_turn: bool,
}

/// Which turn a start or an end belongs to. Turns of one conversation follow each other, so that ids may be missing.
type Turn = (String, Option<String>);

/// What waits, and what is known of the turns that it belongs to.
pub(super) struct Waiting<H: Send + Sync + 'static> {
    pub(super) turn: VecDeque<(u64, Arc<Call<H>>)>,
    pub(super) watch: VecDeque<Observation<H>>,
    /// What their payloads hold, about.
    pub(super) watch_bytes: usize,
    /// How many observations of each conversation wait.
    pub(super) senders: HashMap<u64, usize>,
    /// Starts and ends of turns are both observed, and go only together.
    pub(super) paired: bool,
    /// Turns whose start was taken in and whose end has not come.
    pub(super) begun: HashMap<Turn, usize>,
    /// Turns whose start was dropped and whose end has not come: it is dropped as well.
    pub(super) unstarted: HashMap<Turn, usize>,
    /// Calls that a lane which does not answer had taken and not begun: they go first.
    pub(super) moved: VecDeque<Arc<Call<H>>>,
    pub(super) lanes: Lanes<H>,
    /// When the lanes are looked at next.
    pub(super) looks_at: Option<Instant>,
    /// No lane answers, and no further thread may be had.
    pub(super) exhausted: bool,
    /// How often calls have been moved to a fresh lane.
    pub(super) taken_over: u64,
    /// How many calls were lost on a loop that another handler blocked.
    pub(super) loop_lost: u64,
    pub(super) running: i64,
    pub(super) open: usize,
    pub(super) phase: Phase,
}

/// How far the end has come; only ever later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    /// New calls are refused.
    Closed,
    /// New calls are refused, and the lanes end when those that are open have.
    Finishing,
    /// The lanes have been told to cancel what runs and to end.
    Stopping,
    /// The lane has ended.
    Ended,
}

impl<H: Send + Sync + 'static> Observation<H> {
    /// A turn's end is dropped with its start only, and what has begun is not dropped at all.
    fn may_be_dropped(&self) -> bool {
        self.untouched && !self.closes_turn
    }
}

/// What is to start next.
pub(super) enum Next {
    /// A call that another lane had taken.
    Moved,
    Turn,
    /// A call of the observation with this index.
    Watch(usize),
    Nothing,
}

impl<H: Send + Sync + 'static> Waiting<H> {
    /// Makes room for an observation and puts it in; gives back what is to be settled without having run.
    pub(super) fn admit(
        &mut self,
        calls: VecDeque<Arc<Call<H>>>,
        payload: Arc<AnyPayload>,
        sender: u64,
        limits: &QueueLimits,
    ) -> Vec<(Arc<Call<H>>, Answer)> {
        let refused = |calls: VecDeque<Arc<Call<H>>>, answer: &Answer| -> Vec<_> {
            calls.into_iter().map(|call| (call, answer.clone())).collect()
        };
        if self.phase > Phase::Open {
            return refused(calls, &Answer::Failure(FailureCause::ShutDown));
        }
        let point = payload.point();
        let turn = match point {
            Point::TurnStarted | Point::TurnFinished if self.paired => Some(turn_of(&payload)),
            _ => None,
        };
        let (starts, ends) = (point == Point::TurnStarted, point == Point::TurnFinished);
        let doomed = ends && turn.as_ref().is_some_and(|turn| self.unstarted.contains_key(turn));
        let mut dropped = Vec::new();
        let bytes = payload.weight();
        while self.is_full(bytes, limits) && !doomed {
            match (self.watch.iter().position(Observation::may_be_dropped), &turn) {
                (Some(index), _) => dropped.extend(refused(self.drop_watch(index), &Answer::Dropped)),
                // Beyond the limit, but no more of them than turns are open.
                (None, Some(turn)) if ends && self.begun.contains_key(turn) => break,
                (None, turn) => {
                    if let Some(turn) = turn.as_ref().filter(|_| starts) {
                        add(&mut self.unstarted, turn.clone());
                    }
                    dropped.extend(refused(calls, &Answer::Dropped));
                    return dropped;
                }
            }
        }
        let mut closes_turn = false;
        if let Some(turn) = turn {
            // The start of this end may just have been dropped to make room for it.
            if ends && take(&mut self.unstarted, &turn) {
                dropped.extend(refused(calls, &Answer::Dropped));
                return dropped;
            }
            if starts {
                add(&mut self.begun, turn);
            } else {
                closes_turn = take(&mut self.begun, &turn);
            }
        }
        if let Some(first) = calls.front() {
            let serial = first.serial();
            *self.senders.entry(sender).or_default() += 1;
            self.watch_bytes += bytes;
            self.watch.push_back(Observation { calls, payload, serial, sender, untouched: true, bytes, closes_turn });
        }
        dropped
    }

    /// Whether there is no room for an observation of so many bytes. One that is too large for itself alone is let in alone.
    pub(super) fn is_full(&self, bytes: usize, limits: &QueueLimits) -> bool {
        self.watch.len() >= limits.watch || !self.watch.is_empty() && self.watch_bytes + bytes > limits.watch_bytes
    }

    /// Takes everything out.
    pub(super) fn empty(&mut self) -> Vec<Arc<Call<H>>> {
        let turn: Vec<_> = self.turn.drain(..).map(|(_, call)| call).collect();
        let watch: Vec<_> = self.watch.drain(..).flat_map(|observation| observation.calls).collect();
        self.senders.clear();
        self.watch_bytes = 0;
        self.moved.drain(..).chain(turn).chain(watch).collect()
    }

    pub(super) fn advance(&mut self, phase: Phase) {
        self.phase = self.phase.max(phase);
    }

    pub(super) fn next(&self, most_running: i64) -> Next {
        if !self.moved.is_empty() {
            return Next::Moved;
        }
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

    pub(super) fn take_watch(&mut self, index: usize) -> Option<Arc<Call<H>>> {
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
        if self.paired && observation.payload.point() == Point::TurnStarted {
            let turn = turn_of(&observation.payload);
            // From here on: an earlier end of the same key closes an earlier turn.
            let end = self
                .watch
                .iter()
                .skip(index)
                .position(|later| later.payload.point() == Point::TurnFinished && turn_of(&later.payload) == turn);
            if let Some(end) = end.and_then(|end| self.remove_watch(index + end)) {
                calls.extend(end.calls);
            } else {
                take(&mut self.begun, &turn);
                add(&mut self.unstarted, turn);
            }
        }
        calls
    }

    fn remove_watch(&mut self, index: usize) -> Option<Observation<H>> {
        let observation = self.watch.remove(index)?;
        self.watch_bytes -= observation.bytes;
        if let Some(waiting) = self.senders.get_mut(&observation.sender) {
            *waiting -= 1;
            if *waiting == 0 {
                self.senders.remove(&observation.sender);
            }
        }
        Some(observation)
    }
}

fn add(turns: &mut HashMap<Turn, usize>, turn: Turn) {
    *turns.entry(turn).or_default() += 1;
}

/// Takes one of `turn` out; whether there was one.
fn take(turns: &mut HashMap<Turn, usize>, turn: &Turn) -> bool {
    let Some(count) = turns.get_mut(turn) else { return false };
    *count -= 1;
    if *count == 0 {
        turns.remove(turn);
    }
    true
}

fn turn_of(payload: &AnyPayload) -> Turn {
    let turn_id = match payload {
        AnyPayload::TurnStarted(started) => started.turn_id.clone(),
        AnyPayload::TurnFinished(finished) => finished.turn_id.clone(),
        _ => None,
    };
    (payload.sender_id().to_owned(), turn_id)
}
