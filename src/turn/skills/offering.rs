//! What the model is offered and told of the skills: the engine's own tools, and what stands below the system prompt.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::state::{Frame, State};
use super::{SESSION_SKILL, SkillSet};
use crate::conversation::{Object, text_of_value};
use crate::skill::{MemoryEntry, MemoryKind, Part, Skill, Step, StepKind, with_memory};
use crate::tools::ToolSpec;

/// How much of a remembered value the model is shown, in characters.
const SHOWN: usize = 1_000;

/// A tool of the engine's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineTool {
    /// `activate_skill`
    Activate,
    /// `complete_skill`
    Complete,
    /// `cancel_skill`
    Cancel,
    /// `cannot_help`
    CannotHelp,
    /// `set_fields`
    SetFields,
    /// `resolve_tool_confirmation`
    ResolveConfirmation,
}

/// What the skills add to one iteration.
#[derive(Debug, Default)]
pub(crate) struct Focus {
    /// The engine's tools that are offered.
    pub(crate) tools: Vec<(EngineTool, Arc<ToolSpec>)>,
    /// What stands below the system prompt.
    pub(crate) prompt: String,
}

/// What holds now. `searchable`: there are references that have not been searched in this turn.
pub(crate) fn focus(skills: &SkillSet, state: &State, searchable: bool) -> Focus {
    let eligible = eligible(skills, state);
    let top = state.top().and_then(|frame| Some((frame, skills.skill(&frame.skill)?)));
    let mut focus = Focus::default();
    let mut offer = |tool, spec| focus.tools.push((tool, Arc::new(spec)));
    if let Some(pending) = &state.pending {
        if pending.heard {
            offer(EngineTool::ResolveConfirmation, confirmation());
        }
        offer(EngineTool::Cancel, ToolSpec::new("cancel_skill", "Give up the active skill, as the user wishes."));
        let call = format!("`{}` may run with {}", pending.tool_name, Value::Object(pending.arguments.clone()));
        focus.prompt = if pending.heard {
            format!(
                "The user has been asked whether {call}. If they say yes or no, call `resolve_tool_confirmation`; ask again if it is not \
                 clear."
            )
        } else {
            format!("Ask the user whether {call}, and wait for the answer.")
        };
        return focus;
    }
    let opens =
        top.filter(|(frame, skill)| frame.position.is_none() && !skill.blocks.is_empty()).map(|(_, skill)| skill);
    if !eligible.is_empty() || opens.is_some() {
        offer(EngineTool::Activate, activation(&eligible, opens));
    }
    if let Some((frame, skill)) = top {
        if frame.position.is_none() {
            offer(
                EngineTool::Complete,
                ToolSpec::new("complete_skill", "The active skill has done what it is there for."),
            );
        }
        offer(EngineTool::Cancel, ToolSpec::new("cancel_skill", "Give up the active skill, as the user wishes."));
        let settable = settable(frame, skill);
        if !settable.is_empty() {
            offer(EngineTool::SetFields, fields(&settable));
        }
    }
    if !searchable {
        offer(EngineTool::CannotHelp, ToolSpec::new("cannot_help", "Nothing that is offered here helps the user."));
    }
    focus.prompt = match top {
        Some((frame, skill)) => instructions(skills, state, frame, skill),
        None => overview(&eligible),
    };
    focus
}

/// The skills that the model may activate now.
pub(crate) fn eligible<'s>(skills: &'s SkillSet, state: &State) -> Vec<&'s Skill> {
    let read = |namespace: &str, entry: &str| skills.read(state, namespace, entry);
    let may = |skill: &&Skill| {
        !skill.disabled
            && !skill.engine_managed
            && skill.id != SESSION_SKILL
            && state.frames.iter().all(|frame| frame.skill != skill.id)
            && skill.requires.as_ref().is_none_or(|requires| requires.holds(&read))
    };
    skills.skills.iter().filter(may).collect()
}

