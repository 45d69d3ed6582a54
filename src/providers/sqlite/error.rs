use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::PATIENCE;

/// What is wrong with a store's file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqliteError {
    /// The folder that it is to be in cannot be made.
    #[error("the folder `{}` cannot be made: {reason}\n  hint: name a file in a folder that may be written to", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        #[source]
        reason: io::Error,
    },
    /// It is no database, or a damaged one.
    #[error(
        "`{}` is no SQLite database, or is damaged: {reason}\n  hint: name another file, or move this one away and a new one is made; `sqlite3 FILE .recover` saves what a damaged one still has",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What `SQLite` said.
        #[source]
        reason: rusqlite::Error,
    },
    /// It is the database of another program.
    #[error("`{}` is the database of another program\n  hint: name another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer version of this program has written it.
    #[error(
        "`{}` is of version {version}, and this program knows versions up to {known}\n  hint: install a newer tenterhook, or name another file",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// An event in it is of a kind that is not known here, or damaged.
    #[error(
        "Event {position} of the conversation `{sender_id}` in `{}` is not understood: {reason}\n  hint: a newer tenterhook may have written it: install that version",
        path.display()
    )]
    Event {
        /// The file.
        path: PathBuf,
        /// The conversation.
        sender_id: String,
        /// The event's place in it, from 0.
        position: i64,
        /// What is wrong with its JSON.
        #[source]
        reason: serde_json::Error,
    },
    /// An event could not be read again once it is written: its values are nested more than some 120 levels deep.
    #[error("An event could not be read again: {reason}\n  hint: look for a tool that nests values without end")]
    Unreadable {
        /// What is wrong with its JSON.
        #[source]
        reason: serde_json::Error,
    },
    /// Another process did not let go of it for 5 s.
    #[error(
        "`{}` has been locked by another process for {PATIENCE:?}\n  hint: `fuser FILE` tells which one holds it open",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Anything else, such as a disk that is full.
    #[error("`{}`: {reason}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What `SQLite` said.
        #[source]
        reason: rusqlite::Error,
    },
}

impl SqliteError {
    pub(super) fn of(path: &Path, reason: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match reason.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::Damaged { path, reason },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            _ => Self::Other { path, reason },
        }
    }
}
