use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::conversation::Object;

/// Where the file is, and who writes: set in a child process.
const CHILD: (&str, &str) = ("TENTERHOOK_TEST_STORE", "TENTERHOOK_TEST_WRITER");

pub(super) fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folders/conversations.db");
    (folder, path)
}

fn object(value: Value) -> Object {
    if let Value::Object(object) = value { object } else { panic!("{value} is no object") }
}

fn said(text: impl Into<String>) -> Event {
    Event::BotMessage {
        text: text.into(),
        response: None,
        buttons: Vec::new(),
        metadata: Object::new(),
        discarded: false,
    }
}

pub(super) fn asked(text: impl Into<String>) -> Event {
    Event::UserMessage { text: text.into(), message_id: None, discarded: false }
}

pub(super) fn finished(turn_id: impl Into<String>) -> Event {
    Event::TurnFinished { turn_id: turn_id.into(), status: "completed".into(), at: None }
}

/// A turn of several events; how many depends on its number.
fn turn(writer: &str, number: usize) -> Vec<Event> {
    let turn_id = format!("{writer} {number}");
    let answers = (0..number % 7).map(|answer| said(answer.to_string()));
    [asked(&*turn_id)].into_iter().chain(answers).chain([finished(&*turn_id)]).collect()
}

/// Takes events apart into whole turns; how many each writer has.
fn turns(mut events: &[Event]) -> HashMap<String, usize> {
    let mut turns: HashMap<String, usize> = HashMap::new();
    while let Some(Event::UserMessage { text, .. }) = events.first() {
        let (writer, number) = text.split_once(' ').unwrap();
        let next = turns.entry(writer.to_owned()).or_default();
        assert_eq!(number.parse(), Ok(*next), "turns of {writer} are in order");
        let whole = turn(writer, *next);
        assert_eq!(events.get(..whole.len()), Some(&*whole), "a turn is whole");
        events = &events[whole.len()..];
        *next += 1;
    }
    assert_eq!(events, []);
    turns
}

fn refusal(path: &Path) -> String {
    SqliteStore::open(path).unwrap_err().to_string()
}

pub(super) fn change(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn events_of_all_kinds_come_back_in_order() {
    let (_folder, path) = folder();
    let call = object(json!({"id": "c1", "tool_name": "find", "tool_args": {"q": [1, 2.5, null, "ä\u{0}🙂"]}}));
    let events = [
        Event::UserMessage { text: "hello".into(), message_id: Some("m1".into()), discarded: true },
        asked(""),
        Event::BotMessage {
            text: "Which?".into(),
            response: Some("utter_which".into()),
            buttons: vec![object(json!({"title": "A", "payload": "/a"}))],
            metadata: object(json!({"voice": "slow"})),
            discarded: true,
        },
        Event::ToolCalls { calls: vec![call.clone().into(), call.into()] },
        Event::ToolExecuted {
            id: "c1".into(),
            tool_name: "find".into(),
            arguments: object(json!({"z": 1, "a": 2})),
            value: json!([{"found": -0.1}, 18_446_744_073_709_551_615_u64]),
            is_error: true,
            source: "mcp".into(),
            mcp_server: Some("shop".into()),
        },
        finished("t"),
    ];
    let store = SqliteStore::open(&path).unwrap();
    store.append("a", &events[..4]).unwrap();
    store.append("b", &[asked("b")]).unwrap();
    store.append("a", &[]).unwrap();
    store.append("a", &events[4..]).unwrap();
    assert_eq!(store.events("a").unwrap(), events);
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.events("a").unwrap(), events);
    assert_eq!(store.events("b").unwrap(), [asked("b")]);
    assert_eq!(store.events("' OR 1 --").unwrap(), []);
}

#[test]
fn threads_share_a_store() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    write_from_threads(&|| &store);
    assert_eq!(turns(&store.events("a").unwrap()), (0..4).map(|writer| (writer.to_string(), 50)).collect());
}

