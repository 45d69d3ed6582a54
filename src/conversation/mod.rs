//! Plain values of a conversation: who speaks, over which channel, and JSON as it was written.

mod event;
mod idle;
mod recording;

pub(crate) use event::{CONFIRMED, message, text_of_value, with_content};
pub use event::{Event, as_messages};
pub(crate) use idle::is_reaction;
pub use idle::{Idle, IdleStage};
pub(crate) use recording::{Arguments, Completion, RecordedCall, Recording, TurnItem, text_of};

use serde::{Deserialize, Serialize};

/// A JSON object with its keys in the order in which they were written.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// Telephony and session metadata of a turn; empty unless the channel supplies it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallInfo {
    /// The caller's number, where there is one.
    pub phone_number: Option<String>,
    /// Whatever else the telephony front end says of the call.
    pub metadata: Object,
}

/// The channel that a turn came in on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelInfo {
    /// The channel's name, such as `rest`.
    pub name: Option<String>,
    /// Whatever the front end says of itself.
    pub metadata: Object,
}
