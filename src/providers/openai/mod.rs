//! A model behind an endpoint that speaks [Chat Completions](https://platform.openai.com/docs/api-reference/chat), as most
//! providers and servers of open models do.
//!
//! It needs a Tokio runtime whose timers and network are enabled (`enable_all`).
//!
//! One call is up to `1 + retries` attempts. There is another only where nothing of an answer was heard: the provider is busy (429, 500,
//! 502, 503, 504), or the connection was refused or dropped before it answered. The total time covers all attempts and the pauses. Who drops
//! the call's future closes its connection.

mod answer;
mod blame;
mod deployment;
mod request;
mod settings;
mod stream;

pub(crate) use deployment::{QUERY, deployment_tool};
pub use settings::{OpenAiSettings, SettingsError};

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{Stream, TryStreamExt as _, try_unfold};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Request, Response, Url, redirect};
use tokio::time::{Instant, sleep, timeout};

use crate::providers::client;
use crate::providers::wording::cause;
use crate::step::{Model, ModelError, ModelReply, ModelRequest, Tokens};
use crate::telemetry::TURN;
use blame::{Blame, Failure, retry_after};

/// How much is read of an answer that says no.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// A model behind a Chat Completions endpoint.
pub struct OpenAiModel {
    settings: OpenAiSettings,
    url: Url,
    authorization: Option<HeaderValue>,
    headers: HeaderMap,
    client: Client,
    blame: Blame,
}

impl OpenAiModel {
    /// A client of the endpoint; nothing is sent yet.
    pub fn new(mut settings: OpenAiSettings) -> Result<Self, SettingsError> {
        let url = settings.url()?;
        let authorization = settings.authorization()?;
        let headers = settings.further_headers()?;
        // A redirected POST becomes a GET or leaves the host that the key is meant for: neither is a completion.
        let client = client::client(&url, settings.connect_timeout, redirect::Policy::none())
            .map_err(|error| SettingsError::Client { model: settings.name.clone(), reason: cause(&error) })?;
        let address = url.origin().ascii_serialization();
        let sent = settings.headers.iter().map(|(_, value)| value.trim().to_owned()).collect();
        let blame = Blame { model: settings.name.clone(), address, key: settings.api_key.take(), sent };
        Ok(Self { settings, url, authorization, headers, client, blame })
    }

    async fn asked(&self, request: &ModelRequest, tokens: Option<Tokens<'_>>) -> Result<ModelReply, ModelError> {
        let total = self.settings.total_timeout;
        timeout(total, self.attempts(request, tokens))
            .await
            .unwrap_or_else(|_| Err(self.blame.timeout("finish its answer", total)))
    }

    async fn attempts(&self, request: &ModelRequest, tokens: Option<Tokens<'_>>) -> Result<ModelReply, ModelError> {
        let began = Instant::now();
        let mut post = Request::new(reqwest::Method::POST, self.url.clone());
        post.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        post.headers_mut().extend(self.headers.clone());
        if let Some(authorization) = &self.authorization {
            post.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let body = request::body(&self.settings, request, tokens.is_some());
        *post.body_mut() = Some(body.into());
        let mut made = 0;
        loop {
            let attempt = post.try_clone().expect("its body is bytes");
            let failure = match self.attempt(attempt, tokens).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let pause = self.pause(made, &failure);
            let is_too_late = began.elapsed().saturating_add(pause) >= self.settings.total_timeout;
            if !failure.is_passing || made >= self.settings.retries || is_too_late {
                return Err(failure.error);
            }
            made += 1;
            tracing::debug!(target: TURN, model = self.settings.name, ?pause, "The model is asked again: {}", failure.error);
            sleep(pause).await;
        }
    }

    /// As long as the provider says, else twice as long after each attempt.
    fn pause(&self, made: u32, failure: &Failure) -> Duration {
        let doubled = self.settings.retry_pause.saturating_mul(2_u32.saturating_pow(made));
        failure.retry_after.unwrap_or(doubled).min(self.settings.longest_pause)
    }

    async fn attempt(&self, post: Request, tokens: Option<Tokens<'_>>) -> Result<ModelReply, Failure> {
        let began = Instant::now();
        let first_byte = self.settings.first_byte_timeout;
        let response = match timeout(first_byte, self.client.execute(post)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.blame.unanswered(&error, self.settings.connect_timeout)),
            Err(_) => return Err(self.blame.timeout("begin to answer", first_byte).into()),
        };
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let is_document = is_document(response.headers());
        let chunks = self.chunks(response, self.settings.longest_reply);
        let reply = match tokens {
            Some(tokens) if !is_document => stream::read(chunks, tokens, &self.blame).await?,
            _ => {
                let reply = answer::read(&collect(chunks).await?, &self.blame)?;
                if let (Some(tokens), Some(text)) = (tokens, &reply.text) {
                    tokens(text);
                }
                reply
            }
        };
        Ok(ModelReply { latency: Some(began.elapsed()), ..reply })
    }

    async fn refusal(&self, response: Response) -> Failure {
        let (status, headers) = (response.status(), response.headers().clone());
        let mut read = Vec::new();
        let mut chunks = std::pin::pin!(self.chunks(response, LONGEST_REFUSAL));
        // What is there of it may say why.
        while let Ok(Some(chunk)) = chunks.try_next().await {
            read.extend_from_slice(&chunk);
        }
        let mut message = answer::reason(&read);
        if let (true, Some(to)) = (status.is_redirection(), headers.get(LOCATION)) {
            message = format!("It redirects to `{}`", String::from_utf8_lossy(to.as_bytes()));
        } else if message.is_empty() {
            status.canonical_reason().unwrap_or("no reason is given").clone_into(&mut message);
        }
        Failure { retry_after: retry_after(&headers), ..self.blame.refused(status.as_u16(), &message) }
    }

    /// The body as it comes, up to `longest` bytes.
    fn chunks(&self, response: Response, longest: usize) -> impl Stream<Item = Result<Bytes, ModelError>> {
        try_unfold((response, 0), move |(mut response, read)| async move {
            let chunk = response.chunk().await.map_err(|error| {
                self.blame.broken(&format!("its answer broke off after {read} bytes: {}", cause(&error)))
            })?;
            let Some(chunk) = chunk else { return Ok(None) };
            let read = read + chunk.len();
            if read > longest {
                return Err(self.blame.broken(&format!("its answer is longer than {longest} bytes")));
            }
            Ok(Some((chunk, (response, read))))
        })
    }
}

impl Model for OpenAiModel {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn provider(&self) -> &str {
        &self.settings.provider
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        tokens: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(self.asked(request, tokens))
    }
}

impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiModel").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Whether the body is one document, though events may have been asked for: some servers do not stream, and some proxies answer with a page.
fn is_document(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    ["application/json", "text/html"].into_iter().any(|document| kind.trim().to_ascii_lowercase().starts_with(document))
}

async fn collect(chunks: impl Stream<Item = Result<Bytes, ModelError>>) -> Result<Vec<u8>, ModelError> {
    let mut chunks = std::pin::pin!(chunks);
    let mut read = Vec::new();
    while let Some(chunk) = chunks.try_next().await? {
        read.extend_from_slice(&chunk);
    }
    Ok(read)
}
