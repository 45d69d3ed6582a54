//! The dispatcher without an interpreter: what runs the handlers is the test.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;

use super::call::{Answer, Call, Withdraw as _};
use super::dispatcher::Dispatcher;
use super::lanes::{Crew, FIRST, LaneId, Order, Wake};
use super::queue::{LaneQueue, QueueLimits};
use super::supervision::Patience;
use crate::hooks::{
    AnyPayload, FailureCause, HandlerId, IncomingMessagePayload, Lane, Outcome, OutgoingTextPayload, Payload, Point,
    TurnFinishedPayload, TurnStartedPayload, TurnStatus,
};

/// A crew without threads: the test itself is the first lane.
struct Nobody;

impl Crew<()> for Nobody {
    fn hire(&self, _: &Arc<LaneQueue<()>>, _: LaneId) -> Option<Wake> {
        None
    }

    fn order(&self, _: &Arc<LaneQueue<()>>, _: LaneId, _: Order) {}

    fn is_awake(&self, _: LaneId) -> bool {
        false
    }

    fn processor_time(&self, _: LaneId) -> Option<Duration> {
        None
    }

    fn lose(&self, _: &[Arc<HandlerId>]) -> bool {
        false
    }
}

/// A dispatcher with observers at three points and modifiers at two, and the number of wakes so far.
fn dispatcher(limits: QueueLimits, timeout: Duration) -> (Dispatcher<()>, Arc<AtomicUsize>) {
    dispatcher_observing(&[Point::TurnStarted, Point::IncomingMessage, Point::TurnFinished], limits, timeout)
}

fn dispatcher_observing(
    observed: &[Point],
    limits: QueueLimits,
    timeout: Duration,
) -> (Dispatcher<()>, Arc<AtomicUsize>) {
    let handler = |point, lane| {
        let id = HandlerId {
            point,
            lane,
            module: "hooks".into(),
            function: format!("{lane}_{point}"),
            file: "hooks.py".into(),
            line: 1,
            timeout,
        };
        (id, ())
    };
    let wakes = Arc::new(AtomicUsize::new(0));
    let woken = Arc::clone(&wakes);
    let wake: Wake = Arc::new(move || {
        woken.fetch_add(1, Ordering::Relaxed);
    });
    let queue = LaneQueue::new(limits, Patience::default(), Arc::new(Nobody), wake);
    let observers = observed.iter().map(|point| handler(*point, Lane::Observe));
    let modifiers = [Point::IncomingMessage, Point::OutgoingText].map(|point| handler(point, Lane::Modify));
    let handlers = observers.chain(modifiers).collect();
    (Dispatcher::new(handlers, queue), wakes)
}

const LONG: Duration = Duration::from_hours(1);

fn message(sender: &str) -> AnyPayload {
    IncomingMessagePayload::new(sender, "text").into_any()
}

fn text(sender: &str) -> AnyPayload {
    OutgoingTextPayload::new(sender, "text").into_any()
}

/// Takes and starts the next call, and says which it is.
fn start(dispatcher: &Dispatcher<()>) -> Option<(Arc<Call<()>>, String)> {
    let call = dispatcher.queue().take(FIRST)?;
    let name = format!("{} {} {}", call.payload().sender_id(), call.handler().id.lane, call.payload().point());
    assert!(call.begin(FIRST), "nothing else begins calls here");
    Some((call, name))
}

#[test]
fn a_modifier_starts_before_observers_of_other_conversations_and_after_those_of_its_own() {
    let (dispatcher, _) = dispatcher(QueueLimits::default(), LONG);
    for sender in ["a", "b", "a"] {
        dispatcher.observe(Point::IncomingMessage, || message(sender));
    }
    dispatcher.modify(text("b"), drop);
    dispatcher.observe(Point::IncomingMessage, || message("b"));
    let order: Vec<_> = std::iter::from_fn(|| start(&dispatcher)).map(|(_, name)| name).collect();
    assert_eq!(
        order,
        [
            "b observe incoming_message",
            "b modify outgoing_text",
            "a observe incoming_message",
            "a observe incoming_message",
            "b observe incoming_message",
        ]
    );
}

