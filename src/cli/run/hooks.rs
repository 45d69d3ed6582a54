//! An agent's hooks for a player: observers are waited for rather than dropped, and what the modifiers do can be told.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;

use super::diff::{Change, Place};
use crate::agent::HookEngine;
use crate::hooks::{AnyPayload, Outcome, Point};
use crate::step::{Hooks, Ran, Witness};

/// The hooks of one conversation that is played.
pub(super) struct PlayedHooks<'a> {
    engine: &'a HookEngine,
    /// Where in the input the player is.
    pub(super) place: Place,
    /// Whether changes are told.
    diff: bool,
    /// Observations that nobody has handed over yet: a step never waits for an observer, and the queue may be full.
    held: Mutex<Vec<AnyPayload>>,
    changes: Mutex<Vec<Change>>,
}

impl<'a> PlayedHooks<'a> {
    pub(super) fn new(engine: &'a HookEngine, place: Place, diff: bool) -> Self {
        Self { engine, place, diff, held: Mutex::default(), changes: Mutex::default() }
    }

    /// Hands over what observers are to see, as soon as the queue has room.
    pub(super) async fn hand_over(&self) {
        let held = std::mem::take(&mut *lock(&self.held));
        for payload in held {
            self.engine.observe_any_with_room(payload).await;
        }
    }

    /// What the modifiers have done, in the order of their calls.
    pub(super) fn into_changes(self) -> Vec<Change> {
        self.changes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the modifier, and keeps what it did where that is to be told.
    async fn modified(&self, payload: AnyPayload) -> Outcome<AnyPayload> {
        if !self.diff {
            return Hooks::modify(self.engine, payload).await;
        }
        let before = payload.clone();
        let outcome = Hooks::modify(self.engine, payload).await;
        // The modifier stands last.
        let hook = self.engine.registered(before.point()).pop().map(|hook| hook.to_string()).unwrap_or_default();
        lock(&self.changes).extend(Change::of(&self.place, hook, &before, outcome.clone()));
        outcome
    }
}

impl Hooks for PlayedHooks<'_> {
    fn observe(&self, payload: AnyPayload) {
        lock(&self.held).push(payload);
    }

    fn modify(&self, payload: AnyPayload) -> BoxFuture<'_, Outcome<AnyPayload>> {
        Box::pin(async move {
            self.hand_over().await;
            self.modified(payload).await
        })
    }

    /// Also where observers alone stand: what is held for them is handed over before the modifier's turn, whether there is one or not.
    fn modifies(&self, point: Point) -> bool {
        Hooks::modifies(self.engine, point) || self.observes(point)
    }

    fn observes(&self, point: Point) -> bool {
        Hooks::observes(self.engine, point)
    }
}

impl Witness for PlayedHooks<'_> {
    /// The report has the engine's statistics.
    fn hook_ran(&self, _: Ran) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
