//! The loop of model, code, tools and exits.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;

use super::event::{ExecutionEvent, ExecutionResult, ExecutionStatus};
use super::execution::Plan;
use super::iteration::Tokens;

/// Runs an execution; what happens is told to `out`.
pub(super) async fn run(plan: Arc<Plan>, out: UnboundedSender<ExecutionEvent>) {
    let result = ExecutionResult {
        id: "execution".into(),
        status: ExecutionStatus::Error,
        exit: None,
        output: serde_json::Value::Null,
        error: None,
        iterations: Vec::new(),
        tokens: Tokens::default(),
        context: plan.context.clone(),
    };
    let _ = out.send(ExecutionEvent::Finished { result: Box::new(result) });
}
