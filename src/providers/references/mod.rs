//! The references of an agent: the files of its folder `references`, cut into passages, which are searched by their words.
//!
//! It is a search by words and not by meaning, as Mantle's is: a passage about a `refund` is not found by `money back`. For that it
//! needs no model, costs no money, and answers a question from 2 MB of files in 2 ms and from 10 MB in 10 ms, on a busy machine. The
//! model that asks may be told to ask with several words for one thing: each of them counts.

mod chunks;
mod files;
mod index;
mod outline;
mod ranking;
#[cfg(test)]
mod tests;

pub use chunks::Chunking;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::task;
use tracing::Span;

use self::files::Listing;
use self::index::Index;
use crate::step::{Knowledge, Passage};
use crate::telemetry::LOAD;

/// The folder that an agent's references are in.
const FOLDER: &str = "references";

/// Where the index is kept, if it is kept.
const KEPT_IN: &str = ".tenterhook/references.db";

/// How long the folder is taken to be as it was last seen. To look at 100 files takes half a millisecond.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The references of an agent: all `.md` and `.txt` files in its folder `references`, at any depth. Hidden ones are left out, and those
/// of more than 16 MiB.
///
/// The files may change at any time: a search looks at them again, at most once a second, and reads those anew that have another size
/// or time. What is wrong with a file is told in the log, once, and the others are searched.
///
/// There is one connection behind a lock: an agent's searches run one after the other, each on a thread of tokio's pool for what
/// blocks, and wait while files are read. A search whose future is dropped runs to its end.
#[derive(Clone, Debug)]
pub struct References {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    /// Where the index is kept; `None`: in memory.
    file: Option<PathBuf>,
    chunking: Chunking,
    look_every: Duration,
    /// Whether any file was there when one last looked.
    is_there: AtomicBool,
    looked: Mutex<Option<Instant>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    index: Option<Index>,
    /// What the log has been told about the files, as long as it is so.
    told: BTreeSet<String>,
}

impl References {
    /// The references of the agent in `agent`; its index is held in memory, about twice as large as the files. Only looks whether
    /// there are any: they are read by [`refresh`](Self::refresh) or the first search.
    pub fn open(agent: &Path, chunking: Chunking) -> Self {
        Self::new(agent, chunking, None, LOOK_EVERY)
    }

    /// As [`open`](Self::open), with an index that is kept in the agent's `.tenterhook/references.db`: what has not changed since the
    /// last start is not read again. Several processes may share it. Where it cannot be made or opened, the index is held in memory, and
    /// the log is told.
    pub fn open_kept(agent: &Path, chunking: Chunking) -> Self {
        Self::new(agent, chunking, Some(agent.join(KEPT_IN)), LOOK_EVERY)
    }

    /// Reads what is new or has been changed, now, so that no search waits for it. Blocks: 10 MB take one to three
    /// seconds.
    ///
    /// # Errors
    ///
    /// For the log: the index cannot be written to. It stays as it was.
    pub fn refresh(&self) -> Result<(), String> {
        let shared = &*self.shared;
        shared.with_index(|state| shared.look(state))
    }

    fn new(agent: &Path, chunking: Chunking, file: Option<PathBuf>, look_every: Duration) -> Self {
        let shared = Shared {
            folder: agent.join(FOLDER),
            file,
            chunking: chunking.checked(),
            look_every,
            is_there: AtomicBool::new(false),
            looked: Mutex::default(),
            state: Mutex::default(),
        };
        shared.look_for_any();
        Self { shared: Arc::new(shared) }
    }
}

impl Knowledge for References {
    /// As it was at the last look. Where there were none, it is looked again, at most once a second: files that come later are seen.
    /// Where there were some, the next search sees that they are gone.
    fn is_there(&self) -> bool {
        let shared = &self.shared;
        if !shared.is_there.load(Ordering::Relaxed) && shared.is_to_look() {
            shared.look_for_any();
        }
        shared.is_there.load(Ordering::Relaxed)
    }

