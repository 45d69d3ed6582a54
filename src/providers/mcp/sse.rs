//! The HTTP transport of before 2025 ([HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports)): one stream
//! of events, asked for with GET, on which all answers come; the first event names the address that messages are posted to.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _, try_unfold};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use sse_stream::SseByteStream;

use super::blame::{Blame, too_long, unreadable};
use super::config::McpServerConfig;
use super::error::McpError;
use super::http;
use super::pipe::answered;
use crate::telemetry::TURN;

/// How much is read of an answer that says no, in bytes.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// The errors of the newer transport, which all are told of in the same words.
type Failed = StreamableHttpError<reqwest::Error>;

type Events = BoxStream<'static, Result<sse_stream::Sse, sse_stream::Error>>;

/// The connection to a server. It ends with its stream.
pub(super) struct SseTransport {
    client: Client,
    headers: HeaderMap,
    /// Where messages are posted to.
    messages: Url,
    events: Option<Events>,
    longest: usize,
}

/// Opens the stream and waits for the address of messages. Whoever calls keeps the time.
pub(super) async fn transport(config: &McpServerConfig, url: &str) -> Result<SseTransport, McpError> {
    let url = http::address(config, url)?;
    let client = http::client(config, &url)?;
    let headers: HeaderMap = http::authorization(config)?.into_iter().collect();
    let blame = Blame { config };
    let asked = client.get(url).headers(headers.clone()).header(ACCEPT, "text/event-stream");
    let response = asked.send().await.map_err(|error| blame.unanswered(&Failed::Client(error)))?;
    let response = accepted(response).await.map_err(|error| blame.unanswered(&error))?;
    let kind = response.headers().get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
    if !kind.as_ref().is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")) {
        return Err(blame.unanswered(&Failed::UnexpectedContentType(kind)));
    }
    let base = response.url().clone();
    let longest = config.longest_message;
    let mut events = SseByteStream::new(bounded(response, longest)).boxed();
    let endpoint = loop {
        match events.next().await {
            Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => break event.data.unwrap_or_default(),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Err(blame.not_mcp("its events end before one names an address for messages")),
        }
    };
    // The credentials are meant for the server that is configured.
    let messages = base.join(endpoint.trim()).ok().filter(|messages| messages.origin() == base.origin());
    let Some(messages) = messages else {
        return Err(blame.not_mcp("the address that it names for messages is none of its own"));
    };
    Ok(SseTransport { client, headers, messages, events: Some(events), longest })
}

impl Transport<RoleClient> for SseTransport {
    type Error = Failed;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let request = self.client.post(self.messages.clone()).headers(self.headers.clone());
        async move {
            let body = serde_json::to_vec(&message)?;
            let request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body);
            let response = request.send().await.map_err(Failed::Client)?;
            if response.status() == StatusCode::NOT_FOUND {
                // It does not know the session.
                return Err(Failed::SessionExpired);
            }
            accepted(response).await.map(drop)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = match self.events.as_mut()?.next().await? {
                Ok(event) => event,
                Err(error) => {
                    tracing::debug!(target: TURN, "The events of an MCP server broke off: {error}");
                    return None;
                }
            };
            if event.event.as_deref().is_some_and(|kind| kind != "message") {
                continue;
            }
            let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else { continue };
            let is_whole = data.len() <= self.longest;
            let error = match serde_json::from_str(&data) {
                _ if !is_whole => too_long(self.longest),
                Ok(message) => return Some(message),
                Err(error) => {
                    tracing::debug!(target: TURN, "What an MCP server sent cannot be read: {error}");
                    unreadable()
                }
            };
            match answered(data.as_bytes()) {
                // Nobody else would tell who waits for it.
                Some(request) => return Some(ServerJsonRpcMessage::error(error, Some(request))),
                // Whose answer that was is not to be found out: the connection ends, and with it all calls.
                None if !is_whole => return None,
                None => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.events.take();
        Ok(())
    }
}

