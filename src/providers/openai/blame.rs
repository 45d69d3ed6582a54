//! What is said of a model that gave no answer.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::providers::wording::{cause, chain, without};
use crate::step::ModelError;

/// Statuses after which the same request may succeed.
const PASSING: [u16; 5] = [429, 500, 502, 503, 504];

/// How connections end whose other side is not there or goes away.
const DROPPED: [ErrorKind; 6] = [
    ErrorKind::ConnectionRefused,
    ErrorKind::ConnectionReset,
    ErrorKind::ConnectionAborted,
    ErrorKind::BrokenPipe,
    ErrorKind::NotConnected,
    ErrorKind::UnexpectedEof,
];

/// How much of a provider's reason is told, in characters.
const LONGEST_REASON: usize = 2_000;

/// How much of what is no completion is shown, in characters.
const LONGEST_EXCERPT: usize = 200;

/// Why an attempt gave no answer.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    /// Whether another attempt may do better.
    pub(super) is_passing: bool,
    /// How long the provider asks to wait before.
    pub(super) retry_after: Option<Duration>,
}

impl From<ModelError> for Failure {
    /// One that another attempt would not mend.
    fn from(error: ModelError) -> Self {
        Self { error, is_passing: false, retry_after: None }
    }
}

/// Makes the errors of one model. None of them holds its key.
pub(super) struct Blame {
    pub(super) model: String,
    /// Scheme, host and port.
    pub(super) address: String,
    pub(super) key: Option<String>,
    /// Values of headers, which may be keys too.
    pub(super) sent: Vec<String>,
}

impl Blame {
    /// The answer is no completion.
    pub(super) fn broken(&self, message: &str) -> ModelError {
        ModelError::Broken { model: self.model.clone(), message: self.without_key(message) }
    }

    /// It took too long to do `what`.
    pub(super) fn timeout(&self, what: &'static str, limit: Duration) -> ModelError {
        ModelError::Timeout { model: self.model.clone(), what, limit }
    }

    /// The provider said no.
    pub(super) fn refused(&self, status: u16, message: &str) -> Failure {
        let message = self.without_key(message).chars().take(LONGEST_REASON).collect();
        let error = ModelError::Refused { model: self.model.clone(), status, message };
        Failure { error, is_passing: PASSING.contains(&status), retry_after: None }
    }

    /// No answer was begun.
    pub(super) fn unanswered(&self, error: &reqwest::Error, connect_timeout: Duration) -> Failure {
        if error.is_connect() && error.is_timeout() {
            return self.timeout("accept the connection", connect_timeout).into();
        }
        let message = self.without_key(&cause(error));
        if chain(error).any(|error| error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)) {
            return self.broken(&format!("its answer is no HTTP: {message}")).into();
        }
        let message = format!("`{}`: {message}", self.address);
        let is_passing = chain(error).any(is_dropped);
        Failure { error: ModelError::Unreachable { model: self.model.clone(), message }, is_passing, retry_after: None }
    }

    /// The beginning of what the provider wrote, for an error.
    pub(super) fn excerpt(&self, written: &[u8]) -> String {
        let written = self.without_key(&String::from_utf8_lossy(written));
        let mut characters = written.trim().chars();
        let mut excerpt: String = characters.by_ref().take(LONGEST_EXCERPT).collect();
        if characters.next().is_some() {
            excerpt.push('…');
        }
        excerpt
    }

    fn without_key(&self, text: &str) -> String {
        let text = match self.key.as_deref().map(str::trim) {
            None | Some("") => text.to_owned(),
            Some(key) => text.replace(key, "[key]"),
        };
        without(&text, self.sent.iter().map(String::as_str))
    }
}

/// How long the provider asks to wait: seconds, or an HTTP date (RFC 9110, section 10.2.3).
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    wait(headers.get(RETRY_AFTER)?.to_str().ok()?, SystemTime::now())
}

fn wait(asked: &str, now: SystemTime) -> Option<Duration> {
    let asked = asked.trim();
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

fn is_dropped(error: &(dyn Error + 'static)) -> bool {
    let by_system = error.downcast_ref::<io::Error>().is_some_and(|error| DROPPED.contains(&error.kind()));
    by_system
        || error
            .downcast_ref::<hyper::Error>()
            .is_some_and(|error| error.is_incomplete_message() || error.is_canceled())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(wait(" 7 ", now), Some(Duration::from_secs(7)));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:40 GMT", now), Some(Duration::from_secs(3)));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:30 GMT", now), Some(Duration::ZERO));
        assert_eq!(wait("soon", now), None);
        assert_eq!(wait("-1", now), None);
    }

    #[test]
    fn an_excerpt_is_short_and_without_the_key() {
        let blame = Blame {
            model: "main".into(),
            address: "http://a.test".into(),
            key: Some("sk-1".into()),
            sent: vec!["of a gateway".into()],
        };
        let written = format!(" {}sk-1 and more", "a".repeat(195));
        assert_eq!(blame.excerpt(written.as_bytes()), format!("{}[key]…", "a".repeat(195)));
        assert_eq!(blame.excerpt(b"\xffsk-1 of a gateway\n"), "\u{fffd}[key] [secret]");
    }
}
