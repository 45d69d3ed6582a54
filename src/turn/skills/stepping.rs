//! What the engine does without the model: the steps of ordered blocks, and the ends of skills.

use serde_json::Value;

use super::SkillSet;
use super::offering::step;
use super::state::{Frame, State};
use crate::conversation::{Event, Object};
use crate::skill::{Argument, Goto, Skill, Step, StepKind, Target};

/// How deep skills and blocks may call each other before the turn fails: a circle has no end.
const DEPTH: usize = 16;

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stepped {
    /// The model is to be asked.
    Model,
    /// This happens, and then there is more to be done.
    Happens(Vec<Event>),
    /// A response is said; then the step is done.
    Say { response: String },
    /// A response asks the user, whose answer is waited for.
    Ask { response: String },
    /// A tool runs; then the step is done.
    Run { tool: String, arguments: Object },
    /// Entries are written; then the step is done.
    Write { values: Object },
    /// Skills and blocks call each other without an end.
    TooDeep,
}

impl SkillSet {
    /// What is to be done as things stand.
    pub(crate) fn next(&self, state: &State) -> Stepped {
        let Some((frame, skill)) = state.top().and_then(|frame| Some((frame, self.skill(&frame.skill)?))) else {
            return Stepped::Model;
        };
        if state.frames.len() > DEPTH {
            return Stepped::TooDeep;
        }
        if state.pending.is_some() {
            return Stepped::Model;
        }
        let read = |namespace: &str, entry: &str| self.read(state, namespace, entry);
        let Some(position) = &frame.position else {
            let done = skill.complete_when.as_ref().filter(|when| when.criteria.is_empty());
            let holds = done.and_then(|when| when.condition.as_ref()).is_some_and(|condition| condition.holds(&read));
            let ends = || vec![Event::SkillCompleted { skill_id: skill.id.clone() }];
            return if holds { Stepped::Happens(ends()) } else { Stepped::Model };
        };
        let Some(current) = step(frame, skill) else {
            return Stepped::Happens(self.ended(state, frame, skill));
        };
        let advanced = || self.advanced(state, frame, skill, current);
        match &current.kind {
            StepKind::Instructions { complete_when: Some(condition), .. } if condition.holds(&read) => {
                Stepped::Happens(advanced())
            }
            StepKind::Collect { entry, .. } if read(&skill.id, entry).is_some() => Stepped::Happens(advanced()),
            StepKind::Collect { utterance: Some(response), .. } if !position.asked => {
                Stepped::Ask { response: response.clone() }
            }
            StepKind::Instructions { .. } | StepKind::Collect { .. } => Stepped::Model,
            StepKind::Action { response } => Stepped::Say { response: response.clone() },
            StepKind::ExecuteTool { tool, parameters } => {
                let value = |argument: &Argument| match argument {
                    Argument::Value(value) => value.clone(),
                    Argument::Entry { namespace, entry } => read(namespace, entry).unwrap_or(Value::Null),
                };
                let arguments = parameters.iter().map(|(name, argument)| (name.clone(), value(argument))).collect();
                Stepped::Run { tool: tool.clone(), arguments }
            }
            StepKind::SetMemory { values } => Stepped::Write { values: values.clone() },
            // What was called is done: where to go depends on what it has left in memory.
            StepKind::Call(_) if position.asked => Stepped::Happens(advanced()),
            StepKind::Call(target) => {
                let mut events = vec![Event::StepAsked];
                events.extend(self.entered(&target.skill, target.block.as_deref()));
                Stepped::Happens(events)
            }
            StepKind::Link(Target { skill: id, block }) => {
                let mut events = vec![completed(frame)];
                let alone = state.frames.iter().rev().nth(1).is_none_or(|below| below.skill != skill.id);
                if *id != skill.id && !alone {
                    events.push(Event::SkillCompleted { skill_id: skill.id.clone() });
                }
                events.extend(self.entered(id, block.as_deref()));
                Stepped::Happens(events)
            }
            StepKind::Noop => Stepped::Happens(advanced()),
            StepKind::End => Stepped::Happens(self.ended(state, frame, skill)),
        }
    }

    /// What follows when the model has answered the user: a step of instructions that names no end is done.
    pub(crate) fn answered(&self, state: &State) -> Vec<Event> {
        let current = state.top().and_then(|frame| step(frame, self.skill(&frame.skill)?));
        let is_done =
            current.is_some_and(|step| matches!(step.kind, StepKind::Instructions { complete_when: None, .. }));
        if is_done && state.pending.is_none() { self.done(state) } else { Vec::new() }
    }

    /// What follows when the step that the engine has taken is done, as memory is now.
    pub(crate) fn done(&self, state: &State) -> Vec<Event> {
        let Some((frame, skill)) = state.top().and_then(|frame| Some((frame, self.skill(&frame.skill)?))) else {
            return Vec::new();
        };
        step(frame, skill).map(|current| self.advanced(state, frame, skill, current)).unwrap_or_default()
    }

    /// What happens when a skill, or a block of it, begins.
    pub(crate) fn entered(&self, skill: &str, block: Option<&str>) -> Vec<Event> {
        let Some(found) = self.skill(skill) else { return Vec::new() };
        let begins = |block: &str| {
            let first = found.block(block).and_then(|block| block.steps.first()).map(|step| step.id.clone());
            Event::BlockEntered { skill_id: skill.to_owned(), block_id: block.to_owned(), step: first }
        };
        if let Some(block) = block {
            return vec![begins(block)];
        }
        let opening = found.opening().map(|block| begins(&block.id));
        [Event::SkillActivated { skill_id: skill.to_owned() }].into_iter().chain(opening).collect()
    }

    fn advanced(&self, state: &State, frame: &Frame, skill: &Skill, step: &Step) -> Vec<Event> {
        match step.next.choose(&|namespace, entry| self.read(state, namespace, entry)) {
            Goto::Step(id) => vec![Event::StepEntered { step: Some(id.clone()) }],
            Goto::End => self.ended(state, frame, skill),
        }
    }

    /// The end of a block; of the skill as well, where it is nothing but this block.
    #[expect(clippy::unused_self, reason = "it stands among its brothers")]
    fn ended(&self, state: &State, frame: &Frame, skill: &Skill) -> Vec<Event> {
        let mut events = vec![completed(frame)];
        let below = state.frames.iter().rev().nth(1);
        let opened = below.is_some_and(|below| below.skill == skill.id && below.position.is_none());
        let only = frame.position.as_ref().is_some_and(|at| skill.opening().is_some_and(|block| block.id == at.block));
        if opened && only {
            events.push(Event::SkillCompleted { skill_id: skill.id.clone() });
        }
        events
    }
}

fn completed(frame: &Frame) -> Event {
    let block_id = frame.position.as_ref().map(|position| position.block.clone()).unwrap_or_default();
    Event::BlockCompleted { skill_id: frame.skill.clone(), block_id }
}
