//! What the model is offered in an iteration.

use std::sync::{Arc, LazyLock};

use serde_json::json;

use super::run::Turn;
use super::skills::{EngineTool, Focus, State, focus};
use crate::step::SEARCH;
use crate::tools::{Tool, ToolSource, ToolSpec};

/// The engine tool by which the model says that it only waits for the user.
pub(super) const LISTEN: &str = "listen";

/// What a tool is called that the engine calls after a write: the model never sees it.
pub(super) const AFTER_SETTING: &str = "run_after_setting_";

/// A tool as the model is offered it.
pub(super) enum Offered {
    Search(Arc<ToolSpec>),
    Listen(Arc<ToolSpec>),
    /// One that moves between skills.
    Engine(EngineTool, Arc<ToolSpec>),
    /// One of the agent's, and the skill that it is offered for.
    Own(Arc<dyn Tool>, Option<String>),
}

/// What the model is offered, and told below the system prompt.
pub(super) struct Offers {
    pub(super) tools: Vec<Offered>,
    pub(super) prompt: String,
}

impl Offered {
    pub(super) fn spec(&self) -> Arc<ToolSpec> {
        match self {
            Self::Search(spec) | Self::Listen(spec) | Self::Engine(_, spec) => Arc::clone(spec),
            Self::Own(tool, _) => Arc::clone(tool.spec()),
        }
    }

    /// Where it is from, and from which server.
    pub(super) fn source(&self) -> (ToolSource, Option<String>) {
        match self {
            Self::Own(tool, _) => (tool.source(), tool.mcp_server().map(str::to_owned)),
            Self::Search(_) | Self::Listen(_) | Self::Engine(..) => (ToolSource::Engine, None),
        }
    }
}

impl Turn<'_> {
    /// What is offered now. After a search the agent's own tools are withheld: the model is to answer.
    pub(super) fn offers(&self) -> Offers {
        let (engine, state) = (&self.voice.engine, self.voice.stand());
        let searches = engine.knowledge.is_there();
        let focus = match &engine.skills {
            Some(skills) => focus(skills, &state, searches && !self.latched),
            None => Focus::default(),
        };
        let search = searches.then(|| Offered::Search(Arc::clone(&SEARCH_SPEC)));
        let own = if self.latched { Vec::new() } else { self.own(&state) };
        let engines = focus.tools.into_iter().map(|(tool, spec)| Offered::Engine(tool, spec));
        let listen = Offered::Listen(Arc::clone(&LISTEN_SPEC));
        let skill = state.top().map(|frame| frame.skill.clone());
        let own = own.into_iter().map(|tool| Offered::Own(tool, skill.clone()));
        let tools = search.into_iter().chain(own).chain(engines).chain([listen]).collect();
        Offers { tools, prompt: focus.prompt }
    }

    /// The agent's own tools that are open now: those of the active skill, where there are skills.
    fn own(&self, state: &State) -> Vec<Arc<dyn Tool>> {
        let engine = &self.voice.engine;
        let Some(skills) = &engine.skills else { return engine.toolbox.offered() };
        let Some(frame) = state.top().filter(|_| state.pending.is_none()) else { return Vec::new() };
        let open = |tool: &Arc<dyn Tool>| {
            let name = &tool.spec().name;
            !name.starts_with(AFTER_SETTING) && skills.is_open(state, &frame.skill, name)
        };
        let mut tools = engine.toolbox.of_skill(&frame.skill);
        tools.retain(open);
        tools
    }

    /// A tool of a skill, by its name, whether it is open or not.
    pub(super) fn tool_of(&self, skill: &str, name: &str) -> Option<Arc<dyn Tool>> {
        self.voice.engine.toolbox.of_skill(skill).into_iter().find(|tool| tool.spec().name == name)
    }
}

/// Made once: a turn offers them at each iteration.
static LISTEN_SPEC: LazyLock<Arc<ToolSpec>> =
    LazyLock::new(|| Arc::new(ToolSpec::new(LISTEN, "Say nothing and wait for the user's next message.")));

static SEARCH_SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    let mut spec = ToolSpec::new(SEARCH, "Search the references for passages that answer the user's question.");
    spec.parameters.insert("properties".into(), json!({"query": {"type": "string"}}));
    spec.parameters.insert("required".into(), json!(["query"]));
    Arc::new(spec)
});
