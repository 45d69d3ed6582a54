//! What can be called: a tool's name, its schema, and calling it. Who calls, and when, is not known here.

mod invocation;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::conversation::{Event, Object, text_of_value};

pub(crate) use invocation::{Invocation, Said, context_of, is_cancelled, says};

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name, unique among those that are offered together.
    pub name: String,
    /// What it is for, in the words that the model reads.
    pub description: String,
    /// The JSON schema of its arguments: an object.
    pub parameters: Object,
}

impl ToolSpec {
    /// A tool without arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), parameters: no_arguments() }
    }

    /// The tool as the Chat Completions interface writes it.
    pub fn as_function(&self) -> Value {
        json!({"type": "function", "function": {
            "name": self.name, "description": self.description, "parameters": self.parameters,
        }})
    }
}

fn no_arguments() -> Object {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    if let Value::Object(schema) = schema { schema } else { unreachable!("it is written as an object") }
}

/// Where a tool is from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSource {
    /// The agent's own code.
    #[default]
    Local,
    /// The engine itself.
    Engine,
    /// A server that speaks the Model Context Protocol; its name stands beside.
    Mcp,
}

impl ToolSource {
    /// Its name in events.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Engine => "engine",
            Self::Mcp => "mcp",
        }
    }
}

/// What a call of a tool gave.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// What the model is to read.
    pub value: Value,
    /// Whether that is the account of a failure.
    pub is_error: bool,
    /// Skills that begin once the result is kept, the last of them first to be done.
    pub next: Vec<Activation>,
    /// Why the model of an execution is to look at the value before anything else happens, where it is.
    pub(crate) think: Option<String>,
    /// The builtin exception that the failure is, where it is one: generated code catches it by that name.
    pub(crate) raised: Option<&'static str>,
    /// The tool has not run: its arguments do not fit.
    pub(crate) refused: bool,
    /// The call that the user's yes has let run, where this is its result.
    pub(crate) confirmed: Option<Confirmed>,
}

/// A skill, or an ordered block of one, that is to begin.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Activation {
    /// The skill.
    pub skill_id: String,
    /// The block; none: the skill as a whole.
    #[serde(default)]
    pub ordered_block: Option<String>,
}

/// A call that ran after the user's yes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Confirmed {
    pub(crate) tool_name: String,
    pub(crate) arguments: Object,
    pub(crate) mcp_server: Option<String>,
}

impl ToolOutput {
    /// A result.
    pub fn of(value: impl Into<Value>) -> Self {
        Self {
            value: value.into(),
            is_error: false,
            next: Vec::new(),
            think: None,
            raised: None,
            refused: false,
            confirmed: None,
        }
    }

    /// A result that the model of an execution is to look at before anything else happens. In a turn it is a result as any other.
    pub fn thinking(reason: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { think: Some(reason.into()), ..Self::of(value) }
    }

    /// The account of a failure.
    pub fn error(message: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::of(message.into()) }
    }

    /// The account of a failure that is a builtin exception of Python's.
    pub(crate) fn raised(kind: &'static str, message: impl Into<String>) -> Self {
        Self { raised: Some(kind), ..Self::error(message) }
    }

    /// The result as the model reads it, and as hooks see it: a text as it is, else the text of the JSON document.
    pub fn text(&self) -> String {
        text_of_value(&self.value)
    }
}

/// What a tool may do beside giving a result.
pub trait ToolContext: Send + Sync {
    /// The conversation.
    fn sender_id(&self) -> &str;

    /// Says something to the user at once.
    fn send(&self, utterance: Utterance) -> BoxFuture<'_, ()>;

    /// Whether the turn has been cancelled: what it would do now nobody waits for.
    fn is_cancelled(&self) -> bool;

    /// Ends when the turn is cancelled, and never where nobody can tell.
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Shows a piece of a text that is sent as a whole when all its pieces are written. Where a hook may still change the text, nothing is
    /// shown before.
    fn write(&self, _piece: &str) {}

    /// Buttons for the next text that is said in the turn, whoever says it.
    fn set_buttons(&self, _buttons: Vec<Object>) {}

    /// The value of an entry of memory: bare, the active skill's before the project's, or with its namespace before it.
    fn recall(&self, _entry: &str) -> Option<Value> {
        None
    }

    /// Writes an entry of memory; null clears it.
    ///
    /// # Errors
    ///
    /// Why it is refused: it is not declared, the value does not fit, or it is written once a session.
    fn remember(&self, _entry: &str, _value: Value) -> Result<(), String> {
        Err("There is no memory".to_owned())
    }

    /// What has happened in the conversation, the turn that runs included.
    fn events(&self) -> Vec<Event> {
        Vec::new()
    }

    /// The name of the model that the agent asks.
    fn model(&self) -> String {
        String::new()
    }
}

/// What a tool says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Utterance {
    /// The text.
    pub text: String,
    /// Its buttons.
    pub buttons: Vec<Object>,
    /// Whatever else a channel may make use of.
    pub metadata: Object,
    /// Whether its pieces have been written before.
    pub streamed: bool,
}

impl<T: Into<String>> From<T> for Utterance {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Something that can be called. It never fails but by [`ToolOutput::is_error`].
pub trait Tool: Send + Sync {
    /// What the model is told of it.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Calls it with arguments that may not fit its schema.
    fn call(&self, arguments: Object, context: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput>;

    /// Where it is from.
    fn source(&self) -> ToolSource {
        ToolSource::Local
    }

    /// The name of the server that it is from, where it is from one.
    fn mcp_server(&self) -> Option<&str> {
        None
    }

    /// Whether a call that is under way when its turn is cancelled hears of it ([`ToolContext::cancelled`]) and ends by itself: then it has
    /// half a second for that. The call of a tool that does not is dropped at once.
    fn unwinds(&self) -> bool {
        false
    }

    /// How long a call may take; `None`: as the agent says.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

/// The tools of an agent.
pub trait Toolbox: Send + Sync {
    /// Those that are offered where the agent has no skills, in the order in which the model is told of them.
    fn offered(&self) -> Vec<Arc<dyn Tool>>;

    /// Those of a skill: its own, and those that it imports.
    fn of_skill(&self, _skill: &str) -> Vec<Arc<dyn Tool>> {
        self.offered()
    }

    /// How long a call may take where the tool does not say.
    fn timeout(&self) -> Duration {
        TOOL_TIMEOUT
    }
}

/// How long a tool may take unless the agent says otherwise (Tools document, `tool_timeout`).
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(10);

/// No tools at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

impl Toolbox for NoTools {
    fn offered(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}
