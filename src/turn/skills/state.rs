//! Where a conversation stands: it follows from its events, and from nothing else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::conversation::{Event, Object, is_reaction};
use crate::skill::PROJECT;

/// What is remembered, which skills are active, and what waits for the user's word.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// What has been set, by namespace and entry. Null: it was cleared.
    memory: BTreeMap<(String, String), Value>,
    /// Entries of the project that have been set in this session.
    once: BTreeSet<String>,
    /// What is active; the last one is what the model is shown, and those before it wait for it.
    pub(crate) frames: Vec<Frame>,
    /// The call that the user is asked about.
    pub(crate) pending: Option<Pending>,
}

/// A skill, or a block of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The skill.
    pub(crate) skill: String,
    /// Where in which block; none: the skill's own instructions hold.
    pub(crate) position: Option<Position>,
}

/// A step of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The block.
    pub(crate) block: String,
    /// The step; none: there is no further one.
    pub(crate) step: Option<String>,
    /// Whether the step has asked the user, or called what is to come back to it.
    pub(crate) asked: bool,
}

/// A call that waits for the user's yes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pending {
    /// The skill whose gate it is.
    pub(crate) skill: String,
    /// The tool.
    pub(crate) tool_name: String,
    /// The arguments, as hooks have left them.
    pub(crate) arguments: Object,
    /// Whether the user has said something since they were asked: before that nobody can have said yes.
    pub(crate) heard: bool,
}

