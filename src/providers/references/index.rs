//! The index: an FTS5 table of passages, and the stamps of the files that they are from.

use std::fs::{self, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, params};
use rustc_hash::FxHashMap;

use super::chunks::{self, Chunk, Chunking};
use super::files::{self, File, Listing, Stamp};
use super::ranking;
use crate::step::Passage;
use crate::telemetry::LOAD;

/// How long one waits for another process that writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Marks a file as ours (`PRAGMA application_id`): `tnrf` in ASCII.
const APPLICATION: i64 = 0x746e_7266;

/// Raised when the tables change, or what stands in them for a file; an index of any other version is made anew.
const VERSION: i64 = 1;

/// A passage's number holds its file's in the upper half and its place in the file in the lower one: a file's passages are one range.
/// `porter` finds `cards` by `card`; it knows English only, and leaves most words of other languages as they are. The sizes are in
/// bytes, the times in nanoseconds.
const SCHEMA: &str = "
    CREATE TABLE chunking (size INTEGER NOT NULL, overlap INTEGER NOT NULL) STRICT;
    CREATE TABLE files (
        id INTEGER PRIMARY KEY,
        source TEXT NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        passages INTEGER NOT NULL
    ) STRICT;
    CREATE VIRTUAL TABLE passages USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2');
";

/// An index that is open.
#[derive(Debug)]
pub(super) struct Index {
    connection: Connection,
    chunking: Chunking,
}

impl Index {
    /// An empty index that ends with the process.
    pub(super) fn in_memory(chunking: Chunking) -> rusqlite::Result<Self> {
        Self::made(Connection::open_in_memory()?, chunking)
    }

    /// The index in a file. It is made anew where it is damaged, or another version or chunking has made it, and where the caller has
    /// found that it is damaged.
    pub(super) fn in_file(path: &Path, chunking: Chunking, damaged: bool) -> Result<Self, String> {
        let told = |reason: &dyn std::fmt::Display| format!("`{}`: {reason}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|reason| told(&reason))?;
        }
        // Of processes that start at once, none takes away what another one is just making. Where files cannot be locked, one goes on
        // without: then two may each make an index, and that of the last one stays.
        let _lock = lock(&path.with_extension("lock"));
        if !damaged {
            match Self::opened(path, chunking) {
                Ok(Some(index)) => return Ok(index),
                Ok(None) => {}
                Err(reason) if is_damaged(&reason) => {}
                Err(reason) => return Err(told(&reason)),
            }
        }
        tracing::info!(target: LOAD, "The index of the references is made in `{}`", path.display());
        remove(path).map_err(|reason| told(&reason))?;
        connect(path).and_then(|connection| Self::made(connection, chunking)).map_err(|reason| told(&reason))
    }

    /// Makes the index that of the files that are listed: reads those that are new or have been changed, and forgets those that are
    /// gone. All of it or, on an error, nothing. What is to be told of the files comes back.
    pub(super) fn refresh(&mut self, list: impl Fn() -> Listing) -> rusqlite::Result<Vec<String>> {
        let listed = list();
        if is_fresh(&listed.files, &stamps(&self.connection)?) {
            return Ok(listed.problems);
        }
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been here while this one waited: it may know of files that are newer than the list.
        let Listing { files, mut problems } = list();
        let mut known = stamps(&transaction)?;
        for file in &files {
            match known.remove(&file.source) {
                Some((_, stamp)) if stamp == file.stamp => continue,
                Some((id, _)) => forget(&transaction, id)?,
                None => {}
            }
            match files::read(file) {
                Ok((text, problem)) => {
                    insert(&transaction, file, &chunks::cut(&text, file.is_markdown(), self.chunking))?;
                    problems.extend(problem);
                }
                Err(reason) => problems.push(files::unreadable(&file.path, &reason)),
            }
        }
        for (id, _) in known.into_values() {
            forget(&transaction, id)?;
        }
        transaction.commit()?;
        Ok(problems)
    }