#[test]
fn one_wake_serves_all_that_is_pushed_until_the_lane_looks() {
    let (dispatcher, wakes) = dispatcher(QueueLimits::default(), LONG);
    for _ in 0..10 {
        dispatcher.modify(text("a"), drop);
    }
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    dispatcher.queue().woken(FIRST);
    dispatcher.modify(text("a"), drop);
    assert_eq!(wakes.load(Ordering::Relaxed), 2);
}

#[test]
fn a_full_queue_and_a_closed_one_answer_at_once_by_policy() {
    let (dispatcher, _) = dispatcher(QueueLimits { turn: 1, ..QueueLimits::default() }, LONG);
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = || {
        let told = Arc::clone(&told);
        move |outcome: Outcome<AnyPayload>| {
            let cause = match outcome {
                Outcome::Failed(failure) | Outcome::Proceed { failure: Some(failure), .. } => failure.cause,
                other => panic!("expected a failure, got {other:?}"),
            };
            told.lock().unwrap().push(cause);
        }
    };
    dispatcher.modify(message("a"), tell());
    dispatcher.modify(message("a"), tell());
    assert_eq!(*told.lock().unwrap(), [FailureCause::EngineFull]);
    dispatcher.queue().stop();
    dispatcher.modify(message("a"), tell());
    assert_eq!(*told.lock().unwrap(), [FailureCause::EngineFull, FailureCause::ShutDown, FailureCause::ShutDown]);
    assert_eq!(dispatcher.queue().open(), 0);
}

#[test]
fn observations_are_bounded_by_the_bytes_that_they_hold() {
    let limits = QueueLimits { watch_bytes: 12_000, ..QueueLimits::default() };
    let (dispatcher, _) = dispatcher_observing(&[Point::IncomingMessage], limits, LONG);
    let observe = |sender: &str, bytes: usize| {
        let text = "x".repeat(bytes);
        dispatcher.observe(Point::IncomingMessage, || IncomingMessagePayload::new(sender, text).into_any());
    };
    for sender in ["a", "b", "c"] {
        observe(sender, 3_000);
    }
    // One that is larger than all that may wait is let in alone.
    let names =
        || std::iter::from_fn(|| start(&dispatcher)).map(|(_, name)| name.chars().next().unwrap()).collect::<String>();
    observe("d", 3_000);
    assert_eq!(names(), "bcd");
    observe("e", 3_000);
    observe("f", 50_000);
    assert_eq!(names(), "f");
    assert_eq!(dispatcher.statistics()[0].dropped, 2);
}

#[test]
fn at_the_deadline_the_verdict_falls_and_the_started_task_is_cancelled() {
    let (dispatcher, _) = dispatcher(QueueLimits::default(), Duration::from_millis(20));
    let (tell, told) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let tell = tell.clone();
        dispatcher.modify(message("a"), move |outcome| tell.send(outcome).unwrap());
    }
    let (started, _) = start(&dispatcher).unwrap();
    for _ in 0..2 {
        let Outcome::Failed(failure) = told.recv_timeout(Duration::from_secs(10)).unwrap() else { panic!("closed") };
        assert_eq!(failure.cause, FailureCause::Timeout { limit_ms: 20 });
    }
    assert_eq!(dispatcher.queue().woken(FIRST).cancels, [started.serial()]);
    assert!(!started.settle(Answer::Unchanged), "a late result is dropped");
    let late = dispatcher.queue().take(FIRST).unwrap();
    assert!(!late.begin(FIRST), "what timed out while it waited is not started");
}

