//! Since when a conversation rests, and what has been told of that: a fold of its events.

use super::Event;

/// What stands in the user's place where a program reacts to a nudge.
const NUDGE: &str = "/nudge";

/// The same after an expiry.
const EXPIRE: &str = "/expire";

/// A conversation rests: its last turn is over, and the user has said nothing since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// When that turn ended, in milliseconds since 1970 (UTC).
    pub since: u64,
    /// What has been told of it.
    pub stage: IdleStage,
}

/// What has been told of a conversation that rests; the later stage is the greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdleStage {
    /// Nothing.
    Quiet,
    /// That it is idle ([`Event::ConversationNudged`]).
    Nudged,
    /// That it has expired ([`Event::ConversationExpired`]).
    Expired,
}

impl Idle {
    /// How a conversation rests after `events`, which begin with a turn's first; `before` is how it rested until then. None: no turn of
    /// it has ended, or its events do not say when.
    ///
    /// A turn by which a program reacts to a nudge or an expiry (its message is `/nudge` or `/expire`) is none of the user's: the
    /// conversation rests on, or it would be nudged again and again and never expire.
    #[must_use]
    pub fn after(before: Option<Self>, events: &[Event]) -> Option<Self> {
        let (mut idle, mut reacts) = (before, false);
        let told =
            |idle: Option<Self>, stage: IdleStage| idle.map(|idle| Self { stage: idle.stage.max(stage), ..idle });
        for event in events {
            match event {
                Event::UserMessage { text, .. } => reacts = is_reaction(text),
                Event::TurnFinished { .. } if reacts => reacts = false,
                Event::TurnFinished { at, .. } => idle = at.map(|since| Self { since, stage: IdleStage::Quiet }),
                Event::ConversationNudged { .. } => idle = told(idle, IdleStage::Nudged),
                Event::ConversationExpired { .. } => idle = told(idle, IdleStage::Expired),
                _ => {}
            }
        }
        idle
    }
}

/// Whether a message is that of a program which reacts to a nudge or an expiry.
pub(crate) fn is_reaction(text: &str) -> bool {
    matches!(text.trim(), NUDGE | EXPIRE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(text: &str, at: u64) -> [Event; 2] {
        let user = Event::UserMessage { text: text.into(), message_id: None, discarded: false };
        [user, Event::TurnFinished { turn_id: "t".into(), status: "completed".into(), at: Some(at) }]
    }

    fn idle(since: u64, stage: IdleStage) -> Idle {
        Idle { since, stage }
    }

    #[test]
    fn a_conversation_rests_from_the_end_of_its_last_turn_on() {
        assert_eq!(Idle::after(None, &[]), None);
        assert_eq!(Idle::after(None, &turn("hello", 7)), Some(idle(7, IdleStage::Quiet)));
        let events = [turn("hello", 7), turn("and?", 9)].concat();
        assert_eq!(Idle::after(None, &events), Some(idle(9, IdleStage::Quiet)));
    }

    #[test]
    fn what_is_told_of_it_counts_until_the_users_next_turn() {
        let (nudged, expired) = (Event::ConversationNudged { at: 8 }, Event::ConversationExpired { at: 9 });
        let quiet = Idle::after(None, &turn("hello", 7));
        assert_eq!(Idle::after(quiet, std::slice::from_ref(&nudged)), Some(idle(7, IdleStage::Nudged)));
        assert_eq!(Idle::after(quiet, &[expired.clone(), nudged]), Some(idle(7, IdleStage::Expired)));
        assert_eq!(Idle::after(Idle::after(quiet, &[expired]), &turn("back", 10)), Some(idle(10, IdleStage::Quiet)));
    }

    #[test]
    fn a_turn_that_reacts_to_a_nudge_is_none_of_the_users() {
        let nudged = Some(idle(7, IdleStage::Nudged));
        assert_eq!(Idle::after(nudged, &turn(" /nudge ", 9)), nudged);
        assert_eq!(Idle::after(nudged, &turn("/expire", 9)), nudged);
        assert_eq!(
            Idle::after(nudged, &[turn("/nudge", 9), turn("hello", 10)].concat()),
            Some(idle(10, IdleStage::Quiet))
        );
    }

    #[test]
    fn nobody_knows_since_when_a_conversation_rests_whose_turn_does_not_say_when_it_ended() {
        let ended = Event::TurnFinished { turn_id: "t".into(), status: "completed".into(), at: None };
        assert_eq!(Idle::after(Some(idle(7, IdleStage::Nudged)), &[ended]), None);
    }
}