/// The entries that the model may set now: those that are declared so, the one that the user is being asked for, and those that the block
/// has asked for before, which the user may correct.
pub(crate) fn settable<'s>(frame: &Frame, skill: &'s Skill) -> Vec<&'s MemoryEntry> {
    let asked: Vec<_> = walked(frame, skill).iter().filter_map(collected).collect();
    let may = |entry: &&MemoryEntry| entry.llm_settable || asked.contains(&entry.name.as_str());
    skill.memory.entries.iter().filter(may).collect()
}

/// The steps of the block that a frame is in, up to the one that it stands at.
fn walked<'s>(frame: &Frame, skill: &'s Skill) -> &'s [Step] {
    let block = frame.position.as_ref().and_then(|position| skill.block(&position.block));
    let steps = block.map_or(&[][..], |block| &block.steps);
    let at = step(frame, skill).and_then(|current| steps.iter().position(|step| step.id == current.id));
    at.map_or(&[][..], |at| &steps[..=at])
}

/// The entry that a step asks the user for.
fn collected(step: &Step) -> Option<&str> {
    if let StepKind::Collect { entry, .. } = &step.kind { Some(entry) } else { None }
}

/// The step that a block goes back to where one of the entries that it has asked for before is corrected: what came after rests on the old
/// value.
pub(crate) fn replayed_from<'s>(frame: &Frame, skill: &'s Skill, corrected: &[String]) -> Option<&'s Step> {
    let (_, before) = walked(frame, skill).split_last()?;
    before.iter().find(|step| collected(step).is_some_and(|entry| corrected.iter().any(|name| name == entry)))
}

/// The step that a frame stands at.
pub(crate) fn step<'s>(frame: &Frame, skill: &'s Skill) -> Option<&'s Step> {
    let position = frame.position.as_ref()?;
    skill.block(&position.block)?.step(position.step.as_deref()?)
}

fn overview(eligible: &[&Skill]) -> String {
    let mut text = "No skill is active. Activate the one that fits what the user wants:".to_owned();
    for skill in eligible {
        let _ = write!(text, "\n- {}: {}", skill.id, skill.description.trim());
    }
    if eligible.is_empty() { String::new() } else { text }
}

fn instructions(skills: &SkillSet, state: &State, frame: &Frame, skill: &Skill) -> String {
    let read = |namespace: &str, entry: &str| skills.read(state, namespace, entry);
    let is_personal = |namespace: &str, entry: &str| {
        skills.schema(namespace).and_then(|schema| schema.get(entry)).is_some_and(|entry| entry.pii)
    };
    let shown = |namespace: &str, entry: &str| {
        let value = read(namespace, entry).filter(|_| !is_personal(namespace, entry))?;
        Some(text_of_value(&value))
    };
    let holds = |part: &&Part| part.condition.as_ref().is_none_or(|condition| condition.holds(&read));
    let mut parts = vec![format!("The skill `{}` is active: {}", skill.id, skill.name)];
    parts.extend(skill.body.iter().filter(holds).map(|part| with_memory(&part.text, &shown)));
    if let Some(criteria) = skill.complete_when.as_ref().map(|when| &when.criteria).filter(|list| !list.is_empty()) {
        parts.push(format!("It is done when: {}", criteria.join("; ")));
    }
    match step(frame, skill).map(|step| &step.kind) {
        Some(StepKind::Instructions { text, .. }) => parts.push(format!("Now: {}", with_memory(text, &shown))),
        Some(StepKind::Collect { entry, .. }) => {
            let asked = frame.position.as_ref().is_some_and(|position| position.asked);
            let what = if asked { "The user has been asked for" } else { "Now ask the user for" };
            let about = skill.memory.get(entry).and_then(|entry| entry.description.clone());
            let about = about.map_or_else(String::new, |about| format!(" ({about})"));
            parts.push(format!("{what} `{entry}`{about}. When they tell it, call `set_fields`."));
        }
        _ => {}
    }
    let remembered: Vec<_> = skill
        .memory
        .entries
        .iter()
        .map(|entry| (skill.id.as_str(), entry))
        .chain(skills.project.entries.iter().map(|entry| (crate::skill::PROJECT, entry)))
        .filter(|(_, entry)| !entry.pii)
        .filter_map(|(namespace, entry)| {
            Some(format!("- {namespace}.{}: {}", entry.name, cut(&shown(namespace, &entry.name)?)))
        })
        .collect();
    if !remembered.is_empty() {
        parts.push(format!("What is known:\n{}", remembered.join("\n")));
    }
    parts.join("\n\n")
}

fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// `opens`: the active skill, where its instructions may lead to one of its blocks.
fn activation(eligible: &[&Skill], opens: Option<&Skill>) -> ToolSpec {
    let mut about = "Begin with a skill. One that is active waits until the new one is done.".to_owned();
    for skill in eligible {
        let _ = write!(about, "\n- {}: {}", skill.id, skill.description.trim());
    }
    let ids = eligible.iter().copied().chain(opens).map(|skill| skill.id.clone());
    let mut given = json!({"skill_id": {"type": "string", "enum": ids.collect::<Vec<_>>()}});
    if let Some(skill) = opens {
        let _ = write!(about, "\nWith `ordered_block`, go through a block of `{}`, as its instructions say:", skill.id);
        for block in &skill.blocks {
            let _ = write!(about, "\n- {}", block.id);
            if let Some(description) = block.description.as_ref().or(block.name.as_ref()) {
                let _ = write!(about, ": {}", description.trim());
            }
        }
        let blocks: Vec<_> = skill.blocks.iter().map(|block| block.id.clone()).collect();
        given["ordered_block"] = json!({"type": "string", "enum": blocks});
    }
    let mut spec = ToolSpec::new("activate_skill", about);
    parameters(&mut spec, given, json!(["skill_id"]));
    spec
}

fn confirmation() -> ToolSpec {
    let mut spec = ToolSpec::new("resolve_tool_confirmation", "The user has said whether the tool may run.");
    parameters(&mut spec, json!({"accepted": {"type": "boolean"}}), json!(["accepted"]));
    spec
}

fn fields(settable: &[&MemoryEntry]) -> ToolSpec {
    let mut spec = ToolSpec::new(
        "set_fields",
        "Keep what the user has told, and nothing that they have not. Null clears a field.",
    );
    let property = |entry: &&MemoryEntry| {
        let mut schema = schema_of(&entry.kind);
        if let Some(description) = &entry.description {
            schema.insert("description".into(), description.clone().into());
        }
        (entry.name.clone(), Value::Object(schema))
    };
    parameters(&mut spec, Value::Object(settable.iter().map(property).collect()), json!([]));
    spec
}

fn parameters(spec: &mut ToolSpec, properties: Value, required: Value) {
    spec.parameters.insert("properties".into(), properties);
    if required != json!([]) {
        spec.parameters.insert("required".into(), required);
    }
}

fn schema_of(kind: &MemoryKind) -> Object {
    let schema = match kind {
        MemoryKind::Text => json!({"type": ["string", "null"]}),
        MemoryKind::Bool => json!({"type": ["boolean", "null"]}),
        MemoryKind::Int => json!({"type": ["integer", "null"]}),
        MemoryKind::Float => json!({"type": ["number", "null"]}),
        MemoryKind::List => json!({"type": ["array", "null"], "items": {}}),
        MemoryKind::Categorical(values) => {
            let mut values = values.clone();
            values.push(Value::Null);
            json!({"enum": values})
        }
        MemoryKind::Json | MemoryKind::Any => json!({}),
    };
    if let Value::Object(schema) = schema { schema } else { Object::new() }
}
