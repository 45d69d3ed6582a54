//! Supervision without an interpreter: the lanes are the test, and the crew writes down what it is asked for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::call::Call;
use super::dispatcher::Dispatcher;
use super::lanes::{Crew, FIRST, LaneId, Order, Wake};
use super::queue::{LaneQueue, QueueLimits};
use super::supervision::Patience;
use crate::hooks::{AnyPayload, FailureCause, HandlerId, Lane, Outcome, OutgoingTextPayload, Payload, Point};

/// How long the handlers have.
const TIMEOUT: Duration = Duration::from_millis(80);

#[derive(Default)]
struct Asked {
    hired: Mutex<Vec<LaneId>>,
    orders: Mutex<Vec<(LaneId, Order)>>,
    refuses: AtomicBool,
    lost: Mutex<Vec<String>>,
    gives_process_up: AtomicBool,
    processor_time_ms: AtomicU64,
}

impl Crew<()> for Asked {
    fn hire(&self, _: &Arc<LaneQueue<()>>, lane: LaneId) -> Option<Wake> {
        if self.refuses.load(Ordering::Relaxed) {
            return None;
        }
        self.hired.lock().unwrap().push(lane);
        Some(Arc::new(|| {}))
    }

    fn order(&self, _: &Arc<LaneQueue<()>>, lane: LaneId, order: Order) {
        self.orders.lock().unwrap().push((lane, order));
    }

    fn is_awake(&self, _: LaneId) -> bool {
        false
    }

    fn processor_time(&self, _: LaneId) -> Option<Duration> {
        Some(Duration::from_millis(self.processor_time_ms.load(Ordering::Relaxed)))
    }

    fn lose(&self, culprits: &[Arc<HandlerId>]) -> bool {
        let names: Vec<_> = culprits.iter().map(ToString::to_string).collect();
        self.lost.lock().unwrap().push(names.join(" "));
        self.gives_process_up.load(Ordering::Relaxed)
    }
}

struct Scene {
    dispatcher: Dispatcher<()>,
    queue: Arc<LaneQueue<()>>,
    crew: Arc<Asked>,
    told: mpsc::Receiver<(u32, Outcome<AnyPayload>)>,
    tell: mpsc::Sender<(u32, Outcome<AnyPayload>)>,
    /// Calls that run: one that nobody holds is lost.
    running: Mutex<Vec<Arc<Call<()>>>>,
}

impl Scene {
    /// One modify handler at outgoing text; the first lane serves.
    fn new() -> Self {
        let crew = Arc::new(Asked::default());
        let patience = Patience {
            answer: Duration::from_millis(5),
            give_up: Duration::from_millis(40),
            threads: 2,
            ..Patience::default()
        };
        let queue =
            LaneQueue::new(QueueLimits::default(), patience, Arc::clone(&crew) as Arc<dyn Crew<()>>, Arc::new(|| {}));
        let id = HandlerId {
            point: Point::OutgoingText,
            lane: Lane::Modify,
            module: "hooks".into(),
            function: "handle".into(),
            file: "hooks.py".into(),
            line: 1,
            timeout: TIMEOUT,
        };
        let dispatcher = Dispatcher::new(vec![(id, ())], Arc::clone(&queue));
        queue.woken(FIRST);
        queue.drained(FIRST);
        let (tell, told) = mpsc::channel();
        Self { dispatcher, queue, crew, told, tell, running: Mutex::default() }
    }

    fn call(&self, number: u32) {
        let tell = self.tell.clone();
        let payload = OutgoingTextPayload::new("s", number.to_string()).into_any();
        // The test may be over.
        self.dispatcher.modify(payload, move |outcome| drop(tell.send((number, outcome))));
    }

    /// The first lane begins call 1 and does not come back from its first step.
    fn block(&self) {
        self.call(1);
        self.queue.woken(FIRST);
        assert_eq!(self.begin(FIRST), begun("1"));
    }

