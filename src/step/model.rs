//! What a model is asked and what it answers, whoever serves it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::conversation::Object;
use crate::hooks::ModelSettings;
use crate::tools::ToolSpec;

/// A request as it goes out.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The chat messages, passed on as the JSON they are.
    pub messages: Vec<Arc<Object>>,
    /// The tools that the model is offered.
    pub tools: Vec<Arc<ToolSpec>>,
    /// What hooks override for this call.
    pub settings: ModelSettings,
}

/// What the model has answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// The assistant's text.
    pub text: Option<String>,
    /// The calls that it asks for.
    pub calls: Vec<RequestedCall>,
    /// How many tokens it has read and written, where the provider says so.
    pub usage: Option<Usage>,
    /// How long it took, where that is known.
    pub latency: Option<Duration>,
}

impl ModelReply {
    /// A text and nothing else.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Whether there is neither a text nor a call.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.text.as_ref().is_none_or(|text| text.trim().is_empty())
    }
}

/// A call that a model asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedCall {
    /// Its id, as the provider gives it; where it gives none, the engine does.
    pub id: Option<String>,
    /// The tool's name.
    pub tool_name: String,
    /// The arguments, or the text that the model wrote where a JSON object was expected.
    pub arguments: Result<Object, String>,
}

/// Tokens that a call has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Those of the request.
    pub input: u64,
    /// Those of the answer.
    pub output: u64,
}

/// Hears the text of an answer while it is made.
pub type Tokens<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Something that completes a conversation.
pub trait Model: Send + Sync {
    /// Its name, as the provider knows it.
    fn name(&self) -> &str;

    /// Who serves it, as the OpenTelemetry conventions for generative AI name them (`openai`, for instance); for spans.
    #[expect(clippy::unnecessary_literal_bound, reason = "others own their name")]
    fn provider(&self) -> &str {
        "custom"
    }

    /// Asks it. `tokens` hears the text piece by piece; where it is given, it has heard all of it when the answer is there.
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        tokens: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>>;
}

/// Why a model gave no answer. The text is for the log: no user and no model reads it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The provider said no.
    #[error("The model `{model}` refused the request with status {status}: {message}{}", hint(*status))]
    Refused {
        /// The model.
        model: String,
        /// The HTTP status.
        status: u16,
        /// What the provider says, cut at 2,000 characters.
        message: String,
    },
    /// The provider could not be reached.
    #[error(
        "The model `{model}` cannot be reached: {message}\n  hint: look at `api_base` in `integrations.yml`, and whether its server runs"
    )]
    Unreachable {
        /// The model.
        model: String,
        /// Why.
        message: String,
    },
    /// It did not answer in time.
    #[error("The model `{model}` did not {what} within {} ms", limit.as_millis())]
    Timeout {
        /// The model.
        model: String,
        /// `accept the connection`, `begin to answer`, `finish its answer`.
        what: &'static str,
        /// The time that it had.
        limit: Duration,
    },
    /// What it answered is no completion.
    #[error("The model `{model}` gave no completion: {message}")]
    Broken {
        /// The model.
        model: String,
        /// What is wrong with it.
        message: String,
    },
    /// A scripted or recorded model has no further answer.
    #[error("{0}")]
    Exhausted(String),
}

impl ModelError {
    /// What kind of failure it is, for spans: the status of a refusal, else a word.
    pub fn kind(&self) -> Cow<'static, str> {
        match self {
            Self::Refused { status, .. } => status.to_string().into(),
            Self::Unreachable { .. } => "unreachable".into(),
            Self::Timeout { .. } => "timeout".into(),
            Self::Broken { .. } => "broken".into(),
            Self::Exhausted(_) => "exhausted".into(),
        }
    }
}

const fn hint(status: u16) -> &'static str {
    match status {
        401 | 403 => "\n  hint: look at the API key that `integrations.yml` names, and what it may do",
        404 => "\n  hint: look at `model` and `api_base` in `integrations.yml`",
        429 => "\n  hint: the provider's limit is reached; it was asked again as it allows",
        _ => "",
    }
}
