//! The lanes that serve a queue: which of them is given calls, and what is known of each without asking the interpreter.
//!
//! A lane's heartbeat is the wake-up that it has not answered: `since` is set by whoever wakes it and by each step of a drain, and
//! taken back when the drain is over. No tick runs while nothing is to be done.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use super::call::Call;
use super::dispatcher::Registered;
use super::queue::LaneQueue;
use crate::hooks::HandlerId;

/// A lane's number; unique within its queue, later ones are higher.
pub(crate) type LaneId = u32;

/// Wakes a lane's thread; neither blocks nor needs the interpreter.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// What starts the threads of lanes and looks after them. Nothing here may block, wait for the interpreter or call the queue back:
/// it is asked under the queue's lock, by the clock.
pub(crate) trait Crew<H: Send + Sync + 'static>: Send + Sync {
    /// Has a fresh thread serve `queue` as `lane`, and gives what wakes it; `None`: no thread can be had.
    fn hire(&self, queue: &Arc<LaneQueue<H>>, lane: LaneId) -> Option<Wake>;

    /// Gives an order about a lane that does not answer. What runs there is told to [`LaneQueue::looked`].
    fn order(&self, queue: &Arc<LaneQueue<H>>, lane: LaneId, order: Order);

    /// Whether the lane's thread looks for work without having to be woken.
    fn is_awake(&self, lane: LaneId) -> bool;

    /// The processor time that the lane's thread has used, where it is known.
    fn processor_time(&self, lane: LaneId) -> Option<Duration>;

    /// A lane would have to be given up, or keeps the interpreter's lock, and one of `culprits` is to blame. Where the whole process can be
    /// given up instead, it is, and the answer is `true`.
    fn lose(&self, culprits: &[Arc<HandlerId>]) -> bool;
}

/// What is to be done about a lane that does not answer. What has a call is done only while a step of that call is running, looked
/// at and struck in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Find out whose step is running.
    Look,
    /// Raise an exception in the thread; without a call: whatever runs.
    Interrupt(Option<u64>),
    /// Raise an exception that never ends: the thread keeps its stack, but gives the interpreter's lock back for good.
    Park(Option<u64>),
    /// Tell the Python stack of the thread.
    Report,
}

/// How a lane stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its thread has been asked for and has not answered yet.
    Starting,
    Serving,
    /// It does not answer, and another lane is given the calls.
    Stuck,
    /// It has been given up; its thread may still come back.
    Retired,
    /// It is no longer needed and ends when its tasks have.
    Leaving,
}

/// A call that is over for its caller while its task runs on.
pub(super) struct Overdue<H: Send + Sync + 'static> {
    pub(super) serial: u64,
    pub(super) handler: Arc<Registered<H>>,
    /// Since when.
    pub(super) at: Instant,
    /// The processor time of its thread when it was first struck.
    pub(super) used: Option<Duration>,
}

/// One lane.
pub(super) struct LaneState<H: Send + Sync + 'static> {
    pub(super) id: LaneId,
    wake: Wake,
    pub(super) stage: Stage,
    /// It has been woken and has not looked yet.
    armed: bool,
    /// Since when it has left a wake-up unanswered, or been at one step of a drain.
    pub(super) since: Option<Instant>,
    pub(super) cancels: Vec<u64>,
    /// Calls that it has taken and not begun.
    pub(super) limbo: VecDeque<Arc<Call<H>>>,
    /// Calls that it has begun and that have not ended.
    pub(super) begun: FxHashSet<u64>,
    /// Whose step was running when somebody looked, since it stopped to answer.
    pub(super) running: Option<u64>,
    /// Somebody has looked since it stopped to answer.
    pub(super) looked: bool,
    /// From when to when it did not answer last, and whose step was running.
    blocked: Option<(Instant, Instant, Option<u64>)>,
    /// Since when an order about it has not been carried out.
    pub(super) ordered: Option<Instant>,
    pub(super) overdue: Vec<Overdue<H>>,
    /// Where its thread was stuck when it was retired, the innermost frame last.
    pub(super) stack: Vec<String>,
    /// When it was retired.
    pub(super) retired_at: Option<Instant>,
    /// Whose step it was retired for.
    pub(super) culprit: Option<Arc<Registered<H>>>,
}