#[test]
fn stores_share_a_file_that_they_all_make_at_once() {
    for _ in 0..5 {
        let (_folder, path) = folder();
        write_from_threads(&|| SqliteStore::open(&path).unwrap());
        let events = SqliteStore::open(&path).unwrap().events("a").unwrap();
        assert_eq!(turns(&events), (0..4).map(|writer| (writer.to_string(), 50)).collect());
    }
}

#[test]
fn who_makes_a_file_that_another_one_is_writing_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::scope(|scope| {
        let opened = scope.spawn(|| SqliteStore::open(&path).map(|_| ()));
        thread::sleep(Duration::from_millis(100));
        other.execute_batch("COMMIT").unwrap();
        opened.join().unwrap().unwrap();
    });
}

fn write_from_threads<S: std::borrow::Borrow<SqliteStore>>(store: &(impl Fn() -> S + Sync)) {
    thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                let store = store();
                for number in 0..50 {
                    store.borrow().append("a", &turn(&writer.to_string(), number)).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_turn_that_fails_leaves_nothing() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    change(
        &path,
        "CREATE TRIGGER no BEFORE INSERT ON events WHEN new.position = 2 BEGIN SELECT raise(ABORT, 'no'); END",
    );
    let error = store.append("a", &turn("a", 3)).unwrap_err().to_string();
    assert_eq!(error, format!("The conversation store cannot be written to: `{}`: no", path.display()));
    assert_eq!(store.events("a").unwrap(), []);
}

#[test]
fn values_too_deep_to_be_read_again_are_refused() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    let deep = (0..200).fold(Value::Null, |value, _| json!([value]));
    let call = object(json!({"tool_args": deep}));
    let error = store.append("a", &[asked("a"), Event::ToolCalls { calls: vec![call.into()] }]).unwrap_err();
    assert!(error.to_string().contains("recursion limit exceeded"), "{error}");
    assert_eq!(store.events("a").unwrap(), []);
}

#[test]
fn a_file_is_migrated_step_by_step_and_a_step_that_fails_leaves_nothing() {
    let (folder, path) = folder();
    let bare = folder.path().join("bare.db");
    let mut connection = Connection::open(&bare).unwrap();
    assert_eq!(version(&connection).unwrap(), 0);
    migrate(&mut connection, &["CREATE TABLE a (x); INSERT INTO a VALUES (1)"]).unwrap();
    let steps = ["no SQL: this step is done", "ALTER TABLE a ADD COLUMN y DEFAULT 2", "CREATE TABLE b (x); nonsense"];
    migrate(&mut connection, &steps).unwrap_err();
    assert_eq!(version(&connection).unwrap(), 2);
    let row: (i64, i64) = connection.query_row("SELECT x, y FROM a", [], |row| row.try_into()).unwrap();
    assert_eq!(row, (1, 2));
    assert!(connection.prepare("SELECT x FROM b").is_err());

    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    SqliteStore::open(&path).unwrap().append("a", &[asked("a")]).unwrap();
    let now = version(&Connection::open(&path).unwrap()).unwrap();
    assert_eq!(now, number(MIGRATIONS.len()));
}