    /// The number of the next call that a lane takes, and whether it may begin it.
    fn begin(&self, lane: LaneId) -> Option<(String, bool)> {
        let call = self.queue.take(lane)?;
        let AnyPayload::OutgoingText(payload) = call.payload() else { panic!("only texts are sent") };
        let begun = (payload.text.clone(), call.begin(lane));
        self.running.lock().unwrap().push(call);
        Some(begun)
    }

    fn cause(&self) -> (u32, FailureCause) {
        match self.told.recv_timeout(Duration::from_secs(10)).expect("each call has an outcome") {
            (number, Outcome::Proceed { failure: Some(failure), .. } | Outcome::Failed(failure)) => {
                (number, failure.cause)
            }
            other => panic!("expected a failure, got {other:?}"),
        }
    }
}

fn until(hoped: impl Fn() -> bool) {
    let start = Instant::now();
    while !hoped() {
        assert!(start.elapsed() < Duration::from_secs(10), "it does not come");
        thread::sleep(Duration::from_millis(1));
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what a lane is given")]
fn begun(number: &str) -> Option<(String, bool)> {
    Some((number.to_owned(), true))
}

#[test]
fn calls_that_wait_behind_a_blocked_lane_are_moved_and_a_lane_that_answers_is_home_again() {
    let scene = Scene::new();
    scene.block();
    scene.call(2);
    until(|| *scene.crew.hired.lock().unwrap() == [2]);
    assert_eq!(scene.begin(FIRST), None, "it is given no more calls");
    scene.queue.woken(2);
    assert_eq!(scene.begin(2), begun("2"));
    scene.call(3);
    assert!(!scene.queue.woken(FIRST).leave);
    assert_eq!(scene.begin(FIRST), begun("3"));
    assert!(scene.queue.woken(2).leave, "the one in its place is no longer needed");
    assert_eq!(scene.begin(2), None);
}

#[test]
fn a_call_that_was_taken_and_not_begun_is_moved_and_begun_once() {
    let scene = Scene::new();
    scene.call(1);
    scene.queue.woken(FIRST);
    let limbo = scene.queue.take(FIRST).unwrap();
    until(|| *scene.crew.hired.lock().unwrap() == [2]);
    scene.queue.woken(2);
    assert_eq!(scene.begin(2), begun("1"));
    assert!(!limbo.begin(FIRST));
}

#[test]
fn where_no_thread_can_be_had_calls_fail_at_once_until_a_lane_answers() {
    let scene = Scene::new();
    scene.crew.refuses.store(true, Ordering::Relaxed);
    scene.block();
    scene.call(2);
    assert_eq!(scene.cause(), (2, FailureCause::ThreadsExhausted));
    scene.call(3);
    assert_eq!(scene.cause(), (3, FailureCause::ThreadsExhausted));
    assert!(scene.dispatcher.health().exhausted);
    scene.queue.woken(FIRST);
    scene.call(4);
    assert_eq!(scene.begin(FIRST), begun("4"));
    assert!(!scene.dispatcher.health().exhausted);
}

#[test]
fn a_thread_that_cannot_be_started_counts_as_none() {
    let scene = Scene::new();
    scene.block();
    scene.call(2);
    until(|| *scene.crew.hired.lock().unwrap() == [2]);
    scene.queue.not_started(2, "no more threads");
    assert_eq!(scene.cause(), (2, FailureCause::ThreadsExhausted));
}

#[test]
fn only_the_call_whose_step_is_running_is_struck_and_only_past_its_deadline() {
    for spins in [true, false] {
        let scene = Scene::new();
        scene.call(1);
        scene.call(2);
        scene.queue.woken(FIRST);
        assert_eq!((scene.begin(FIRST), scene.begin(FIRST)), (begun("1"), begun("2")));
        scene.queue.drained(FIRST);
        // Call 2 is suspended; call 1 spins. A third call wakes the lane, which does not answer.
        scene.call(3);
        let orders = || scene.crew.orders.lock().unwrap().clone();
        until(|| orders() == [(FIRST, Order::Look)]);
        let serial = 1;
        scene.queue.looked(FIRST, Some(serial));
        let mut ends = [scene.cause(), scene.cause()];
        ends.sort_by_key(|end| end.0);
        let limit_ms = 80;
        assert_eq!(ends, [(1, FailureCause::Timeout { limit_ms }), (2, FailureCause::LoopLost)]);
        until(|| {
            scene.queue.looked(FIRST, Some(serial));
            orders().contains(&(FIRST, Order::Interrupt(Some(serial))))
        });
        scene.crew.processor_time_ms.store(if spins { 30 } else { 0 }, Ordering::Relaxed);
        until(|| {
            scene.queue.looked(FIRST, Some(serial));
            scene.dispatcher.health().retired.len() == 1
        });
        let parked = orders().contains(&(FIRST, Order::Park(Some(serial))));
        assert_eq!(parked, spins, "a thread that sleeps in C is left alone: it may come back");
        assert!(orders().contains(&(FIRST, Order::Report)));
        assert!(!orders().iter().any(|(_, order)| *order == Order::Interrupt(Some(2))));
        assert_eq!(scene.dispatcher.health().loop_lost, 1);
        let woken = scene.queue.woken(FIRST);
        assert!(woken.leave && !woken.stop, "a thread that comes back ends when what is suspended on it has");
        assert_eq!(scene.dispatcher.health().retired.len(), 0);
        scene.queue.end(FIRST);
    }
}

#[test]
fn a_queue_that_is_dropped_or_stopped_leaves_no_call_without_an_outcome() {
    let Scene { dispatcher, queue, told, tell, .. } = {
        let scene = Scene::new();
        for number in 0..3 {
            scene.call(number);
        }
        scene.queue.woken(FIRST);
        assert_eq!(scene.begin(FIRST), begun("0"));
        scene
    };
    queue.stop();
    drop((dispatcher, queue, tell));
    let mut numbers: Vec<_> = told.iter().map(|(number, _)| number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn a_lane_that_does_not_answer_when_all_is_to_end_is_struck_at_once() {
    let scene = Scene::new();
    // Nothing is open; what a handler has left behind keeps the lane from answering.
    scene.queue.stop();
    let orders = || scene.crew.orders.lock().unwrap().clone();
    until(|| orders() == [(FIRST, Order::Look)]);
    scene.queue.looked(FIRST, None);
    until(|| orders().contains(&(FIRST, Order::Interrupt(None))));
}

#[test]
fn a_call_that_was_claimed_and_not_called_leaves_nothing_on_its_lane() {
    let scene = Scene::new();
    scene.block();
    let begun = |scene: &Scene| scene.queue.lock().lanes.get(FIRST).unwrap().begun.len();
    assert_eq!(begun(&scene), 1);
    scene.running.lock().unwrap()[0].leave_lane();
    assert_eq!(begun(&scene), 0);
}

#[test]
fn where_the_process_can_be_given_up_no_thread_is() {
    let scene = Scene::new();
    scene.crew.gives_process_up.store(true, Ordering::Relaxed);
    scene.block();
    scene.call(2);
    until(|| {
        scene.queue.looked(FIRST, Some(1));
        scene.crew.lost.lock().unwrap().first().is_some_and(|culprit| culprit == "hooks:handle")
    });
    assert_eq!(scene.dispatcher.health().retired.len(), 0);
}

#[test]
fn a_lane_that_nobody_can_look_at_keeps_the_interpreters_lock() {
    let scene = Scene::new();
    scene.block();
    // The order to look is never carried out: whoever carries it out waits for the lock.
    let lost = || scene.crew.lost.lock().unwrap().clone();
    until(|| !lost().is_empty());
    assert_eq!(lost()[0], "hooks:handle");
    let looks = scene.crew.orders.lock().unwrap().iter().filter(|(lane, _)| *lane == FIRST).count();
    assert_eq!(looks, 1);
}
