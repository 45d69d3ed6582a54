//! A tool call that is under way: counted, traced once however it ends, and what its tool sees of the execution.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::calling::Desk;
use super::journal::Journal;
use super::running::now_ms;
use super::trace::Traced;
use crate::tools::{ToolContext, Utterance};

/// A call that is under way. One that is dropped has been given up.
pub(super) struct UnderWay<'a> {
    desk: &'a Desk,
    tool_name: String,
    pub(super) id: String,
    /// As the code gave it.
    pub(super) input: Value,
    started_at: u64,
    ended: bool,
}

impl<'a> UnderWay<'a> {
    pub(super) fn begin(desk: &'a Desk, tool_name: &str) -> Self {
        desk.under_way.fetch_add(1, Ordering::AcqRel);
        let id = desk.journal.running.new_id("tcall");
        let tool_name = tool_name.to_owned();
        Self { desk, tool_name, id, input: Value::Null, started_at: now_ms(), ended: false }
    }

    pub(super) fn end(mut self, output: Option<Value>, error: Option<String>) {
        self.tell(output, error);
    }

    fn tell(&mut self, output: Option<Value>, error: Option<String>) {
        self.ended = true;
        let call = Traced::ToolCall {
            tool_name: self.tool_name.clone(),
            tool_call_id: self.id.clone(),
            native_call_id: self.desk.native_call_id.clone(),
            input: std::mem::take(&mut self.input),
            success: error.is_none(),
            output,
            error,
        };
        self.desk.journal.trace_since(self.started_at, call);
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.tell(None, Some("It was given up before it was done".to_owned()));
        }
        self.desk.under_way.fetch_sub(1, Ordering::AcqRel);
        self.desk.idle.notify_waiters();
    }
}

/// The execution as its tools see it.
pub(super) struct InExecution(pub(super) Arc<Journal>);

impl ToolContext for InExecution {
    fn sender_id(&self) -> &str {
        &self.0.running.plan.identity.sender_id
    }

    fn send(&self, utterance: Utterance) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.0.say(&utterance.text).await })
    }

    fn is_cancelled(&self) -> bool {
        self.0.running.controller.is_aborted()
    }

    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.running.controller.aborted())
    }

    fn model(&self) -> String {
        self.0.now().model.clone()
    }
}
