//! Posts batches with the HTTP client that the project has anyway.

use std::error::Error;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::{Client, redirect};
use tokio::runtime::{Builder, Runtime};

use super::failures::Failures;
use super::settings::Settings;

/// How much is read of an answer, in bytes. A collector answers next to nothing.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Sends batches from the thread that exports, which may wait: it does nothing else.
#[derive(Debug)]
pub(super) struct Sender {
    is_encrypted: bool,
    timeout: Duration,
    failures: Arc<Failures>,
    /// Made by the first batch, on its thread: a command that has no spans pays nothing, and no runtime is ever made or dropped inside
    /// another, which panics.
    connection: OnceLock<Result<Connection, String>>,
}

impl Sender {
    pub(super) fn new(settings: &Settings, failures: Arc<Failures>) -> Self {
        let is_encrypted = settings.endpoint.scheme() == "https";
        Self { is_encrypted, timeout: settings.timeout, failures, connection: OnceLock::new() }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let connection = self.connection.get_or_init(|| self.connect());
        let sent = match connection {
            Ok(connection) => connection.post(request),
            Err(reason) => Err(reason.clone().into()),
        };
        match &sent {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => self.failures.refused(response.status()),
            Err(error) => self.failures.unanswered(root(error.as_ref())),
        }
        sent
    }

    fn connect(&self) -> Result<Connection, String> {
        // The first in the process stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .timeout(self.timeout)
            // A redirected POST becomes a GET or leaves the host that the headers are meant for.
            .redirect(redirect::Policy::none())
            // Between batches nobody polls: whether a kept connection still stands would be found out by a batch that is lost to it.
            .pool_max_idle_per_host(0);
        if !self.is_encrypted {
            // As for models: slim containers have no certificates, and none are needed.
            client = client.tls_certs_only([]);
        }
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        Ok(Connection {
            runtime: runtime.map_err(|error| error.to_string())?,
            client: client.build().map_err(|error| root(&error).to_string())?,
        })
    }
}

impl HttpClient for Sender {
    // What `#[async_trait]` would write.
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(ready(self.send(request)))
    }
}

#[derive(Debug)]
struct Connection {
    runtime: Runtime,
    client: Client,
}

impl Connection {
    fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = request.try_into()?;
        self.runtime.block_on(async {
            let mut answer = self.client.execute(request).await?;
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = answer.status();
            // With it the collector says when it wants to be asked again.
            *response.headers_mut() = std::mem::take(answer.headers_mut());
            let mut body = Vec::new();
            while let Some(chunk) = answer.chunk().await? {
                if body.len() + chunk.len() > LONGEST_ANSWER {
                    break;
                }
                body.extend_from_slice(&chunk);
            }
            *response.body_mut() = body.into();
            Ok(response)
        })
    }
}

/// What the network or the system said; what is around it tells only who passed it on.
fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    std::iter::successors(Some(error), |&error| error.source()).last().unwrap_or(error)
}
