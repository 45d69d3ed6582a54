//! A turn with skills: what the engine does before the model is asked, and what its own tools do. No hook sees any of the calls that the
//! engine makes here by itself.

use serde_json::{Value, json};

use super::responses::Response;
use super::run::Turn;
use super::skills::{EngineTool, Pending, SESSION_SKILL, SkillSet, State, Stepped, eligible};
use super::voice::FollowUp;
use crate::conversation::{Event, Object};
use crate::hooks::TurnStatus;
use crate::skill::Trigger;
use crate::step::Call;
use crate::telemetry::TURN;
use crate::tools::{Activation, ToolOutput};

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
                    let said = self.voice.respond(&response).await;
                    self.voice.happens(Event::StepAsked);
                    if said {
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

    /// A session begins: so does the skill that is there for it. `opened`: the channel has opened the conversation, and the user has said
    /// nothing that the model is to answer. A status: the turn is over.
    pub(super) async fn begin_session(&self, opened: bool) -> Option<TurnStatus> {
        let skills = self.voice.engine.skills.as_deref()?;
        skills.skill(SESSION_SKILL)?;
        self.enter(skills.entered(SESSION_SKILL, None)).await;
        let over = self.act_first().await;
        over.or_else(|| (opened && self.voice.active().is_none()).then_some(TurnStatus::Completed))
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
        let mut events = skills.answered(&self.voice.stand());
        if events.is_empty() {
            events.extend(self.judged(skills).await);
        }
        if events.is_empty() {
            return TurnStatus::Completed;
        }
        self.enter(events).await;
        self.act_first().await.unwrap_or(TurnStatus::Completed)
    }

    /// What one of the engine's tools does.
    pub(super) async fn act(&self, tool: EngineTool, arguments: &Object) -> ToolOutput {
        let Some(skills) = self.voice.engine.skills.as_deref() else { return ToolOutput::error("There are no skills") };
        match (tool, self.voice.active()) {
            (EngineTool::Activate, _) => {
                let state = self.voice.stand();
                if state.pending.is_some() {
                    return ToolOutput::error("A call waits for the user's yes: settle that first");
                }
                let id = arguments.get("skill_id").and_then(Value::as_str);
                if let Some(block) = arguments.get("ordered_block").and_then(Value::as_str) {
                    return self.open_block(skills, &state, id, block);
                }
                let Some(skill) = eligible(skills, &state).into_iter().find(|skill| Some(skill.id.as_str()) == id)
                else {
                    return ToolOutput::error("`skill_id` names no skill that can be activated now");
                };
                if !self.voice.moves() {
                    return ToolOutput::error(MOVED);
                }
                self.voice.activate(vec![Activation { skill_id: skill.id.clone(), ordered_block: None }]);
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

    /// The model goes through a block of the skill that is active, as its instructions say.
    fn open_block(&self, skills: &SkillSet, state: &State, id: Option<&str>, block: &str) -> ToolOutput {
        let active = state.top().filter(|frame| frame.position.is_none() && Some(frame.skill.as_str()) == id);
        let skill = active.and_then(|frame| skills.skill(&frame.skill));
        let Some(skill) = skill.filter(|skill| skill.block(block).is_some()) else {
            return ToolOutput::error("`ordered_block` names no block of the skill that is active");
        };
        if !self.voice.moves() {
            return ToolOutput::error(MOVED);
        }
        let (skill_id, ordered_block) = (skill.id.clone(), Some(block.to_owned()));
        self.voice.activate(vec![Activation { skill_id, ordered_block }]);
        ToolOutput::of(json!({"entered": block}))
    }

    /// A step that calls a tool.
    async fn run_step(&self, skills: &SkillSet, name: &str, arguments: Object) {
        let voice = self.voice;
        let Some(skill) = voice.active() else { return };
        let open = skills.is_open(&voice.stand(), &skill, name);
        let tool = self.tool_of(&skill, name);
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
        voice.activate(output.next);
    }

    /// Does what tools have left to be done after their batch, and what comes of that; a status: the turn is over. Skills begin before anything
    /// is said, so that a turn which is cancelled meanwhile stands where its results say.
    pub(super) async fn follow_up(&self) -> Option<TurnStatus> {
        let mut over = None;
        loop {
            let (mut activations, follow_ups) = self.voice.take_follow_ups();
            if activations.is_empty() && follow_ups.is_empty() {
                return over;
            }
            activations.dedup();
            let fills = !activations.is_empty();
            let begun: Vec<_> = activations.into_iter().flat_map(|activation| self.begin(activation)).collect();
            for follow in follow_ups {
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
                        // The skill can have been given up in the same batch.
                        let Some(Pending { tool_name, .. }) = self.voice.stand().pending else { continue };
                        if self.voice.respond(&response).await {
                            over = Some(TurnStatus::Completed);
                        } else {
                            // What the user was not asked they cannot answer.
                            self.voice.happens(Event::ConfirmationAnswered { tool_name, accepted: false });
                        }
                    }
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
    fn begin(&self, Activation { skill_id, ordered_block }: Activation) -> Vec<String> {
        let Some(skills) = self.voice.engine.skills.as_deref() else { return Vec::new() };
        if self.voice.stand().pending.is_some() {
            tracing::error!(target: TURN, skill_id, "A tool activates a skill while another call waits for the user's yes");
            return Vec::new();
        }
        let has = |block: &str| skills.skill(&skill_id).is_some_and(|skill| skill.block(block).is_some());
        if skills.skill(&skill_id).is_none() || ordered_block.as_deref().is_some_and(|block| !has(block)) {
            tracing::error!(target: TURN, skill_id, ?ordered_block, "A tool activates what is not there");
            return Vec::new();
        }
        self.happen(skills.entered(&skill_id, ordered_block.as_deref()))
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

    fn leave_all(&self) {
        while let Some(skill_id) = self.voice.active() {
            self.voice.happens(Event::SkillCancelled { skill_id });
        }
    }
}
