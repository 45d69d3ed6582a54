//! The sandbox for generated code: the package `pydantic-monty`, driven by a thread of Python's (`tenterhook.sandbox`).
//!
//! Calls of the code are answered within the future of the run, whoever polls it; the thread is told the answers through an eventfd. No
//! Rust thread of this crate attaches to the interpreter for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::error::Error;
use super::interpreter::{PythonChoice, ensure_started};
use super::loading::{AssistantOrder, ask};
use super::sandbox_post::{Office, SandboxGone, SandboxPost, SandboxSays};
use crate::conversation::Object;
use crate::execute::{
    Code, CodeError, CodeErrorKind, CodeFrame, CodeHost, CodeLimits, CodeOutcome, CodeRunner, CodeSession, HostCall,
    HostRefusal, RunnerError,
};

/// The post of the thread that sessions live on, once there is one, and the process that started it.
static THREAD: Mutex<Option<(Arc<Office>, u32)>> = Mutex::new(None);

static LAST: AtomicU64 = AtomicU64::new(0);

/// Opens sessions in the process's one pool of workers.
#[derive(Debug)]
pub(crate) struct PySandbox(());

impl PySandbox {
    /// Starts the interpreter, if the process has none yet. The pool is started by the first session.
    pub(crate) fn start(choice: &PythonChoice) -> Result<Self, Error> {
        ensure_started(choice)?;
        Ok(Self(()))
    }
}

impl CodeRunner for PySandbox {
    fn open(&self, limits: CodeLimits) -> BoxFuture<'_, Result<Box<dyn CodeSession>, RunnerError>> {
        Box::pin(async move {
            let office = office()?;
            let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            let (tell, told) = mpsc::unbounded_channel();
            office.listen(number, tell).map_err(refused)?;
            // From here on to drop it closes it.
            let mut session = PySession { office, number, told, over: None };
            session.office.order("open", number, 0, told_limits(&limits).to_string());
            match session.told.recv().await {
                Some(SandboxSays::Opened(None)) => Ok(Box::new(session) as Box<dyn CodeSession>),
                Some(SandboxSays::Opened(Some(why)) | SandboxSays::Closed(why)) => Err(RunnerError::Failed(why)),
                _ => Err(refused(session.office.gone().unwrap_or_else(|| SandboxGone::Failed("it has ended".into())))),
            }
        })
    }
}

/// The thread's post; the thread is started by the first who asks, and again where it has ended: the package may have been installed since.
fn office() -> Result<Arc<Office>, RunnerError> {
    let failed = |error: &dyn std::fmt::Display| RunnerError::Failed(error.to_string());
    let mut thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    match &*thread {
        Some((_, process)) if *process != std::process::id() => return Err(failed(&Error::Forked)),
        Some((office, _)) if office.gone().is_none() => return Ok(Arc::clone(office)),
        _ => {}
    }
    let office = Office::new().map_err(|error| failed(&error))?;
    ask(AssistantOrder::Sandbox(SandboxPost(Arc::clone(&office)))).map_err(|error| failed(&error))?;
    *thread = Some((Arc::clone(&office), std::process::id()));
    Ok(office)
}

fn refused(gone: SandboxGone) -> RunnerError {
    match gone {
        SandboxGone::Missing(what) => RunnerError::Missing(what),
        SandboxGone::Failed(why) => RunnerError::Failed(why),
    }
}

fn told_limits(limits: &CodeLimits) -> Value {
    json!({
        "time": limits.time.as_secs_f64(),
        "memory": limits.memory,
        "recursion": limits.recursion,
        "output": limits.output,
        "source": limits.source,
        "calls": limits.calls,
    })
}

/// A session; to drop it ends its worker's.
#[derive(Debug)]
struct PySession {
    office: Arc<Office>,
    number: u64,
    told: UnboundedReceiver<SandboxSays>,
    /// Why nothing runs in it any more.
    over: Option<String>,
}

impl Drop for PySession {
    fn drop(&mut self) {
        self.office.close(self.number);
    }
}

impl CodeSession for PySession {
    fn run<'a>(&'a mut self, code: Code, host: &'a dyn CodeHost) -> BoxFuture<'a, CodeOutcome> {
        Box::pin(async move {
            let started = Instant::now();
            if let Some(why) = &self.over {
                return crashed(why.clone(), String::new(), started.elapsed());
            }
            let order = json!({"source": code.source, "functions": code.functions, "variables": code.variables});
            self.over = Some("The session was left in the middle of a run".to_owned());
            let mut running = Running { session: self, ended: false };
            running.session.office.order("run", running.session.number, 0, order.to_string());
            let (outcome, over) = running.drive(host, started).await;
            running.ended = true;
            drop(running);
            self.over = over;
            outcome
        })
    }
}

/// A run; to drop it before its end ends the session.
struct Running<'a> {
    session: &'a mut PySession,
    ended: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.session.office.close(self.session.number);
        }
    }
}

