//! Between sessions of generated code and the thread that they live on: orders in, what comes of them out. Values go as the text of JSON.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use tokio::sync::mpsc::UnboundedSender;

use super::lane::Waker;

/// What the thread is told: the kind, the session, the call, and a text.
type Order = (&'static str, u64, u32, String);

/// What a session says.
#[derive(Debug)]
pub(super) enum SandboxSays {
    /// It is there, or why it is not.
    Opened(Option<String>),
    /// Its code calls a function; arguments are texts of JSON.
    Called { call: u32, name: String, positional: Vec<String>, named: Vec<(String, String)>, line: u32 },
    /// Its code has printed something.
    Printed(String),
    /// Its code has ended: the text of an outcome.
    Ended(String),
    /// It is over.
    Closed(String),
}

/// Why there are no sessions.
#[derive(Clone, Debug)]
pub(super) enum SandboxGone {
    /// What they need is not installed.
    Missing(String),
    /// The thread has ended, or was not started.
    Failed(String),
}

#[derive(Debug, Default)]
struct Inside {
    orders: VecDeque<Order>,
    sessions: HashMap<u64, UnboundedSender<SandboxSays>>,
    gone: Option<SandboxGone>,
}

/// The post, shared by both sides.
#[derive(Debug)]
pub(super) struct Office {
    inside: Mutex<Inside>,
    waker: Waker,
}

impl Office {
    pub(super) fn new() -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self { inside: Mutex::default(), waker: Waker::nonblocking()? }))
    }

    /// What a session says goes there from now on; an error: there are no sessions.
    pub(super) fn listen(&self, session: u64, told: UnboundedSender<SandboxSays>) -> Result<(), SandboxGone> {
        let mut inside = self.inside();
        if let Some(gone) = &inside.gone {
            return Err(gone.clone());
        }
        inside.sessions.insert(session, told);
        Ok(())
    }

    /// Gives the thread an order.
    pub(super) fn order(&self, kind: &'static str, session: u64, call: u32, text: String) {
        let mut inside = self.inside();
        if inside.gone.is_none() {
            inside.orders.push_back((kind, session, call, text));
            drop(inside);
            self.waker.wake();
        }
    }

    /// Nobody listens to a session any more, and it is to end.
    pub(super) fn close(&self, session: u64) {
        if self.inside().sessions.remove(&session).is_some() {
            self.order("close", session, 0, String::new());
        }
    }

    /// Why there are no sessions, where there are none.
    pub(super) fn gone(&self) -> Option<SandboxGone> {
        self.inside().gone.clone()
    }

    fn end(&self, why: SandboxGone) {
        let mut inside = self.inside();
        inside.gone.get_or_insert(why);
        // Whoever listens hears that nobody speaks any more.
        inside.sessions.clear();
        inside.orders.clear();
    }

    fn say(&self, session: u64, said: SandboxSays) {
        // Whoever listens may be woken at once, and must not meet a lock that is held.
        let listener = self.inside().sessions.get(&session).cloned();
        if let Some(listener) = listener {
            // One that is being dropped listens no more.
            let _ = listener.send(said);
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's end of the post.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(super) struct SandboxPost(pub(super) Arc<Office>);

#[pymethods]
impl SandboxPost {
    /// The file descriptor that becomes readable when there are orders.
    fn fileno(&self) -> i32 {
        self.0.waker.fileno()
    }

    /// The orders that have come.
    fn take(&self) -> Vec<Order> {
        self.0.waker.clear();
        std::mem::take(&mut self.0.inside().orders).into()
    }

    /// What sessions need is not installed.
    fn missing(&self, what: String) {
        self.0.end(SandboxGone::Missing(what));
    }

    /// The thread has ended, or could not be started.
    fn failed(&self, why: String) {
        self.0.end(SandboxGone::Failed(why));
    }

    /// A session is there, or why it is not.
    #[pyo3(signature = (session, failure))]
    fn opened(&self, session: u64, failure: Option<String>) {
        self.0.say(session, SandboxSays::Opened(failure));
    }

    /// The code of a session calls a function.
    fn called(
        &self,
        session: u64,
        call: u32,
        name: String,
        positional: Vec<String>,
        named: Vec<(String, String)>,
        line: u32,
    ) {
        self.0.say(session, SandboxSays::Called { call, name, positional, named, line });
    }

    /// The code of a session has printed something.
    fn printed(&self, session: u64, text: String) {
        self.0.say(session, SandboxSays::Printed(text));
    }

    /// The code of a session has ended.
    fn ended(&self, session: u64, outcome: String) {
        self.0.say(session, SandboxSays::Ended(outcome));
    }

    /// A session is over.
    fn closed(&self, session: u64, why: String) {
        self.0.say(session, SandboxSays::Closed(why));
    }
}
