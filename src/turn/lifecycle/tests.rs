use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_executor::block_on;
use futures_util::future::{BoxFuture, pending, ready};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::json;

use super::stream::{Clock, with_clock};
use super::*;
use crate::conversation::Object;
use crate::step::{Model, ModelError, ModelReply, ModelRequest, Tokens};
use crate::turn::{ConversationStore, MemoryStore, TurnEngine};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// Nudges after a minute, expires after an hour.
const LIFECYCLE: Lifecycle =
    Lifecycle { nudge_after: Some(Duration::from_mins(1)), expire_after: Some(Duration::from_hours(1)) };

/// Answers, or never does where it is asked to wait.
#[derive(Clone, Default)]
struct Parrot(Arc<Mutex<Vec<Vec<Arc<Object>>>>>);

impl Model for Parrot {
    fn name(&self) -> &'static str {
        "parrot"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.0.lock().unwrap().push(request.messages.clone());
        if request.messages.last().unwrap()["content"] == "wait" {
            return Box::pin(pending());
        }
        Box::pin(ready(Ok(ModelReply::text("Here I am."))))
    }
}

impl Parrot {
    /// What it was shown last, the system prompt aside.
    fn shown(&self) -> Vec<String> {
        let requests = self.0.lock().unwrap();
        let messages = requests.last().unwrap()[1..].iter();
        messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    }
}

fn engine(store: &Arc<MemoryStore>, lifecycle: Lifecycle) -> TurnEngine {
    TurnEngine::builder(Parrot::default()).store(Arc::clone(store)).lifecycle(lifecycle).build()
}

fn user(text: &str) -> Event {
    Event::UserMessage { text: text.into(), message_id: None, discarded: false }
}

/// The user says something, and the turn ends at that time.
fn ends(store: &MemoryStore, sender_id: &str, at: u64) {
    let end = Event::TurnFinished { turn_id: "t".into(), status: "completed".into(), at: Some(at) };
    store.append(sender_id, &[user("hello"), end]).unwrap();
}

fn nudged(sender_id: &str, idle_since: u64) -> LifecycleEvent {
    let (idle_since, due) = (time(idle_since), time(idle_since + MINUTE));
    LifecycleEvent::Nudged { sender_id: sender_id.into(), idle_since, due }
}

fn expired(sender_id: &str, idle_since: u64) -> LifecycleEvent {
    let (idle_since, due) = (time(idle_since), time(idle_since + HOUR));
    LifecycleEvent::Expired { sender_id: sender_id.into(), idle_since, due }
}

fn due(engine: &TurnEngine, now: u64) -> Vec<LifecycleEvent> {
    std::iter::from_fn(|| engine.due(time(now)).unwrap()).collect()
}

#[test]
fn a_conversation_is_nudged_and_expires_each_once_and_that_is_kept() {
    let store = Arc::default();
    let engine = engine(&store, LIFECYCLE);
    ends(&store, "s", 1000);
    assert_eq!(due(&engine, 1000 + MINUTE - 1), []);
    assert_eq!(due(&engine, 1000 + MINUTE), [nudged("s", 1000)]);
    assert_eq!(due(&engine, HOUR), []);
    assert_eq!(due(&engine, 5000 + HOUR), [expired("s", 1000)]);
    assert_eq!(due(&engine, 1000 * HOUR), []);
    let kept = [Event::ConversationNudged { at: 1000 + MINUTE }, Event::ConversationExpired { at: 5000 + HOUR }];
    assert_eq!(store.events("s").unwrap()[2..], kept);
}

#[test]
fn events_come_in_the_order_in_which_they_fall_due() {
    let store = Arc::default();
    let engine = engine(&store, LIFECYCLE);
    ends(&store, "old", 0);
    assert_eq!(due(&engine, MINUTE), [nudged("old", 0)]);
    ends(&store, "c", HOUR - MINUTE + 1);
    ends(&store, "b", HOUR - MINUTE);
    ends(&store, "a", HOUR - MINUTE - 1);
    ends(&store, "too late", HOUR);
    let told = [nudged("a", HOUR - MINUTE - 1), nudged("b", HOUR - MINUTE), expired("old", 0)];
    assert_eq!(due(&engine, HOUR), told);
    assert_eq!(due(&engine, HOUR + 1), [nudged("c", HOUR - MINUTE + 1)]);
}

#[test]
fn a_conversation_that_expired_while_no_engine_ran_is_not_nudged_first() {
    let store = Arc::default();
    ends(&store, "s", 0);
    ends(&store, "t", 5 * HOUR - 2 * MINUTE);
    assert_eq!(due(&engine(&store, LIFECYCLE), 5 * HOUR), [expired("s", 0), nudged("t", 5 * HOUR - 2 * MINUTE)]);
}

