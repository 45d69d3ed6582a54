//! Argument templates, as the interpreter renders them: on the lane of the hooks, so that one that runs on is interrupted as a hook is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use super::builder::HookEngineBuilder;
use super::config::{CheckTemplates, TemplateProblem};
use super::engine::HookEngine;
use super::error::Error;
use super::tooling::template_tool;
use crate::conversation::Object;
use crate::quickapp::Templates;
use crate::tools::{Tool, ToolContext, ToolOutput, Utterance};

/// Renders and checks templates.
pub(super) struct PythonTemplates(Arc<HookEngine>);

impl PythonTemplates {
    /// Templates alone: nothing of an agent is imported.
    pub(super) fn alone(builder: HookEngineBuilder) -> Result<Self, Error> {
        Ok(Self(Arc::new(builder.only_templates().load()?)))
    }

    /// What renders and checks, as it was loaded last.
    fn tool(&self) -> Arc<dyn Tool> {
        template_tool(&self.0).unwrap_or_else(|| unreachable!("the load was asked for templates"))
    }
}

/// Blocks while the template is checked.
impl CheckTemplates for PythonTemplates {
    fn check(&self, arguments: &str, event: &str) -> Vec<TemplateProblem> {
        let given = texts([("template", arguments.to_owned()), ("event", event.to_owned())]);
        let tool = self.tool();
        let asked = tool.call(given, Arc::new(Nobody));
        // Whoever asks may be within a runtime, which must not be blocked by another.
        let output = thread::scope(|scope| {
            let runtime =
                || tokio::runtime::Builder::new_current_thread().build().map(|runtime| runtime.block_on(asked));
            scope.spawn(runtime).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let told = output.ok().and_then(|output| serde_json::from_str::<Vec<Told>>(&output.text()).ok());
        let problem = |told: Told| TemplateProblem { path: told.path, message: told.message, hint: told.hint };
        told.map_or_else(|| vec![unchecked("the check gave no answer")], |told| told.into_iter().map(problem).collect())
    }
}

/// Templates of a manifest that is only checked: the interpreter is started when the first of them comes.
pub(super) struct LazyTemplates {
    /// How it is started.
    pub(super) builder: HookEngineBuilder,
    pub(super) started: OnceLock<Result<PythonTemplates, String>>,
    /// Why it could not be has been told: once is enough.
    pub(super) told: AtomicBool,
}

impl CheckTemplates for LazyTemplates {
    fn check(&self, arguments: &str, event: &str) -> Vec<TemplateProblem> {
        let start = || PythonTemplates::alone(self.builder.clone()).map_err(|error| error.to_string());
        match self.started.get_or_init(start) {
            Ok(templates) => templates.check(arguments, event),
            Err(_) if self.told.swap(true, Ordering::Relaxed) => Vec::new(),
            Err(why) => vec![unchecked(why)],
        }
    }
}

fn unchecked(why: &str) -> TemplateProblem {
    TemplateProblem {
        path: "arguments".to_owned(),
        message: format!("The template could not be checked: {why}"),
        hint: Some("templates need an interpreter with the package `json-e`: name one by `--python`".to_owned()),
    }
}

/// A problem as the interpreter tells it.
#[derive(Deserialize)]
struct Told {
    path: String,
    message: String,
    hint: Option<String>,
}

impl Templates for PythonTemplates {
    fn render<'a>(&'a self, template: &'a str, context: Object) -> BoxFuture<'a, Result<Object, String>> {
        let given = texts([("template", template.to_owned()), ("context", Value::Object(context).to_string())]);
        Box::pin(async move {
            let tool = self.tool();
            let output: ToolOutput = tool.call(given, Arc::new(Nobody)).await;
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
    fn render<'a>(&'a self, _: &'a str, _: Object) -> BoxFuture<'a, Result<Object, String>> {
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
