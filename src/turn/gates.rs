//! Gates before tools: which batches are run call by call, what is held back, what the user's yes lets run.

use serde_json::{Value, json};

use super::offers::Offered;
use super::run::Turn;
use super::skills::{Pending, SkillSet};
use super::voice::FollowUp;
use crate::conversation::{Event, Object};
use crate::skill::ToolConstraint;
use crate::step::Call;
use crate::tools::{Confirmed, ToolOutput};

impl Turn<'_> {
    /// Whether a call of a batch has a gate or moves between skills, so that the batch is run one call after the other.
    pub(super) fn is_alone(&self, call: &Call, tools: &[Offered]) -> bool {
        match tools.iter().find(|tool| tool.spec().name == call.tool_name) {
            Some(Offered::Engine(..)) => true,
            Some(Offered::Own(_, skill)) => self.gate(skill.as_deref(), &call.tool_name).is_some(),
            _ => false,
        }
    }

    /// What is said of a call that the gate of its skill holds back; `None`: it may run.
    pub(super) fn held(&self, call: &Call, skill: Option<&str>) -> Option<ToolOutput> {
        let (skills, skill) = (self.voice.engine.skills.as_deref()?, skill?);
        let state = self.voice.stand();
        let name = &call.tool_name;
        if state.top().is_none_or(|frame| frame.skill != skill) {
            return Some(ToolOutput::error(format!("`{name}` was not called: its skill is not active any more")));
        }
        if !skills.is_open(&state, skill, name) {
            return Some(ToolOutput::error(format!(
                "`{name}` cannot be called yet: something that it requires is not known"
            )));
        }
        let confirmation = self.gate(Some(skill), name)?.confirmation.clone()?;
        if state.pending.is_some() {
            return Some(ToolOutput::error("Another call waits for the user's yes: settle that first"));
        }
        self.voice.happens(Event::ConfirmationAsked {
            skill_id: skill.to_owned(),
            tool_name: name.clone(),
            arguments: call.arguments.clone(),
        });
        self.voice.follow(confirmation.utter_for_confirmation.map(FollowUp::Confirm));
        Some(ToolOutput::of(json!({"status": "awaiting_confirmation"})))
    }

    /// The user has answered whether a tool may run.
    pub(super) async fn resolve(&self, skills: &SkillSet, arguments: &Object) -> ToolOutput {
        let Some(accepted) = arguments.get("accepted").and_then(Value::as_bool) else {
            return ToolOutput::error("`accepted` is to be true or false");
        };
        let Some(Pending { skill, tool_name, arguments, heard: true }) = self.voice.stand().pending else {
            return ToolOutput::error("No call waits for an answer that the user has given");
        };
        self.voice.happens(Event::ConfirmationAnswered { tool_name: tool_name.clone(), accepted });
        let gate = skills.gate(&skill, &tool_name);
        if !accepted {
            let denial = gate.and_then(|gate| gate.confirmation.as_ref()?.utter_on_user_denial.clone());
            self.voice.follow(denial.map(FollowUp::Ask));
            return ToolOutput::of(json!({"status": "declined", "tool": tool_name}));
        }
        let open = skills.is_open(&self.voice.stand(), &skill, &tool_name);
        let Some(tool) = self.tool_of(&skill, &tool_name).filter(|_| open) else {
            return ToolOutput::error(format!("`{tool_name}` cannot be called any more"));
        };
        let mut output = self.run_tool(&*tool, arguments.clone(), Some(&skill)).await;
        let mcp_server = tool.mcp_server().map(str::to_owned);
        output.confirmed = Some(Confirmed { tool_name, arguments, mcp_server });
        output
    }

    /// What is said after a tool by its gate.
    pub(super) fn said_after(&self, skill: Option<&str>, tool: &str, output: &ToolOutput) -> Option<String> {
        let gate = self.gate(skill, tool).filter(|_| !output.refused)?;
        let failed = output.is_error || output.value.get("error").is_some_and(|error| !error.is_null());
        if failed { gate.on_failure.clone() } else { gate.on_success.clone() }
    }

    pub(super) fn gate(&self, skill: Option<&str>, tool: &str) -> Option<&ToolConstraint> {
        self.voice.engine.skills.as_deref()?.gate(skill?, tool)
    }
}
