//! The tools of an agent's own modules, as a turn calls them: on the same lane as the hooks, watched by the same clock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::builder::TEMPLATES;
use super::engine::{HookEngine, LoadedHooks, Run};
use super::serving::Served;
use crate::conversation::Object;
use crate::dispatch::{Answer, Registered, Withdraw};
use crate::hooks::{AnyPayload, FailureCause, Payload as _, ToolCallPayload};
use crate::python::PyHandler;
use crate::telemetry::TURN;
use crate::tools::{Invocation, Said, Tool, ToolContext, ToolOutput, ToolSpec, Toolbox};

/// Under these names a tool's module tells its result (`tenterhook.tooling`).
const RESULT: &str = "llm_response";
const COMPLAINT: &str = "complaint";
const NEXT: &str = "next";

/// A tool that a load has found.
#[derive(Debug)]
pub(super) struct LoadedTool {
    pub(super) spec: Arc<ToolSpec>,
    /// The skill that it belongs to; none: it lies at the agent's root.
    pub(super) skill: Option<String>,
    pub(super) runs: Arc<Registered<PyHandler>>,
}

/// The tools of an engine's modules that fit.
fn those(engine: &HookEngine, wanted: impl Fn(&LoadedTool) -> bool) -> Vec<Arc<dyn Tool>> {
    let loaded = engine.loaded();
    let tool = |(index, tool): (usize, &LoadedTool)| {
        Arc::new(AgentTool { spec: Arc::clone(&tool.spec), loaded: Arc::clone(&loaded), index }) as Arc<dyn Tool>
    };
    loaded.tools.iter().enumerate().filter(|(_, tool)| wanted(tool)).map(tool).collect()
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
    loaded: Arc<LoadedHooks>,
    index: usize,
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
            let Run::Here(dispatcher) = &self.loaded.hooks else { unreachable!("tools run on threads") };
            let mut invocation = Invocation::begin(Arc::clone(&context));
            let mut payload = ToolCallPayload::new(context.sender_id(), &self.spec.name, arguments);
            payload.headers.insert("invocation".to_owned(), invocation.number.to_string());
            let given = payload.arguments.clone();
            let (tell, mut told) = oneshot::channel();
            let call = dispatcher.ask(
                &self.loaded.tools[self.index].runs,
                payload.into_any(),
                Duration::ZERO,
                move |answer, _| drop(tell.send(answer)),
            );
            let withdrawing = Withdrawing(call);
            let (mut cancelled, mut over) = (context.cancelled(), false);
            let answer = loop {
                tokio::select! {
                    biased;
                    Some(said) = invocation.said.recv() => {
                        over |= matches!(said, Said::Over);
                        hear(&*context, said).await;
                    }
                    answer = &mut told => break answer,
                    () = &mut cancelled => {
                        drop(withdrawing);
                        if !over {
                            unwind(&mut invocation, &*context).await;
                        }
                        return ToolOutput::error(format!("`{}` was cancelled", self.spec.name));
                    }
                }
            };
            // What it said last stands before its result.
            while let Ok(said) = invocation.said.try_recv() {
                hear(&*context, said).await;
            }
            self.output(answer.unwrap_or(Answer::Failure(FailureCause::Lost)), given)
        })
    }
}

async fn hear(context: &dyn ToolContext, said: Said) {
    match said {
        Said::Whole(utterance) => context.send(utterance).await,
        Said::Piece(piece) => context.write(&piece),
        Said::Buttons(buttons) => context.set_buttons(buttons),
        Said::Over => {}
    }
}

/// Waits until a tool that has been cancelled is over: until then it is within its turn, so that what it writes to memory stays.
async fn unwind(invocation: &mut Invocation, context: &dyn ToolContext) {
    while let Some(said) = invocation.said.recv().await {
        if matches!(said, Said::Over) {
            break;
        }
        hear(context, said).await;
    }
}

impl AgentTool {
    fn output(&self, answer: Answer, given: Object) -> ToolOutput {
        let mut result = match answer {
            Answer::Changed(AnyPayload::ToolCall(payload)) => payload.arguments,
            Answer::Unchanged => given,
            Answer::Failure(FailureCause::Timeout { limit_ms }) => {
                return ToolOutput::error(format!("`{}` was not done after {limit_ms} ms", self.spec.name));
            }
            // Why is for the log, which has it: the text of an exception may hold what no model is to read.
            _ => return ToolOutput::error(format!("`{}` failed", self.spec.name)),
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

/// Withdraws its call when it is dropped; a call that is over does not mind.
struct Withdrawing<W: Withdraw>(Arc<W>);

impl<W: Withdraw> Drop for Withdrawing<W> {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}
