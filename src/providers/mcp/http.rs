//! Streamable HTTP: the client's settings, and what is mended of its answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _, TryStream};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url, redirect};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::{BoxedSseResponse, ExponentialBackoff};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};

use super::blame::too_long;
use super::config::McpServerConfig;
use super::error::McpError;
use crate::providers::authorization::HttpAuthorization;
use crate::providers::client;
use crate::providers::wording::cause;

/// How often a stream is asked for again that broke off and can be resumed: for 3 s in all.
const RESUMPTIONS: usize = 5;

/// How many calls wait for their answers at once where the server does not stream them.
const MOST_REQUESTS: usize = 256;

/// How many redirections are followed.
const MOST_REDIRECTIONS: usize = 10;

/// How much is read of an answer that says no, in bytes.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// A transport to a server. It needs a runtime to stand in; nothing is sent yet.
pub(super) fn transport(
    config: &McpServerConfig,
    url: &str,
) -> Result<StreamableHttpClientTransport<HttpClient>, McpError> {
    let url = address(config, url)?;
    let mut settings = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        // A session that has expired is opened anew by the connection, which lists the tools as well.
        .reinit_on_expired_session(false)
        .max_concurrent_requests(MOST_REQUESTS)
        .max_sse_event_size(config.longest_message)
        .max_json_response_size(config.longest_message)
        .max_error_response_size(LONGEST_REFUSAL);
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(RESUMPTIONS);
    retries.base_duration = Duration::from_millis(100);
    settings.retry_config = Arc::new(retries);
    settings.custom_headers.extend(authorization(config)?);
    Ok(StreamableHttpClientTransport::with_client(HttpClient(client(config, &url)?), settings))
}

/// The header that the server wants to see.
pub(super) fn authorization(config: &McpServerConfig) -> Result<Option<(HeaderName, HeaderValue)>, McpError> {
    let header = config.transport.authorization().map(HttpAuthorization::header).transpose();
    header.map(Option::flatten).map_err(|what| McpError::Authorization { server: config.name.clone(), what })
}

/// The address of a server.
pub(super) fn address(config: &McpServerConfig, url: &str) -> Result<Url, McpError> {
    let wrong = |reason: String| McpError::Address { server: config.name.clone(), reason };
    let url = Url::parse(url.trim()).map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(format!("`{}` is neither `http` nor `https`", url.scheme())));
    }
    Ok(url)
}

/// A client for an address of a server.
pub(super) fn client(config: &McpServerConfig, url: &Url) -> Result<Client, McpError> {
    client::client(url, config.connect_timeout, redirect::Policy::custom(redirected))
        .map_err(|error| McpError::Client { server: config.name.clone(), reason: cause(&error) })
}

/// `/mcp/` leads to `/mcp` on many servers, with the method kept. Other redirections turn a POST into a GET, or take the token elsewhere.
fn redirected(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_method = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let stays = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_method && stays && attempt.previous().len() <= MOST_REDIRECTIONS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// The HTTP client that is there already, with answers that belong to their requests.
#[derive(Clone, Debug)]
pub(super) struct HttpClient(Client);

type Headers = HashMap<HeaderName, HeaderValue>;

type Failed = StreamableHttpError<reqwest::Error>;

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(url, message, session, token, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let has_session = session.is_some();
        let answer = self.0.post_message_with_response_limits(url, message, session, token, headers, limits).await;
        match (id, answer) {
            (Some(id), Ok(StreamableHttpPostResponse::Json(message, session))) => {
                Ok(StreamableHttpPostResponse::Json(belonging(message, id, has_session)?, session))
            }
            (Some(id), Ok(StreamableHttpPostResponse::Sse(events, session))) => {
                let events = bounded(events, id, limits.max_sse_event_size);
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            (Some(id), Err(StreamableHttpError::ResponseBodyTooLarge { max_size })) => {
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(too_long(max_size), Some(id)), None))
            }
            (_, answer) => answer,
        }
    }

    async fn delete_session(
        &self,
        url: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.0.delete_session(url, session, token, headers).await
    }

    async fn get_stream(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, Failed> {
        self.0.get_stream(url, session, last_event, token, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        longest: usize,
    ) -> Result<BoxedSseResponse, Failed> {
        self.0.get_stream_with_max_sse_event_size(url, session, last_event, token, headers, longest).await
    }
}

/// The answer to a request. An error that names another request, or none, was said before the request was read: a server that has lost its
/// sessions says so with status 400. Nobody would hear it, and the call would wait for ever.
fn belonging(message: ServerJsonRpcMessage, id: RequestId, has_session: bool) -> Result<ServerJsonRpcMessage, Failed> {
    match message {
        ServerJsonRpcMessage::Error(error) if error.id.as_ref() != Some(&id) => {
            if has_session {
                return Err(StreamableHttpError::SessionExpired);
            }
            Ok(ServerJsonRpcMessage::error(error.error, Some(id)))
        }
        other => Ok(other),
    }
}

type Event = <BoxedSseResponse as TryStream>::Ok;

/// An event that is too long ends its stream; here it answers the request as well.
fn bounded(events: BoxedSseResponse, id: RequestId, longest: usize) -> BoxStream<'static, Result<Event, SseError>> {
    let answer = move |event: Result<Event, SseError>| match event {
        Err(SseError::Body(error)) if error.to_string().contains("exceeded the maximum size") => {
            let message = ServerJsonRpcMessage::error(too_long(longest), Some(id.clone()));
            Ok(Event::default().data(serde_json::to_string(&message).unwrap_or_default()))
        }
        other => other,
    };
    events.map(answer).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_no_request_is_the_answer_or_the_end_of_the_session() {
        let said = |id: Option<i64>, has_session| {
            let message = ServerJsonRpcMessage::error(too_long(1), id.map(RequestId::Number));
            match belonging(message, RequestId::Number(7), has_session) {
                Ok(ServerJsonRpcMessage::Error(error)) => format!("{:?}", error.id),
                Ok(other) => format!("{other:?}"),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(said(Some(7), true), "Some(Number(7))");
        assert_eq!(said(None, false), "Some(Number(7))");
        assert_eq!([said(None, true), said(Some(8), true)], ["Session expired (HTTP 404)"; 2]);
    }

    #[test]
    fn what_is_no_address_is_said() {
        let said = |url: &str| {
            let config = McpServerConfig::http("bank", url, None);
            address(&config, url).map_or_else(|error| error.to_string(), |url| url.to_string())
        };
        let hint = "\n  hint: it begins with `http://` or `https://`";
        assert_eq!(said(" http://127.0.0.1:1/mcp "), "http://127.0.0.1:1/mcp");
        assert_eq!(
            said("localhost:8000/mcp"),
            format!(
                "The `url` of the MCP server `bank` is no address: `localhost` is neither `http` nor `https`{hint}"
            )
        );
        assert_eq!(
            said("/mcp"),
            format!("The `url` of the MCP server `bank` is no address: relative URL without a base{hint}")
        );
    }
}