impl Running<'_> {
    /// The outcome, and why the session is over, where it is.
    async fn drive(&mut self, host: &dyn CodeHost, started: Instant) -> (CodeOutcome, Option<String>) {
        let (office, number) = (Arc::clone(&self.session.office), self.session.number);
        let mut printed = String::new();
        let mut calls = FuturesUnordered::new();
        loop {
            let said = tokio::select! {
                biased;
                Some((call, answer)) = calls.next(), if !calls.is_empty() => {
                    office.order("answer", number, call, told_answer(answer).to_string());
                    continue;
                }
                said = self.session.told.recv() => said,
            };
            match said {
                Some(SandboxSays::Called { call, name, positional, named, line }) => {
                    match read_call(name, &positional, &named, line) {
                        Ok(made) => calls.push(async move { (call, host.call(made).await) }),
                        Err(refusal) => office.order("answer", number, call, told_answer(Err(refusal)).to_string()),
                    }
                }
                Some(SandboxSays::Printed(text)) => {
                    host.printed(&text);
                    printed.push_str(&text);
                }
                Some(SandboxSays::Ended(outcome)) => match serde_json::from_str::<Told>(&outcome) {
                    Ok(told) => {
                        let outcome = told.into_outcome(printed, started.elapsed());
                        let over =
                            outcome.session_ended.then(|| "The session has ended with an earlier run".to_owned());
                        return (outcome, over);
                    }
                    Err(error) => return ended(format!("its outcome cannot be read: {error}"), printed, started),
                },
                Some(SandboxSays::Closed(why)) => return ended(why, printed, started),
                Some(SandboxSays::Opened(_)) => {}
                None => return ended("its thread has ended".to_owned(), printed, started),
            }
        }
    }
}

fn ended(why: String, printed: String, started: Instant) -> (CodeOutcome, Option<String>) {
    (crashed(format!("The sandbox has ended: {why}"), printed, started.elapsed()), Some(why))
}

fn crashed(message: String, printed: String, elapsed: Duration) -> CodeOutcome {
    let error =
        CodeError { kind: CodeErrorKind::Crashed, name: "SandboxCrashed".to_owned(), message, frames: Vec::new() };
    CodeOutcome { printed, error: Some(error), elapsed, session_ended: true, ..CodeOutcome::default() }
}

fn read_call(
    name: String,
    positional: &[String],
    named: &[(String, String)],
    line: u32,
) -> Result<HostCall, HostRefusal> {
    let read = |text: &String| serde_json::from_str::<Value>(text);
    let positional = positional.iter().map(read).collect::<Result<_, _>>();
    let named = named.iter().map(|(name, text)| Ok((name.clone(), read(text)?))).collect::<Result<Object, _>>();
    match (positional, named) {
        (Ok(positional), Ok(named)) => Ok(HostCall { name, positional, named, line }),
        (Err(error), _) | (_, Err(error)) => {
            let message = format!("{name}(): an argument cannot be read: {error}");
            Err(HostRefusal::Raise { kind: "TypeError".to_owned(), message })
        }
    }
}

fn told_answer(answer: Result<Value, HostRefusal>) -> Value {
    match answer {
        Ok(value) => json!({"value": value.to_string()}),
        Err(HostRefusal::Raise { kind, message }) => json!({"raise": [kind, message]}),
        Err(HostRefusal::Stop) => json!({"stop": true}),
    }
}

/// An outcome as the thread tells it.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Told {
    value: Option<String>,
    variables: Object,
    unawaited: Vec<String>,
    error: Option<ToldError>,
    session_ended: bool,
}

#[derive(Deserialize)]
struct ToldError {
    kind: String,
    name: String,
    message: String,
    frames: Vec<ToldFrame>,
}

#[derive(Deserialize)]
struct ToldFrame {
    line: u32,
    column: u32,
    end_column: u32,
    function: Option<String>,
}

impl Told {
    fn into_outcome(self, printed: String, elapsed: Duration) -> CodeOutcome {
        CodeOutcome {
            value: self.value.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
            variables: self.variables,
            printed,
            unawaited: self.unawaited,
            error: self.error.map(Into::into),
            elapsed,
            session_ended: self.session_ended,
        }
    }
}

impl From<ToldError> for CodeError {
    fn from(told: ToldError) -> Self {
        let kind = match told.kind.as_str() {
            "syntax" => CodeErrorKind::Syntax,
            "raised" => CodeErrorKind::Raised,
            "limit" => CodeErrorKind::Limit,
            "stopped" => CodeErrorKind::Stopped,
            _ => CodeErrorKind::Crashed,
        };
        let frame = |told: ToldFrame| CodeFrame {
            line: told.line,
            column: told.column,
            end_column: told.end_column,
            function: told.function,
        };
        Self { kind, name: told.name, message: told.message, frames: told.frames.into_iter().map(frame).collect() }
    }
}
