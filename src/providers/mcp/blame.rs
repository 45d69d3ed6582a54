//! What is said of a server that did not do what it was asked.

use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::config::{McpServerConfig, McpTransport};
use super::error::McpError;
use crate::providers::authorization::HttpAuthorization;
use crate::providers::wording::{cause, chain, excerpt};

/// Why a call gave no result.
#[derive(Debug, PartialEq)]
pub(super) enum Failure {
    /// The server says so; its words are for whoever called.
    Said(String),
    /// The server does not know the session: the call has not begun.
    Expired,
    /// The connection is gone; the call may have had its effect.
    Lost(String),
    /// The server answers otherwise than it should.
    Broken(String),
}

impl Failure {
    /// Why a call gave no result.
    pub(super) fn of(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::Said(error.message.into_owned()),
            ServiceError::TransportSend(error) => match http(&error) {
                Some(StreamableHttpError::SessionExpired) => Self::Expired,
                Some(StreamableHttpError::Client(error)) => Self::Lost(cause(error)),
                Some(error) if refusal(error).is_some() || is_answer(error) => Self::Broken(described(error)),
                Some(error) => Self::Lost(described(error)),
                None => Self::Lost(cause(error.error.as_ref())),
            },
            ServiceError::TransportClosed => Self::Lost("the connection ended before the answer did".to_owned()),
            other => Self::Broken(other.to_string()),
        }
    }
}

/// Makes the errors of one server as it is connected to. None of them holds what is secret.
pub(super) struct Blame<'c> {
    pub(super) config: &'c McpServerConfig,
}

impl Blame<'_> {
    /// No session was opened; `ended` is how the server's process has ended, where it has.
    pub(super) fn unopened(&self, error: &ClientInitializeError, ended: Option<String>) -> McpError {
        if let Some(ended) = ended {
            return self.unreachable(&ended);
        }
        match error {
            ClientInitializeError::TransportError { error, .. } => self.unsent(error),
            ClientInitializeError::JsonRpcError(error) => self.said(error),
            ClientInitializeError::ConnectionClosed(_) => self.not_mcp("it does not answer `initialize`"),
            _ => self.not_mcp("its answer to `initialize` is another"),
        }
    }

    /// The tools were not listed.
    pub(super) fn unlisted(&self, error: &ServiceError, ended: Option<String>) -> McpError {
        if let Some(ended) = ended {
            return self.unreachable(&ended);
        }
        match error {
            ServiceError::TransportSend(error) => self.unsent(error),
            ServiceError::McpError(error) => self.said(error),
            ServiceError::TransportClosed => self.unreachable("it broke off the connection"),
            _ => self.not_mcp("its answer to `tools/list` is no list of tools"),
        }
    }

    /// It took too long; `said` is what it last wrote on its standard error.
    pub(super) fn late(&self, said: &str) -> McpError {
        let said = if said.is_empty() { String::new() } else { format!(": it last said `{}`", self.excerpt(said)) };
        McpError::Timeout {
            server: self.config.name.clone(),
            place: self.config.place(),
            limit: self.config.connect_timeout,
            said,
        }
    }

    fn unsent(&self, error: &DynamicTransportError) -> McpError {
        match http(error) {
            Some(error) => self.unanswered(error),
            None => self.unreachable(&cause(error.error.as_ref())),
        }
    }

    /// A request over HTTP has no answer, or none that is meant.
    pub(super) fn unanswered(&self, error: &StreamableHttpError<reqwest::Error>) -> McpError {
        match (refusal(error), error) {
            (Some(status), _) => self.refused(status),
            (None, StreamableHttpError::Client(error)) if is_no_http(error) => {
                self.not_mcp(&format!("its answer is no HTTP: {}", cause(error)))
            }
            (None, StreamableHttpError::UnexpectedContentType(Some(kind))) => {
                self.not_mcp(&format!("it answers with `{kind}`"))
            }
            (None, error) if is_answer(error) => self.not_mcp(&described(error)),
            (None, error) => self.unreachable(&described(error)),
        }
    }

    fn said(&self, error: &ErrorData) -> McpError {
        self.not_mcp(&format!("it says `{}`", self.excerpt(&error.message)))
    }

    fn unreachable(&self, reason: &str) -> McpError {
        let hint = match self.config.transport {
            McpTransport::Http { .. } | McpTransport::Sse { .. } => "start it, or correct its `url`",
            McpTransport::Stdio { .. } => "run its `command` by hand to see what it lacks",
        };
        let reason = self.excerpt(reason);
        McpError::Unreachable { server: self.config.name.clone(), place: self.config.place(), reason, hint }
    }

    /// Its answer is another than such servers give.
    pub(super) fn not_mcp(&self, reason: &str) -> McpError {
        let hint = match self.config.transport {
            McpTransport::Http { .. } => "its `url` ends with the path of its endpoint, often `/mcp`",
            McpTransport::Sse { .. } => "its `url` ends with the path of its events, often `/sse`",
            McpTransport::Stdio { .. } => "its `command` must start a server that speaks MCP on its standard output",
        };
        let reason = self.excerpt(reason);
        McpError::NotMcp { server: self.config.name.clone(), place: self.config.place(), reason, hint }
    }

    fn refused(&self, status: u16) -> McpError {
        let given = self.config.transport.authorization().filter(|given| !matches!(given.header(), Ok(None)));
        let (what, hint) = match (given, status) {
            (None, _) => ("requests without a token", "give it a `token`"),
            (Some(HttpAuthorization::Bearer(_)), 403) => {
                ("what the token is for", "its `token` must allow that tools are listed and called")
            }
            (Some(HttpAuthorization::Bearer(_)), _) => {
                ("the token", "correct its `token`: it may have expired, or belong to another server")
            }
            (Some(_), 403) => ("who asks", "the key or user must be allowed to list tools and to call them"),
            (Some(HttpAuthorization::Header { .. }), _) => {
                ("the key", "correct its key, and see that the header has the name that the server wants")
            }
            (Some(HttpAuthorization::Basic { .. }), _) => {
                ("the user", "correct its user name and password: they may belong to another server")
            }
        };
        McpError::Refused { server: self.config.name.clone(), place: self.config.place(), status, what, hint }
    }

    /// The beginning of what a server wrote, on one line.
    fn excerpt(&self, written: &str) -> String {
        excerpt(&self.config.without_secrets(written))
    }
}

