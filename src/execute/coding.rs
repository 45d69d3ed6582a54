//! Running the code of an iteration, and what its end means.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use serde_json::Value;

use super::calling::{Desk, EXIT, INSPECT, Stop};
use super::exiting::Reached;
use super::hooks::{ExecutionHook, HookFailure};
use super::journal::{Ended, Journal, shown};
use super::listing::listing;
use super::run::Course;
use super::runner::{Code, CodeError, CodeErrorKind, CodeOutcome};
use super::running::now_ms;
use super::status::Status;
use super::trace::Traced;
use crate::conversation::Object;
use crate::dispatch::sleep;

/// How long tools that run when the execution is aborted have to end.
const UNWINDING: Duration = Duration::from_secs(2);

impl Course {
    /// Runs code.
    pub(super) async fn run_code(
        &mut self,
        journal: &Arc<Journal>,
        source: &str,
        native_call_id: Option<String>,
    ) -> Result<Ended, Ended> {
        let plan = &self.running.plan;
        if self.session.is_none() {
            let Some(runner) = &plan.runner else { unreachable!("a plan without a runner is not let through") };
            let opened = match select(runner.open(plan.limits), pin!(self.running.controller.aborted())).await {
                Either::Left((opened, _)) => Some(opened),
                Either::Right(_) => None,
            };
            journal.unless_aborted()?;
            let Some(opened) = opened else { unreachable!("what was not waited for was aborted") };
            // Without a sandbox no model has anything to go on with.
            self.session = Some(opened.map_err(|error| Ended::fatal(error.to_string()))?);
            self.rebind = true;
        }
        let Some(session) = &mut self.session else { unreachable!("it was opened") };
        let tools = plan.tools.iter().map(|tool| tool.tool.spec().name.clone());
        let variables = if std::mem::take(&mut self.rebind) { journal.now().variables.clone() } else { Object::new() };
        let code = Code {
            source: source.to_owned(),
            functions: tools.chain([EXIT.to_owned(), INSPECT.to_owned()]).collect(),
            variables,
        };
        let desk = Desk::new(Arc::clone(journal), native_call_id);
        let started_at = now_ms();
        let outcome = {
            let run = pin!(session.run(code, &desk));
            match select(run, pin!(self.running.controller.aborted())).await {
                Either::Left((outcome, _)) => Some(outcome),
                // Tools that run hear of it, and have a moment to end; the code itself goes no further.
                Either::Right(((), run)) => {
                    let (idle, limit) = (pin!(desk.idles()), pin!(sleep(UNWINDING)));
                    match select(run, select(idle, limit)).await {
                        Either::Left((outcome, _)) => Some(outcome),
                        Either::Right(_) => None,
                    }
                }
            }
        };
        let (stop, thoughts) = desk.closed();
        let Some(outcome) = outcome else {
            // What was dropped in the middle is over.
            self.session = None;
            journal.unless_aborted()?;
            unreachable!("what was not waited for was aborted")
        };
        if outcome.session_ended {
            self.session = None;
        }
        let outcome = Arc::new(outcome);
        journal.change(|iteration| {
            iteration.variables.extend(outcome.variables.clone());
            iteration.outcome = Some(Arc::clone(&outcome));
        });
        let failed = trace_end(journal, started_at, source, &outcome);
        journal.running.hooks().traces_heard().await;
        if let Some(Stop::Critical(message)) = stop {
            journal.unless_aborted()?;
            return Err(Ended::fatal(message));
        }
        journal.unless_aborted()?;
        if !thoughts.is_empty() {
            return Ok(Ended::so(thinking(&thoughts)));
        }
        if !outcome.unawaited.is_empty() {
            return Ok(Ended::so(unawaited(&outcome.unawaited)));
        }
        match (stop, failed) {
            (Some(Stop::Exit(reached)), _) => exit(journal, reached).await,
            (Some(Stop::Inspect(value)), _) => {
                let variables = Object::from_iter([("value".to_owned(), value)]);
                let reason = Some("The code has shown a value".to_owned());
                Ok(Ended::so(Status::ThinkingRequested { reason, variables }))
            }
            (Some(Stop::Overspent(message)), _) => {
                Ok(Ended::so(Status::ExecutionError { message, stack: String::new() }))
            }
            (_, Some(failed)) => Ok(Ended::so(failed)),
            (_, None) => {
                let mut variables = outcome.variables.clone();
                if !outcome.value.is_null() {
                    variables.insert("_".to_owned(), outcome.value.clone());
                }
                Ok(Ended::so(Status::ThinkingRequested { reason: None, variables }))
            }
        }
    }
}

/// Takes an exit, unless a hook is against it.
pub(super) async fn exit(journal: &Journal, reached: Reached) -> Result<Ended, Ended> {
    let running = &journal.running;
    let exit = &running.plan.exits[reached.exit];
    let (seen, result) = (exit.seen(), reached.result);
    let given = running.hook(ExecutionHook::OnExit, |hooks| hooks.on_exit(&seen, &result, &running.controller)).await;
    journal.unless_aborted()?;
    match given {
        Ok(()) => Ok(Ended::so(Status::ExitSuccess { exit_name: seen.name, return_value: result })),
        Err(failure @ (HookFailure::Failed { .. } | HookFailure::TimedOut { .. })) => {
            let message = format!("Error executing exit {}: {}", seen.name, failure.message());
            Err(Ended::so(Status::ExitError { exit: seen.name, return_value: result, message }))
        }
        Err(failure) => Err(journal.refused(ExecutionHook::OnExit, failure)),
    }
}

/// Traces the end of code; how the iteration ends where the code has failed.
fn trace_end(journal: &Journal, started_at: u64, source: &str, outcome: &CodeOutcome) -> Option<Status> {
    let error = outcome.error.as_ref().filter(|error| error.kind != CodeErrorKind::Stopped);
    let Some(error) = error else {
        journal.trace_since(started_at, Traced::CodeExecution { lines: source.lines().count() });
        return None;
    };
    let (message, stack) = (told(error), listing(source, &error.frames));
    if error.kind == CodeErrorKind::Syntax {
        let code = source.to_owned();
        journal.trace_since(started_at, Traced::InvalidCodeException { message: message.clone(), code });
        return Some(Status::InvalidCodeError { message });
    }
    journal.trace_since(
        started_at,
        Traced::CodeExecutionException {
            position: error.frames.last().cloned(),
            message: message.clone(),
            stack_trace: stack.clone(),
        },
    );
    Some(Status::ExecutionError { message, stack })
}

/// An error as the last line of a traceback tells it.
fn told(error: &CodeError) -> String {
    match (error.name.as_str(), error.message.as_str()) {
        ("", message) => message.to_owned(),
        (name, "") => name.to_owned(),
        (name, message) => format!("{name}: {message}"),
    }
}

fn thinking(thoughts: &[(String, Value)]) -> Status {
    let reasons: Vec<_> = thoughts.iter().map(|(reason, _)| reason.clone()).collect();
    let variables = thoughts.iter().flat_map(|(_, context)| shown(context)).collect();
    Status::ThinkingRequested { reason: Some(reasons.join("; ")), variables }
}

fn unawaited(names: &[String]) -> Status {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let message = format!(
        "The code came to its end without waiting for what it had called: {}. Each call of a tool needs `await`",
        names.join(", ")
    );
    Status::ExecutionError { message, stack: String::new() }
}