#[test]
fn a_file_of_a_newer_version_is_refused_and_left_as_it_was() {
    let (_folder, path) = folder();
    drop(SqliteStore::open(&path).unwrap());
    change(&path, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 99");
    let before = fs::read(&path).unwrap();
    assert_eq!(
        refusal(&path),
        format!(
            "The conversation store cannot be opened: `{}` is of version 99, and this program knows versions up to 2\n  \
            hint: install a newer tenterhook, or name another file",
            path.display()
        )
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn an_event_of_an_unknown_kind_is_an_error() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    store.append("a", &[asked("a")]).unwrap();
    change(&path, r#"INSERT INTO events VALUES ('a', 1, '{"event":"form_filled"}', 0)"#);
    let error = store.events("a").unwrap_err().to_string();
    let start = format!(
        "The conversation store cannot be read: Event 1 of the conversation `a` in `{}` is not understood: \
        unknown variant `form_filled`, expected one of ",
        path.display()
    );
    assert!(error.starts_with(&start), "{error}");
    assert!(error.ends_with("\n  hint: a newer tenterhook may have written it: install that version"), "{error}");
    store.append("b", &[asked("b")]).unwrap();
    assert_eq!(store.events("b").unwrap(), [asked("b")]);
}

#[test]
fn what_is_no_database_is_refused_and_left_as_it_was() {
    let (folder, path) = folder();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "no database, but long enough to be one ".repeat(100)).unwrap();
    let error = refusal(&text);
    let start =
        format!("The conversation store cannot be opened: `{}` is no SQLite database, or is damaged: ", text.display());
    assert!(error.starts_with(&start) && error.contains("\n  hint: name another file"), "{error}");
    assert!(fs::read(&text).unwrap().starts_with(b"no database"));

    let other = folder.path().join("other.db");
    change(&other, "CREATE TABLE users (name)");
    assert!(refusal(&other).contains("other.db` is the database of another program\n  hint: "));

    assert!(refusal(folder.path()).contains(&folder.path().display().to_string()));
    assert!(refusal(&text.join("below.db")).contains("notes.txt` cannot be made: "));
    SqliteStore::open(&path).unwrap();
}

#[test]
fn a_damaged_file_is_an_error() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    for number in 0..200 {
        store.append("a", &turn("a", number)).unwrap();
    }
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    assert!(bytes.len() > 3 * 4_096, "it has pages to damage");
    bytes[4_096..].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let errors = [
        SqliteStore::open(&path).unwrap().events("a").unwrap_err(),
        SqliteStore::open(&path).unwrap().append("a", &turn("a", 0)).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("is damaged: "), "{error}");
    }
}

/// Also the child's code: it appends turns as fast as it can, and then notes that it has.
#[test]
fn a_killed_process_loses_no_turn_and_leaves_no_part_of_one() {
    if let (Some(path), Ok(writer)) = (std::env::var_os(CHILD.0), std::env::var(CHILD.1)) {
        append_until_killed(Path::new(&path), &writer);
    }
    let (_folder, path) = folder();
    let mut kept = 0;
    for round in 0..10 {
        let writers = [format!("{round}a"), format!("{round}b")];
        let mut children = writers.clone().map(|writer| start_child(&path, &writer));
        while !writers.iter().all(|writer| noted(&path, writer) > 0) {
            thread::sleep(Duration::from_millis(1));
        }
        for child in &mut children {
            thread::sleep(Duration::from_micros(RandomState::new().hash_one(round) % 60_000));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let turns = turns(&SqliteStore::open(&path).unwrap().events("a").unwrap());
        for writer in &writers {
            let (noted, found) = (noted(&path, writer), turns[writer]);
            assert!(found == noted || found == noted + 1, "{found} turns, {noted} are noted");
        }
        kept = turns.values().sum();
    }
    assert!(kept > 20, "{kept} turns");
    let intact: String =
        Connection::open(&path).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(intact, "ok");
}

fn start_child(path: &Path, writer: &str) -> Child {
    let (_, module) = module_path!().split_once("::").unwrap();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::a_killed_process_loses_no_turn_and_leaves_no_part_of_one")])
        .env(CHILD.0, path)
        .env(CHILD.1, writer)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn append_until_killed(path: &Path, writer: &str) -> ! {
    let store = SqliteStore::open(path).unwrap();
    let mut notes = fs::File::create(path.with_extension(writer)).unwrap();
    for number in 0.. {
        store.append("a", &turn(writer, number)).unwrap();
        notes.write_all(b".").unwrap();
    }
    unreachable!()
}

/// How many turns a child says that it has kept.
fn noted(path: &Path, writer: &str) -> usize {
    fs::read(path.with_extension(writer)).map_or(0, |notes| notes.len())
}