#[test]
fn a_call_that_is_dropped_without_an_answer_is_lost_not_forgotten() {
    let (dispatcher, _) = dispatcher(QueueLimits::default(), LONG);
    let (tell, told) = std::sync::mpsc::channel();
    drop(dispatcher.modify(message("a"), move |outcome| tell.send(outcome).unwrap()));
    drop(start(&dispatcher));
    let Outcome::Failed(failure) = told.recv().unwrap() else { panic!("closed") };
    assert_eq!(failure.cause, FailureCause::Lost);
}

#[test]
fn an_end_closes_its_own_turn_also_where_turns_have_no_ids() {
    let (dispatcher, _) = dispatcher(QueueLimits { watch: 3, ..QueueLimits::default() }, LONG);
    let started = || TurnStartedPayload::new("a").into_any();
    let finished = || TurnFinishedPayload::new("a", TurnStatus::Completed).into_any();
    dispatcher.observe(Point::TurnStarted, started);
    let first = start(&dispatcher).unwrap();
    dispatcher.observe(Point::TurnFinished, finished);
    dispatcher.observe(Point::TurnStarted, started);
    dispatcher.observe(Point::TurnFinished, finished);
    dispatcher.observe(Point::IncomingMessage, || message("b"));
    let order: Vec<_> = std::iter::from_fn(|| start(&dispatcher)).map(|(_, name)| name).collect();
    assert_eq!(order, ["a observe turn_finished", "b observe incoming_message"]);
    drop(first);
}

#[test]
fn where_only_ends_or_only_starts_are_observed_they_are_bounded_like_the_others() {
    for point in [Point::TurnStarted, Point::TurnFinished] {
        let limits = QueueLimits { watch: 10, ..QueueLimits::default() };
        let (dispatcher, _) = dispatcher_observing(&[point], limits, LONG);
        for turn in 0..1000 {
            let sender = turn.to_string();
            dispatcher.observe(Point::TurnStarted, || TurnStartedPayload::new(sender.clone()).into_any());
            dispatcher.observe(Point::TurnFinished, || {
                TurnFinishedPayload::new(sender.clone(), TurnStatus::Completed).into_any()
            });
        }
        assert_eq!(dispatcher.queue().open(), 10, "{point}");
        assert_eq!(dispatcher.statistics().iter().map(|hook| hook.dropped).sum::<u64>(), 990, "{point}");
    }
}

/// What happens to a dispatcher, by chance.
#[derive(Clone, Debug)]
enum Step {
    Start(u8),
    Finish(u8),
    Observe(u8),
    Modify(u8),
    Withdraw,
    Run,
    Answer(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3_u8).prop_map(Step::Start),
        (0..3_u8).prop_map(Step::Finish),
        (0..3_u8).prop_map(Step::Observe),
        (0..3_u8).prop_map(Step::Modify),
        Just(Step::Withdraw),
        Just(Step::Run),
        any::<u8>().prop_map(Step::Answer),
    ];
    proptest::collection::vec(step, 0..120)
}

