//! What a turn says: hooked, told to whoever listens, and kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::engine::Inner;
use super::event::TurnEvent;
use super::responses::{Rendered, Response};
use super::running::Cancel;
use super::skills::{State, Written};
use crate::conversation::{Event, Object, message};
use crate::hooks::Point;
use crate::step::{Asked, Completion, Hooked, Identity, Outgoing, Ran, Witness, complete, outgoing};
use crate::telemetry::TURN;
use crate::tools::{Activation, ToolContext, Utterance};

/// What a tool reads that writes to memory where there is none.
const NO_MEMORY: &str = "There is no memory: the agent has no skills";

/// What a turn has to keep. What is in `done` is whole at any time: a call never stands there without its result.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) done: Vec<Event>,
    /// What tools have said while a batch runs: it is kept after the batch, since a result has to follow its call.
    during: Vec<Event>,
    in_batch: bool,
    /// Buttons that the next text gets.
    buttons: Vec<Object>,
}

impl Kept {
    fn say(&mut self, event: Event) {
        if self.in_batch { self.during.push(event) } else { self.done.push(event) }
    }

    pub(super) fn begin_batch(&mut self) {
        self.in_batch = true;
    }

    /// A batch is over: its calls and results are kept, then what was said meanwhile.
    pub(super) fn end_batch(&mut self, events: Vec<Event>) {
        self.in_batch = false;
        self.done.extend(events);
        self.done.append(&mut self.during);
    }

    /// All that there is. Of a batch that was not over there is what was said, remembered and answered: its calls have not happened, and
    /// what they have moved neither.
    pub(super) fn take(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.done);
        let stays = |event: &Event| {
            matches!(
                event,
                Event::BotMessage { .. }
                    | Event::MemorySet { .. }
                    | Event::MemoryCleared { .. }
                    | Event::MemoryForgotten { .. }
                    | Event::ConfirmationAnswered { .. }
            )
        };
        let (in_batch, mut moved) = (self.in_batch, false);
        self.during.retain(|event| {
            // The step that a correction leads back to belongs to the value that stays, unless it is that of another skill by now.
            let keeps = stays(event) || (matches!(event, Event::StepEntered { .. }) && !moved);
            moved |= !keeps;
            !in_batch || keeps
        });
        events.append(&mut self.during);
        events
    }
}

/// What says things in one turn.
#[derive(Clone)]
pub(super) struct Voice {
    pub(super) engine: Arc<Inner>,
    pub(super) identity: Arc<Identity>,
    pub(super) kept: Arc<Mutex<Kept>>,
    pub(super) out: UnboundedSender<TurnEvent>,
    pub(super) cancel: Arc<Cancel>,
    pub(super) shows_changes: bool,
    /// Where the conversation stands, and what is to be done after a batch.
    pub(super) stand: Arc<Mutex<Stand>>,
}

/// Where the conversation stands in this turn.
#[derive(Debug, Default)]
pub(super) struct Stand {
    state: State,
    /// Where it stood before the turn; kept where debug assertions are.
    before: State,
    /// Skills that begin after the batch, the last of them first to be done.
    activations: Vec<Activation>,
    follow_ups: Vec<FollowUp>,
    /// A call of the batch has moved between skills.
    moved: bool,
}

impl Stand {
    /// Whether who reads these events of the turn comes to where the conversation stands.
    fn follows_from(&self, events: &[Event]) -> bool {
        let mut folded = self.before.clone();
        for event in events {
            folded.apply(event);
        }
        folded == self.state
    }
}

/// What is said after a batch.
#[derive(Debug)]
pub(super) enum FollowUp {
    /// A response is said.
    Say(String),
    /// A response is said, and the user's answer waited for.
    Ask(String),
    /// As `Ask`, of a call that waits for the user's yes.
    Confirm(String),
}

impl Voice {
    pub(super) fn hooked(&self) -> Hooked<'_> {
        Hooked { hooks: &*self.engine.hooks, identity: &self.identity, witness: self }
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the conversation stands: a copy, so that nobody holds the lock while something happens.
    pub(super) fn stand(&self) -> State {
        self.standing().state.clone()
    }

    /// The skill that is active.
    pub(super) fn active(&self) -> Option<String> {
        self.standing().state.top().map(|frame| frame.skill.clone())
    }

