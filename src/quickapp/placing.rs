//! Where a start hook's pair stands in the conversation.
//!
//! What does not change stays where it is, so that a provider's prompt cache holds; what is new goes to the end, so that the newest result is
//! the last that the model sees.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call_id::Tag;
use super::pair::{Pair, tag_of};
use crate::conversation::Object;

/// How often a hook adds a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Frequency {
    /// When the result is another than last time.
    #[default]
    AppendIfChanged,
    /// Every turn. Its pairs need a nonce.
    Always,
}

/// The messages with the pair in its place. All others stay, in their order, and are shared.
///
/// | Frequency | Genuine pairs of the same origin | Place |
/// |---|---|---|
/// | `always` | | at the end |
/// | `append_if_changed` | none | the first place |
/// | | the newest has the same content | in its place: a new expiry, the arguments of this turn |
/// | | an older one has the same content | at the end, instead of that one |
/// | | none has the same content | at the end |
///
/// The first place is after the first user message and the pairs that stand there of hooks `earlier` in the manifest; without a user
/// message it is the end. `earlier` has the tags of all hooks before this one, whether or not they have run in this request.
pub(crate) fn place(
    mut messages: Vec<Arc<Object>>,
    pair: &Pair<'_>,
    frequency: Frequency,
    earlier: &BTreeSet<Tag>,
) -> Vec<Arc<Object>> {
    match frequency {
        Frequency::Always => append(&mut messages, pair),
        Frequency::AppendIfChanged => match standing(&messages, pair) {
            Standing::Nowhere => {
                let at = first_place(&messages, earlier);
                messages.splice(at..at, both(pair));
            }
            Standing::Newest(at) => {
                messages.splice(at..at + 2, both(pair));
            }
            Standing::Older(at) => {
                messages.drain(at..at + 2);
                append(&mut messages, pair);
            }
            Standing::Changed => append(&mut messages, pair),
        },
    }
    messages
}

/// What the messages have of a pair's origin.
enum Standing {
    /// Nothing that is genuine.
    Nowhere,
    /// The newest pair has the same content, and stands here.
    Newest(usize),
    /// The newest has another content; this is the newest of those before it that has the same.
    Older(usize),
    /// None has the same content.
    Changed,
}

fn standing(messages: &[Arc<Object>], pair: &Pair<'_>) -> Standing {
    let origin = pair.origin;
    let mut candidates = origin.candidates(messages);
    let Some(newest) = candidates.find(|candidate| origin.is_own(candidate)) else { return Standing::Nowhere };
    if newest.content == pair.content() {
        return Standing::Newest(newest.at);
    }
    // The contents are compared first: the digest costs more.
    let same = candidates.find(|candidate| candidate.content == pair.content() && origin.is_own(candidate));
    same.map_or(Standing::Changed, |older| Standing::Older(older.at))
}

/// Where a first pair goes: behind those that earlier hooks have right after the first user message, before those of later hooks.
///
/// Tags are enough here: a client that forges one moves a pair among the first pairs, no more.
fn first_place(messages: &[Arc<Object>], earlier: &BTreeSet<Tag>) -> usize {
    let role = |message: &Arc<Object>| message.get("role").and_then(Value::as_str).map(str::to_ascii_lowercase);
    let is_users = |message: &Arc<Object>| role(message).as_deref() == Some("user");
    let Some(user) = messages.iter().position(is_users) else { return messages.len() };
    let mut place = user + 1;
    for (run, two) in messages[user + 1..].chunks_exact(2).enumerate() {
        let Some(tag) = tag_of(&two[0], &two[1]) else { break };
        if earlier.contains(&tag) {
            place = user + 1 + 2 * (run + 1);
        }
    }
    place
}

fn append(messages: &mut Vec<Arc<Object>>, pair: &Pair<'_>) {
    messages.extend(both(pair));
}

fn both(pair: &Pair<'_>) -> [Arc<Object>; 2] {
    [Arc::clone(&pair.call), Arc::clone(&pair.result)]
}
