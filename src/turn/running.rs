//! Which conversations have a turn that runs: the next one waits, or cancels it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedMutexGuard};

/// Cancels a turn.
#[derive(Debug, Default)]
pub(super) struct Cancel {
    asked: AtomicBool,
    heard: Notify,
    /// Tools that run and would unwind.
    unwinding: AtomicUsize,
    unwound: Notify,
}

impl Cancel {
    pub(super) fn cancel(&self) {
        self.asked.store(true, Ordering::Release);
        self.heard.notify_waiters();
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// A tool runs that is waited for where it is cancelled, as long as what is returned lives.
    pub(super) fn unwinding(&self) -> Unwinding<'_> {
        self.unwinding.fetch_add(1, Ordering::AcqRel);
        Unwinding(self)
    }

    /// Ends when no such tool runs.
    pub(super) async fn unwound(&self) {
        loop {
            let unwound = self.unwound.notified();
            if self.unwinding.load(Ordering::Acquire) == 0 {
                return;
            }
            unwound.await;
        }
    }

    /// Ends when somebody cancels.
    pub(super) async fn asked(&self) {
        loop {
            let heard = self.heard.notified();
            if self.is_asked() {
                return;
            }
            heard.await;
        }
    }
}

/// A tool that runs.
#[derive(Debug)]
pub(super) struct Unwinding<'a>(&'a Cancel);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        self.0.unwinding.fetch_sub(1, Ordering::AcqRel);
        self.0.unwound.notify_waiters();
    }
}

/// The turns that run and wait, by conversation. A conversation without any has no entry.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<String, Line>>);

#[derive(Debug, Default)]
struct Line {
    lock: Arc<tokio::sync::Mutex<()>>,
    /// Turns that run or wait.
    waiting: usize,
    running: Option<Arc<Cancel>>,
}

/// A conversation's turn: no other one runs while it is here.
#[derive(Debug)]
pub(super) struct Place<'a> {
    turns: &'a Turns,
    sender_id: String,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits until no other turn of the conversation runs.
    pub(super) async fn take(&self, sender_id: &str, cancel: &Arc<Cancel>) -> Place<'_> {
        let lock = {
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let line = lines.entry(sender_id.to_owned()).or_default();
            line.waiting += 1;
            Arc::clone(&line.lock)
        };
        // Made before the wait: a turn that is given up while it waits leaves the line as well.
        let mut place = Place { turns: self, sender_id: sender_id.to_owned(), guard: None };
        place.guard = Some(lock.lock_owned().await);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get_mut(sender_id) {
            line.running = Some(Arc::clone(cancel));
        }
        drop(lines);
        place
    }

    /// Cancels the turn that runs; the answer is whether one does.
    pub(super) fn cancel(&self, sender_id: &str) -> bool {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = lines.get(sender_id).and_then(|line| line.running.clone());
        drop(lines);
        running.inspect(|cancel| cancel.cancel()).is_some()
    }

    /// Whether a turn of the conversation runs or waits.
    pub(super) fn runs(&self, sender_id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(sender_id)
    }

    /// How many conversations have turns that run or wait.
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get_mut(&self.sender_id) {
            line.waiting -= 1;
            if self.guard.is_some() {
                line.running = None;
            }
            if line.waiting == 0 {
                lines.remove(&self.sender_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_conversation_is_forgotten_when_its_last_turn_has_left_or_was_given_up_while_it_waited() {
        let turns = Turns::default();
        let cancel = Arc::default();
        let first = turns.take("s", &cancel).now_or_never().expect("nobody is before it");
        let mut second = Box::pin(turns.take("s", &cancel));
        assert!((&mut second).now_or_never().is_none());
        assert!(turns.cancel("s") && !turns.cancel("other"));
        drop(second);
        assert_eq!(turns.0.lock().unwrap()["s"].waiting, 1);
        drop(first);
        assert!(turns.0.lock().unwrap().is_empty());
    }
}
