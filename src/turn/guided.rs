//! A turn with skills: what the engine does before the model is asked, and what its own tools do. No hook sees any of the calls that the
//! engine makes here by itself.

use serde_json::{Value, json};

use super::offers::AFTER_SETTING;
use super::responses::Response;
use super::run::{Turn, message};
use super::skills::{EngineTool, Pending, SkillSet, Stepped, settable};
use super::voice::FollowUp;
use crate::conversation::{Event, Object, as_messages};
use crate::hooks::TurnStatus;
use crate::skill::{ToolConstraint, Trigger};
use crate::step::{Asked, Call, Completion, complete};
use crate::telemetry::TURN;
use crate::tools::{Activation, Confirmed, ToolOutput};

/// How many steps the engine takes by itself before it is taken to go round in circles.
const STEPS: usize = 200;

impl Turn<'_> {
    /// Does what is to be done without the model; a status: the turn is over.
    pub(super) async fn act_first(&self) -> Option<TurnStatus> {
        let skills = self.voice.engine.skills.as_deref()?;
        for _ in 0..STEPS {
            let next = skills.next(&self.voice.stand());
            match next {
                Stepped::Model => return None,
                Stepped::Happens(events) => self.enter(events).await,
                Stepped::Say { response, then } => {
                    self.voice.respond(&response).await;
                    self.enter(then).await;
                }
                Stepped::Ask { response } => {
                    self.voice.happens(Event::StepAsked);
                    if self.voice.respond(&response).await {
                        return Some(TurnStatus::Completed);
                    }
                }
                Stepped::Run { tool, arguments, then } => {
                    self.run_step(skills, &tool, arguments).await;
                    self.enter(then).await;
                    if let Some(status) = self.follow_up().await {
                        return Some(status);
                    }
                }
                Stepped::Write { values, then } => {
                    for (entry, value) in values {
                        if let Err(why) = self.voice.remember(&entry, &value) {
                            tracing::warn!(target: TURN, "A step does not set memory: {why}");
                        }
                    }
                    self.enter(then).await;
                }
                Stepped::TooDeep => {
                    tracing::error!(target: TURN, "Skills call each other without an end");
                    self.leave_all();
                    return Some(self.fails(Response::GenericFailure).await);
                }
            }
        }
        tracing::error!(target: TURN, "The steps of a block go round in circles");
        self.leave_all();
        Some(self.fails(Response::GenericFailure).await)
    }

    /// The model has answered the user: what follows of it without the model.
    pub(super) async fn answered(&self) -> TurnStatus {
        let Some(skills) = self.voice.engine.skills.as_deref() else { return TurnStatus::Completed };
        let events = skills.answered(&self.voice.stand());
        if events.is_empty() {
            return TurnStatus::Completed;
        }
        self.enter(events).await;
        self.act_first().await.unwrap_or(TurnStatus::Completed)
    }

    /// Whether a call of a batch has a gate, so that the batch is run one call after the other.
    pub(super) fn is_gated(&self, call: &Call) -> bool {
        self.gate(&call.tool_name).is_some()
    }

    /// What is said of a call that its gate holds back; `None`: it may run.
    pub(super) fn held(&self, call: &Call) -> Option<ToolOutput> {
        let skills = self.voice.engine.skills.as_deref()?;
        let state = self.voice.stand().clone();
        let skill = state.top()?.skill.clone();
        let name = &call.tool_name;
        if !skills.is_open(&state, &skill, name) {
            return Some(ToolOutput::error(format!(
                "`{name}` cannot be called yet: something that it requires is not known"
            )));
        }
        let confirmation = self.gate(name)?.confirmation.clone()?;
        if state.pending.is_some() {
            return Some(ToolOutput::error("Another call waits for the user's yes: settle that first"));
        }
        self.voice.happens(Event::ConfirmationAsked {
            skill_id: skill,
            tool_name: name.clone(),
            arguments: call.arguments.clone(),
        });
        self.voice.follow(confirmation.utter_for_confirmation.map(FollowUp::Ask));
        Some(ToolOutput::of(json!({"status": "awaiting_confirmation"})))
    }

    /// What one of the engine's tools does.
    pub(super) async fn act(&self, tool: EngineTool, arguments: &Object) -> ToolOutput {
        let Some(skills) = self.voice.engine.skills.as_deref() else { return ToolOutput::error("There are no skills") };
        let active = self.voice.stand().top().map(|frame| frame.skill.clone());
        match (tool, active) {
            (EngineTool::Activate, _) => {
                let Some(skill) = arguments.get("skill_id").and_then(Value::as_str).and_then(|id| skills.skill(id))
                else {
                    return ToolOutput::error("`skill_id` names no skill that can be activated");
                };
                self.voice.follow([FollowUp::Activate(Activation { skill_id: skill.id.clone(), ordered_block: None })]);
                self.voice.follow([FollowUp::Fill]);
                ToolOutput::of(json!({"activated": skill.id}))
            }
            (EngineTool::Complete, Some(skill_id)) => {
                self.voice.happens(Event::SkillCompleted { skill_id: skill_id.clone() });
                ToolOutput::of(json!({"completed": skill_id}))
            }
            (EngineTool::Cancel, Some(skill_id)) => {
                self.voice.happens(Event::SkillCancelled { skill_id: skill_id.clone() });
                ToolOutput::of(json!({"cancelled": skill_id}))
            }
            (EngineTool::CannotHelp, _) => ToolOutput::of("Tell the user that you cannot help with this."),
            (EngineTool::SetFields, Some(_)) => self.set_fields(arguments).await,
            (EngineTool::ResolveConfirmation, _) => self.resolve(skills, arguments).await,
            (EngineTool::Complete | EngineTool::Cancel | EngineTool::SetFields, None) => {
                ToolOutput::error("No skill is active")
            }
        }
    }

    /// Keeps what the model was told; each field that is refused is told of, and the others are kept.
    async fn set_fields(&self, arguments: &Object) -> ToolOutput {
        let Some(skills) = self.voice.engine.skills.as_deref() else { return ToolOutput::error("There are no skills") };
        let (mut set, mut refused) = (Vec::new(), Object::new());
        for (name, value) in arguments {
            let state = self.voice.stand().clone();
            let may = state.top().and_then(|frame| {
                Some(settable(frame, skills.skill(&frame.skill)?).iter().any(|entry| entry.name == *name))
            });
            let written = match may {
                Some(true) => self.voice.remember(name, value),
                _ => Err(format!("`{name}` is no field that can be set now")),
            };
            let checked = match written {
                Ok(()) => self.after_setting(name).await,
                Err(why) => Err(why.into()),
            };
            match checked {
                Ok(()) => set.push(name.clone()),
                Err(why) => {
                    self.voice.return_to(&state);
                    refused.insert(name.clone(), why);
                }
            }
        }
        let is_error = set.is_empty() && !refused.is_empty();
        let value = if refused.is_empty() { json!({"set": set}) } else { json!({"set": set, "refused": refused}) };
        ToolOutput { is_error, ..ToolOutput::of(value) }
    }

    /// Has the skill's own tool look at what was written; an error: it is taken back.
    async fn after_setting(&self, entry: &str) -> Result<(), Value> {
        let Some(skill) = self.voice.stand().top().map(|frame| frame.skill.clone()) else { return Ok(()) };
        let name = format!("{AFTER_SETTING}{entry}");
        let tools = self.voice.engine.toolbox.of_skill(&skill);
        let Some(tool) = tools.iter().find(|tool| tool.spec().name == name) else { return Ok(()) };
        let output = self.run_tool(&**tool, Object::new()).await;
        match output.value.get("error") {
            Some(why) if !why.is_null() => Err(why.clone()),
            _ if output.is_error => Err(output.value),
            _ => Ok(()),
        }
    }

    /// The user has answered whether a tool may run.
    async fn resolve(&self, skills: &SkillSet, arguments: &Object) -> ToolOutput {
        let Some(accepted) = arguments.get("accepted").and_then(Value::as_bool) else {
            return ToolOutput::error("`accepted` is to be true or false");
        };
        let Some(Pending { skill, tool_name, arguments }) = self.voice.stand().pending.clone() else {
            return ToolOutput::error("No call waits for the user's yes");
        };
        self.voice.happens(Event::ConfirmationAnswered { tool_name: tool_name.clone(), accepted });
        let gate = skills.gate(&skill, &tool_name);
        if !accepted {
            let denial = gate.and_then(|gate| gate.confirmation.as_ref()?.utter_on_user_denial.clone());
            self.voice.follow(denial.map(FollowUp::Ask));
            return ToolOutput::of(json!({"status": "declined", "tool": tool_name}));
        }
        let open = skills.is_open(&self.voice.stand(), &skill, &tool_name);
        let tool = self.voice.engine.toolbox.of_skill(&skill).into_iter().find(|tool| tool.spec().name == tool_name);
        let Some(tool) = tool.filter(|_| open) else {
            return ToolOutput::error(format!("`{tool_name}` cannot be called any more"));
        };
        let mut output = self.run_tool(&*tool, arguments.clone()).await;
        let mcp_server = tool.mcp_server().map(str::to_owned);
        output.confirmed = Some(Confirmed { tool_name, arguments, mcp_server });
        output
    }

    /// A step that calls a tool.
    async fn run_step(&self, skills: &SkillSet, name: &str, arguments: Object) {
        let voice = self.voice;
        let Some(skill) = voice.stand().top().map(|frame| frame.skill.clone()) else { return };
        let open = skills.is_open(&voice.stand(), &skill, name);
        let tool = voice.engine.toolbox.of_skill(&skill).into_iter().find(|tool| tool.spec().name == name);
        let id = voice.engine.new_id("call");
        let call = Call { id, kind: Some("function".into()), tool_name: name.into(), arguments, broken: None };
        voice.kept().begin_batch();
        let output = match (&tool, open) {
            (Some(tool), true) => self.run_tool(&**tool, call.arguments.clone()).await,
            (Some(_), false) => {
                ToolOutput::error(format!("`{name}` was not called: something that it requires is not known"))
            }
            (None, _) => ToolOutput::error(format!("There is no tool `{name}`")),
        };
        let asked = Event::ToolCalls { calls: vec![call.as_object().into()] };
        let executed = Event::ToolExecuted {
            id: call.id,
            tool_name: call.tool_name,
            arguments: call.arguments,
            value: output.text().into(),
            is_error: output.is_error,
            source: tool.as_ref().map_or("local", |tool| tool.source().name()).to_owned(),
            mcp_server: tool.and_then(|tool| tool.mcp_server().map(str::to_owned)),
        };
        voice.kept().end_batch(vec![asked, executed]);
        voice.follow(output.next.into_iter().rev().map(FollowUp::Activate));
    }

    /// Does what tools have left to be done after their batch; a status: the turn is over.
    pub(super) async fn follow_up(&self) -> Option<TurnStatus> {
        let mut over = None;
        for follow in self.voice.take_follow_ups() {
            match follow {
                FollowUp::Say(response) => {
                    self.voice.respond(&response).await;
                }
                FollowUp::Ask(response) => {
                    if self.voice.respond(&response).await {
                        over = Some(TurnStatus::Completed);
                    }
                }
                FollowUp::Activate(Activation { skill_id, ordered_block }) => {
                    let Some(skills) = self.voice.engine.skills.as_deref() else { continue };
                    let there = skills
                        .skill(&skill_id)
                        .filter(|skill| ordered_block.as_deref().is_none_or(|block| skill.block(block).is_some()));
                    if there.is_none() {
                        tracing::error!(target: TURN, skill_id, ?ordered_block, "A tool activates what is not there");
                        continue;
                    }
                    let events = skills.entered(&skill_id, ordered_block.as_deref());
                    self.enter(events).await;
                }
                FollowUp::Fill => self.fill().await,
            }
        }
        over
    }

    /// These events happen; a skill that begins says what it says then.
    async fn enter(&self, events: Vec<Event>) {
        for event in events {
            let begins = if let Event::SkillActivated { skill_id } = &event { Some(skill_id.clone()) } else { None };
            self.voice.happens(event);
            let Some(skill) = begins.and_then(|id| self.voice.engine.skills.as_deref()?.skill(&id)) else { continue };
            for utter in skill.utter.iter().filter(|utter| utter.trigger == Trigger::Activation) {
                self.voice.respond(&utter.response).await;
            }
        }
    }

    /// A quiet call after an activation: the model keeps what the user has told already.
    async fn fill(&self) {
        let offers = self.offers();
        let fields = offers.tools.iter().map(super::offers::Offered::spec).find(|spec| spec.name == "set_fields");
        let Some(fields) = fields else { return };
        let mut messages =
            vec![message("system", "Call `set_fields` with what the user has told already, or answer `nothing`.")];
        messages.extend(as_messages(&self.voice.kept().done));
        let asked = Asked { messages, tools: vec![fields], iteration: 0 };
        let new_id = || self.voice.engine.new_id("call");
        let completion = complete(self.voice.hooked(), &*self.voice.engine.model, asked, None, &new_id).await;
        let Completion::Answered { calls, .. } = completion else { return };
        for call in calls.iter().filter(|call| call.tool_name == "set_fields" && call.broken.is_none()) {
            self.set_fields(&call.arguments).await;
        }
    }

    /// What is said after a tool by its gate.
    pub(super) fn said_after(&self, tool: &str, output: &ToolOutput) -> Option<String> {
        let gate = self.gate(tool)?;
        let failed = output.is_error || output.value.get("error").is_some_and(|error| !error.is_null());
        if failed { gate.on_failure.clone() } else { gate.on_success.clone() }
    }

    fn gate(&self, tool: &str) -> Option<&ToolConstraint> {
        let skill = self.voice.stand().top()?.skill.clone();
        self.voice.engine.skills.as_deref()?.gate(&skill, tool)
    }

    fn leave_all(&self) {
        loop {
            let Some(skill_id) = self.voice.stand().top().map(|frame| frame.skill.clone()) else { return };
            self.voice.happens(Event::SkillCancelled { skill_id });
        }
    }
}
