//! Argument templates, as the interpreter renders them: on the lane of the hooks, so that one that runs on is interrupted as a hook is.

use std::sync::Arc;
use std::thread;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use super::builder::HookEngineBuilder;
use super::engine::HookEngine;
use super::error::Error;
use super::tooling::template_tool;
use crate::conversation::Object;
use crate::quickapp::Templates;
use crate::tools::{Tool, ToolContext, ToolOutput, Utterance};

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct TemplateProblem {
    /// Where, from `arguments` on.
    pub(crate) path: String,
    /// What.
    pub(crate) message: String,
    /// How to mend it.
    pub(crate) hint: Option<String>,
}

/// Renders and checks templates.
pub(super) struct PythonTemplates(Arc<dyn Tool>);

impl PythonTemplates {
    /// What an engine that was loaded with templates renders with.
    pub(super) fn of(engine: &Arc<HookEngine>) -> Option<Self> {
        template_tool(engine).map(Self)
    }

    /// Templates alone: nothing of an agent is imported.
    pub(super) fn alone(builder: HookEngineBuilder) -> Result<Self, Error> {
        let engine = Arc::new(builder.only_templates().load()?);
        Ok(Self::of(&engine).unwrap_or_else(|| unreachable!("the load was asked for templates")))
    }

    /// What is wrong with a template of an event. Blocks.
    pub(super) fn check(&self, template: &Object, event: &str) -> Vec<TemplateProblem> {
        let given = [("template", Value::Object(template.clone()).to_string()), ("event", event.to_owned())];
        let asked = self.0.call(texts(given), Arc::new(Nobody));
        // Whoever asks may be within a runtime, which must not be blocked by another.
        let output = thread::scope(|scope| {
            let waiting =
                scope.spawn(|| tokio::runtime::Builder::new_current_thread().build().map(|it| it.block_on(asked)));
            waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let told = output.map(|output| serde_json::from_str(&output.text()));
        let failed = || TemplateProblem {
            path: "arguments".to_owned(),
            message: "The template could not be checked".to_owned(),
            hint: None,
        };
        match told {
            Ok(Ok(problems)) => problems,
            _ => vec![failed()],
        }
    }
}

impl Templates for PythonTemplates {
    fn render(&self, template: &Object, context: Object) -> BoxFuture<'_, Result<Object, String>> {
        let template = Value::Object(template.clone()).to_string();
        let given = texts([("template", template), ("context", Value::Object(context).to_string())]);
        Box::pin(async move {
            let output: ToolOutput = self.0.call(given, Arc::new(Nobody)).await;
            if output.is_error {
                // A template's own fault is told in its words, which hold no value; everything else is not.
                let told = output.refused.then(|| output.text());
                return Err(told.unwrap_or_else(|| "its arguments could not be rendered".to_owned()));
            }
            serde_json::from_str(&output.text()).map_err(|_| "its arguments are no object".to_owned())
        })
    }
}

/// An app whose hooks have no templates.
pub(super) struct NoTemplates;

impl Templates for NoTemplates {
    fn render(&self, _: &Object, _: Object) -> BoxFuture<'_, Result<Object, String>> {
        Box::pin(async { Err("there is nothing that renders templates".to_owned()) })
    }
}

fn texts(given: [(&str, String); 2]) -> Object {
    given.into_iter().map(|(name, text)| (name.to_owned(), Value::String(text))).collect()
}

/// Templates talk to nobody.
struct Nobody;

impl ToolContext for Nobody {
    fn sender_id(&self) -> &'static str {
        ""
    }

    fn send(&self, _: Utterance) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}