impl<H: Send + Sync + 'static> LaneState<H> {
    pub(super) fn new(id: LaneId, wake: Wake) -> Self {
        Self {
            id,
            wake,
            stage: Stage::Starting,
            armed: false,
            since: None,
            cancels: Vec::new(),
            limbo: VecDeque::new(),
            begun: FxHashSet::default(),
            running: None,
            looked: false,
            blocked: None,
            ordered: None,
            overdue: Vec::new(),
            stack: Vec::new(),
            retired_at: None,
            culprit: None,
        }
    }

    /// Notes that the lane has something to do; gives what wakes it, where it has not been woken yet.
    pub(super) fn arm(&mut self, now: Instant) -> Option<Wake> {
        // A thread that is still being started looks by itself.
        if self.stage != Stage::Starting {
            self.since.get_or_insert(now);
        }
        (!std::mem::replace(&mut self.armed, true)).then(|| Arc::clone(&self.wake))
    }

    /// The lane has answered.
    pub(super) fn answered(&mut self, now: Instant) {
        self.armed = false;
        self.at_step(now);
    }

    /// The lane is at another step of a drain.
    pub(super) fn at_step(&mut self, now: Instant) {
        if let (true, Some(since)) = (self.looked, self.since) {
            self.blocked = Some((since, now, self.running));
        }
        self.since = Some(now);
        (self.running, self.looked) = (None, false);
    }

    /// Its thread, which had been given up, answers.
    pub(super) fn come_back(&mut self) {
        self.stage = Stage::Leaving;
        (self.retired_at, self.culprit) = (None, None);
        self.stack.clear();
    }

    /// The drain is over. A wake-up that came meanwhile is still to be answered.
    pub(super) fn drained(&mut self, now: Instant) {
        self.at_step(now);
        if !self.armed {
            self.since = None;
        }
    }

    /// There is nothing that it is to answer.
    pub(super) fn rest(&mut self) {
        self.since = None;
    }

    /// Whether a call that began at `began` and had `time` was kept from ending by another's step: that keeps the lane from answering
    /// now, or did so for half of the time.
    pub(super) fn is_innocent(&self, serial: u64, began: Instant, time: Duration) -> bool {
        let blocked = self.blocked.is_some_and(|(from, to, culprit)| {
            culprit != Some(serial) && to.saturating_duration_since(from.max(began)) >= time / 2
        });
        match self.stage {
            _ if blocked => true,
            Stage::Retired => self.culprit.is_some() && !self.overdue.iter().any(|overdue| overdue.serial == serial),
            _ => self.since.is_some() && self.looked && self.running != Some(serial),
        }
    }
}

/// All lanes of a queue.
pub(super) struct Lanes<H: Send + Sync + 'static> {
    pub(super) all: Vec<LaneState<H>>,
    /// The one that is given calls.
    pub(super) active: LaneId,
    last: LaneId,
}

impl<H: Send + Sync + 'static> Lanes<H> {
    /// The first lane, which `wake` wakes.
    pub(super) fn new(wake: Wake) -> Self {
        Self { all: vec![LaneState::new(FIRST, wake)], active: FIRST, last: FIRST }
    }

    pub(super) fn get(&mut self, id: LaneId) -> Option<&mut LaneState<H>> {
        self.all.iter_mut().find(|lane| lane.id == id)
    }

    pub(super) fn active(&mut self) -> Option<&mut LaneState<H>> {
        self.get(self.active)
    }

    /// The number of the next lane.
    pub(super) fn next_id(&self) -> LaneId {
        self.last + 1
    }

    /// Gives the calls to a fresh lane from now on.
    pub(super) fn add(&mut self, wake: Wake) {
        self.last += 1;
        self.active = self.last;
        self.all.push(LaneState::new(self.last, wake));
    }

    /// Lanes whose thread does not answer.
    pub(super) fn lost(&self) -> usize {
        self.all.iter().filter(|lane| matches!(lane.stage, Stage::Stuck | Stage::Retired)).count()
    }
}

/// The number of the first lane.
pub(crate) const FIRST: LaneId = 1;
