//! Which handlers stand at which point, and how they are called.

use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use tokio::sync::oneshot;

use super::call::{Answer, Call, Withdraw as _};
use super::clock;
use super::policy;
use super::queue::{LaneQueue, SPIN};
use super::statistics::{Counts, HandlerStatistics};
use super::supervision::MOST_RETIRED;
use crate::hooks::{AnyPayload, FailureCause, HandlerFailure, HandlerId, Lane, Outcome, POINTS, Point};

/// A handler, what runs it, and what has come of its calls.
pub(crate) struct Registered<H> {
    /// Which handler it is.
    pub(crate) id: Arc<HandlerId>,
    /// What runs it.
    pub(crate) runs: H,
    pub(super) counts: Counts,
    /// Threads that it has cost.
    retired: AtomicU32,
}

impl<H> Registered<H> {
    /// A handler that has not been called yet.
    pub(crate) fn new(id: HandlerId, runs: H) -> Arc<Self> {
        Arc::new(Self { id: Arc::new(id), runs, counts: Counts::new(), retired: AtomicU32::new(0) })
    }

    /// Notes that the handler has cost a thread, or a process; what is to be told where that puts it in quarantine.
    pub(crate) fn blame(&self) -> Option<String> {
        let cost = self.retired.fetch_add(1, Ordering::AcqRel) + 1;
        (cost == MOST_RETIRED).then(|| {
            format!(
                "`{}` has cost {MOST_RETIRED} threads: it is quarantined, and fails at once until the engine is reloaded",
                self.id
            )
        })
    }

    /// Whether the handler has cost so many threads that it is not called any more.
    pub(super) fn is_quarantined(&self) -> bool {
        self.retired.load(Ordering::Acquire) >= MOST_RETIRED
    }
}

/// The handlers of one agent, by point, and the queue of the lane that runs them.
pub(crate) struct Dispatcher<H: Send + Sync + 'static> {
    points: [AtPoint<H>; POINTS.len()],
    queue: Arc<LaneQueue<H>>,
}

/// The calls of all observers for one occurrence of a point, and its payload.
type Observation<H> = (VecDeque<Arc<Call<H>>>, Arc<AnyPayload>);

struct AtPoint<H> {
    observe: Vec<Arc<Registered<H>>>,
    modify: Option<Arc<Registered<H>>>,
}