#[test]
fn one_of_two_engines_over_a_store_tells_each_event() {
    let store = Arc::default();
    let engines = [engine(&store, LIFECYCLE), engine(&store, LIFECYCLE)];
    (0..100).for_each(|number| ends(&store, &number.to_string(), number));
    let told: Vec<_> = std::thread::scope(|scope| {
        let threads = engines.each_ref().map(|engine| scope.spawn(|| due(engine, HOUR - 1)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let told_of = |number: u64| told.iter().filter(|event| **event == nudged(&number.to_string(), number)).count();
    assert_eq!((told.len(), (0..100).map(told_of).collect::<Vec<_>>()), (100, vec![1; 100]));
}

#[test]
fn the_users_next_message_begins_a_new_time_of_silence() {
    let store = Arc::default();
    let engine = engine(&store, LIFECYCLE);
    ends(&store, "s", 0);
    assert_eq!(due(&engine, MINUTE), [nudged("s", 0)]);
    ends(&store, "s", HOUR - 1);
    assert_eq!(due(&engine, HOUR), []);
    assert_eq!(due(&engine, HOUR + MINUTE), [nudged("s", HOUR - 1)]);
}

#[test]
fn what_is_not_configured_is_not_told() {
    let store = Arc::default();
    ends(&store, "s", 0);
    let only = |nudge_after, expire_after| engine(&store, Lifecycle { nudge_after, expire_after });
    assert_eq!(due(&only(LIFECYCLE.nudge_after, None), 5 * HOUR), [nudged("s", 0)]);
    assert_eq!(due(&only(LIFECYCLE.nudge_after, None), 50 * HOUR), []);
    assert_eq!(due(&only(None, LIFECYCLE.expire_after), 50 * HOUR), [expired("s", 0)]);
}

#[test]
fn a_conversation_whose_turn_runs_is_not_idle() {
    let store = Arc::default();
    let engine = engine(&store, LIFECYCLE);
    ends(&store, "s", 0);
    ends(&store, "t", 1);
    let mut turn = engine.turn(TurnInput::new("s", "wait"));
    block_on(turn.next());
    assert!(turn.next().now_or_never().is_none(), "the model does not answer");
    let now = session::now_ms();
    assert_eq!(due(&engine, now + 5 * HOUR), [expired("t", 1)]);
    drop(turn);
    assert_eq!(due(&engine, now + 30_000), []);
    assert_eq!(due(&engine, now + 5 * HOUR).len(), 1, "it rests since the turn was given up");
}

#[test]
fn a_turn_that_has_begun_is_known_to_the_other_engines_of_the_store() {
    let store = Arc::default();
    let [here, there] = [engine(&store, LIFECYCLE), engine(&store, LIFECYCLE)];
    ends(&store, "s", 0);
    let mut turn = here.turn(TurnInput::new("s", "wait"));
    block_on(turn.next());
    assert!(turn.next().now_or_never().is_none(), "the model does not answer");
    assert_eq!(due(&there, session::now_ms() + 30_000), []);
}

#[test]
fn a_program_may_react_by_a_turn_and_the_conversation_rests_on() {
    let (store, parrot) = (Arc::<MemoryStore>::default(), Parrot::default());
    let engine = TurnEngine::builder(parrot.clone()).store(Arc::clone(&store)).lifecycle(LIFECYCLE).build();
    ends(&store, "s", 0);
    assert_eq!(due(&engine, MINUTE), [nudged("s", 0)]);
    block_on(engine.turn(TurnInput::new("s", "/nudge")).collect::<Vec<_>>());
    assert_eq!(parrot.shown(), ["hello", "/nudge"]);
    assert_eq!(due(&engine, HOUR), [expired("s", 0)]);
    block_on(engine.turn(TurnInput::new("s", "/expire")).collect::<Vec<_>>());
    assert_eq!(parrot.shown(), ["hello", "/nudge", "Here I am.", "/expire"], "it is still the same session");
    assert_eq!(due(&engine, session::now_ms() + 50 * HOUR), []);
}

#[test]
fn after_an_expiry_the_users_next_message_begins_a_session() {
    let (store, parrot) = (Arc::<MemoryStore>::default(), Parrot::default());
    let engine = TurnEngine::builder(parrot.clone()).store(Arc::clone(&store)).lifecycle(LIFECYCLE).build();
    ends(&store, "s", session::now_ms());
    block_on(engine.turn(TurnInput::new("s", "one")).collect::<Vec<_>>());
    assert_eq!(parrot.shown(), ["hello", "one"]);
    assert_eq!(due(&engine, session::now_ms() + 2 * HOUR).len(), 1);
    block_on(engine.turn(TurnInput::new("s", "two")).collect::<Vec<_>>());
    assert_eq!(parrot.shown(), ["two"]);
    block_on(engine.turn(TurnInput::new("s", "three")).collect::<Vec<_>>());
    assert_eq!(parrot.shown(), ["two", "Here I am.", "three"]);
}

/// A store that knows no lifecycle, and is not asked for one.
struct Plain;

impl ConversationStore for Plain {
    fn events(&self, _: &str) -> Result<Vec<Event>, StoreError> {
        Ok(Vec::new())
    }

    fn append(&self, _: &str, _: &[Event]) -> Result<(), StoreError> {
        Ok(())
    }

    fn idle(
        &self,
        _: IdleStage,
        _: std::ops::RangeInclusive<u64>,
        _: usize,
    ) -> Result<Vec<(String, Idle)>, StoreError> {
        panic!("nobody asks")
    }

    fn stir(&self, _: &str, _: u64) -> Result<(), StoreError> {
        panic!("nobody tells")
    }
}

#[test]
fn without_a_lifecycle_the_stream_is_over_and_the_store_is_not_asked() {
    let engine = TurnEngine::builder(Parrot::default()).store(Plain).build();
    block_on(engine.turn(TurnInput::new("s", "hello")).collect::<Vec<_>>());
    assert_eq!(due(&engine, 5 * HOUR), []);
    assert_eq!(engine.lifecycle().next().now_or_never(), Some(None));
}

/// Time goes by while somebody sleeps.
#[derive(Clone, Default)]
struct FakeClock {
    now: Arc<AtomicU64>,
    slept: Arc<Mutex<Vec<Duration>>>,
}

impl Clock for FakeClock {
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.slept.lock().unwrap().push(time);
        self.now.fetch_add(whole_millis(time), Ordering::Relaxed);
        Box::pin(ready(()))
    }
}

#[test]
fn the_stream_sleeps_until_the_next_is_due_and_a_minute_at_most() {
    let (store, clock) = (Arc::default(), FakeClock::default());
    ends(&store, "s", 0);
    ends(&store, "t", 200);
    let lifecycle = Lifecycle { nudge_after: None, expire_after: Some(Duration::from_mins(2)) };
    let mut events = with_clock(engine(&store, lifecycle).0, clock.clone());
    let mut told = || {
        let event = json!(block_on(events.next()));
        let slept = std::mem::take(&mut *clock.slept.lock().unwrap());
        (event, clock.now(), slept)
    };
    let expire = |sender: &str, since: u64| json!({"event": "expire", "sender_id": sender, "idle_since_ms": since, "due_ms": since + 2 * MINUTE});
    assert_eq!(told(), (expire("s", 0), 2 * MINUTE, vec![Duration::from_mins(1); 2]));
    assert_eq!(told(), (expire("t", 200), 2 * MINUTE + 200, vec![Duration::from_millis(200)]));
}

#[test]
fn the_stream_looks_as_often_as_a_conversation_may_fall_due_that_rests_from_now_on() {
    let (store, clock) = (Arc::default(), FakeClock::default());
    let lifecycle = Lifecycle { nudge_after: Some(Duration::from_secs(5)), ..LIFECYCLE };
    let mut events = with_clock(engine(&store, lifecycle).0, clock.clone());
    ends(&store, "s", 7000);
    assert!(matches!(block_on(events.next()), Some(LifecycleEvent::Nudged { .. })));
    assert_eq!(*clock.slept.lock().unwrap(), [5, 5, 2].map(Duration::from_secs));
}

#[test]
fn what_has_not_been_taken_out_of_a_stream_is_told_by_the_next() {
    let (store, clock) = (Arc::default(), FakeClock::default());
    let engine = engine(&store, LIFECYCLE);
    ends(&store, "s", 0);
    ends(&store, "t", 0);
    clock.now.store(MINUTE, Ordering::Relaxed);
    assert_eq!(block_on(with_clock(Arc::clone(&engine.0), clock.clone()).next()), Some(nudged("s", 0)));
    assert_eq!(block_on(with_clock(engine.0, clock).next()), Some(nudged("t", 0)));
}

#[test]
fn the_system_clock_drives_the_stream_without_a_runtime() {
    let store = Arc::default();
    let engine = engine(&store, Lifecycle { nudge_after: Some(Duration::from_millis(30)), expire_after: None });
    ends(&store, "s", session::now_ms());
    let start = std::time::Instant::now();
    assert!(matches!(block_on(engine.lifecycle().next()), Some(LifecycleEvent::Nudged { .. })));
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// A store of somebody who knows nothing of lifecycles.
struct Simple;

impl ConversationStore for Simple {
    fn events(&self, _: &str) -> Result<Vec<Event>, StoreError> {
        Ok(Vec::new())
    }

    fn append(&self, _: &str, _: &[Event]) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn a_store_that_knows_no_lifecycle_says_so() {
    let engine = TurnEngine::builder(Parrot::default()).store(Simple).lifecycle(LIFECYCLE).build();
    assert_eq!(
        engine.due(time(0)).unwrap_err().to_string(),
        "The conversation store knows no lifecycle: it does not tell which conversations are idle\n  hint: implement `idle`, \
         `append_if_idle` and `stir`"
    );
}