impl fmt::Debug for SseTransport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SseTransport").field("longest", &self.longest).finish_non_exhaustive()
    }
}

/// The answer, where it is none that says no.
async fn accepted(mut response: Response) -> Result<Response, Failed> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let mut said = Vec::new();
    // What is there of it may say why.
    while said.len() < LONGEST_REFUSAL
        && let Ok(Some(chunk)) = response.chunk().await
    {
        said.extend_from_slice(&chunk);
    }
    let said = format!("HTTP {status}: {}", String::from_utf8_lossy(&said));
    Err(Failed::UnexpectedServerResponse(said.into()))
}

/// The body as it comes, without what an event has beyond its longest.
fn bounded(response: Response, longest: usize) -> BoxStream<'static, Result<Bytes, reqwest::Error>> {
    let start = (response, Cut { longest, ..Cut::default() });
    let chunks = try_unfold(start, |(mut response, mut cut)| async move {
        let Some(chunk) = response.chunk().await? else { return Ok(None) };
        Ok(Some((cut.kept(chunk), (response, cut))))
    });
    chunks.boxed()
}

/// Leaves out what is too much of an event, so that it comes to its end without being kept; its beginning tells whose answer it is.
#[derive(Debug, Default)]
struct Cut {
    longest: usize,
    /// How much the event has so far.
    length: usize,
    last: u8,
    /// Whether nothing stands on the line yet.
    is_bare: bool,
    /// Whether the rest of the event is left out.
    is_full: bool,
}

/// What the fields around the data of an event may have: `event: message`, `id`, and the like.
const FIELDS: usize = 4_096;

impl Cut {
    fn kept(&mut self, chunk: Bytes) -> Bytes {
        if self.length + chunk.len() <= self.longest + FIELDS {
            // Nothing of it can be too much, so only its last event counts.
            for byte in &chunk {
                let _ = self.keeps(*byte);
            }
            return chunk;
        }
        chunk.iter().copied().filter(|byte| self.keeps(*byte)).collect()
    }

    fn keeps(&mut self, byte: u8) -> bool {
        let last = std::mem::replace(&mut self.last, byte);
        match byte {
            b'\n' if last == b'\r' => return true,
            b'\n' | b'\r' => {
                if self.is_bare {
                    (self.length, self.is_full) = (0, false);
                }
                self.is_bare = true;
                return true;
            }
            _ => {}
        }
        self.is_bare = false;
        // A letter is never cut in two.
        self.is_full |= self.length > self.longest + FIELDS && byte & 0b1100_0000 != 0b1000_0000;
        self.length += usize::from(!self.is_full);
        !self.is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of a text that comes in chunks of `size`.
    fn kept(text: &str, longest: usize, size: usize) -> String {
        let mut cut = Cut { longest, ..Cut::default() };
        let chunks = text.as_bytes().chunks(size).map(|chunk| cut.kept(Bytes::copy_from_slice(chunk)));
        String::from_utf8(chunks.flatten().collect()).unwrap()
    }

    #[test]
    fn an_event_that_is_too_long_is_cut_and_the_next_is_whole() {
        let long = "ż".repeat(FIELDS);
        for end in ["\n", "\r\n", "\r"] {
            let next = format!("data: next{end}{end}");
            let text = format!("event: message{end}data: {long}{end}data: {long}{end}{end}{next}");
            for size in [1, 7, 1_000, text.len()] {
                let read = kept(&text, 100, size);
                assert!(read.len() < FIELDS + 150, "{end:?} {size}");
                assert!(read.ends_with(&format!("{end}{end}{next}")), "{end:?} {size}");
            }
        }
    }

    #[test]
    fn events_that_are_not_too_long_stay_as_they_are() {
        let text = "data: one\n\n: a comment\n\r\ndata: two\r\n\r\n".repeat(1_000);
        for size in [1, 10, 5_000] {
            assert_eq!(kept(&text, 10, size), text);
        }
    }
}
