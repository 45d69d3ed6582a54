//! A sandbox for tests. Its language has one statement a line:
//!
//! ```text
//! call f {"a": 1}      calls with names        pos f [1]            by position       set x 1       sets a variable
//! try f {"a": 1}       … and catches           both f {} ;; g {}    gathers           print text
//! exit done {…}        exits                   tryexit done {…}     … and catches     value 1       the last expression
//! raise Kind text      raises                  unawaited f {}       does not wait     spin          computes without an end
//! inspect 1            syntax                  over                 a limit fires and the session is over
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join};
use serde_json::{Value, json};

use super::runner::{
    Code, CodeError, CodeErrorKind, CodeFrame, CodeHost, CodeLimits, CodeOutcome, CodeRunner, CodeSession, HostCall,
    HostRefusal, RunnerError,
};
use super::testing::{Log, log};

pub(super) struct Player(pub(super) Log);

impl CodeRunner for Player {
    fn open(&self, _: CodeLimits) -> BoxFuture<'_, Result<Box<dyn CodeSession>, RunnerError>> {
        log(&self.0, "open");
        Box::pin(async { Ok(Box::new(Playing(Arc::clone(&self.0))) as Box<dyn CodeSession>) })
    }
}

struct Playing(Log);

impl CodeSession for Playing {
    fn run<'a>(&'a mut self, code: Code, host: &'a dyn CodeHost) -> BoxFuture<'a, CodeOutcome> {
        Box::pin(async move {
            let bound = if code.variables.is_empty() { String::new() } else { format!(" {}", json!(code.variables)) };
            log(&self.0, format!("code{bound}"));
            let mut outcome = CodeOutcome { elapsed: Duration::from_millis(1), ..CodeOutcome::default() };
            for (index, line) in code.source.lines().enumerate() {
                let line_number = u32::try_from(index + 1).unwrap();
                if let Err(error) = statement(line.trim(), line_number, host, &mut outcome).await {
                    let column = u32::try_from(line.len() - line.trim_start().len() + 1).unwrap();
                    let end_column = u32::try_from(line.len() + 1).unwrap();
                    let frame = CodeFrame { line: line_number, column, end_column, function: None };
                    outcome.session_ended = error.kind == CodeErrorKind::Limit;
                    outcome.error = Some(CodeError { frames: vec![frame], ..error });
                    break;
                }
            }
            outcome
        })
    }
}

async fn statement(line: &str, number: u32, host: &dyn CodeHost, outcome: &mut CodeOutcome) -> Result<(), CodeError> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (name, arguments) = rest.split_once(' ').unwrap_or((rest, "null"));
    let call = |name: &str, arguments: &str| {
        let (named, positional) = match serde_json::from_str(arguments).unwrap() {
            Value::Object(named) => (named, Vec::new()),
            Value::Array(positional) => (crate::conversation::Object::new(), positional),
            _ => Default::default(),
        };
        host.call(HostCall { name: name.to_owned(), positional, named, line: number })
    };
    match word {
        "call" | "pos" => {
            let got = call(name, arguments).await.map_err(raised)?;
            outcome.variables.insert("got".into(), got);
        }
        "try" => caught(call(name, arguments).await, outcome)?,
        "both" => {
            let (first, second) = rest.split_once(" ;; ").unwrap();
            let of = |one: &str| call(one.split_once(' ').unwrap().0, one.split_once(' ').unwrap().1);
            let (first, second) = join(of(first), of(second)).await;
            outcome.variables.insert("got".into(), json!([first.map_err(raised)?, second.map_err(raised)?]));
        }
        "unawaited" => {
            let _ = call(name, arguments).await;
            outcome.unawaited.push(name.to_owned());
        }
        "exit" | "tryexit" => {
            let mut positional = vec![json!(name)];
            if arguments != "null" {
                positional.push(serde_json::from_str(arguments).unwrap());
            }
            let named = crate::conversation::Object::new();
            let given = host.call(HostCall { name: "exit".into(), positional, named, line: number }).await;
            if word == "exit" {
                given.map_err(raised)?;
            } else {
                caught(given, outcome)?;
            }
        }
        "inspect" => {
            let positional = vec![serde_json::from_str(rest).unwrap()];
            let named = crate::conversation::Object::new();
            host.call(HostCall { name: "inspect".into(), positional, named, line: number }).await.map_err(raised)?;
        }
        "set" => {
            outcome.variables.insert(name.to_owned(), serde_json::from_str(arguments).unwrap());
        }
        "print" => {
            host.printed(rest);
            outcome.printed.push_str(rest);
            outcome.printed.push('\n');
        }
        "value" => outcome.value = serde_json::from_str(rest).unwrap(),
        "raise" => return Err(error(CodeErrorKind::Raised, name, arguments)),
        "syntax" => return Err(error(CodeErrorKind::Syntax, "SyntaxError", "invalid syntax")),
        "over" => return Err(error(CodeErrorKind::Limit, "memory", "the code has used more than it may")),
        "spin" => std::future::pending().await,
        other => panic!("`{other}` is no statement"),
    }
    Ok(())
}

fn caught(given: Result<Value, HostRefusal>, outcome: &mut CodeOutcome) -> Result<(), CodeError> {
    match given {
        Ok(got) => outcome.variables.insert("got".into(), got),
        Err(HostRefusal::Raise { kind, message }) => {
            outcome.variables.insert("caught".into(), format!("{kind}: {message}").into())
        }
        Err(stop @ HostRefusal::Stop) => return Err(raised(stop)),
    };
    Ok(())
}

fn raised(refusal: HostRefusal) -> CodeError {
    match refusal {
        HostRefusal::Raise { kind, message } => error(CodeErrorKind::Raised, &kind, &message),
        HostRefusal::Stop => error(CodeErrorKind::Stopped, "stopped", ""),
    }
}

fn error(kind: CodeErrorKind, name: &str, message: &str) -> CodeError {
    CodeError { kind, name: name.to_owned(), message: message.to_owned(), frames: Vec::new() }
}
