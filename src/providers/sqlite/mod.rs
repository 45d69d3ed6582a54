//! Conversations in one `SQLite` file: one row an event, one transaction a turn.

mod error;
mod resting;
#[cfg(test)]
mod resting_tests;
#[cfg(test)]
mod tests;

pub use error::SqliteError;

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, params};

use crate::conversation::{Event, Idle, IdleStage};
use crate::turn::{ConversationStore, StoreError};

/// How long one waits for another process that writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Marks a file as ours (`PRAGMA application_id`): `tnth` in ASCII. Written by the first migration.
const APPLICATION: i64 = 0x746e_7468;

/// The steps from an empty file to this version's; `PRAGMA user_version` is the number of those that are done. Steps are only ever
/// added. `time` is in milliseconds since 1970, UTC.
const MIGRATIONS: &[&str] = &[EVENTS, resting::MIGRATION];

const EVENTS: &str = "
    PRAGMA application_id = 0x746e7468;
    CREATE TABLE events (
        sender_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        event TEXT NOT NULL,
        time INTEGER NOT NULL,
        PRIMARY KEY (sender_id, position)
    ) STRICT;
";

/// Keeps conversations in a file. Several threads and several processes may share the file, on one machine: its lock does not work over
/// a network. Who finds it locked blocks its thread for up to 5 s.
///
/// A killed process loses no turn that was kept; a machine that loses its power may lose the latest, but never a part of one.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens a file, or makes it, with the folders that it is to be in.
    ///
    /// # Errors
    ///
    /// The reason is a [`SqliteError`]: the file cannot be made or opened, is no database or another program's, or was written by a newer
    /// version. Such a file is left as it was.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open(path).map_err(|reason| failed("cannot be opened", reason))?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection) })
    }

    /// A transaction that a panic left open has been rolled back when it was dropped.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events, where `expected` is given only if the conversation rests so; the answer is whether they were added.
    fn write(&self, sender_id: &str, events: &[Event], expected: Option<Idle>) -> Result<bool, StoreError> {
        let texts: Result<Vec<_>, _> = events.iter().map(text_of).collect();
        let written = texts.map_err(|reason| SqliteError::Unreadable { reason }).and_then(|texts| {
            let written = insert(&mut self.connection(), sender_id, events, &texts, expected);
            written.map_err(|reason| SqliteError::of(&self.path, reason))
        });
        written.map_err(|reason| failed("cannot be written to", reason))
    }

    fn event(&self, sender_id: &str, (position, text): &(i64, String)) -> Result<Event, SqliteError> {
        serde_json::from_str(text).map_err(|reason| SqliteError::Event {
            path: self.path.clone(),
            sender_id: sender_id.to_owned(),
            position: *position,
            reason,
        })
    }
}

impl ConversationStore for SqliteStore {
    fn events(&self, sender_id: &str) -> Result<Vec<Event>, StoreError> {
        let rows = rows(&self.connection(), sender_id).map_err(|reason| SqliteError::of(&self.path, reason));
        let events = rows.and_then(|rows| rows.iter().map(|row| self.event(sender_id, row)).collect());
        events.map_err(|reason| failed("cannot be read", reason))
    }

    fn append(&self, sender_id: &str, events: &[Event]) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        self.write(sender_id, events, None).map(|_| ())
    }

    fn idle(
        &self,
        stage: IdleStage,
        since: RangeInclusive<u64>,
        most: usize,
    ) -> Result<Vec<(String, Idle)>, StoreError> {
        let found = resting::list(&self.connection(), stage, &since, most);
        found.map_err(|reason| failed("cannot be read", SqliteError::of(&self.path, reason)))
    }

    fn append_if_idle(&self, sender_id: &str, idle: Idle, event: &Event) -> Result<bool, StoreError> {
        self.write(sender_id, std::slice::from_ref(event), Some(idle))
    }

    fn stir(&self, sender_id: &str, at: u64) -> Result<(), StoreError> {
        let written = resting::stir(&self.connection(), sender_id, at);
        written.map_err(|reason| failed("cannot be written to", SqliteError::of(&self.path, reason)))
    }
}

fn failed(what: &'static str, reason: SqliteError) -> StoreError {
    StoreError { what, reason: Box::new(reason) }
}

