//! Where conversations are kept.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::conversation::{Event, Idle, IdleStage};

/// Keeps what has happened in conversations. Called from async code: an append is to be short.
///
/// The last three methods are for a [`Lifecycle`](super::Lifecycle), and nobody calls them without one; a store that does not have them
/// says so.
pub trait ConversationStore: Send + Sync {
    /// All that has happened in a conversation, in order; nothing where there is none.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn events(&self, sender_id: &str) -> Result<Vec<Event>, StoreError>;

    /// Adds the events of one turn: all of them or none. How the conversation rests from then on is [`Idle::after`] them.
    ///
    /// # Errors
    ///
    /// The store cannot be written to.
    fn append(&self, sender_id: &str, events: &[Event]) -> Result<(), StoreError>;

    /// The conversations at this stage that rest since a time in `since` (milliseconds since 1970, UTC): at most `most`, those that rest
    /// longest first, those of one time by their ids. It is to read no more of them, however many there are.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn idle(
        &self,
        stage: IdleStage,
        since: RangeInclusive<u64>,
        most: usize,
    ) -> Result<Vec<(String, Idle)>, StoreError> {
        let _ = (stage, since, most);
        Err(no_lifecycle())
    }

    /// Adds an event if the conversation still rests as `idle` says; the answer is whether it does. Nobody, in another process neither,
    /// comes between the look and the addition: so each event is told once.
    ///
    /// # Errors
    ///
    /// The store cannot be written to.
    fn append_if_idle(&self, sender_id: &str, idle: Idle, event: &Event) -> Result<bool, StoreError> {
        let _ = (sender_id, idle, event);
        Err(no_lifecycle())
    }

    /// A turn of the user's begins: where the conversation rests, it does so since `at` only (milliseconds since 1970, UTC), and nothing
    /// has been told of that.
    ///
    /// # Errors
    ///
    /// The store cannot be written to.
    fn stir(&self, sender_id: &str, at: u64) -> Result<(), StoreError> {
        let _ = (sender_id, at);
        Err(no_lifecycle())
    }
}

/// A store that is shared with somebody else.
impl<S: ConversationStore + ?Sized> ConversationStore for Arc<S> {
    fn events(&self, sender_id: &str) -> Result<Vec<Event>, StoreError> {
        (**self).events(sender_id)
    }

    fn append(&self, sender_id: &str, events: &[Event]) -> Result<(), StoreError> {
        (**self).append(sender_id, events)
    }

    fn idle(
        &self,
        stage: IdleStage,
        since: RangeInclusive<u64>,
        most: usize,
    ) -> Result<Vec<(String, Idle)>, StoreError> {
        (**self).idle(stage, since, most)
    }

    fn append_if_idle(&self, sender_id: &str, idle: Idle, event: &Event) -> Result<bool, StoreError> {
        (**self).append_if_idle(sender_id, idle, event)
    }

    fn stir(&self, sender_id: &str, at: u64) -> Result<(), StoreError> {
        (**self).stir(sender_id, at)
    }
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("The conversation store {what}: {reason}")]
pub struct StoreError {
    /// `cannot be opened`, `cannot be read`, `cannot be written to`, `knows no lifecycle`.
    pub what: &'static str,
    /// What it says itself.
    #[source]
    pub reason: Box<dyn std::error::Error + Send + Sync>,
}

fn no_lifecycle() -> StoreError {
    let reason = "it does not tell which conversations are idle\n  hint: implement `idle`, `append_if_idle` and `stir`";
    StoreError { what: "knows no lifecycle", reason: reason.into() }
}

/// Keeps conversations as long as it lives.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    events: HashMap<String, Vec<Event>>,
    idle: HashMap<String, Idle>,
    /// The same, by stage and time.
    by_time: BTreeSet<(IdleStage, u64, String)>,
}

impl Kept {
    fn append(&mut self, sender_id: &str, events: &[Event]) {
        self.rests(sender_id, Idle::after(self.idle.get(sender_id).copied(), events));
        self.events.entry(sender_id.to_owned()).or_default().extend_from_slice(events);
    }

    fn rests(&mut self, sender_id: &str, idle: Option<Idle>) {
        let before = match idle {
            Some(idle) => self.idle.insert(sender_id.to_owned(), idle),
            None => self.idle.remove(sender_id),
        };
        let entry = |Idle { stage, since }| (stage, since, sender_id.to_owned());
        if let Some(before) = before.map(entry) {
            self.by_time.remove(&before);
        }
        self.by_time.extend(idle.map(entry));
    }
}

impl MemoryStore {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConversationStore for MemoryStore {
    fn events(&self, sender_id: &str) -> Result<Vec<Event>, StoreError> {
        Ok(self.kept().events.get(sender_id).cloned().unwrap_or_default())
    }

    fn append(&self, sender_id: &str, events: &[Event]) -> Result<(), StoreError> {
        self.kept().append(sender_id, events);
        Ok(())
    }

    fn idle(
        &self,
        stage: IdleStage,
        since: RangeInclusive<u64>,
        most: usize,
    ) -> Result<Vec<(String, Idle)>, StoreError> {
        let kept = self.kept();
        let from = kept.by_time.range((stage, *since.start(), String::new())..);
        let those = from.take_while(|(of, at, _)| *of == stage && since.contains(at)).take(most);
        Ok(those.map(|(stage, since, id)| (id.clone(), Idle { since: *since, stage: *stage })).collect())
    }

    fn append_if_idle(&self, sender_id: &str, idle: Idle, event: &Event) -> Result<bool, StoreError> {
        let mut kept = self.kept();
        let rests = kept.idle.get(sender_id) == Some(&idle);
        if rests {
            kept.append(sender_id, std::slice::from_ref(event));
        }
        Ok(rests)
    }

    fn stir(&self, sender_id: &str, at: u64) -> Result<(), StoreError> {
        let mut kept = self.kept();
        if let Some(idle) = kept.idle.get(sender_id).copied() {
            kept.rests(sender_id, Some(Idle { since: idle.since.max(at), stage: IdleStage::Quiet }));
        }
        Ok(())
    }
}
