//! What an execution costs around its model and its tools: an instant model, an instant tool, hooks of Rust's own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tenterhook::{
    CodeLimits, CodeRunner, Execution, ExecutionHooks, Model, ModelError, ModelReply, ModelRequest, Object,
    RequestedCall, Tokens, Tool, ToolContext, ToolOutput, ToolSpec,
};

/// Writes the same code again and again; the last exits.
struct Writing {
    code: String,
    before: usize,
}

impl Model for Writing {
    fn name(&self) -> &'static str {
        "writing"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let answered = request.messages.iter().filter(|message| message["role"] == "assistant").count();
        let code = if answered < self.before { self.code.as_str() } else { "exit('done', success=True, result=1)" };
        let arguments: Object = json!({"code": code}).as_object().cloned().unwrap_or_default();
        let call = RequestedCall { id: None, tool_name: "run_python".into(), arguments: Ok(arguments) };
        Box::pin(async { Ok(ModelReply { calls: vec![call], ..ModelReply::default() }) })
    }
}

/// Gives what it is given.
pub(crate) struct Echo(Arc<ToolSpec>);

impl Echo {
    pub(crate) fn new() -> Self {
        let mut spec = ToolSpec::new("echo", "Gives back a number");
        let schema = json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]});
        spec.parameters = schema.as_object().cloned().unwrap_or_default();
        Self(Arc::new(spec))
    }
}

impl Tool for Echo {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn call(&self, arguments: Object, _: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move { ToolOutput::of(arguments.get("number").cloned().unwrap_or(Value::Null)) })
    }
}

/// Seven hooks that do nothing.
struct Idle;

impl ExecutionHooks for Idle {}

fn execution(runner: &Arc<dyn CodeRunner>, code: &str, before: usize, hooks: bool) -> Execution {
    let builder = Execution::builder()
        .instructions("Count.")
        .model(Arc::new(Writing { code: code.to_owned(), before }))
        .tool(Arc::new(Echo::new()))
        .runner(Arc::clone(runner))
        .limits(CodeLimits { calls: 1_000_000, ..CodeLimits::default() })
        .tool_calls(1_000_000)
        .iterations(100);
    let builder = if hooks { builder.hooks(Arc::new(Idle)) } else { builder };
    builder.build().unwrap_or_else(|error| panic!("{error}"))
}

async fn timed(runner: &Arc<dyn CodeRunner>, code: &str, before: usize, hooks: bool, rounds: usize) -> Duration {
    let execution = execution(runner, code, before, hooks);
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        let result = execution.finished().await;
        times.push(started.elapsed());
        assert!(result.is_success(), "{:?}", result.error);
    }
    super::middle(times)
}

/// Measures them.
pub(super) async fn measure(runner: &Arc<dyn CodeRunner>, rounds: usize) {
    let one = timed(runner, "pass", 0, false, rounds).await;
    super::row("an execution of one iteration that exits", one);
    let eleven = timed(runner, "pass", 10, false, rounds).await;
    super::row("each further iteration", eleven.saturating_sub(one) / 10);
    let hooked = timed(runner, "pass", 10, true, rounds).await;
    super::row("… with seven hooks that do nothing", hooked.saturating_sub(one) / 10);
    let calls = timed(runner, "for i in range(100): echo(i)", 1, false, rounds).await;
    let none = timed(runner, "for i in range(100): i", 1, false, rounds).await;
    super::row("a tool call from generated code", calls.saturating_sub(none) / 100);
    let echo = Echo::new();
    let started = Instant::now();
    for number in 0..1_000 {
        let arguments = json!({"number": number}).as_object().cloned().unwrap_or_default();
        assert!(!echo.call(arguments, Arc::new(Nobody)).await.is_error);
    }
    super::row("the same tool called directly", started.elapsed() / 1_000);
    for at_once in [1, 8, 64] {
        let execution = execution(runner, "await echo(1)", 3, false);
        let mut times = Vec::new();
        for _ in 0..rounds {
            let started = Instant::now();
            let results = join_all((0..at_once).map(|_| execution.finished())).await;
            times.push(started.elapsed());
            assert!(results.iter().all(tenterhook::ExecutionResult::is_success));
        }
        super::row(&format!("an execution of four iterations, {at_once} at once"), super::middle(times) / at_once);
    }
}

/// Nobody listens to the tool.
struct Nobody;

impl ToolContext for Nobody {
    fn sender_id(&self) -> &'static str {
        ""
    }

    fn send(&self, _: tenterhook::Utterance) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}
