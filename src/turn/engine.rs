//! The turn engine and what it is made of.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc::unbounded_channel;

use super::event::TurnEvent;
use super::input::TurnInput;
use super::lifecycle::{self, Lifecycle, LifecycleEvent, LifecycleStream, Look, look, millis_of};
use super::offers::AFTER_SETTING;
use super::responses::{FixedResponses, Responses};
use super::run;
use super::running::Turns;
use super::skills::SkillSet;
use super::store::{ConversationStore, MemoryStore, StoreError};
use crate::step::{EventStream, Hooks, Identity, Knowledge, Model, NoHooks, NoKnowledge};
use crate::tools::{NoTools, Tool, ToolSpec, Toolbox};

/// How often the model is asked in one turn unless the agent says otherwise.
const MAX_ITERATIONS: u64 = 10;

/// The events of a turn.
pub type TurnStream = EventStream<TurnEvent>;

/// Makes the system prompt of a turn.
pub(super) type Prompt = Arc<dyn Fn(&Identity) -> String + Send + Sync>;

/// Runs turns: from the user's text to the reply. Cheap to clone; every clone is the same engine.
///
/// It runs on whatever runtime polls its streams, as far as the model and the tools can do so.
#[derive(Clone)]
pub struct TurnEngine(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) hooks: Arc<dyn Hooks>,
    pub(super) model: Arc<dyn Model>,
    pub(super) toolbox: Arc<dyn Toolbox>,
    pub(super) knowledge: Arc<dyn Knowledge>,
    pub(super) store: Arc<dyn ConversationStore>,
    pub(super) skills: Option<Arc<SkillSet>>,
    pub(super) responses: Arc<dyn Responses>,
    pub(super) prompt: Prompt,
    pub(super) name: String,
    pub(super) records_content: bool,
    pub(super) max_iterations: u64,
    pub(super) max_prompt_tokens: Option<usize>,
    pub(super) session_limit: Option<Duration>,
    pub(super) lifecycle: Lifecycle,
    pub(super) turns: Turns,
    ids: AtomicU64,
    hasher: RandomState,
}

impl TurnEngine {
    /// An engine that asks `model`, and nothing else yet.
    pub fn builder(model: impl Model + 'static) -> TurnEngineBuilder {
        TurnEngineBuilder::new(Arc::new(model))
    }

    /// Runs a turn. It waits for a turn of the same conversation that runs, or cancels it where the input says so.
    pub fn turn(&self, input: TurnInput) -> TurnStream {
        let (out, events) = unbounded_channel();
        TurnStream::new(Box::pin(run::run(Arc::clone(&self.0), input, out)), events)
    }

    /// The agent's own tools by the skill that offers them, in the order of the skills; of an agent without skills they belong to none.
    pub fn tools(&self) -> Vec<(Option<String>, Vec<Arc<ToolSpec>>)> {
        let specs = |tools: Vec<Arc<dyn Tool>>| {
            let seen =
                tools.iter().map(|tool| Arc::clone(tool.spec())).filter(|spec| !spec.name.starts_with(AFTER_SETTING));
            seen.collect()
        };
        match &self.0.skills {
            None => vec![(None, specs(self.0.toolbox.offered()))],
            Some(set) => {
                let of = |id: &String| (Some(id.clone()), specs(self.0.toolbox.of_skill(id)));
                set.skills.iter().map(|skill| of(&skill.id)).collect()
            }
        }
    }

    /// The model that it asks.
    pub(crate) fn model(&self) -> Arc<dyn Model> {
        Arc::clone(&self.0.model)
    }

    /// Cancels the turn of a conversation that runs; the answer is whether one does.
    pub fn interrupt(&self, sender_id: &str) -> bool {
        self.0.turns.cancel(sender_id)
    }

    /// What happens to conversations in which nobody says anything, as it falls due; see [`Lifecycle`].
    ///
    /// Who reacts may say something to the user, or run a turn whose text is `/nudge` or `/expire`: such a turn counts as none of the
    /// user's, so that the conversation rests on. Of several engines and streams over one store, one tells each event.
    pub fn lifecycle(&self) -> LifecycleStream {
        lifecycle::stream(Arc::clone(&self.0))
    }