    fn standing(&self) -> MutexGuard<'_, Stand> {
        self.stand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has happened before the turn.
    pub(super) fn stands(&self, past: &[Event]) {
        let Some(skills) = &self.engine.skills else { return };
        let state = State::of(past);
        if cfg!(debug_assertions) {
            self.standing().before = state.clone();
        }
        self.standing().state = state;
        // Skills can have gone since.
        loop {
            let state = self.stand();
            let Some(frame) = state.frames.iter().find(|frame| skills.skill(&frame.skill).is_none()) else { break };
            let Some(top) = state.top() else { break };
            tracing::warn!(target: TURN, skill = frame.skill, "A skill that was active is not there any more");
            self.happens(Event::SkillCancelled { skill_id: top.skill.clone() });
        }
    }

    /// All that the turn has to keep, as [`Kept::take`] gives it.
    pub(super) fn take_kept(&self) -> Vec<Event> {
        let standing = self.standing();
        let mut kept = self.kept();
        let is_whole = !kept.in_batch;
        let events = kept.take();
        let follows = || self.engine.skills.is_none() || standing.follows_from(&events);
        debug_assert!(
            !is_whole || follows(),
            "the conversation stands elsewhere than its events say: {standing:?}, {events:?}"
        );
        events
    }

    pub(super) fn begin_batch(&self) {
        self.standing().moved = false;
        self.kept().begin_batch();
    }

    /// Whether a call of the batch may move between skills: one may.
    pub(super) fn moves(&self) -> bool {
        !std::mem::replace(&mut self.standing().moved, true)
    }

    /// How much is to be done after the batch.
    pub(super) fn follow_ups(&self) -> usize {
        self.standing().follow_ups.len()
    }

    /// What has been asked for since is not done.
    pub(super) fn forget_follow_ups(&self, from: usize) {
        self.standing().follow_ups.truncate(from);
    }

    /// Something happens that changes where the conversation stands.
    pub(super) fn happens(&self, event: Event) {
        // Both under one lock, so that what is kept has the order in which it happened.
        let mut standing = self.standing();
        standing.state.apply(&event);
        self.keep(event);
    }

    /// Keeps what changes where the conversation stands.
    fn keep(&self, event: Event) {
        if !matches!(event, Event::UserMessage { .. } | Event::SessionStarted) {
            self.tell(TurnEvent::Moved { to: event.clone() });
        }
        self.kept().say(event);
    }

    /// Skills begin after the batch: the first of them is the first to be done.
    pub(super) fn activate(&self, next: Vec<Activation>) {
        self.standing().activations.extend(next.into_iter().rev());
    }

    /// More is to be said after the batch.
    pub(super) fn follow(&self, more: impl IntoIterator<Item = FollowUp>) {
        self.standing().follow_ups.extend(more);
    }

    /// What is to be done after the batch.
    pub(super) fn take_follow_ups(&self) -> (Vec<Activation>, Vec<FollowUp>) {
        let mut standing = self.standing();
        (std::mem::take(&mut standing.activations), std::mem::take(&mut standing.follow_ups))
    }

    /// Writes an entry of memory.
    pub(super) fn remember(&self, entry: &str, value: &Value) -> Result<(), String> {
        let Some(skills) = &self.engine.skills else { return Err(NO_MEMORY.to_owned()) };
        let mut standing = self.standing();
        let Written { event, utters } = skills.write(&standing.state, entry, value)?;
        if let Some(event) = event {
            standing.state.apply(&event);
            self.keep(event);
        }
        standing.follow_ups.extend(utters.into_iter().map(FollowUp::Say));
        Ok(())
    }

    /// Memory is as it was before.
    pub(super) fn return_to(&self, before: &State) {
        let events = self.stand().back_to(before);
        for event in events {
            self.happens(event);
        }
    }

    /// Says a fixed response of the agent's; whether there was something to say.
    pub(super) async fn respond(&self, name: &str) -> bool {
        let values = self.engine.skills.as_ref().map(|skills| skills.values(&self.stand())).unwrap_or_default();
        let rendered = self.engine.responses.render(name, &values).filter(|rendered| !rendered.text.trim().is_empty());
        let Some(Rendered { mut text, buttons, rephrase }) = rendered else {
            tracing::warn!(target: TURN, response = name, "There is nothing to say: the response is not there, or blank");
            return false;
        };
        if rephrase {
            text = self.rephrased(&text).await;
        }
        self.say_as(Utterance { text, buttons, ..Utterance::default() }, Some(name)).await
    }

    /// Tells whoever listens; nobody may.
    pub(super) fn tell(&self, event: TurnEvent) {
        let _ = self.out.send(event);
    }

