//! What the model keeps in memory: each field is checked, and taken back where it does not stand the check.

use serde_json::{Value, json};

use super::history::trimmed;
use super::offers::AFTER_SETTING;
use super::run::{Turn, reminder};
use super::skills::{EngineTool, State, focus, replayed_from, settable};
use super::voice::Voice;
use crate::conversation::{Event, Object, as_messages, message};
use crate::step::{Asked, Completion, complete};
use crate::tools::ToolOutput;

/// A write that nobody has checked yet: dropped, it is taken back.
struct Unchecked<'a> {
    voice: &'a Voice,
    before: Option<(State, usize)>,
}

impl Drop for Unchecked<'_> {
    fn drop(&mut self) {
        if let Some((state, follow_ups)) = self.before.take() {
            self.voice.return_to(&state);
            self.voice.forget_follow_ups(follow_ups);
        }
    }
}

impl Turn<'_> {
    /// Keeps what the model was told; each field that is refused is told of, and the others are kept.
    pub(super) async fn set_fields(&self, arguments: &Object) -> ToolOutput {
        let Some(skills) = self.voice.engine.skills.as_deref() else { return ToolOutput::error("There are no skills") };
        let (mut set, mut corrected, mut refused) = (Vec::new(), Vec::new(), Object::new());
        for (name, value) in arguments {
            let state = self.voice.stand();
            let follow_ups = self.voice.follow_ups();
            let was = skills.recall(&state, name);
            let may = state.top().and_then(|frame| {
                Some(settable(frame, skills.skill(&frame.skill)?).iter().any(|entry| entry.name == *name))
            });
            // What is not checked to its end is taken back, also where the turn is cancelled meanwhile.
            let mut unchecked = Unchecked { voice: self.voice, before: Some((state, follow_ups)) };
            let written = match may {
                Some(true) => self.voice.remember(name, value),
                _ => Err(format!("`{name}` is no field that can be set now")),
            };
            let checked = match written {
                Ok(()) => self.after_setting(name).await,
                Err(why) => Err(why.into()),
            };
            match checked {
                Ok(()) => {
                    unchecked.before = None;
                    set.push(name.clone());
                    // As it is kept: 50 and 50.0 are one amount, and the skill's own tool may have put it right.
                    let is_other = was.is_some() && was != skills.recall(&self.voice.stand(), name);
                    corrected.extend(is_other.then(|| name.clone()));
                }
                Err(why) => {
                    drop(unchecked);
                    refused.insert(name.clone(), why);
                }
            }
        }
        let state = self.voice.stand();
        let from = state.top().and_then(|frame| replayed_from(frame, skills.skill(&frame.skill)?, &corrected));
        if let Some(step) = from {
            self.voice.happens(Event::StepEntered { step: Some(step.id.clone()) });
        }
        let is_error = set.is_empty() && !refused.is_empty();
        let value = if refused.is_empty() { json!({"set": set}) } else { json!({"set": set, "refused": refused}) };
        ToolOutput { is_error, ..ToolOutput::of(value) }
    }

    /// Has the skill's own tool look at what was written; an error: it is taken back.
    async fn after_setting(&self, entry: &str) -> Result<(), Value> {
        let Some(skill) = self.voice.active() else { return Ok(()) };
        let Some(tool) = self.tool_of(&skill, &format!("{AFTER_SETTING}{entry}")) else { return Ok(()) };
        let output = self.run_tool(&*tool, Object::new(), Some(&skill)).await;
        match output.value.get("error") {
            Some(why) if !why.is_null() => Err(why.clone()),
            _ if output.is_error => Err(output.value),
            _ => Ok(()),
        }
    }

    /// A quiet call after an activation: the model keeps what the user has told already.
    pub(super) async fn fill(&self) {
        let Some(skills) = self.voice.engine.skills.as_deref() else { return };
        let offered = focus(skills, &self.voice.stand(), false).tools;
        let Some((_, fields)) = offered.into_iter().find(|(tool, _)| *tool == EngineTool::SetFields) else { return };
        let name = fields.name.clone();
        let system = message("system", "Call `set_fields` with what the user has told already, or answer `nothing`.");
        let current = as_messages(&self.voice.kept().done);
        let mut messages = trimmed(&system, &self.past, &current, self.voice.engine.max_prompt_tokens);
        messages.extend(reminder(&messages));
        let asked = Asked { messages, tools: vec![fields], iteration: 0 };
        let new_id = || self.voice.engine.new_id("call");
        let completion = complete(self.voice.hooked(), &*self.voice.engine.model, asked, None, &new_id).await;
        let Completion::Answered { calls, .. } = completion else { return };
        for call in calls.iter().filter(|call| call.tool_name == name && call.broken.is_none()) {
            self.set_fields(&call.arguments).await;
        }
    }
}