    /// What is due at `now` and has not been told: the longest due, marked as told; for who keeps a clock of their own. To be called until
    /// there is none.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written to, or knows no lifecycle.
    pub fn due(&self, now: SystemTime) -> Result<Option<LifecycleEvent>, StoreError> {
        match look(&self.0, millis_of(now))? {
            Look::Told(event) => Ok(Some(event)),
            Look::Later(_) => Ok(None),
        }
    }
}

impl Inner {
    /// An id that no other has: of a turn, of a call.
    pub(super) fn new_id(&self, kind: &str) -> String {
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        format!("{kind}_{:016x}{number:08x}", self.hasher.hash_one(number))
    }
}

/// Settings of a [`TurnEngine`].
#[must_use]
pub struct TurnEngineBuilder(Inner);

impl TurnEngineBuilder {
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        Self(Inner {
            hooks: Arc::new(NoHooks),
            model,
            toolbox: Arc::new(NoTools),
            knowledge: Arc::new(NoKnowledge),
            store: Arc::new(MemoryStore::default()),
            skills: None,
            responses: Arc::new(FixedResponses),
            prompt: Arc::new(|_| "You are a helpful assistant.".to_owned()),
            name: "agent".to_owned(),
            records_content: false,
            max_iterations: MAX_ITERATIONS,
            max_prompt_tokens: None,
            session_limit: None,
            lifecycle: Lifecycle::default(),
            turns: Turns::default(),
            ids: AtomicU64::new(0),
            hasher: RandomState::new(),
        })
    }

    /// The hooks; none.
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.0.hooks = hooks;
        self
    }

    /// The tools; none.
    pub fn toolbox(mut self, toolbox: impl Toolbox + 'static) -> Self {
        self.0.toolbox = Arc::new(toolbox);
        self
    }

    /// The skills; none: all tools are offered at any time.
    pub(crate) fn skills(mut self, skills: SkillSet) -> Self {
        self.0.skills = Some(Arc::new(skills));
        self
    }

    /// The references; none.
    pub fn knowledge(mut self, knowledge: impl Knowledge + 'static) -> Self {
        self.0.knowledge = Arc::new(knowledge);
        self
    }

    /// Where conversations are kept; in memory, as long as the engine lives.
    pub fn store(mut self, store: impl ConversationStore + 'static) -> Self {
        self.0.store = Arc::new(store);
        self
    }

    /// What is said in fixed words; the engine's own responses.
    pub fn responses(mut self, responses: impl Responses + 'static) -> Self {
        self.0.responses = Arc::new(responses);
        self
    }

    /// Makes the system prompt of each turn.
    pub fn prompt(mut self, prompt: impl Fn(&Identity) -> String + Send + Sync + 'static) -> Self {
        self.0.prompt = Arc::new(prompt);
        self
    }

    /// The agent's name in spans; `agent`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.0.name = name.into();
        self
    }

    /// Whether spans show what was asked and answered, as hooks have left it; they do not.
    pub fn record_content(mut self, records: bool) -> Self {
        self.0.records_content = records;
        self
    }

    /// How often the model may be asked in one turn; 10.
    pub fn max_iterations(mut self, iterations: u64) -> Self {
        self.0.max_iterations = iterations;
        self
    }

    /// About how many tokens a request may have; the oldest exchanges are left out where it would have more. No limit.
    pub fn max_prompt_tokens(mut self, tokens: Option<usize>) -> Self {
        self.0.max_prompt_tokens = tokens;
        self
    }

    /// How long a conversation may rest before the next turn begins a new session, in which the model is not shown what was said before.
    /// No limit.
    pub fn session_limit(mut self, limit: Option<Duration>) -> Self {
        self.0.session_limit = limit;
        self
    }

    /// When conversations in which nobody says anything are told of ([`TurnEngine::lifecycle`]); never.
    pub fn lifecycle(mut self, lifecycle: Lifecycle) -> Self {
        self.0.lifecycle = lifecycle;
        self
    }

    /// The engine.
    pub fn build(self) -> TurnEngine {
        TurnEngine(Arc::new(self.0))
    }
}

impl fmt::Debug for TurnEngine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TurnEngine").field("model", &self.0.model.name()).finish_non_exhaustive()
    }
}

impl fmt::Debug for TurnEngineBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TurnEngineBuilder").field("model", &self.0.model.name()).finish_non_exhaustive()
    }
}
