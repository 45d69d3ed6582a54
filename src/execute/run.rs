//! The loop of model, code, tools and exits, from the first iteration to what comes of it.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tracing::Instrument as _;
use tracing::field::Empty;

use super::controller::Controller;
use super::event::{ExecutionEvent, ExecutionResult, ExecutionStatus};
use super::execution::Plan;
use super::iteration::{Iteration, Tokens};
use super::runner::CodeSession;
use super::running::Running;
use super::status::Status;
use crate::conversation::Object;
use crate::telemetry::{EXECUTE, fails};

/// What an execution that is dropped before its end is aborted with.
const DROPPED: &str = "The execution was dropped";

/// What iterations leave to those after them.
pub(super) struct Course {
    pub(super) running: Arc<Running>,
    /// The sandbox, once there was code.
    pub(super) session: Option<Box<dyn CodeSession>>,
    /// The variables are to be bound before the next code: the session is new, or a hook has changed them.
    pub(super) rebind: bool,
    pub(super) variables: Object,
    /// The model's answers, and what has come of them.
    pub(super) transcript: Vec<Arc<Object>>,
}

/// How an execution has ended.
enum End {
    Exit { exit: String, output: Value },
    Error(String),
}

/// Runs an execution; what happens is told to `out`.
pub(super) async fn run(plan: Arc<Plan>, out: UnboundedSender<ExecutionEvent>) {
    let running = Arc::new(Running::new(Arc::clone(&plan), out));
    let mut dropped = Dropped(Some(running.controller.clone()));
    let span = tracing::info_span!(
        target: EXECUTE, "invoke_agent", otel.name = "invoke_agent execution", otel.status_code = Empty, error.type = Empty,
        gen_ai.operation.name = "invoke_agent", gen_ai.agent.name = "execution", gen_ai.conversation.id = plan.identity.sender_id,
        execution.id = running.id, execution.iterations = Empty,
    );
    let mut iterations = Vec::new();
    let mut course = Course {
        variables: plan.variables.clone(),
        session: None,
        rebind: true,
        transcript: Vec::new(),
        running: Arc::clone(&running),
    };
    let end = course.run(&mut iterations).instrument(span.clone()).await;
    // What still runs in the sandbox ends with its session.
    drop(course);
    span.record("execution.iterations", iterations.len());
    let (status, exit, output, error) = match end {
        End::Exit { exit, output } => (ExecutionStatus::Success, Some(exit), output, None),
        End::Error(error) => {
            fails(&span, iterations.last().map_or("aborted", |last: &Iteration| last.status.name()));
            (ExecutionStatus::Error, None, Value::Null, Some(error))
        }
    };
    let mut tokens = Tokens::default();
    for iteration in &iterations {
        tokens.sum(iteration.tokens);
    }
    let (id, context) = (running.id.clone(), plan.context.clone());
    let result = ExecutionResult { id, status, exit, output, error, iterations, tokens, context };
    dropped.0 = None;
    running.tell(ExecutionEvent::Finished { result: Box::new(result) });
}

impl Course {
    async fn run(&mut self, iterations: &mut Vec<Iteration>) -> End {
        let most = u32::try_from(self.running.plan.iterations).unwrap_or(1);
        for number in 1..=most {
            // One more is not begun only to be aborted.
            if let Some(reason) = self.running.controller.reason() {
                return End::Error(reason.to_owned());
            }
            let span = tracing::info_span!(
                target: EXECUTE, "iteration", otel.name = format!("iteration {number}"), otel.status_code = Empty, error.type = Empty,
                execution.iteration = number, execution.status = Empty,
            );
            let (iteration, fatal) = self.iterate(number, most - number).instrument(span.clone()).await;
            span.record("execution.status", iteration.status.name());
            if iteration.status.is_failed() {
                fails(&span, iteration.status.name());
            }
            let status = iteration.status.clone();
            iterations.push(iteration);
            if let Some(message) = fatal {
                return End::Error(message);
            }
            match status {
                Status::ExitSuccess { exit_name, return_value } => {
                    return End::Exit { exit: exit_name, output: return_value };
                }
                Status::Aborted { reason } => return End::Error(reason),
                Status::GenerationError { message } => return End::Error(message),
                _ => {}
            }
        }
        if let Some(reason) = self.running.controller.reason() {
            return End::Error(reason.to_owned());
        }
        let last = iterations.last().and_then(|last| last.error.as_deref());
        let last = last.map(|error| format!("; the last one ended with {error}")).unwrap_or_default();
        End::Error(format!("Loop exceeded: {most} iterations have reached no exit{last}"))
    }
}

/// Aborts an execution that is dropped: whoever holds its controller hears of it.
struct Dropped(Option<Controller>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(controller) = &self.0 {
            controller.abort(DROPPED);
        }
    }
}