/// The account of a message that is longer than it may be.
pub(super) fn too_long(longest: usize) -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, format!("The result is longer than {longest} bytes"), None)
}

/// The account of a message that is none of the protocol.
pub(super) fn unreadable() -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, "The result cannot be read", None)
}

fn http(error: &DynamicTransportError) -> Option<&StreamableHttpError<reqwest::Error>> {
    error.error.downcast_ref()
}

/// The status of an answer that says who may ask: 401 or 403.
fn refusal(error: &StreamableHttpError<reqwest::Error>) -> Option<u16> {
    match error {
        StreamableHttpError::AuthRequired(_) => Some(401),
        StreamableHttpError::InsufficientScope(_) => Some(403),
        StreamableHttpError::UnexpectedServerResponse(said) => {
            [401, 403].into_iter().find(|status| said.starts_with(&format!("HTTP {status}")))
        }
        _ => None,
    }
}

/// Whether somebody has answered, though with something else.
fn is_answer(error: &StreamableHttpError<reqwest::Error>) -> bool {
    matches!(
        error,
        StreamableHttpError::HttpStatus(_)
            | StreamableHttpError::UnexpectedServerResponse(_)
            | StreamableHttpError::UnexpectedContentType(_)
            | StreamableHttpError::ResponseBodyTooLarge { .. }
            | StreamableHttpError::MissingSessionIdInResponse
            | StreamableHttpError::Deserialize(_)
            | StreamableHttpError::Sse(_)
    )
}

fn is_no_http(error: &reqwest::Error) -> bool {
    chain(error).any(|error| error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse))
}

/// What has been answered, all of it, with whatever is secret.
fn described(error: &StreamableHttpError<reqwest::Error>) -> String {
    match error {
        // The library's own words, which name its types, unless they are the status and the body.
        StreamableHttpError::UnexpectedServerResponse(said) if said.starts_with("HTTP ") => said.to_string(),
        StreamableHttpError::UnexpectedServerResponse(_) => "its answer is no message of the protocol".to_owned(),
        StreamableHttpError::HttpStatus(answer) => format!("HTTP {}", answer.status),
        StreamableHttpError::Client(error) => cause(error),
        StreamableHttpError::AuthRequired(_) => "HTTP 401".to_owned(),
        StreamableHttpError::InsufficientScope(_) => "HTTP 403".to_owned(),
        other => other.to_string(),
    }
}
