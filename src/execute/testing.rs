//! What tests of this room share: an execution of doubles, and what has come of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

pub(super) use super::doubles::{Does, Replies, Runs};
use super::doubles::{TestHooks, TestModel, TestTool};
use super::event::{ExecutionEvent, ExecutionResult};
use super::execution::{Execution, ExecutionBuilder};
use super::hooks::ExecutionHook;
use super::playing::Player;
use super::trace::Trace;
use crate::conversation::{Object, text_of};
use crate::step::{ModelReply, ModelRequest, RequestedCall, Usage};
use crate::tools::ToolSpec;

/// What has happened, in order.
pub(super) type Log = Arc<Mutex<Vec<String>>>;

pub(super) fn log(log: &Log, line: impl Into<String>) {
    log.lock().unwrap().push(line.into());
}

/// The object that this is written as.
pub(super) fn object(value: Value) -> Object {
    if let Value::Object(object) = value { object } else { panic!("{value} is no object") }
}

/// An execution that is to be run.
pub(super) struct Scene {
    pub(super) builder: ExecutionBuilder,
    replies: Arc<Mutex<VecDeque<Replies>>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    heard: Arc<Mutex<Vec<(u32, Trace)>>>,
    does: Vec<(ExecutionHook, Option<u32>, Does)>,
    pub(super) log: Log,
    hooked: bool,
}

/// What has come of it.
pub(super) struct Done {
    pub(super) result: ExecutionResult,
    pub(super) events: Vec<ExecutionEvent>,
    pub(super) log: Vec<String>,
    pub(super) requests: Vec<ModelRequest>,
    pub(super) heard: Vec<(u32, Trace)>,
}

/// An execution whose model writes these codes, one after the other.
pub(super) fn scene(codes: &[&str]) -> Scene {
    let (log, replies, requests) = (Log::default(), Arc::default(), Arc::default());
    let model = |name| TestModel {
        name,
        replies: Arc::clone(&replies),
        requests: Arc::clone(&requests),
        log: Arc::clone(&log),
    };
    let builder = Execution::builder()
        .instructions("Help.")
        .model(Arc::new(model("model")))
        .model(Arc::new(model("other")))
        .runner(Arc::new(Player(Arc::clone(&log))));
    let scene = Scene { builder, replies, requests, heard: Arc::default(), does: Vec::new(), log, hooked: true };
    codes.iter().fold(scene, |scene, code| scene.replies(Replies::With(coded(code))))
}

impl Scene {
    pub(super) fn replies(self, reply: Replies) -> Self {
        self.replies.lock().unwrap().push_back(reply);
        self
    }

    pub(super) fn says(self, text: &str) -> Self {
        self.replies(Replies::With(ModelReply::text(text)))
    }

    pub(super) fn tool(self, name: &str, runs: Runs) -> Self {
        self.tool_with(ToolSpec { parameters: open(), ..ToolSpec::new(name, "Does it.") }, runs, None)
    }

    pub(super) fn tool_with(mut self, spec: ToolSpec, runs: Runs, timeout: Option<Duration>) -> Self {
        self.builder = self.builder.tool(Arc::new(TestTool(Arc::new(spec), runs, Arc::clone(&self.log), timeout)));
        self
    }

    pub(super) fn hook(mut self, hook: ExecutionHook, does: Does) -> Self {
        self.does.push((hook, None, does));
        self
    }

    pub(super) fn hook_in(mut self, iteration: u32, hook: ExecutionHook, does: Does) -> Self {
        self.does.push((hook, Some(iteration), does));
        self
    }

    pub(super) fn unhooked(mut self) -> Self {
        self.hooked = false;
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(ExecutionBuilder) -> ExecutionBuilder) -> Self {
        self.builder = change(self.builder);
        self
    }

    pub(super) fn execution(&mut self) -> Execution {
        let mut builder = self.builder.clone();
        if self.hooked {
            let (does, log, heard) = (self.does.clone(), Arc::clone(&self.log), Arc::clone(&self.heard));
            builder = builder.hooks(Arc::new(TestHooks { does, log, heard }));
        }
        builder.build().unwrap()
    }

    pub(super) async fn run(mut self) -> Done {
        let events: Vec<_> = self.execution().run().collect().await;
        let Some(ExecutionEvent::Finished { result }) = events.last() else { panic!("an execution ends") };
        let (result, log) = ((**result).clone(), self.log.lock().unwrap().clone());
        let (requests, heard) = (self.requests.lock().unwrap().clone(), self.heard.lock().unwrap().clone());
        Done { result, events, log, requests, heard }
    }
}

impl Done {
    /// The statuses of the iterations.
    pub(super) fn statuses(&self) -> Vec<&'static str> {
        self.result.iterations.iter().map(|iteration| iteration.status.name()).collect()
    }

    pub(super) fn error(&self) -> &str {
        self.result.error.as_deref().unwrap_or_default()
    }

    /// The text of the last message of a request.
    pub(super) fn told(&self, request: usize) -> String {
        text_of(self.requests[request].messages.last().unwrap()).unwrap()
    }

    /// The types of the traces of an iteration.
    pub(super) fn traces(&self, iteration: usize) -> Vec<String> {
        let of = |trace: &Trace| json!(trace)["type"].as_str().unwrap().to_owned();
        self.result.iterations[iteration].traces.iter().map(of).collect()
    }

    /// The traces of tool calls of an iteration, without ids and times.
    pub(super) fn calls(&self, iteration: usize) -> Vec<Value> {
        let traces = self.result.iterations[iteration].traces.iter().map(|trace| json!(trace));
        let calls = traces.filter(|trace| trace["type"] == "tool_call");
        calls
            .map(|mut call| {
                for key in ["type", "started_at", "ended_at", "tool_call_id", "native_call_id"] {
                    call.as_object_mut().unwrap().shift_remove(key);
                }
                call
            })
            .collect()
    }

    /// What was told to the user.
    pub(super) fn messages(&self) -> Vec<&str> {
        let said = self.events.iter().map(|event| match event {
            ExecutionEvent::Message { text } => Some(text.as_str()),
            _ => None,
        });
        said.flatten().collect()
    }
}

/// An answer that asks for code by a native call.
pub(super) fn coded(code: &str) -> ModelReply {
    let arguments = Ok(object(json!({"code": code})));
    let call = RequestedCall { id: None, tool_name: "run_python".into(), arguments };
    let usage = Some(Usage { input: 10, output: 2 });
    ModelReply { calls: vec![call], usage, ..ModelReply::default() }
}

/// The schema of arguments that may be anything.
pub(super) fn open() -> Object {
    object(json!({"type": "object", "properties": {}, "additionalProperties": true}))
}
