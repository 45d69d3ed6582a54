//! Calls of tools that run elsewhere: by a number they find the turn that they belong to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{ToolContext, Utterance};
use crate::conversation::Object;

/// What a tool says.
#[derive(Debug)]
pub(crate) enum Said {
    /// All of a text.
    Whole(Utterance),
    /// A piece of one.
    Piece(String),
    /// Buttons for the next one.
    Buttons(Vec<Object>),
    /// Nothing more: its function has ended, however that was.
    Over,
}

struct Open {
    says: UnboundedSender<Said>,
    context: Arc<dyn ToolContext>,
}

static OPEN: LazyLock<Mutex<HashMap<u64, Open>>> = LazyLock::new(Mutex::default);
static LAST: AtomicU64 = AtomicU64::new(0);

/// A call that is under way; what its tool says arrives here.
pub(crate) struct Invocation {
    /// Its number.
    pub(crate) number: u64,
    /// What the tool says.
    pub(crate) said: UnboundedReceiver<Said>,
}

impl Invocation {
    /// A call in the turn of `context`. It is over when this is dropped.
    pub(crate) fn begin(context: Arc<dyn ToolContext>) -> Self {
        let (says, said) = unbounded_channel();
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        lock().insert(number, Open { says, context });
        Self { number, said }
    }
}

impl Drop for Invocation {
    fn drop(&mut self) {
        let open = lock().remove(&self.number);
        drop(open);
    }
}

/// A tool says something; what comes after its call is over nobody hears.
pub(crate) fn says(number: u64, said: Said) {
    let says = lock().get(&number).map(|open| open.says.clone());
    if let Some(says) = says {
        let _ = says.send(said);
    }
}

/// Whether nobody waits for a tool any more.
pub(crate) fn is_cancelled(number: u64) -> bool {
    context_of(number).is_none_or(|context| context.is_cancelled())
}

/// The turn of a call, as long as it is under way.
pub(crate) fn context_of(number: u64) -> Option<Arc<dyn ToolContext>> {
    lock().get(&number).map(|open| Arc::clone(&open.context))
}

fn lock() -> MutexGuard<'static, HashMap<u64, Open>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Invocation {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Invocation").field("number", &self.number).finish_non_exhaustive()
    }
}