    /// The passages that fit a query, the best first.
    pub(super) fn search(&mut self, query: &str) -> rusqlite::Result<Vec<Passage>> {
        // Its statements see one state of a file that another process may write to.
        let transaction = self.connection.transaction()?;
        ranking::search(&transaction, query)
    }

    /// `None`: it is there, but not such an index.
    fn opened(path: &Path, chunking: Chunking) -> rusqlite::Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let connection = connect(path)?;
        let sql = "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version";
        let found: (i64, i64) = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if found != (APPLICATION, VERSION) {
            return Ok(None);
        }
        let sql = "SELECT size, overlap FROM chunking";
        let made_with: (i64, i64) = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let same = made_with == (number(chunking.size), number(chunking.overlap));
        Ok(same.then_some(Self { connection, chunking }))
    }

    fn made(mut connection: Connection, chunking: Chunking) -> rusqlite::Result<Self> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(SCHEMA)?;
        let made_with = params![number(chunking.size), number(chunking.overlap)];
        transaction.execute("INSERT INTO chunking (size, overlap) VALUES (?, ?)", made_with)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
        Ok(Self { connection, chunking })
    }
}

/// Whether an error says that the index is to be made anew: the file is damaged, or has other tables than our statements name.
pub(super) fn is_damaged(reason: &rusqlite::Error) -> bool {
    match reason {
        rusqlite::Error::SqlInputError { .. } | rusqlite::Error::QueryReturnedNoRows => true,
        _ => matches!(
            reason.sqlite_error_code(),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown)
        ),
    }
}

/// `WAL`: who searches never waits for who indexes. With `synchronous = NORMAL` the machine's end may lose the latest refresh, which
/// is then made again, but damages nothing.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Without `SQLITE_OPEN_URI`: a path is a path, even where it begins with `file:`.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}

/// Removes an index with the files that `SQLite` puts beside it. Whoever has it open goes on with what they have.
fn remove(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(&name) {
            Err(reason) if reason.kind() != ErrorKind::NotFound => return Err(reason),
            _ => {}
        }
    }
    Ok(())
}

/// Waits for others at most for [`PATIENCE`]: one of them may have been stopped.
fn lock(path: &Path) -> Option<fs::File> {
    let lock = fs::File::create(path).ok()?;
    let end = Instant::now() + PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => return Some(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
            Err(_) => return None,
        }
    }
}

type Stamps = FxHashMap<String, (i64, Stamp)>;

/// The files that are in the index, with their numbers.
fn stamps(connection: &Connection) -> rusqlite::Result<Stamps> {
    let mut select = connection.prepare_cached("SELECT source, id, size, modified FROM files")?;
    let rows = select
        .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, Stamp { size: row.get(2)?, modified: row.get(3)? }))))?;
    rows.collect()
}

fn is_fresh(listed: &[File], known: &Stamps) -> bool {
    let same = |file: &File| known.get(&file.source).is_some_and(|(_, stamp)| *stamp == file.stamp);
    listed.len() == known.len() && listed.iter().all(same)
}

fn forget(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    let (first, end) = (id << 32, (id + 1) << 32);
    let mut delete = transaction.prepare_cached("DELETE FROM passages WHERE rowid >= ? AND rowid < ?")?;
    delete.execute([first, end])?;
    transaction.prepare_cached("DELETE FROM files WHERE id = ?")?.execute([id])?;
    Ok(())
}

fn insert(transaction: &Transaction<'_>, file: &File, passages: &[Chunk<'_>]) -> rusqlite::Result<()> {
    let mut insert =
        transaction.prepare_cached("INSERT INTO files (source, size, modified, passages) VALUES (?, ?, ?, ?)")?;
    insert.execute(params![file.source, file.stamp.size, file.stamp.modified, number(passages.len())])?;
    let first = transaction.last_insert_rowid() << 32;
    let mut insert = transaction.prepare_cached("INSERT INTO passages (rowid, text) VALUES (?, ?)")?;
    for (id, passage) in (first..).zip(passages) {
        insert.execute(params![id, passage.text()])?;
    }
    Ok(())
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
