//! What runs generated code, and what that code reaches.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use crate::conversation::Object;

/// What generated code may use. A limit that fires ends the code, and is an error of its iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeLimits {
    /// How long the code of one iteration may compute; to wait for tools does not count. By default 60 s.
    pub time: Duration,
    /// The memory that its values may take, in bytes. By default 128 MiB.
    pub memory: usize,
    /// How deep its calls may go. By default 1,000.
    pub recursion: usize,
    /// What it may print in one iteration, in bytes. By default 64 KiB.
    pub output: usize,
    /// The size of a source, in bytes. By default 64 KiB.
    pub source: usize,
    /// How often it may reach the host in one execution. By default 10,000.
    pub calls: usize,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_mins(1),
            memory: 128 << 20,
            recursion: 1_000,
            output: 64 << 10,
            source: 64 << 10,
            calls: 10_000,
        }
    }
}

/// A sandbox for Python code that a model has written. It reaches nothing of the machine but the functions that it is given.
pub trait CodeRunner: Send + Sync {
    /// Opens a session: what its code defines is there for the code that comes after it.
    fn open(&self, limits: CodeLimits) -> BoxFuture<'_, Result<Box<dyn CodeSession>, RunnerError>>;
}

/// A session of one execution. To drop it ends it, whatever runs in it.
pub trait CodeSession: Send {
    /// Runs code. To drop the future ends what runs, and the session with it.
    fn run<'a>(&'a mut self, code: Code, host: &'a dyn CodeHost) -> BoxFuture<'a, CodeOutcome>;
}

/// Code to be run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Code {
    /// The source.
    pub source: String,
    /// The names that reach [`CodeHost::call`]; all others are the code's own.
    pub functions: Vec<String>,
    /// Values that are bound to names before.
    pub variables: Object,
}

/// Answers what generated code calls. Calls that the code gathers are under way at once.
pub trait CodeHost: Send + Sync {
    /// Calls a function.
    fn call(&self, call: HostCall) -> BoxFuture<'_, Result<Value, HostRefusal>>;

    /// The code has printed something.
    fn printed(&self, text: &str);
}

/// A call of a function, as the code makes it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCall {
    /// The function.
    pub name: String,
    /// Arguments without a name, in order.
    pub positional: Vec<Value>,
    /// Arguments with one.
    pub named: Object,
    /// The line of the source that it stands on, from 1.
    pub line: u32,
}

/// A call that gives no value.
#[derive(Clone, Debug, PartialEq)]
pub enum HostRefusal {
    /// It raises, and the code may catch it.
    Raise {
        /// The exception's type: a builtin one, such as `ValueError`.
        kind: String,
        /// Its text.
        message: String,
    },
    /// The code ends here, whatever it catches.
    Stop,
}

/// What has come of code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CodeOutcome {
    /// What it has returned, or the value of its last expression.
    pub value: Value,
    /// The values of the variables that it has set, as far as they are JSON.
    pub variables: Object,
    /// What it has printed.
    pub printed: String,
    /// Calls that it has begun and not waited for, by the functions' names; they have ended.
    pub unawaited: Vec<String>,
    /// Why it did not come to its end.
    pub error: Option<CodeError>,
    /// How long it has run, waiting included.
    pub elapsed: Duration,
    /// Whether the session is over: what it defined is lost.
    pub session_ended: bool,
}

/// Why code did not come to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CodeError {
    /// What kind of end it is.
    pub kind: CodeErrorKind,
    /// The exception's type, where one was raised; else a word.
    pub name: String,
    /// What it says.
    pub message: String,
    /// Where in the code, from the outermost call inwards.
    pub frames: Vec<CodeFrame>,
}

/// How code ended that did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeErrorKind {
    /// It cannot be read.
    Syntax,
    /// It has raised.
    Raised,
    /// It has met one of the [`CodeLimits`].
    Limit,
    /// A call has stopped it ([`HostRefusal::Stop`]).
    Stopped,
    /// The sandbox itself has ended.
    Crashed,
}

/// A place in generated code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeFrame {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// Where the range ends on that line; the column where that is not known.
    pub end_column: u32,
    /// The function, where it stands in one.
    pub function: Option<String>,
}

/// Why there is no sandbox.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// What it needs is not installed.
    #[error("There is no sandbox for generated code: {0}")]
    Missing(String),
    /// It did not start.
    #[error("The sandbox for generated code did not start: {0}")]
    Failed(String),
}
