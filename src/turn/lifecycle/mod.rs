//! Conversations in which the user says nothing any more: which are due to be told of, found in the store alone.

mod stream;
#[cfg(test)]
mod tests;

pub use stream::LifecycleStream;
pub(super) use stream::stream;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

use super::engine::Inner;
use super::input::TurnInput;
use super::session;
use super::store::StoreError;
use crate::conversation::{Event, Idle, IdleStage};
use crate::telemetry::TURN;

/// How often is looked for what is due at least, so that a clock that was set and a machine that has slept are noticed.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How often at most.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// How long a conversation is left alone that is due while a turn of it runs.
const TURN_PAUSE: Duration = Duration::from_secs(1);

/// How many that are due are looked at, beside those whose turns run, in case another engine is faster.
const CANDIDATES: usize = 16;

/// When a conversation in which nobody says anything is told of. Times count from the end of its last turn. By default: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// After how long it is told that the user is silent.
    pub nudge_after: Option<Duration>,
    /// After how long the conversation has expired, so that the user's next message begins a session. Where that is not later than
    /// `nudge_after`, nothing is told before.
    pub expire_after: Option<Duration>,
}

/// A conversation has been silent for long. Each kind comes once at most until the user says something again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event")]
#[non_exhaustive]
pub enum LifecycleEvent {
    /// The user says nothing.
    #[serde(rename = "nudge")]
    Nudged {
        /// The conversation.
        sender_id: String,
        /// When its last turn ended. Serialized, as the others, in milliseconds since 1970 (UTC).
        #[serde(rename = "idle_since_ms", serialize_with = "millis")]
        idle_since: SystemTime,
        /// When this was to be told: earlier than it is, where no engine was there to tell it.
        #[serde(rename = "due_ms", serialize_with = "millis")]
        due: SystemTime,
    },
    /// The conversation is over: the user's next message begins a session.
    #[serde(rename = "expire")]
    Expired {
        /// The conversation.
        sender_id: String,
        /// When its last turn ended.
        #[serde(rename = "idle_since_ms", serialize_with = "millis")]
        idle_since: SystemTime,
        /// When this was to be told.
        #[serde(rename = "due_ms", serialize_with = "millis")]
        due: SystemTime,
    },
}

impl Lifecycle {
    fn is_off(&self) -> bool {
        *self == Self::default()
    }

    /// The sooner of the two.
    fn least(&self) -> Option<Duration> {
        self.nudge_after.into_iter().chain(self.expire_after).min()
    }
}

/// What a look for what is due has come to.
pub(super) enum Look {
    /// This was due, and is told with this.
    Told(LifecycleEvent),
    /// Nothing more is due; nothing will be for so long.
    Later(Duration),
}

/// Tells what has been due longest at `now` (milliseconds since 1970, UTC).
pub(super) fn look(engine: &Inner, now: u64) -> Result<Look, StoreError> {
    if engine.lifecycle.is_off() {
        return Ok(Look::Later(LONGEST_PAUSE));
    }
    let mut due = Vec::new();
    let most = CANDIDATES + engine.turns.count();
    for kind in kinds(engine.lifecycle) {
        if let Some(last) = kind.last_due(now) {
            let first = kind.until.map_or(0, |until| (now + 1).saturating_sub(until));
            due.extend(kind.of(engine.store.idle(kind.stage, first..=last, most)?));
        }
    }
    due.sort_by(|one, other| (one.at, &one.sender_id).cmp(&(other.at, &other.sender_id)));
    let mut runs = false;
    for Due { at, sender_id, idle, becomes } in due {
        if engine.turns.runs(&sender_id) {
            runs = true;
            continue;
        }
        let expires = becomes == IdleStage::Expired;
        let event =
            if expires { Event::ConversationExpired { at: now } } else { Event::ConversationNudged { at: now } };
        // Not so where another engine, or the user, was faster.
        if engine.store.append_if_idle(&sender_id, idle, &event)? {
            let (idle_since, due) = (time(idle.since), time(at));
            return Ok(Look::Told(if expires {
                LifecycleEvent::Expired { sender_id, idle_since, due }
            } else {
                LifecycleEvent::Nudged { sender_id, idle_since, due }
            }));
        }
    }
    let next = if runs { Some(TURN_PAUSE) } else { next(engine, now)? };
    // What rests from now on is due no sooner than that.
    let pauses = next.into_iter().chain(engine.lifecycle.least());
    Ok(Look::Later(pauses.fold(LONGEST_PAUSE, Duration::min).max(SHORTEST_PAUSE)))
}

/// In how long the next of the conversations that rest is due.
fn next(engine: &Inner, now: u64) -> Result<Option<Duration>, StoreError> {
    let mut first: Option<u64> = None;
    for kind in kinds(engine.lifecycle) {
        let from = kind.last_due(now).map_or(0, |last| last + 1);
        let found = kind.of(engine.store.idle(kind.stage, from..=u64::MAX, 1)?);
        first = found.map(|due| due.at).chain(first).min();
    }
    Ok(first.map(|at| Duration::from_millis(at.saturating_sub(now))))
}

/// A turn begins: no other engine of the store's tells that the conversation is idle, unless the turn takes as long as that.
pub(super) fn stir(engine: &Inner, input: &TurnInput) {
    if engine.lifecycle.is_off() || session::is_reaction(&input.said) {
        return;
    }
    if let Err(error) = engine.store.stir(&input.sender_id, session::now_ms()) {
        tracing::error!(target: TURN, "It is not kept that a turn has begun: {error}");
    }
}

/// One way from a stage to a later one.
#[derive(Clone, Copy)]
struct Kind {
    stage: IdleStage,
    becomes: IdleStage,
    /// After so many milliseconds.
    after: u64,
    /// And before so many, where there are as many.
    until: Option<u64>,
}

/// A conversation that is to be told of.
struct Due {
    /// When it is to be told, in milliseconds since 1970 (UTC).
    at: u64,
    sender_id: String,
    idle: Idle,
    becomes: IdleStage,
}

/// Expiries come first: what has expired is not nudged before.
fn kinds(Lifecycle { nudge_after, expire_after }: Lifecycle) -> impl Iterator<Item = Kind> {
    let until = expire_after.map(whole_millis);
    let expiry = move |stage| until.map(|after| Kind { stage, becomes: IdleStage::Expired, after, until: None });
    let nudge = |after| Kind { stage: IdleStage::Quiet, becomes: IdleStage::Nudged, after: whole_millis(after), until };
    [expiry(IdleStage::Quiet), expiry(IdleStage::Nudged), nudge_after.map(nudge)].into_iter().flatten()
}

impl Kind {
    /// Who rests since then or before is due at `now`; none: nobody can be.
    fn last_due(&self, now: u64) -> Option<u64> {
        now.checked_sub(self.after)
    }

    fn of(self, found: Vec<(String, Idle)>) -> impl Iterator<Item = Due> {
        let due = move |(sender_id, idle): (String, Idle)| {
            let at = idle.since.saturating_add(self.after);
            Due { at, sender_id, idle, becomes: self.becomes }
        };
        found.into_iter().map(due)
    }
}

fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A time of so many milliseconds since 1970: the system counts seconds in 63 bits, so that all of them fit.
fn time(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis)
}

/// Milliseconds since 1970 (UTC).
pub(super) fn millis_of(time: SystemTime) -> u64 {
    whole_millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis<S: Serializer>(time: &SystemTime, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(millis_of(*time))
}