    /// Says a completed text of the model's or a tool's.
    pub(super) async fn say(&self, said: Utterance) {
        self.say_as(said, None).await;
    }

    /// Whether a hook has let it be said.
    async fn say_as(&self, mut said: Utterance, name: Option<&str>) -> bool {
        if said.buttons.is_empty() {
            said.buttons = std::mem::take(&mut self.kept().buttons);
        }
        match outgoing(self.hooked(), &said.text).await {
            Outgoing::Say(text) => {
                self.utter(Utterance { text, ..said }, name);
                true
            }
            Outgoing::Rejected { response } => {
                self.kept().say(bot_message(said, name.map(str::to_owned), true));
                self.fall_back(Response::OutgoingRejected, response).await;
                false
            }
        }
    }

    /// Says a fixed response of the engine's; no hook sees what is said because of a hook.
    pub(super) async fn fall_back(&self, response: Response, instead: Option<String>) {
        if let Some(text) = instead {
            self.utter(text.into(), Some(response.name()));
            return;
        }
        let built_in = || Rendered { text: response.text().to_owned(), ..Rendered::default() };
        let mut rendered = self.engine.responses.render(response.name(), &Object::new()).unwrap_or_else(built_in);
        if rendered.rephrase {
            rendered.text = self.rephrased(&rendered.text).await;
        }
        let Rendered { text, buttons, .. } = rendered;
        self.utter(Utterance { text, buttons, ..Utterance::default() }, Some(response.name()));
    }

    /// A text in the model's own words, or as it is where the model or a hook gives none.
    async fn rephrased(&self, text: &str) -> String {
        let messages = [
            (
                "system",
                "Put the assistant's message into other words. Keep its meaning and its language; answer with the new message alone.",
            ),
            ("user", text),
        ];
        let messages = messages.map(|(role, content)| message(role, content)).into();
        let asked = Asked { messages, tools: Vec::new(), iteration: 0 };
        let new_id = || self.engine.new_id("call");
        match complete(self.hooked(), &*self.engine.model, asked, None, &new_id).await {
            Completion::Answered { text: Some(other), .. } if !other.trim().is_empty() => other,
            _ => text.to_owned(),
        }
    }

    fn utter(&self, said: Utterance, response: Option<&str>) {
        let response = response.map(str::to_owned);
        self.kept().say(bot_message(said.clone(), response.clone(), false));
        let Utterance { text, buttons, metadata, streamed } = said;
        self.tell(TurnEvent::Message { text, response, buttons, metadata, streamed });
    }
}

fn bot_message(said: Utterance, response: Option<String>, discarded: bool) -> Event {
    let Utterance { text, buttons, metadata, .. } = said;
    Event::BotMessage { text, response, buttons, metadata, discarded }
}

impl Witness for Voice {
    fn hears_changes(&self) -> bool {
        self.shows_changes
    }

    fn records_content(&self) -> bool {
        self.engine.records_content
    }

    fn hook_ran(&self, ran: Ran) {
        let Ran { point, outcome, elapsed, changed } = ran;
        self.tell(TurnEvent::HookRan { point, outcome, elapsed, changed });
    }
}

impl ToolContext for Voice {
    fn sender_id(&self) -> &str {
        &self.identity.sender_id
    }

    fn send(&self, utterance: Utterance) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Nobody listens to what a cancelled tool says while it unwinds.
            if !self.cancel.is_asked() {
                self.say(utterance).await;
            }
        })
    }

    fn write(&self, piece: &str) {
        if !self.engine.hooks.modifies(Point::OutgoingText) && !self.cancel.is_asked() {
            self.tell(TurnEvent::Token { text: piece.to_owned() });
        }
    }

    fn set_buttons(&self, buttons: Vec<Object>) {
        self.kept().buttons = buttons;
    }

    fn recall(&self, entry: &str) -> Option<Value> {
        self.engine.skills.as_ref()?.recall(&self.stand(), entry)
    }

    fn remember(&self, entry: &str, value: Value) -> Result<(), String> {
        Self::remember(self, entry, &value)
    }

    fn events(&self) -> Vec<Event> {
        let past = self.engine.store.events(&self.identity.sender_id);
        let mut events = past.unwrap_or_else(|error| {
            tracing::error!(target: TURN, "A tool does not see the conversation: {error}");
            Vec::new()
        });
        let kept = self.kept();
        events.extend(kept.done.iter().chain(&kept.during).cloned());
        events
    }

    fn model(&self) -> String {
        self.engine.model.name().to_owned()
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_asked()
    }

    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.cancel.asked())
    }
}
