//! What the model sees of its answer when the iteration is over, and how answer and account stand in the next request.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answering::Answer;
use super::iteration::Iteration;
use super::prompt::kind;
use super::signature::literal;
use super::status::Status;
use super::trace::Traced;
use crate::conversation::{Object, message};

/// How much of one value is shown, in characters.
const VALUE: usize = 4_000;
/// How much of what was printed.
const PRINTED: usize = 8_000;
/// How much of what a call gave, where it is only told that it was made.
const GAVE: usize = 300;
/// How much of code that was run in the place of the model's.
const OVERRIDE: usize = 2_000;
/// How many calls are listed.
const CALLS: usize = 40;
/// With how many answers left the model is told so.
const FEW: u32 = 3;

/// What is to be told beside what stands in the iteration.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The answer, where the model gave one.
    pub(super) answer: Option<Answer>,
    /// A text of the answer was sent to the user.
    pub(super) said: bool,
    /// What the code had defined is lost.
    pub(super) lost: bool,
    /// How many answers are left.
    pub(super) left: u32,
}

/// The messages that stand for an iteration in the requests after it.
pub(super) fn replayed(iteration: &Iteration, notes: &Notes) -> Vec<Arc<Object>> {
    let account = account(iteration, notes);
    let Some(answer) = &notes.answer else { return vec![message("user", &account)] };
    if answer.calls.is_empty() {
        let said = answer.raw.as_deref().map(|raw| message("assistant", raw));
        return said.into_iter().chain([message("user", &account)]).collect();
    }
    let mut assistant = Object::new();
    assistant.insert("role".into(), "assistant".into());
    assistant.insert("content".into(), answer.raw.clone().map_or(Value::Null, Value::from));
    let calls = answer.calls.iter().map(|call| {
        let arguments = call.broken.clone().unwrap_or_else(|| Value::Object(call.arguments.clone()).to_string());
        json!({"id": call.id, "type": "function", "function": {"name": call.tool_name, "arguments": arguments}})
    });
    assistant.insert("tool_calls".into(), calls.collect());
    let mut messages = vec![Arc::new(assistant)];
    let told = answer.run.unwrap_or(0);
    messages.extend(answer.calls.iter().enumerate().map(|(index, call)| {
        let content = if index == told { account.as_str() } else { "Not run: only the first call of an answer is." };
        let mut tool = Object::new();
        tool.insert("role".into(), "tool".into());
        tool.insert("tool_call_id".into(), call.id.clone().into());
        tool.insert("content".into(), content.into());
        Arc::new(tool)
    }));
    messages
}

/// What has come of an iteration, in words.
fn account(iteration: &Iteration, notes: &Notes) -> String {
    let mut parts = Vec::new();
    parts.extend(overridden(iteration, notes));
    parts.push(outcome(iteration));
    parts.extend(calls(iteration));
    if notes.said {
        parts.push("The text of your answer was sent to the user: do not say it again.".to_owned());
    }
    if notes.lost {
        parts.push(
            "The sandbox has begun anew: functions that you had defined are gone, variables are there.".to_owned(),
        );
    }
    if let Some(answer) = &notes.answer {
        parts.extend(answer.notes.iter().cloned());
    }
    match notes.left {
        1 => parts.push("Your next answer is the last one: exit with it.".to_owned()),
        left if left <= FEW => parts.push(format!("You have {left} answers left.")),
        _ => {}
    }
    parts.join("\n\n")
}

/// Other code than the model's was run.
fn overridden(iteration: &Iteration, notes: &Notes) -> Option<String> {
    let written = notes.answer.as_ref()?.code.as_deref().unwrap_or_default();
    let ran = iteration.code.as_deref()?;
    if ran.trim_end() == written.trim_end() {
        return None;
    }
    Some(format!(
        "EXECUTION OVERRIDE: your code was not run. This was run in its place:\n\n```python\n{}\n```\n\nNothing of your code has happened: no \
         tool of it was called and no exit of it was applied. Do not call its tools only to make up for that.",
        cut(ran, OVERRIDE)
    ))
}

fn outcome(iteration: &Iteration) -> String {
    match &iteration.status {
        Status::InvalidCodeError { message } => {
            let code = iteration.code.as_deref().map(|code| format!("\n\n```python\n{}\n```", cut(code, VALUE)));
            format!("Your answer cannot be run: {message}{}", code.unwrap_or_default())
        }
        Status::ExecutionError { message, stack } => {
            let stack = if stack.is_empty() { String::new() } else { format!("\n\n{stack}") };
            format!(
                "An error has ended this step: {message}{stack}{}\n\nGo on in another way if there is one; else say what has failed.",
                printed(iteration)
            )
        }
        Status::ExitError { exit, return_value, message } => {
            format!(
                "The exit `{exit}` was not taken: {message}\n\nIt was given: {}\n\nGo on with this in mind.",
                cut(&literal(return_value), VALUE)
            )
        }
        Status::ThinkingRequested { reason, variables } => {
            let reason = reason.as_deref().map_or_else(
                || "The code came to its end without an exit.".to_owned(),
                |reason| format!("Look at this before you go on: {reason}"),
            );
            let shown = variables
                .iter()
                .map(|(name, value)| format!("- `{name}` ({}): {}", kind(value), cut(&literal(value), VALUE)));
            let shown = shown.collect::<Vec<_>>().join("\n");
            let shown = if shown.is_empty() { String::new() } else { format!("\n\n{shown}") };
            format!("{reason}{shown}{}\n\nDo not run the code again: go on from here, or exit.", printed(iteration))
        }
        Status::Pending | Status::GenerationError { .. } | Status::ExitSuccess { .. } | Status::Aborted { .. } => {
            String::new()
        }
    }
}

fn printed(iteration: &Iteration) -> String {
    match &iteration.outcome {
        Some(outcome) if !outcome.printed.is_empty() => {
            format!("\n\nPrinted:\n{}", cut(outcome.printed.trim_end(), PRINTED))
        }
        _ => String::new(),
    }
}

/// The calls that have been made: what has succeeded is not to be done again.
fn calls(iteration: &Iteration) -> Option<String> {
    let made: Vec<_> = iteration
        .traces
        .iter()
        .filter_map(|trace| match &trace.what {
            Traced::ToolCall { tool_name, input, output, error, .. } => Some(match error {
                None => {
                    let output = output.as_ref().map_or_else(|| "None".to_owned(), literal);
                    format!("- `{tool_name}` with {}: done, gave {}", cut(&literal(input), GAVE), cut(&output, GAVE))
                }
                Some(error) => {
                    format!("- `{tool_name}` with {}: failed: {}", cut(&literal(input), GAVE), cut(error, GAVE))
                }
            }),
            _ => None,
        })
        .collect();
    if made.is_empty() {
        return None;
    }
    let more = made.len().saturating_sub(CALLS);
    let mut lines: Vec<_> = made.into_iter().take(CALLS).collect();
    if more > 0 {
        lines.push(format!("- and {more} more"));
    }
    Some(format!("Tool calls of this step:\n{}", lines.join("\n")))
}

/// The beginning of a text, with how much is left out.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… ({} more characters)", &text[..at], text[at..].chars().count()),
    }
}
