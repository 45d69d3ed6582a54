//! What has come back.

use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Response, StatusCode, Url};
use serde_json::Value;

use crate::providers::wording::cause;
use crate::tools::ToolOutput;

/// The longest answer that is read, in bytes, as of MCP servers.
const LONGEST_ANSWER: usize = 8_000_000;

/// How much is read of an answer that says no, in bytes.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// Why a call has no result.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    /// What may be logged.
    pub(super) reason: String,
    /// What the server says, all of it, with whatever is secret; empty where it says nothing.
    pub(super) said: String,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self { reason, said: String::new() }
    }
}

/// The result of an answer: a JSON document as what it is, everything else as a text.
pub(super) async fn read(mut response: Response) -> Result<ToolOutput, Failure> {
    let (status, headers) = (response.status(), response.headers().clone());
    if !status.is_success() {
        return Err(refusal(response, status, &headers).await);
    }
    let too_long = || Failure::from(format!("its answer is longer than {LONGEST_ANSWER} bytes"));
    if response.content_length().is_some_and(|length| length > LONGEST_ANSWER as u64) {
        return Err(too_long());
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > LONGEST_ANSWER => return Err(too_long()),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => {
                return Err(format!("its answer broke off after {} bytes: {}", body.len(), cause(&error)).into());
            }
        }
    }
    result(&kind(&headers), body)
}

async fn refusal(mut response: Response, status: StatusCode, headers: &HeaderMap) -> Failure {
    let reason = format!("HTTP {status}");
    if status.is_redirection() {
        let to = headers.get(LOCATION).and_then(|to| response.url().join(to.to_str().ok()?).ok());
        // A path or a query may hold what is meant for that host alone.
        let to = to.as_ref().map(Url::origin).map(|origin| origin.ascii_serialization());
        return format!("{reason}: it redirects to {}", to.map_or("nowhere".to_owned(), |to| format!("`{to}`"))).into();
    }
    let mut said = Vec::new();
    // What is there of it may say why.
    while said.len() < LONGEST_REFUSAL
        && let Ok(Some(chunk)) = response.chunk().await
    {
        said.extend_from_slice(&chunk);
    }
    Failure { reason, said: String::from_utf8_lossy(&said).into_owned() }
}

/// What the body is, in small letters and without parameters.
fn kind(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn result(kind: &str, body: Vec<u8>) -> Result<ToolOutput, Failure> {
    let is_json = kind == "application/json" || kind.ends_with("+json");
    if body.trim_ascii().is_empty() {
        return Ok(ToolOutput::of(""));
    }
    // Some servers do not say what they send.
    if is_json || kind.is_empty() {
        match serde_json::from_slice::<Value>(&body) {
            Ok(document) => return Ok(ToolOutput::of(document)),
            Err(error) if is_json => {
                let said = String::from_utf8_lossy(&body).into_owned();
                return Err(Failure { reason: format!("its answer is no JSON: {}", position(&error)), said });
            }
            Err(_) => {}
        }
    }
    let length = body.len();
    match String::from_utf8(body) {
        Ok(text) => Ok(ToolOutput::of(text)),
        Err(text) if kind.starts_with("text/") => {
            Ok(ToolOutput::of(String::from_utf8_lossy(text.as_bytes()).into_owned()))
        }
        Err(_) => {
            let kind = if kind.is_empty() { "application/octet-stream" } else { kind };
            Ok(ToolOutput::of(format!("[{kind}, {length} bytes]")))
        }
    }
}

/// Where a document is wrong: the reader's own words quote it.
fn position(error: &serde_json::Error) -> String {
    let what = if error.is_eof() { "it ends too early" } else { "it is broken" };
    format!("{what} in line {}, column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(kind: &str, body: &[u8]) -> Result<ToolOutput, Failure> {
        result(kind, body.to_vec())
    }

    #[test]
    fn a_document_is_what_it_is_and_everything_else_a_text() {
        let document = Ok(ToolOutput::of(json!({"a": 1})));
        for kind in ["application/json", "application/problem+json", ""] {
            assert_eq!(of(kind, b"{\"a\": 1}"), document, "{kind}");
        }
        assert_eq!(of("text/plain", b"{\"a\": 1}"), Ok(ToolOutput::of("{\"a\": 1}")));
        assert_eq!(of("", b"hello"), Ok(ToolOutput::of("hello")));
        assert_eq!(of("application/json", b" \n"), Ok(ToolOutput::of("")));
        assert_eq!(of("text/plain", b"a\xff"), Ok(ToolOutput::of("a\u{fffd}")));
        assert_eq!(of("image/png", b"\x89PNG\xff"), Ok(ToolOutput::of("[image/png, 5 bytes]")));
        assert_eq!(of("", b"\xff"), Ok(ToolOutput::of("[application/octet-stream, 1 bytes]")));
    }

    #[test]
    fn broken_json_is_told_with_its_place_and_beginning() {
        let failure = |reason: &str, said: &str| Err(Failure { reason: reason.into(), said: said.into() });
        assert_eq!(
            of("application/json", b"{\"a\": [1,\n 2"),
            failure("its answer is no JSON: it ends too early in line 2, column 2", "{\"a\": [1,\n 2")
        );
        assert_eq!(
            of("application/json", b"<html>"),
            failure("its answer is no JSON: it is broken in line 1, column 1", "<html>")
        );
    }
}
