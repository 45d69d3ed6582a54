//! Where conversations are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::conversation::Event;

/// Keeps what has happened in conversations. Called from async code: an append is to be short.
pub trait ConversationStore: Send + Sync {
    /// All that has happened in a conversation, in order; nothing where there is none.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn events(&self, sender_id: &str) -> Result<Vec<Event>, StoreError>;

    /// Adds the events of one turn: all of them or none.
    ///
    /// # Errors
    ///
    /// The store cannot be written to.
    fn append(&self, sender_id: &str, events: &[Event]) -> Result<(), StoreError>;
}

/// A store that is shared with somebody else.
impl<S: ConversationStore + ?Sized> ConversationStore for Arc<S> {
    fn events(&self, sender_id: &str) -> Result<Vec<Event>, StoreError> {
        (**self).events(sender_id)
    }

    fn append(&self, sender_id: &str, events: &[Event]) -> Result<(), StoreError> {
        (**self).append(sender_id, events)
    }
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("The conversation store {what}: {reason}")]
pub struct StoreError {
    /// `cannot be opened`, `cannot be read`, `cannot be written to`.
    pub what: &'static str,
    /// What it says itself.
    #[source]
    pub reason: Box<dyn std::error::Error + Send + Sync>,
}

/// Keeps conversations as long as it lives.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<HashMap<String, Vec<Event>>>);

impl ConversationStore for MemoryStore {
    fn events(&self, sender_id: &str) -> Result<Vec<Event>, StoreError> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(kept.get(sender_id).cloned().unwrap_or_default())
    }

    fn append(&self, sender_id: &str, events: &[Event]) -> Result<(), StoreError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(sender_id.to_owned()).or_default().extend_from_slice(events);
        Ok(())
    }
}
