use std::sync::Arc;
use std::time::Instant;

use super::tests::{asked, change, finished, folder};
use super::*;

fn ended(at: u64) -> Event {
    Event::TurnFinished { turn_id: "t".into(), status: "completed".into(), at: Some(at) }
}

fn quiet(since: u64) -> Idle {
    Idle { since, stage: IdleStage::Quiet }
}

fn all(store: &SqliteStore) -> Vec<(String, Idle)> {
    let of = |stage| store.idle(stage, 0..=u64::MAX, 100).unwrap();
    [IdleStage::Quiet, IdleStage::Nudged, IdleStage::Expired].into_iter().flat_map(of).collect()
}

#[test]
fn conversations_are_listed_by_the_time_of_their_last_turns_end() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    for (sender_id, at) in [("b", 5), ("c", 7), ("a", 5), ("d", 9), ("c", 4)] {
        store.append(sender_id, &[asked("hello"), ended(at)]).unwrap();
    }
    let of = |(id, since): (&str, u64)| (id.to_owned(), quiet(since));
    assert_eq!(store.idle(IdleStage::Quiet, 0..=8, 10).unwrap(), [("c", 4), ("a", 5), ("b", 5)].map(of));
    assert_eq!(store.idle(IdleStage::Quiet, 5..=9, 2).unwrap(), [("a", 5), ("b", 5)].map(of));
    assert_eq!(store.idle(IdleStage::Nudged, 0..=u64::MAX, 10).unwrap(), []);
}

#[test]
fn an_event_is_added_if_the_conversation_still_rests_so() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    store.append("a", &[asked("hello"), ended(5)]).unwrap();
    let nudge = Event::ConversationNudged { at: 9 };
    assert!(!store.append_if_idle("a", quiet(4), &nudge).unwrap());
    assert!(!store.append_if_idle("b", quiet(5), &nudge).unwrap());
    assert!(store.append_if_idle("a", quiet(5), &nudge).unwrap());
    assert!(!store.append_if_idle("a", quiet(5), &nudge).unwrap(), "it is told");
    assert_eq!(store.events("a").unwrap(), [asked("hello"), ended(5), nudge]);
    assert_eq!(all(&store), [("a".to_owned(), Idle { since: 5, stage: IdleStage::Nudged })]);
}

#[test]
fn a_turn_that_begins_ends_the_rest() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    store.append("a", &[asked("hello"), ended(5), Event::ConversationNudged { at: 6 }]).unwrap();
    store.stir("a", 8).unwrap();
    store.stir("b", 8).unwrap();
    assert_eq!(all(&store), [("a".to_owned(), quiet(8))]);
    assert!(!store.append_if_idle("a", quiet(5), &Event::ConversationExpired { at: 9 }).unwrap());
}

#[test]
fn each_event_is_added_by_one_of_the_stores_that_share_a_file() {
    let (_folder, path) = folder();
    let first = SqliteStore::open(&path).unwrap();
    for number in 0..40 {
        first.append(&number.to_string(), &[asked("hello"), ended(5)]).unwrap();
    }
    let added: usize = thread::scope(|scope| {
        let add = || {
            let store = SqliteStore::open(&path).unwrap();
            let told = |number: &i32| {
                let nudge = Event::ConversationNudged { at: 9 };
                store.append_if_idle(&number.to_string(), quiet(5), &nudge).unwrap()
            };
            (0..40).filter(told).count()
        };
        let threads: [_; 4] = std::array::from_fn(|_| scope.spawn(add));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(added, 40);
    assert_eq!(first.events("7").unwrap(), [asked("hello"), ended(5), Event::ConversationNudged { at: 9 }]);
}

#[test]
fn a_file_of_before_tells_since_when_its_conversations_rest() {
    let (_folder, path) = folder();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    change(&path, &format!("{EVENTS}; PRAGMA user_version = 1"));
    let add = |sender_id: &str, position: i32, event: &str, time: i32| {
        change(&path, &format!("INSERT INTO events VALUES ('{sender_id}', {position}, '{event}', {time})"));
    };
    let end = |at: &str| format!(r#"{{"event":"turn_finished","turn_id":"t","status":"completed"{at}}}"#);
    add("a", 0, &serde_json::to_string(&asked("hello")).unwrap(), 1);
    add("a", 1, &end(r#","at":9"#), 1);
    add("a", 2, &end(r#","at":7"#), 1);
    add("b", 0, &end(""), 8);
    add("c", 0, &serde_json::to_string(&asked("hello")).unwrap(), 1);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(all(&store), [("a".to_owned(), quiet(7)), ("b".to_owned(), quiet(8))]);
    assert_eq!(store.events("b").unwrap(), [finished("t")]);
}

#[test]
fn of_a_hundred_thousand_conversations_those_that_are_due_are_read_by_the_index() {
    let (_folder, path) = folder();
    let store = Arc::new(SqliteStore::open(&path).unwrap());
    change(
        &path,
        "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99999)
        INSERT INTO resting SELECT 's' || n, n, 0 FROM numbers",
    );
    let sql = "EXPLAIN QUERY PLAN SELECT sender_id, since, stage FROM resting WHERE stage = 0 AND since BETWEEN 0 AND 9
        ORDER BY since, sender_id LIMIT 3";
    let plan: Vec<String> = {
        let connection = store.connection();
        let mut steps = connection.prepare(sql).unwrap();
        steps.query_map([], |row| row.get(3)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    assert_eq!(plan, ["SEARCH resting USING COVERING INDEX resting_by_time (stage=? AND since>? AND since<?)"]);
    let start = Instant::now();
    for at in 0..1000 {
        assert_eq!(store.idle(IdleStage::Quiet, at..=at + 2, 10).unwrap().len(), 3);
    }
    println!("a look at 3 of 100,000: {:?}", start.elapsed() / 1000);
    assert!(start.elapsed() < Duration::from_secs(10), "a scan of all takes 10 ms and more, each");
}
