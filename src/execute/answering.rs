//! The model's answer: asking for it, and finding the code in it.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use serde_json::Value;

use super::execution::CodeForm;
use super::fences::fenced;
use super::journal::{Ended, Journal};
use super::prompt::{RUN, run_python};
use super::running::now_ms;
use super::status::Status;
use super::trace::Traced;
use crate::step::{Asked, Call, Completion, Model, complete};

/// What the model has answered.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// Its text as it wrote it.
    pub(super) raw: Option<String>,
    /// Its text without code.
    pub(super) text: Option<String>,
    /// The code.
    pub(super) code: Option<String>,
    /// Why there is no code although there is to be.
    pub(super) wrong: Option<String>,
    /// The native calls that it has made.
    pub(super) calls: Vec<Call>,
    /// The call that the code is from, by its place.
    pub(super) run: Option<usize>,
    /// What it is to be told beside.
    pub(super) notes: Vec<String>,
}

impl Answer {
    /// The id of the native call that the code is from.
    pub(super) fn native_call_id(&self) -> Option<&str> {
        self.run.and_then(|run| self.calls.get(run)).map(|call| call.id.as_str())
    }
}

/// Asks the model; an abort ends the call.
pub(super) async fn answer(journal: &Journal, model: &dyn Model) -> Result<Answer, Ended> {
    let running = &journal.running;
    let iteration = journal.now();
    let name = iteration.model.clone();
    let tools = match running.plan.form {
        CodeForm::Native => vec![Arc::new(run_python())],
        CodeForm::Fenced => Vec::new(),
    };
    let asked = Asked { messages: iteration.messages.clone(), tools, iteration: u64::from(journal.number - 1) };
    drop(iteration);
    let started_at = now_ms();
    journal.trace(Traced::LlmCallStarted { model: name.clone() });
    journal.unless_aborted()?;
    let new_id = || running.new_id("call");
    let completed = {
        let completing = pin!(complete(running.hooked(), model, asked, None, &new_id));
        match select(completing, pin!(running.controller.aborted())).await {
            Either::Left((completed, _)) => Some(completed),
            Either::Right(_) => None,
        }
    };
    // A failure that an abort has brought about is that abort.
    journal.unless_aborted()?;
    let Some(completed) = completed else { unreachable!("what was not waited for was aborted") };
    match completed {
        Completion::Answered { text, calls, usage, .. } => {
            if let Some(usage) = usage {
                journal.change(|iteration| iteration.tokens.add(usage));
            }
            let answer = read(text, calls);
            journal.trace_since(started_at, Traced::LlmCallSuccess { model: name, code: answer.code.clone() });
            journal.running.hooks().traces_heard().await;
            journal.unless_aborted()?;
            Ok(answer)
        }
        Completion::Retry { feedback } => {
            let message = format!("The answer was discarded: {feedback}");
            Err(Ended::so(Status::InvalidCodeError { message }))
        }
        Completion::RequestFailed => {
            let message = "The model was not asked: a hook of the agent's that looks at requests has failed".to_owned();
            Err(Ended::so(Status::GenerationError { message }))
        }
        Completion::NoAnswer(error) => {
            tracing::error!(target: crate::telemetry::EXECUTE, "{error}");
            Err(Ended::so(Status::GenerationError { message: error.to_string() }))
        }
    }
}

/// Finds the code in an answer.
fn read(raw: Option<String>, calls: Vec<Call>) -> Answer {
    let raw = raw.filter(|text| !text.trim().is_empty());
    let mut answer = Answer { text: raw.clone(), raw, calls, ..Answer::default() };
    if answer.calls.is_empty() {
        let found = fenced(answer.raw.as_deref().unwrap_or_default());
        (answer.text, answer.code) = (found.text, found.code.filter(|code| !code.trim().is_empty()));
        if found.open && answer.code.is_none() {
            answer.wrong = Some("The block of code has no end: close it with ``` and write less at once".to_owned());
        } else if found.others > 0 || found.open {
            answer.notes.push("Only the first block of Python was run: write one in an answer".to_owned());
        }
        return answer;
    }
    answer.run = answer.calls.iter().position(|call| call.tool_name == RUN);
    let Some(call) = answer.run.and_then(|run| answer.calls.get(run)) else {
        let names: Vec<_> = answer.calls.iter().map(|call| format!("`{}`", call.tool_name)).collect();
        let message = format!(
            "There is no {} to call here: the one tool is `{RUN}`, and its code calls all others",
            names.join(", ")
        );
        answer.wrong = Some(message);
        return answer;
    };
    match (&call.broken, call.arguments.get("code")) {
        (Some(_), _) => answer.wrong = Some(format!("The arguments of `{RUN}` are no JSON object")),
        (None, Some(Value::String(code))) if !code.trim().is_empty() => answer.code = Some(code.clone()),
        (None, _) => answer.wrong = Some(format!("`{RUN}` takes the code as a text, `code`, that is not empty")),
    }
    answer
}
