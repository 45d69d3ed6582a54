//! Whether a skill is done whose end is told in words: a model reads the conversation and says so. The request is the engine's own, no
//! hook sees it (documentation of Mantle, completion judge).

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::history::trimmed;
use super::run::Turn;
use super::skills::SkillSet;
use crate::conversation::{Event, Object, as_messages, message};
use crate::step::{ModelReply, ask_unseen};
use crate::telemetry::TURN;

impl Turn<'_> {
    /// The end of the active skill, where a model finds all its criteria met. Where the model gives no answer the skill goes on.
    pub(super) async fn judged(&self, skills: &SkillSet) -> Option<Event> {
        let state = self.voice.stand();
        let frame = state.top().filter(|frame| frame.position.is_none() && state.pending.is_none())?;
        let skill = skills.skill(&frame.skill)?;
        let when = skill.complete_when.as_ref().filter(|when| !when.criteria.is_empty())?;
        let read = |namespace: &str, entry: &str| skills.read(&state, namespace, entry);
        // What can be told without a model is told first.
        if when.condition.as_ref().is_some_and(|condition| !condition.holds(&read)) {
            return None;
        }
        let mut task = format!(
            "You read a conversation of an agent's and say whether its task is done. The task: {}. It is done when all of this is so:",
            skill.name
        );
        for criterion in &when.criteria {
            let _ = write!(task, "\n- {}", criterion.trim());
        }
        task.push_str("\nAnswer with one word: `yes`, or `no` where any of it is not so yet.");
        let engine = &self.voice.engine;
        let current = as_messages(&self.voice.kept().done);
        let system = message("system", &task);
        let conversation = transcript(&trimmed(&system, &self.past, &current, engine.max_prompt_tokens)[1..]);
        let messages = vec![system, message("user", &conversation)];
        match ask_unseen(&self.voice.identity, &*engine.model, messages).await {
            Ok(reply) => says_yes(&reply).then(|| Event::SkillCompleted { skill_id: skill.id.clone() }),
            Err(error) => {
                tracing::warn!(target: TURN, skill = skill.id, "Whether the skill is done is not known: {error}");
                None
            }
        }
    }
}

/// A conversation as text: one that is only read needs no tools, which some providers want to see beside calls.
fn transcript(messages: &[Arc<Object>]) -> String {
    let mut text = String::new();
    for message in messages {
        let of = |key: &str| message.get(key).and_then(Value::as_str);
        let (role, content) = (of("role").unwrap_or_default(), of("content").unwrap_or_default());
        if !content.is_empty() {
            let _ = writeln!(text, "{role}: {content}");
        }
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let function = &call["function"];
            let (name, arguments) = (function["name"].as_str(), function["arguments"].as_str());
            let _ = writeln!(text, "{role} calls {} {}", name.unwrap_or_default(), arguments.unwrap_or_default());
        }
    }
    text
}

/// Whether the first word of an answer is yes.
fn says_yes(reply: &ModelReply) -> bool {
    let first = |text: &String| {
        // What a model thinks aloud comes first.
        let text = text.rsplit_once("</think>").map_or(text.as_str(), |(_, said)| said);
        let word = text.split(|letter: char| !letter.is_alphanumeric()).find(|word| !word.is_empty());
        word.is_some_and(|word| word.eq_ignore_ascii_case("yes"))
    };
    reply.text.as_ref().is_some_and(first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_yes_is_the_first_word_however_it_is_written() {
        for (text, yes) in [
            ("yes", true),
            ("**Yes.**", true),
            ("YES, all of it", true),
            ("no", false),
            ("Not yes", false),
            ("<think>no</think> Yes", true),
            ("", false),
        ] {
            assert_eq!(says_yes(&ModelReply::text(text)), yes, "{text}");
        }
        assert!(!says_yes(&ModelReply::default()));
    }

    #[test]
    fn a_transcript_shows_who_said_called_and_answered_what() {
        let of = |value: Value| Arc::new(value.as_object().unwrap().clone());
        let messages = [
            of(json!({"role": "user", "content": "Lock it"})),
            of(json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "lock", "arguments": "{\"card\": 7}"}},
            ]})),
            of(json!({"role": "tool", "tool_call_id": "1", "content": "done"})),
            of(json!({"role": "assistant", "content": "It is locked."})),
        ];
        assert_eq!(
            transcript(&messages),
            "user: Lock it\nassistant calls lock {\"card\": 7}\ntool: done\nassistant: It is locked.\n"
        );
    }
}