impl State {
    /// The state after these events.
    pub(crate) fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut state = Self::default();
        for event in events {
            state.apply(event);
        }
        state
    }

    /// Goes on by one event.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::SessionStarted => *self = Self::default(),
            Event::MemorySet { namespace, entry, value } => {
                if namespace == PROJECT {
                    self.once.insert(entry.clone());
                }
                self.memory.insert((namespace.clone(), entry.clone()), value.clone());
            }
            Event::MemoryCleared { namespace, entry } => {
                self.memory.insert((namespace.clone(), entry.clone()), Value::Null);
            }
            Event::MemoryForgotten { namespace, entry } => {
                self.memory.remove(&(namespace.clone(), entry.clone()));
                if namespace == PROJECT {
                    self.once.remove(entry);
                }
            }
            Event::SkillActivated { skill_id } => {
                // One that waits below goes on with what it has.
                if self.frames.iter().all(|frame| frame.skill != *skill_id) {
                    self.memory.retain(|(namespace, _), _| namespace != skill_id);
                }
                self.frames.push(Frame { skill: skill_id.clone(), position: None });
            }
            Event::SkillCompleted { skill_id } | Event::SkillCancelled { skill_id } => {
                // Of what is below another skill nothing is touched. A block that another skill has called stands alone.
                let run = self.frames.iter().rposition(|frame| frame.skill != *skill_id).map_or(0, |at| at + 1);
                let whole = self.frames[run..].iter().rposition(|frame| frame.position.is_none());
                self.frames.truncate(run + whole.unwrap_or(0));
                self.pending = None;
            }
            Event::BlockEntered { skill_id, block_id, step } => {
                let position = Position { block: block_id.clone(), step: step.clone(), asked: false };
                self.frames.push(Frame { skill: skill_id.clone(), position: Some(position) });
            }
            Event::StepEntered { step } => {
                if let Some(position) = self.position_mut() {
                    (position.step, position.asked) = (step.clone(), false);
                }
            }
            Event::StepAsked => {
                if let Some(position) = self.position_mut() {
                    position.asked = true;
                }
            }
            Event::BlockCompleted { .. } => {
                if self.position_mut().is_some() {
                    self.frames.pop();
                }
            }
            Event::ConfirmationAsked { skill_id, tool_name, arguments } => {
                let (skill, tool_name, arguments) = (skill_id.clone(), tool_name.clone(), arguments.clone());
                self.pending = Some(Pending { skill, tool_name, arguments, heard: false });
            }
            Event::ConfirmationAnswered { .. } => self.pending = None,
            Event::UserMessage { text, discarded, .. } => {
                if let Some(pending) = &mut self.pending {
                    // A program that reacts to the user's silence has not heard them.
                    pending.heard |= !discarded && !is_reaction(text);
                }
            }
            // A turn that did not come to its end may not have asked.
            Event::TurnFinished { status, .. } => {
                if status != "completed" {
                    self.pending.take_if(|pending| !pending.heard);
                }
            }
            // An expired conversation goes on as it stood until the session that the next message begins.
            Event::BotMessage { .. }
            | Event::ToolCalls { .. }
            | Event::ToolExecuted { .. }
            | Event::ConversationNudged { .. }
            | Event::ConversationExpired { .. } => {}
        }
    }

    /// What an entry was set to; the outer none: it never was.
    pub(crate) fn value(&self, namespace: &str, entry: &str) -> Option<&Value> {
        self.memory.get(&(namespace.to_owned(), entry.to_owned()))
    }

    /// Whether an entry of the project has been set in this session.
    pub(crate) fn was_set(&self, entry: &str) -> bool {
        self.once.contains(entry)
    }

    /// What would have to happen for memory to be as it was `before`.
    pub(crate) fn back_to(&self, before: &Self) -> Vec<Event> {
        let mut events = Vec::new();
        for (key, value) in &self.memory {
            let was = before.memory.get(key);
            if was == Some(value) {
                continue;
            }
            let (namespace, entry) = key.clone();
            // Forgotten first, so that what is written once can be written again.
            events.push(Event::MemoryForgotten { namespace: namespace.clone(), entry: entry.clone() });
            match was {
                None => {}
                Some(Value::Null) => events.push(Event::MemoryCleared { namespace, entry }),
                Some(value) => events.push(Event::MemorySet { namespace, entry, value: value.clone() }),
            }
        }
        events
    }

    /// What is active.
    pub(crate) fn top(&self) -> Option<&Frame> {
        self.frames.last()
    }

    fn position_mut(&mut self) -> Option<&mut Position> {
        self.frames.last_mut()?.position.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn activated(skill: &str) -> Event {
        Event::SkillActivated { skill_id: skill.into() }
    }

    fn entered(skill: &str, block: &str, step: &str) -> Event {
        Event::BlockEntered { skill_id: skill.into(), block_id: block.into(), step: Some(step.into()) }
    }

    fn frames(state: &State) -> Vec<String> {
        let shown = |frame: &Frame| match &frame.position {
            None => frame.skill.clone(),
            Some(position) => format!("{}.{}.{}", frame.skill, position.block, position.step.as_deref().unwrap_or("-")),
        };
        state.frames.iter().map(shown).collect()
    }

    #[test]
    fn what_is_called_goes_above_and_what_ends_leaves_what_waited() {
        let mut events = vec![activated("a"), entered("a", "x", "1"), activated("b"), entered("b", "y", "1")];
        assert_eq!(frames(&State::of(&events)), ["a", "a.x.1", "b", "b.y.1"]);
        events.push(Event::StepEntered { step: Some("2".into()) });
        assert_eq!(frames(&State::of(&events)), ["a", "a.x.1", "b", "b.y.2"]);
        events.push(Event::SkillCancelled { skill_id: "b".into() });
        assert_eq!(frames(&State::of(&events)), ["a", "a.x.1"]);
        events.push(Event::BlockCompleted { skill_id: "a".into(), block_id: "x".into() });
        events.push(Event::SkillCompleted { skill_id: "a".into() });
        assert_eq!(State::of(&events), State::default());
    }

    #[test]
    fn a_program_that_reacts_to_a_silence_does_not_answer_what_the_user_is_asked() {
        let (skill_id, tool_name) = ("a".into(), "pay".into());
        let mut events = vec![Event::ConfirmationAsked { skill_id, tool_name, arguments: Object::new() }];
        let heard = |events: &[Event]| State::of(events).pending.unwrap().heard;
        let says = |text: &str| Event::UserMessage { text: text.into(), message_id: None, discarded: false };
        events.extend([Event::ConversationNudged { at: 9 }, says("/nudge")]);
        assert!(!heard(&events));
        events.push(says("yes"));
        assert!(heard(&events));
    }

    #[test]
    fn a_session_begins_with_nothing() {
        let set = Event::MemorySet { namespace: "project".into(), entry: "name".into(), value: json!("Ada") };
        let state = State::of([&set]);
        assert_eq!((state.value("project", "name"), state.was_set("name")), (Some(&json!("Ada")), true));
        assert_eq!(State::of([&set, &activated("a"), &Event::SessionStarted]), State::default());
    }
}