/// The turn whose start (`true`) or end a call is.
fn turn_event(call: &Call<()>) -> Option<(Option<String>, bool)> {
    match call.payload() {
        AnyPayload::TurnStarted(started) => Some((started.turn_id.clone(), true)),
        AnyPayload::TurnFinished(finished) => Some((finished.turn_id.clone(), false)),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens in whatever order: each dispatch ends once, counts add up, a conversation's calls start in order, and a
    /// turn's end runs when and only when its start has.
    #[test]
    fn every_dispatch_has_exactly_one_end(steps in steps(), stop in any::<bool>(), with_ids in any::<bool>()) {
        let (dispatcher, _) = dispatcher(QueueLimits { turn: 4, watch: 3, running: 2, ..QueueLimits::default() }, LONG);
        let told = Arc::new(Mutex::new(HashMap::<usize, usize>::new()));
        let (mut modifies, mut observations, mut turns) = (0, 0, 0);
        let (mut running, mut pending) = (Vec::<Arc<Call<()>>>::new(), Vec::new());
        let mut open_turns = [None::<String>, None, None];
        let mut last_start = HashMap::<String, u64>::new();
        let mut events = Vec::new();
        for step in steps {
            match step {
                Step::Start(sender) if open_turns[usize::from(sender)].is_none() => {
                    let turn = turns.to_string();
                    turns += 1;
                    observations += 1;
                    let mut payload = TurnStartedPayload::new(sender.to_string());
                    payload.turn_id = with_ids.then(|| turn.clone());
                    open_turns[usize::from(sender)] = Some(turn);
                    dispatcher.observe(Point::TurnStarted, || payload.into_any());
                }
                Step::Finish(sender) => if let Some(turn) = open_turns[usize::from(sender)].take() {
                    observations += 1;
                    let mut payload = TurnFinishedPayload::new(sender.to_string(), TurnStatus::Completed);
                    payload.turn_id = with_ids.then_some(turn);
                    dispatcher.observe(Point::TurnFinished, || payload.into_any());
                },
                Step::Observe(sender) => {
                    observations += 1;
                    dispatcher.observe(Point::IncomingMessage, || message(&sender.to_string()));
                }
                Step::Modify(sender) => {
                    let (number, told) = (modifies, Arc::clone(&told));
                    modifies += 1;
                    let tell = move |_| *told.lock().unwrap().entry(number).or_default() += 1;
                    pending.extend(dispatcher.modify(text(&sender.to_string()), tell));
                }
                Step::Withdraw => if let Some(call) = pending.pop() { call.withdraw(); },
                Step::Run => if let Some(call) = dispatcher.queue().take(FIRST)
                    && call.begin(FIRST)
                {
                    let sender = call.payload().sender_id().to_owned();
                    let before = last_start.insert(sender, call.serial());
                    // While the queue has room for observers, a conversation's calls start in the order of their dispatch.
                    if running.iter().filter(|call| call.handler().id.lane == Lane::Observe).count() < 2 {
                        prop_assert!(before.is_none_or(|before| before < call.serial()) || call.handler().id.lane == Lane::Observe);
                    }
                    events.extend(turn_event(&call));
                    running.push(call);
                },
                Step::Answer(which) => if !running.is_empty() {
                    let call = running.swap_remove(usize::from(which) % running.len());
                    call.settle(Answer::Unchanged);
                },
                Step::Start(_) => {}
            }
        }
        if stop {
            dispatcher.queue().stop();
        }
        pending.clear();
        while let Some(call) = dispatcher.queue().take(FIRST) {
            if call.begin(FIRST) {
                events.extend(turn_event(&call));
            }
            call.settle(Answer::Unchanged);
        }
        for call in running {
            call.settle(Answer::Unchanged);
            // At the limit of running observers some wait until one of these has ended.
            while let Some(next) = dispatcher.queue().take(FIRST) {
                if next.begin(FIRST) {
                    events.extend(turn_event(&next));
                }
                next.settle(Answer::Unchanged);
            }
        }
        prop_assert_eq!(dispatcher.queue().open(), 0);
        let told = told.lock().unwrap();
        prop_assert_eq!(told.len(), modifies);
        prop_assert!(told.values().all(|times| *times == 1));
        let statistics = dispatcher.statistics();
        let ended = |lane| -> u64 {
            let of_lane = statistics.iter().filter(|hook| hook.handler.lane == lane);
            of_lane.map(|hook| hook.calls + hook.dropped + hook.withdrawn).sum()
        };
        prop_assert_eq!((ended(Lane::Modify), ended(Lane::Observe)), (modifies as u64, observations));
        if !stop && with_ids {
            prop_assert_eq!(events.iter().filter(|(_, started)| !started).count(), {
                let ended = |turn: &Option<String>| turn.is_some() && !open_turns.contains(turn);
                events.iter().filter(|(turn, started)| *started && ended(turn)).count()
            });
            for (turn, started) in &events {
                prop_assert!(*started || events.contains(&(turn.clone(), true)), "turn {turn:?} ended without a start");
            }
        }
    }
}