impl<H: Send + Sync + 'static> Dispatcher<H> {
    /// A dispatcher over handlers that a load has checked: at most one modify handler stands at a point.
    pub(crate) fn new(handlers: Vec<(HandlerId, H)>, queue: Arc<LaneQueue<H>>) -> Self {
        let mut points = POINTS.map(|_| AtPoint { observe: Vec::new(), modify: None });
        for (id, runs) in handlers {
            let at = &mut points[id.point as usize];
            let registered = Registered::new(id, runs);
            match registered.id.lane {
                Lane::Observe => at.observe.push(registered),
                Lane::Modify => at.modify = Some(registered),
            }
        }
        let observed = |point: Point| !points[point as usize].observe.is_empty();
        queue.pair_turns(observed(Point::TurnStarted) && observed(Point::TurnFinished));
        Self { points, queue }
    }

    /// Hands `payload` to the point's observers; never waits. `payload` is asked for only when there are any.
    pub(crate) fn observe(&self, point: Point, payload: impl FnOnce() -> AnyPayload) {
        if let Some((calls, payload)) = self.observation(point, payload) {
            self.queue.push_watch(calls, payload);
        }
    }

    /// As [`Dispatcher::observe`], but waits for room in the queue instead of dropping.
    pub(crate) async fn observe_with_room(&self, point: Point, payload: impl FnOnce() -> AnyPayload) {
        let Some((mut calls, payload)) = self.observation(point, payload) else { return };
        loop {
            let room = self.queue.room();
            match self.queue.offer_watch(calls, Arc::clone(&payload)) {
                Ok(()) => return,
                Err(refused) => calls = refused,
            }
            room.await;
        }
    }

    /// A call for each observer of the point, where there are any.
    fn observation(&self, point: Point, payload: impl FnOnce() -> AnyPayload) -> Option<Observation<H>> {
        let observers = &self.at(point).observe;
        if observers.is_empty() {
            return None;
        }
        let payload = Arc::new(payload());
        let call = |handler| Call::new(Arc::clone(handler), Arc::clone(&payload), &self.queue, None);
        Some((observers.iter().map(call).collect(), payload))
    }

    /// Calls the point's modify handler; `then` hears the outcome, on whatever thread it falls.
    pub(crate) fn modify(
        &self,
        payload: AnyPayload,
        then: impl FnOnce(Outcome<AnyPayload>) + Send + 'static,
    ) -> Option<Arc<Call<H>>> {
        let Some(handler) = &self.at(payload.point()).modify else {
            then(Outcome::Proceed { payload, changed: false, failure: None, discarded_signal: None });
            return None;
        };
        let id = Arc::clone(&handler.id);
        let payload = Arc::new(payload);
        let given = Arc::clone(&payload);
        let reply = move |answer: Answer, elapsed: Duration| {
            then(policy::decide(&id, answer, elapsed, || Arc::unwrap_or_clone(given)));
        };
        let call = Call::new(Arc::clone(handler), payload, &self.queue, Some(Box::new(reply)));
        call.limit(call.dispatched());
        self.queue.push_turn(Arc::clone(&call));
        Some(call)
    }

    /// Calls one handler for an engine in another process, whose call has used `waited` of its time; `then` hears what it answers.
    pub(crate) fn ask(
        &self,
        handler: &Arc<Registered<H>>,
        payload: AnyPayload,
        waited: Duration,
        then: impl FnOnce(Answer, Duration) + Send + 'static,
    ) -> Arc<Call<H>> {
        let payload = Arc::new(payload);
        let call = Call::new(Arc::clone(handler), Arc::clone(&payload), &self.queue, Some(Box::new(then)));
        match handler.id.lane {
            Lane::Modify => {
                call.limit(call.dispatched().checked_sub(waited).unwrap_or_else(|| call.dispatched()));
                self.queue.push_turn(Arc::clone(&call));
            }
            Lane::Observe => self.queue.push_watch(VecDeque::from([Arc::clone(&call)]), payload),
        }
        call
    }

    /// Calls the point's modify handler and waits for the outcome. Dropping the future cancels the handler.
    pub(crate) async fn modified(&self, payload: AnyPayload) -> Outcome<AnyPayload> {
        let (tell, mut heard) = oneshot::channel();
        let soon = self.queue.answers_soon();
        let call = Withdrawing(self.modify(payload, move |outcome| drop(tell.send(outcome))));
        if soon && call.0.is_some() {
            // Whoever makes several calls at once makes the others first: then this one is not alone, and sleeping is right.
            yield_once().await;
            let (start, alone) = (Instant::now(), self.queue.open() <= 1);
            while alone && start.elapsed() < SPIN {
                if let Ok(outcome) = heard.try_recv() {
                    return outcome;
                }
                for _ in 0..16 {
                    std::hint::spin_loop();
                }
            }
        }
        match (heard.await, &call.0) {
            (Ok(outcome), _) => outcome,
            (Err(_), Some(call)) => Outcome::Failed(HandlerFailure {
                handler: Arc::clone(&call.handler().id),
                elapsed: call.dispatched().elapsed(),
                cause: FailureCause::Lost,
            }),
            (Err(_), None) => unreachable!("without a handler the outcome is told before `modify` returns"),
        }
    }

    /// Ends when the lane has, or when `within` is over.
    pub(crate) async fn ended_within(&self, within: Duration) {
        let (ended, over) = (pin!(self.queue.ended()), pin!(clock::sleep(within)));
        select(ended, over).await;
    }

    /// Ends when every call has been settled, or when `grace` is over; the answer is whether all have been.
    pub(crate) async fn drained_within(&self, grace: Duration) -> bool {
        let (drained, over) = (pin!(self.drained()), pin!(clock::sleep(grace)));
        matches!(select(drained, over).await, Either::Left(_))
    }

    /// Ends when every call has been settled.
    pub(crate) async fn drained(&self) {
        loop {
            let idle = self.queue.idle();
            if self.queue.open() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// How long at least one handler has been running since the load.
    pub(crate) fn occupied(&self) -> Duration {
        self.queue.occupancy().total()
    }

    /// The queue of the lane that runs the handlers.
    pub(crate) fn queue(&self) -> &Arc<LaneQueue<H>> {
        &self.queue
    }

    /// The handlers at a point, observers first, in the order of registration.
    pub(crate) fn at_point(&self, point: Point) -> impl Iterator<Item = &Arc<Registered<H>>> {
        let at = self.at(point);
        at.observe.iter().chain(&at.modify)
    }

    /// Whether a handler of `lane` stands at a point.
    pub(crate) fn stands_at(&self, point: Point, lane: Lane) -> bool {
        match lane {
            Lane::Observe => !self.at(point).observe.is_empty(),
            Lane::Modify => self.at(point).modify.is_some(),
        }
    }

    /// All handlers, in the order of the catalogue.
    pub(crate) fn handlers(&self) -> impl Iterator<Item = &Arc<Registered<H>>> {
        POINTS.iter().flat_map(|spec| self.at_point(spec.point))
    }

    /// What has come of each handler's calls, in the order of the catalogue.
    pub(crate) fn statistics(&self) -> Vec<HandlerStatistics> {
        self.handlers().map(|handler| handler.counts.read(Arc::clone(&handler.id))).collect()
    }

    fn at(&self, point: Point) -> &AtPoint<H> {
        &self.points[point as usize]
    }
}

/// Lets the other futures of the caller's task run once.
async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// Withdraws its call when it is dropped; a call that is over does not mind.
struct Withdrawing<H: Send + Sync + 'static>(Option<Arc<Call<H>>>);

impl<H: Send + Sync + 'static> Drop for Withdrawing<H> {
    fn drop(&mut self) {
        if let Some(call) = &self.0 {
            call.withdraw();
        }
    }
}

impl<H> fmt::Debug for Registered<H> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Registered").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<H: Send + Sync + 'static> fmt::Debug for Dispatcher<H> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handlers: Vec<_> = self.handlers().map(|handler| &handler.id).collect();
        out.debug_struct("Dispatcher").field("handlers", &handlers).field("queue", &self.queue).finish_non_exhaustive()
    }
}
