//! The traces of an execution as a tree, line by line while it runs.

use std::fmt::Write as _;

use serde_json::Value;

use crate::execute::{ExecutionEvent, ExecutionResult, Iteration, Status, Trace, Traced};

/// How much of a value a line shows, in characters.
const SHOWN: usize = 100;

/// The lines of an event; none where it tells people nothing new.
pub(super) fn lines(event: &ExecutionEvent) -> Vec<String> {
    match event {
        ExecutionEvent::IterationStarted { iteration } => vec![format!("iteration {iteration}")],
        ExecutionEvent::Traced { trace, .. } => traced(trace),
        ExecutionEvent::HookRan { point, outcome } => {
            vec![branch(&format!("hook {} {outcome}", point.spec().modify.unwrap_or_default()))]
        }
        ExecutionEvent::IterationEnded { iteration } => vec![leaf(&ended(iteration))],
        ExecutionEvent::Finished { result } => vec![finished(result)],
        ExecutionEvent::Message { .. } => Vec::new(),
    }
}

fn traced(trace: &Trace) -> Vec<String> {
    let line = match &trace.what {
        Traced::LlmCallStarted { model } => format!("{model} is asked"),
        Traced::LlmCallSuccess { model, code } => {
            let mut all = vec![branch(&format!("{model} has answered{}", lasted(trace)))];
            let code = code.as_deref().unwrap_or_default();
            all.extend(code.lines().enumerate().map(|(at, line)| format!("│    {:>3} | {line}", at + 1)));
            return all;
        }
        Traced::MessageDelivery { value } => format!("message {}", quoted(value)),
        Traced::Log { message } => format!("log {}", quoted(message.trim_end_matches('\n'))),
        Traced::ToolCall { tool_name, input, output, error, success, .. } => {
            let given = match (success, output, error) {
                (true, Some(output), _) => value(output),
                (_, _, Some(error)) => format!("failed: {}", cut(error)),
                _ => "failed".to_owned(),
            };
            format!("{tool_name} {} → {given}{}", value(input), lasted(trace))
        }
        Traced::ToolSlow { tool_name, duration, .. } => {
            format!("{tool_name} has been running for {} s", duration / 1_000)
        }
        Traced::ThinkSignal { reason, .. } => format!("to be looked at: {}", cut(reason)),
        Traced::CodeExecution { lines } => {
            format!("{lines} line{} run{}", if *lines == 1 { "" } else { "s" }, lasted(trace))
        }
        Traced::CodeExecutionException { position, message, .. } => match position {
            Some(at) => format!("line {} failed: {}", at.line, cut(message)),
            None => format!("the code failed: {}", cut(message)),
        },
        Traced::InvalidCodeException { message, .. } => format!("this is no code: {}", cut(message)),
        Traced::AbortSignal { reason } => format!("aborted: {}", cut(reason)),
    };
    vec![branch(&line)]
}

fn ended(iteration: &Iteration) -> String {
    match &iteration.status {
        Status::Pending => "pending".to_owned(),
        Status::ThinkingRequested { reason: Some(reason), .. } => format!("thinking: {}", cut(reason)),
        Status::ThinkingRequested { .. } => "thinking".to_owned(),
        Status::ExitSuccess { exit_name, return_value } => format!("exit {exit_name} {}", value(return_value)),
        other => cut(&other.error().unwrap_or_default()),
    }
}

fn finished(result: &ExecutionResult) -> String {
    let iterations = result.iterations.len();
    let mut line = match (&result.exit, &result.error) {
        (Some(exit), _) => format!("{exit} after {iterations} iteration{}", if iterations == 1 { "" } else { "s" }),
        (None, error) => format!("no exit: {}", cut(error.as_deref().unwrap_or_default())),
    };
    if result.tokens.total > 0 {
        let _ = write!(line, ", {} tokens", result.tokens.total);
    }
    line
}

fn branch(line: &str) -> String {
    format!("├─ {line}")
}

fn leaf(line: &str) -> String {
    format!("└─ {line}")
}

fn lasted(trace: &Trace) -> String {
    trace.ended_at.map(|ended| format!(" ({} ms)", ended.saturating_sub(trace.started_at))).unwrap_or_default()
}

fn value(value: &Value) -> String {
    cut(&value.to_string())
}

fn quoted(text: &str) -> String {
    cut(&Value::from(text).to_string())
}

/// What a terminal shows of a text: one line, no control characters, not too long.
fn cut(text: &str) -> String {
    let mut shown: String =
        text.chars().take(SHOWN).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::execute::{CodeFrame, ExecutionStatus};

    fn trace(what: Traced, ended_at: Option<u64>) -> ExecutionEvent {
        ExecutionEvent::Traced { iteration: 1, trace: Box::new(Trace { what, started_at: 1_000, ended_at }) }
    }

    #[test]
    fn an_execution_is_a_tree_whose_lines_stay_short() {
        let call = |success: bool| Traced::ToolCall {
            tool_name: "search".into(),
            tool_call_id: "tcall_1".into(),
            native_call_id: None,
            input: json!({"query": "wool\nsocks"}),
            output: success.then(|| json!(vec!["x"; 60])),
            error: (!success).then(|| "no\u{1b}[31m such shop".into()),
            success,
        };
        let at = CodeFrame { line: 2, column: 1, end_column: 9, function: None };
        let ended = |status| {
            let iteration = Iteration { number: 1, status, ..Iteration::default() };
            ExecutionEvent::IterationEnded { iteration: Box::new(iteration) }
        };
        let result = ExecutionResult {
            id: "e".into(),
            status: ExecutionStatus::Success,
            exit: Some("done".into()),
            output: json!(3),
            error: None,
            iterations: vec![Iteration::default(); 2],
            tokens: crate::execute::ExecutionTokens { input: 5, output: 6, total: 11 },
            context: Value::Null,
        };
        let events = [
            ExecutionEvent::IterationStarted { iteration: 1 },
            trace(Traced::LlmCallStarted { model: "m".into() }, None),
            trace(Traced::LlmCallSuccess { model: "m".into(), code: Some("a = 1\nb = 2".into()) }, Some(1_012)),
            trace(call(true), Some(1_003)),
            trace(call(false), Some(1_003)),
            trace(Traced::Log { message: "seen\n".into() }, None),
            trace(Traced::MessageDelivery { value: "Hello".into() }, None),
            trace(
                Traced::CodeExecutionException {
                    position: Some(at),
                    message: "boom".into(),
                    stack_trace: String::new(),
                },
                None,
            ),
            ended(Status::ExecutionError { message: "boom".into(), stack: String::new() }),
            trace(Traced::CodeExecution { lines: 1 }, Some(1_000)),
            ended(Status::ExitSuccess { exit_name: "done".into(), return_value: json!(3) }),
            ExecutionEvent::Finished { result: Box::new(result) },
        ];
        insta::assert_snapshot!(events.iter().flat_map(lines).collect::<Vec<_>>().join("\n"));
    }
}
