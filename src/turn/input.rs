//! What a turn is given.

use crate::conversation::{CallInfo, ChannelInfo};
use crate::step::Identity;

/// What the user has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Words of the user's own.
    Text(String),
    /// No words: a button's payload or a command such as `/session_start`. Hooks for texts do not run on it.
    Payload(String),
    /// Neither, such as an attachment alone.
    Nothing,
}

/// What a turn is given; every payload of the turn shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnInput {
    /// The conversation.
    pub sender_id: String,
    /// What the user has sent.
    pub said: Said,
    /// The message's id, where the channel gives one.
    pub message_id: Option<String>,
    /// The channel.
    pub channel: ChannelInfo,
    /// Telephony and session metadata.
    pub call: CallInfo,
    /// Whether the channel is one of voice.
    pub is_voice: bool,
    /// Whether a turn of the conversation that still runs is to be cancelled (barge-in) instead of waited for.
    pub interrupts: bool,
    /// Whether events show what hooks changed: also what one has taken out of a text, so it is for the agent's author alone.
    pub shows_changes: bool,
}

impl TurnInput {
    /// A text of the user's; one that begins with `/` is a payload, an empty one is nothing.
    pub fn new(sender_id: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let said = match text.trim() {
            "" => Said::Nothing,
            trimmed if trimmed.starts_with('/') => Said::Payload(text),
            _ => Said::Text(text),
        };
        Self {
            sender_id: sender_id.into(),
            said,
            message_id: None,
            channel: ChannelInfo::default(),
            call: CallInfo::default(),
            is_voice: false,
            interrupts: false,
            shows_changes: false,
        }
    }

    pub(super) fn identity(&self) -> Identity {
        Identity {
            sender_id: self.sender_id.clone(),
            call: self.call.clone(),
            channel: self.channel.clone(),
            is_voice: self.is_voice,
        }
    }
}
