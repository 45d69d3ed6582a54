//! A turn with skills: what the engine does before the model is asked, and what its own tools do. No hook sees any of the calls that the
//! engine makes here by itself.

use serde_json::{Value, json};

use super::offers::{AFTER_SETTING, Offered};
use super::responses::Response;
use super::run::{Turn, message, reminder};
use super::skills::{EngineTool, Pending, SkillSet, Stepped, eligible, settable};
use super::voice::FollowUp;
use crate::conversation::{Event, Object, as_messages};
use crate::hooks::TurnStatus;
use crate::skill::{ToolConstraint, Trigger};
use crate::step::{Asked, Call, Completion, complete};
use crate::telemetry::TURN;
use crate::tools::{Activation, Confirmed, ToolOutput};

/// How many steps the engine takes by itself before it is taken to go round in circles.
const STEPS: usize = 200;

/// What the second call of a batch reads that would move between skills.
const MOVED: &str = "Another call has moved to another skill already: look where the conversation stands now";

impl Turn<'_> {
    /// Does what is to be done without the model; a status: the turn is over.
    pub(super) async fn act_first(&self) -> Option<TurnStatus> {
        let skills = self.voice.engine.skills.as_deref()?;
        for _ in 0..STEPS {
            let next = skills.next(&self.voice.stand());
            match next {
                Stepped::Model => return None,
                Stepped::Happens(events) => self.enter(events).await,
                Stepped::Say { response } => {
                    self.voice.respond(&response).await;
                    self.step_done(skills).await;
                }
                Stepped::Ask { response } => {
                    self.voice.happens(Event::StepAsked);
                    if self.voice.respond(&response).await {
                        return Some(TurnStatus::Completed);
                    }
                }
                Stepped::Run { tool, arguments } => {
                    self.run_step(skills, &tool, arguments).await;
                    self.step_done(skills).await;
                    if let Some(status) = self.follow_up().await {
                        return Some(status);
                    }
                }
                Stepped::Write { values } => {
                    for (entry, value) in values {
                        if let Err(why) = self.voice.remember(&entry, &value) {
                            tracing::warn!(target: TURN, "A step does not set memory: {why}");
                        }
                    }
                    self.step_done(skills).await;
                    if let Some(status) = self.follow_up().await {
                        return Some(status);
                    }
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

    /// The step that was taken is done: where to go is chosen by memory as it is now.
    async fn step_done(&self, skills: &SkillSet) {
        let events = skills.done(&self.voice.stand());
        self.enter(events).await;
    }

    /// The model has answered the user: what follows of it without the model.
    pub(super) async fn answered(&self) -> TurnStatus {
        let Some(skills) = self.voice.engine.skills.as_deref() else { return TurnStatus::Completed };
        self.follow_up().await;
        let events = skills.answered(&self.voice.stand());
        if events.is_empty() {
            return TurnStatus::Completed;
        }
        self.enter(events).await;
        self.act_first().await.unwrap_or(TurnStatus::Completed)
    }

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

    /// What one of the engine's tools does.
    pub(super) async fn act(&self, tool: EngineTool, arguments: &Object) -> ToolOutput {
        let Some(skills) = self.voice.engine.skills.as_deref() else { return ToolOutput::error("There are no skills") };
        let active = self.voice.stand().top().map(|frame| frame.skill.clone());
        match (tool, active) {
            (EngineTool::Activate, _) => {
                let state = self.voice.stand();
                let id = arguments.get("skill_id").and_then(Value::as_str);
                let Some(skill) = eligible(skills, &state).into_iter().find(|skill| Some(skill.id.as_str()) == id)
                else {
                    return ToolOutput::error("`skill_id` names no skill that can be activated now");
                };
                if !self.voice.moves() {
                    return ToolOutput::error(MOVED);
                }
                self.voice.follow([FollowUp::Activate(Activation { skill_id: skill.id.clone(), ordered_block: None })]);
                ToolOutput::of(json!({"activated": skill.id}))
            }
            (EngineTool::Complete, Some(skill_id)) => {
                let state = self.voice.stand();
                let when = skills.skill(&skill_id).and_then(|skill| skill.complete_when.as_ref()?.condition.as_ref());
                let read = |namespace: &str, entry: &str| skills.read(&state, namespace, entry);
                if state.pending.is_some() || when.is_some_and(|condition| !condition.holds(&read)) {
                    return ToolOutput::error("The skill is not done yet");
                }
                if !self.voice.moves() {
                    return ToolOutput::error(MOVED);
                }
                self.voice.happens(Event::SkillCompleted { skill_id: skill_id.clone() });
                ToolOutput::of(json!({"completed": skill_id}))
            }
            (EngineTool::Cancel, Some(skill_id)) => {
                if !self.voice.moves() {
                    return ToolOutput::error(MOVED);
                }
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
            let state = self.voice.stand();
            let follow_ups = self.voice.follow_ups();
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
                    self.voice.forget_follow_ups(follow_ups);
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
        let output = self.run_tool(&**tool, Object::new(), Some(&skill)).await;
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
        let tool = self.voice.engine.toolbox.of_skill(&skill).into_iter().find(|tool| tool.spec().name == tool_name);
        let Some(tool) = tool.filter(|_| open) else {
            return ToolOutput::error(format!("`{tool_name}` cannot be called any more"));
        };
        let mut output = self.run_tool(&*tool, arguments.clone(), Some(&skill)).await;
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
        voice.begin_batch();
        let asks = skills.gate(&skill, name).is_some_and(|gate| gate.confirmation.is_some());
        let output = match (&tool, open) {
            (Some(_), true) if asks => {
                tracing::error!(target: TURN, tool = name, "A step cannot ask the user whether its tool may run");
                ToolOutput::error(format!("`{name}` was not called: the user has not been asked"))
            }
            (Some(tool), true) => self.run_tool(&**tool, call.arguments.clone(), Some(&skill)).await,
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

    /// Does what tools have left to be done after their batch, and what comes of that; a status: the turn is over. Skills begin before anything
    /// is said, so that a turn which is cancelled meanwhile stands where its results say.
    pub(super) async fn follow_up(&self) -> Option<TurnStatus> {
        let mut over = None;
        loop {
            let follow_ups = self.voice.take_follow_ups();
            if follow_ups.is_empty() {
                return over;
            }
            let (moves, says): (Vec<_>, Vec<_>) =
                follow_ups.into_iter().partition(|follow| matches!(follow, FollowUp::Activate(_)));
            let fills = !moves.is_empty();
            let begun = moves.into_iter().filter_map(|follow| self.begin(follow)).collect::<Vec<_>>().concat();
            for follow in says {
                match follow {
                    FollowUp::Say(response) => {
                        self.voice.respond(&response).await;
                    }
                    FollowUp::Ask(response) => {
                        if self.voice.respond(&response).await {
                            over = Some(TurnStatus::Completed);
                        }
                    }
                    FollowUp::Confirm(response) => {
                        over = Some(TurnStatus::Completed);
                        let pending = self.voice.stand().pending;
                        if !self.voice.respond(&response).await
                            && let Some(Pending { tool_name, .. }) = pending
                        {
                            // What the user was not asked they cannot answer.
                            self.voice.happens(Event::ConfirmationAnswered { tool_name, accepted: false });
                            over = None;
                        }
                    }
                    FollowUp::Activate(_) => unreachable!("they are done already"),
                }
            }
            for response in begun {
                self.voice.respond(&response).await;
            }
            if fills {
                self.fill().await;
            }
        }
    }

    /// A skill begins that a tool has asked for; the responses that are said then.
    fn begin(&self, follow: FollowUp) -> Option<Vec<String>> {
        let FollowUp::Activate(Activation { skill_id, ordered_block }) = follow else { return None };
        let skills = self.voice.engine.skills.as_deref()?;
        let has = |block: &str| skills.skill(&skill_id).is_some_and(|skill| skill.block(block).is_some());
        if skills.skill(&skill_id).is_none() || ordered_block.as_deref().is_some_and(|block| !has(block)) {
            tracing::error!(target: TURN, skill_id, ?ordered_block, "A tool activates what is not there");
            return None;
        }
        Some(self.happen(skills.entered(&skill_id, ordered_block.as_deref())))
    }

    /// These events happen; then what skills that begin say is said.
    async fn enter(&self, events: Vec<Event>) {
        for response in self.happen(events) {
            self.voice.respond(&response).await;
        }
    }

    /// These events happen; the responses that skills which begin say then.
    fn happen(&self, events: Vec<Event>) -> Vec<String> {
        let mut responses = Vec::new();
        for event in events {
            if let (Event::SkillActivated { skill_id }, Some(skills)) = (&event, &self.voice.engine.skills) {
                let utters = skills.skill(skill_id).into_iter().flat_map(|skill| &skill.utter);
                let said = utters.filter(|utter| utter.trigger == Trigger::Activation);
                responses.extend(said.map(|utter| utter.response.clone()));
            }
            self.voice.happens(event);
        }
        responses
    }

    /// A quiet call after an activation: the model keeps what the user has told already.
    async fn fill(&self) {
        let offers = self.offers();
        let fields = offers.tools.iter().map(Offered::spec).find(|spec| spec.name == "set_fields");
        let Some(fields) = fields else { return };
        let mut messages =
            vec![message("system", "Call `set_fields` with what the user has told already, or answer `nothing`.")];
        messages.extend(self.past.iter().cloned().chain(as_messages(&self.voice.kept().done)));
        messages.extend(reminder(&messages));
        let asked = Asked { messages, tools: vec![fields], iteration: 0 };
        let new_id = || self.voice.engine.new_id("call");
        let completion = complete(self.voice.hooked(), &*self.voice.engine.model, asked, None, &new_id).await;
        let Completion::Answered { calls, .. } = completion else { return };
        for call in calls.iter().filter(|call| call.tool_name == "set_fields" && call.broken.is_none()) {
            self.set_fields(&call.arguments).await;
        }
    }

    /// What is said after a tool by its gate.
    pub(super) fn said_after(&self, skill: Option<&str>, tool: &str, output: &ToolOutput) -> Option<String> {
        let gate = self.gate(skill, tool).filter(|_| !output.refused)?;
        let failed = output.is_error || output.value.get("error").is_some_and(|error| !error.is_null());
        if failed { gate.on_failure.clone() } else { gate.on_success.clone() }
    }

    fn gate(&self, skill: Option<&str>, tool: &str) -> Option<&ToolConstraint> {
        self.voice.engine.skills.as_deref()?.gate(skill?, tool)
    }

    fn leave_all(&self) {
        loop {
            let Some(skill_id) = self.voice.stand().top().map(|frame| frame.skill.clone()) else { return };
            self.voice.happens(Event::SkillCancelled { skill_id });
        }
    }
}