    fn search<'a>(&'a self, query: &'a str) -> BoxFuture<'a, Result<Option<Vec<Passage>>, String>> {
        let (shared, query, span) = (Arc::clone(&self.shared), query.to_owned(), Span::current());
        Box::pin(async move {
            let searched = task::spawn_blocking(move || span.in_scope(|| shared.search(&query)));
            searched
                .await
                .unwrap_or_else(|reason| Err(format!("The search of the references was broken off: {reason}")))
        })
    }
}

impl Shared {
    fn search(&self, query: &str) -> Result<Option<Vec<Passage>>, String> {
        self.with_index(|state| {
            if self.is_to_look() || state.index.is_none() {
                match self.look(state) {
                    Err(reason) if index::is_damaged(&reason) || state.index.is_none() => return Err(reason),
                    // What is there is better than nothing.
                    Err(reason) => {
                        tracing::warn!(target: LOAD, "The references are searched as they were: {}", self.failed(&reason));
                    }
                    Ok(()) => {}
                }
            }
            match &mut state.index {
                Some(index) if self.is_there.load(Ordering::Relaxed) => index.search(query).map(Some),
                _ => Ok(None),
            }
        })
    }

    /// Makes the index that of the files. There is none until there are files.
    fn look(&self, state: &mut State) -> rusqlite::Result<()> {
        let index = match &mut state.index {
            Some(index) => index,
            none => {
                let listing = self.list();
                if listing.files.is_empty() {
                    state.tell(listing.problems);
                    return Ok(());
                }
                none.insert(self.open_index(false)?)
            }
        };
        let problems = index.refresh(|| self.list())?;
        state.tell(problems);
        Ok(())
    }

    /// Does something with the index. If it is found damaged, it is made anew, and the same is done again.
    fn with_index<T>(&self, act: impl Fn(&mut State) -> rusqlite::Result<T>) -> Result<T, String> {
        // A transaction that a panic left open has been rolled back when it was dropped.
        let mut state = locked(&self.state);
        let done = act(&mut state).or_else(|reason| {
            if !index::is_damaged(&reason) {
                return Err(reason);
            }
            tracing::warn!(target: LOAD, "The index of the references is damaged: {reason}");
            // Closed before its file is removed.
            state.index = None;
            state.index = Some(self.open_index(true)?);
            *locked(&self.looked) = None;
            act(&mut state)
        });
        done.map_err(|reason| self.failed(&reason))
    }

    fn open_index(&self, damaged: bool) -> rusqlite::Result<Index> {
        if let Some(file) = &self.file {
            match Index::in_file(file, self.chunking, damaged) {
                Ok(index) => return Ok(index),
                Err(reason) => tracing::warn!(
                    target: LOAD, "The index of the references is held in memory, as it cannot be kept: {reason}"
                ),
            }
        }
        Index::in_memory(self.chunking)
    }

    fn list(&self) -> Listing {
        let listing = files::list(&self.folder);
        self.is_there.store(!listing.files.is_empty(), Ordering::Relaxed);
        *locked(&self.looked) = Some(Instant::now());
        listing
    }

    /// Looks whether any files are there. If so, the next search looks too, and reads them.
    fn look_for_any(&self) {
        if !self.list().files.is_empty() {
            *locked(&self.looked) = None;
        }
    }

    fn is_to_look(&self) -> bool {
        locked(&self.looked).is_none_or(|looked| looked.elapsed() >= self.look_every)
    }

    fn failed(&self, reason: &rusqlite::Error) -> String {
        match &self.file {
            Some(file) => {
                let file = file.display();
                format!(
                    "the index `{file}`: {reason}\n  hint: see that its disk has room and may be written to, or remove it: it is made anew"
                )
            }
            None => format!("the index in memory: {reason}\n  hint: see that there is memory for it"),
        }
    }
}

impl State {
    fn tell(&mut self, problems: Vec<String>) {
        let problems = problems.into_iter().collect();
        for problem in BTreeSet::difference(&problems, &self.told) {
            tracing::warn!(target: LOAD, "The reference {problem}");
        }
        self.told = problems;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
