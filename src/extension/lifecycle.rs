//! What happens to conversations in which nobody says anything, as Python sees it: an event is looked for when it is asked for, so that
//! none is marked as told which nobody takes.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use pyo3::prelude::*;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::AbortHandle;

use super::mailbox::{Content, Letter, Mailbox};
use super::turns::{Told, runtime};
use crate::turn::LifecycleStream;

/// The lifecycle events of an agent.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(super) struct Lifecycle {
    events: Arc<AsyncMutex<LifecycleStream>>,
    /// Who waits for the next one.
    waits: Mutex<Option<AbortHandle>>,
}

impl Lifecycle {
    pub(super) fn new(events: LifecycleStream) -> Self {
        Self { events: Arc::new(AsyncMutex::new(events)), waits: Mutex::default() }
    }

    fn waits(&self, next: Option<AbortHandle>) {
        let before = std::mem::replace(&mut *self.waits.lock().unwrap_or_else(PoisonError::into_inner), next);
        if let Some(before) = before {
            before.abort();
        }
    }
}

#[pymethods]
impl Lifecycle {
    /// `future` gets the next event as a dict, or `None` after the last, through `mailbox`. Who waited for one before no longer does.
    fn next(&self, mailbox: Py<Mailbox>, future: Py<PyAny>) -> PyResult<()> {
        let events = Arc::clone(&self.events);
        let wait = runtime()?.spawn(async move {
            let event = events.lock().await.next().await;
            // Without a pause in between: what is told is in the mailbox, whoever aborts.
            let told = event.map(Told::Lifecycle).map(Box::new);
            mailbox.get().put(Letter { future, content: Content::Turn(told) });
        });
        self.waits(Some(wait.abort_handle()));
        Ok(())
    }

    /// Nobody listens any more.
    fn close(&self) {
        self.waits(None);
    }
}

impl Drop for Lifecycle {
    fn drop(&mut self) {
        self.waits(None);
    }
}
