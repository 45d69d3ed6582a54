//! The tools of an agent's own modules, as a turn calls them: on the same lane as the hooks, watched by the same clock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::builder::TEMPLATES;
use super::engine::HookEngine;
use super::lane_calls::{Lanes, NoResult};
use super::serving::Served;
use crate::conversation::Object;
use crate::dispatch::Registered;
use crate::hooks::FailureCause;
use crate::python::PyHandler;
use crate::telemetry::TURN;
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec, Toolbox};

/// Under these names a tool's module tells its result (`tenterhook.tooling`).
pub(super) const RESULT: &str = "llm_response";
pub(super) const COMPLAINT: &str = "complaint";
const NEXT: &str = "next";

/// A tool that a load has found.
#[derive(Debug)]
pub(super) struct LoadedTool {
    pub(super) spec: Arc<ToolSpec>,
    /// The skill that it belongs to; none: it lies at the agent's root.
    pub(super) skill: Option<String>,
    /// What it gives, as a Python annotation.
    pub(super) returns: Option<String>,
    pub(super) runs: Arc<Registered<PyHandler>>,
}

/// The tools of an engine's modules that fit.
fn those(engine: &HookEngine, wanted: impl Fn(&LoadedTool) -> bool) -> Vec<Arc<dyn Tool>> {
    let loaded = engine.loaded();
    let tool = |tool: &LoadedTool| {
        let (spec, runs) = (Arc::clone(&tool.spec), Arc::clone(&tool.runs));
        Arc::new(AgentTool { spec, lanes: Lanes::Agent(Arc::clone(&loaded)), runs }) as Arc<dyn Tool>
    };
    loaded.tools.iter().filter(|tool| wanted(tool)).map(tool).collect()
}

/// The tools at an agent's root.
pub(super) fn root_tools(engine: &Arc<HookEngine>) -> Vec<Arc<dyn Tool>> {
    those(engine, |tool| tool.skill.is_none())
}

/// What renders templates, where the load was asked for it.
pub(super) fn template_tool(engine: &Arc<HookEngine>) -> Option<Arc<dyn Tool>> {
    those(engine, |tool| tool.spec.name == TEMPLATES).pop()
}

/// The tools of an engine's agent.
pub(super) struct AgentTools {
    /// What runs the agent's own modules, where it has any.
    pub(super) engine: Option<Arc<HookEngine>>,
    /// The tools at the root that each skill imports.
    pub(super) imports: HashMap<String, Vec<String>>,
    /// The servers, and what each skill imports from them.
    pub(super) served: Served,
}

impl AgentTools {
    fn those(&self, wanted: impl Fn(&LoadedTool) -> bool) -> Vec<Arc<dyn Tool>> {
        self.engine.as_ref().map(|engine| those(engine, wanted)).unwrap_or_default()
    }
}

impl Toolbox for AgentTools {
    fn offered(&self) -> Vec<Arc<dyn Tool>> {
        self.those(|tool| tool.skill.is_none())
    }

    /// A skill's own tool hides one of the same name that it imports.
    fn of_skill(&self, skill: &str) -> Vec<Arc<dyn Tool>> {
        let imports = self.imports.get(skill).map(Vec::as_slice).unwrap_or_default();
        let own = self.those(|tool| tool.skill.as_deref() == Some(skill));
        let hidden = |name: &str| own.iter().any(|tool| tool.spec().name == name);
        let shared =
            self.those(|tool| tool.skill.is_none() && imports.contains(&tool.spec.name) && !hidden(&tool.spec.name));
        own.iter().cloned().chain(shared).chain(self.served.of_skill(skill)).collect()
    }

    fn timeout(&self) -> Duration {
        // The tools' own clock is that of their lane, which knows what to do with a thread that does not come back.
        Duration::MAX
    }
}

struct AgentTool {
    spec: Arc<ToolSpec>,
    lanes: Lanes,
    runs: Arc<Registered<PyHandler>>,
}

impl Tool for AgentTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn unwinds(&self) -> bool {
        true
    }

    fn call(&self, arguments: Object, context: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let called = self.lanes.called(&self.runs, &self.spec.name, arguments, context).await;
            self.output(called)
        })
    }
}

impl AgentTool {
    fn output(&self, called: Result<Object, NoResult>) -> ToolOutput {
        let mut result = match called {
            Ok(result) => result,
            Err(NoResult::Cancelled) => return ToolOutput::error(format!("`{}` was cancelled", self.spec.name)),
            Err(NoResult::Failed(FailureCause::Timeout { limit_ms })) => {
                return ToolOutput::error(format!("`{}` was not done after {limit_ms} ms", self.spec.name));
            }
            // Why is for the log, which has it: the text of an exception may hold what no model is to read.
            Err(_) => return ToolOutput::error(format!("`{}` failed", self.spec.name)),
        };
        if let Some(complaint) = result.remove(COMPLAINT) {
            return ToolOutput { is_error: true, refused: true, ..ToolOutput::of(complaint) };
        }
        let next = result.remove(NEXT).map(serde_json::from_value).and_then(Result::ok).unwrap_or_default();
        match result.remove(RESULT) {
            Some(value) => ToolOutput { next, ..ToolOutput::of(value) },
            None => {
                tracing::error!(target: TURN, tool = self.spec.name, "The tool's result is missing");
                ToolOutput::error(format!("`{}` failed", self.spec.name))
            }
        }
    }
}