fn open(path: &Path) -> Result<Connection, SqliteError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|reason| SqliteError::Folder { folder: folder.to_owned(), reason })?;
    }
    let wrong = |reason| SqliteError::of(path, reason);
    // Without `SQLITE_OPEN_URI`: a path is a path, even where it begins with `file:`.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(wrong)?;
    connection.busy_timeout(PATIENCE).map_err(wrong)?;
    check(&connection, path)?;
    configure(&connection).map_err(wrong)?;
    migrate(&mut connection, MIGRATIONS).map_err(wrong)?;
    // Another process, maybe of a newer version, may have been here meanwhile.
    check(&connection, path)?;
    Ok(connection)
}

/// Whether the file is ours and of a version that is known, or empty; it is only read.
fn check(connection: &Connection, path: &Path) -> Result<(), SqliteError> {
    // One statement sees one state of the file.
    let sql = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
        FROM pragma_application_id, pragma_user_version";
    let found = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let (application, version, tables): (i64, i64, i64) = found.map_err(|reason| SqliteError::of(path, reason))?;
    let known = number(MIGRATIONS.len());
    match (application, version, tables) {
        (0, 0, 0) => Ok(()),
        (APPLICATION, ..) if version > known => Err(SqliteError::Newer { path: path.to_owned(), version, known }),
        (APPLICATION, ..) => Ok(()),
        _ => Err(SqliteError::Foreign { path: path.to_owned() }),
    }
}

/// `WAL`: who reads never waits for who writes, and an append is one write to the end of a file: 0.2 ms for six events, and 60 ms for one
/// append in a thousand on a busy machine. With it, `synchronous = NORMAL` leaves out the `fsync` of each append, which would hold up an
/// async thread for as long as the disk likes: a commit is the system's when `append` returns, and survives the end of the process. Only
/// the machine's end can lose it.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    let end = Instant::now() + PATIENCE;
    // Two that make one file at once each hold what the other one needs; SQLite then gives up without waiting.
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < end => {
                thread::sleep(Duration::from_millis(5));
            }
            done => break done?,
        }
    }
    connection.pragma_update(None, "synchronous", "NORMAL")
}

/// Takes the steps that the file lacks, each in a transaction.
fn migrate(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let known = number(steps.len());
    while version(connection)? < known {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        let done = version(&transaction)?;
        if let Some(step) = usize::try_from(done).ok().and_then(|done| steps.get(done)) {
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "user_version", done + 1)?;
        }
        transaction.commit()?;
    }
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn rows(connection: &Connection, sender_id: &str) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut select =
        connection.prepare_cached("SELECT position, event FROM events WHERE sender_id = ? ORDER BY position")?;
    select.query_map([sender_id], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Adds `events`, whose JSON `texts` are.
fn insert(
    connection: &mut Connection,
    sender_id: &str,
    events: &[Event],
    texts: &[String],
    expected: Option<Idle>,
) -> rusqlite::Result<bool> {
    // Immediate: a lock that is taken only after a read is refused at once where another process has written meanwhile.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if expected.is_some() && resting::idle_of(&transaction, sender_id)? != expected {
        return Ok(false);
    }
    insert_all(&transaction, sender_id, texts)?;
    resting::settle(&transaction, sender_id, events)?;
    transaction.commit()?;
    Ok(true)
}

fn insert_all(transaction: &Transaction<'_>, sender_id: &str, texts: &[String]) -> rusqlite::Result<()> {
    let mut next =
        transaction.prepare_cached("SELECT coalesce(max(position) + 1, 0) FROM events WHERE sender_id = ?")?;
    let next: i64 = next.query_row([sender_id], |row| row.get(0))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let mut insert =
        transaction.prepare_cached("INSERT INTO events (sender_id, position, event, time) VALUES (?, ?, ?, ?)")?;
    for (position, text) in (next..).zip(texts) {
        insert.execute(params![sender_id, position, text, now])?;
    }
    Ok(())
}

/// An event's JSON. It is read again before it is kept: what is nested too deep for the reader would close the whole conversation.
fn text_of(event: &Event) -> serde_json::Result<String> {
    let text = serde_json::to_string(event)?;
    serde_json::from_str::<Event>(&text)?;
    Ok(text)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
