//! Tools that are one request over HTTP each.
//!
//! A call is sent once, on the thread of all connections, and takes as long as its caller waits. An argument can change neither the host nor
//! the parts of the path; credentials go to no other host, whatever an answer redirects to.

mod address;
mod answer;
mod request;
mod template;

pub(crate) use address::{Address, encode};
pub(crate) use request::{METHODS, RestRequest};
pub(crate) use template::{Shape, Template};

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::header::HeaderMap;
use reqwest::{Client, StatusCode, redirect};
use tokio::runtime::Handle;

use super::authorization::HttpAuthorization;
use super::client;
use super::runtime::{run, runtime};
use super::wording::{cause, excerpt, without};
use crate::conversation::Object;
use crate::telemetry::TURN;
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec};
use answer::Failure;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How many redirections are followed.
const MOST_REDIRECTIONS: usize = 10;

/// What all tools of a set share.
#[derive(Clone, Debug)]
pub(crate) struct RestServer {
    /// The set's name.
    pub(crate) name: String,
    /// What is sent with each request.
    pub(crate) authorization: Option<HttpAuthorization>,
    /// How long a call may take; `None`: as whoever calls says.
    pub(crate) tool_timeout: Option<Duration>,
    /// What no error is to show.
    pub(crate) secrets: Vec<String>,
}

/// Why the tools of a set cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestError {
    /// What the server wants to see cannot be sent.
    #[error(
        "The {what} of the tool set `{set}` holds characters that a header cannot\n  hint: look for a line break in it"
    )]
    Authorization {
        /// The tool set.
        set: String,
        /// What of it: the token, the key, the password.
        what: &'static str,
    },
    /// The system gives no HTTP client.
    #[error(
        "No HTTP client could be made for the tool set `{set}`: {reason}\n  hint: `https` needs the certificates of the system, such as those of the package `ca-certificates`"
    )]
    Client {
        /// The tool set.
        set: String,
        /// Why.
        reason: String,
    },
    /// The system gives no thread for connections.
    #[error("The tool set `{set}` needs a thread of its own: {reason}\n  hint: see the limits of the process")]
    Thread {
        /// The tool set.
        set: String,
        /// Why.
        reason: String,
    },
}

/// The tools of a set; nothing is sent yet.
pub(crate) fn rest_tools(
    server: RestServer,
    tools: Vec<(ToolSpec, RestRequest)>,
) -> Result<Vec<Arc<dyn Tool>>, RestError> {
    let set = server.name.clone();
    let runtime = runtime().map_err(|error| RestError::Thread { set: set.clone(), reason: error.to_string() })?;
    let header = server.authorization.as_ref().map(HttpAuthorization::header).transpose();
    let header = header.map_err(|what| RestError::Authorization { set: set.clone(), what })?.flatten();
    let headers: HeaderMap = header.into_iter().collect();
    let mut secrets = server.secrets;
    secrets.extend(server.authorization.iter().flat_map(HttpAuthorization::secrets));
    let secrets: Arc<[String]> = secrets.into();
    // One for each way to deal with redirections and with certificates: a client costs its pool of connections.
    let mut clients: Vec<((bool, bool), Client)> = Vec::new();
    let mut made: Vec<Arc<dyn Tool>> = Vec::with_capacity(tools.len());
    for (spec, request) in tools {
        let kind = (request.reads(), request.address.base().scheme() == "https");
        let client = match clients.iter().find(|(known, _)| *known == kind) {
            Some((_, client)) => client.clone(),
            None => {
                let reads = request.reads();
                let policy = redirect::Policy::custom(move |attempt| redirected(attempt, reads));
                let client = client::client(request.address.base(), CONNECT_TIMEOUT, policy)
                    .map_err(|error| RestError::Client { set: set.clone(), reason: cause(&error) })?;
                clients.push((kind, client.clone()));
                client
            }
        };
        let call = Call { client, request, headers: headers.clone(), secrets: Arc::clone(&secrets) };
        let (spec, call, timeout) = (Arc::new(spec), Arc::new(call), server.tool_timeout);
        made.push(Arc::new(RestTool { spec, call, timeout, runtime: runtime.clone() }));
    }
    Ok(made)
}

/// What is followed: to the same host, and never so that a request becomes another.
fn redirected(attempt: redirect::Attempt<'_>, reads: bool) -> redirect::Action {
    let keeps = reads || matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let stays = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps && stays && attempt.previous().len() <= MOST_REDIRECTIONS { attempt.follow() } else { attempt.stop() }
}

#[derive(Debug)]
struct RestTool {
    spec: Arc<ToolSpec>,
    call: Arc<Call>,
    timeout: Option<Duration>,
    runtime: Handle,
}

#[derive(Debug)]
struct Call {
    client: Client,
    request: RestRequest,
    headers: HeaderMap,
    secrets: Arc<[String]>,
}

impl Call {
    async fn sent(&self, arguments: &Object) -> Result<ToolOutput, Failure> {
        let request = self.request.made(arguments, &self.headers)?;
        let response = self.client.execute(request).await.map_err(|error| {
            let is_slow = error.is_connect() && error.is_timeout();
            let reason = if is_slow { format!("no connection within {CONNECT_TIMEOUT:?}") } else { cause(&error) };
            Failure::from(format!("`{}` does not answer: {reason}", self.request.address.origin()))
        })?;
        answer::read(response).await
    }

    async fn output(&self, tool: &str, arguments: &Object) -> ToolOutput {
        let failure = match self.sent(arguments).await {
            Ok(output) => return output,
            Err(failure) => failure,
        };
        let secrets = || self.secrets.iter().map(String::as_str);
        let reason = without(&failure.reason, secrets());
        tracing::warn!(target: TURN, tool, "The call of a tool over HTTP failed: {reason}");
        let said = excerpt(&without(&failure.said, secrets()));
        let said = if said.is_empty() { said } else { format!(": {said}") };
        ToolOutput::error(format!("`{tool}` failed: {reason}{said}"))
    }
}

impl Tool for RestTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// Nothing is sent before this is polled. It needs no runtime of the caller's.
    fn call(&self, arguments: Object, _context: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let (call, name) = (Arc::clone(&self.call), self.spec.name.clone());
            let output = run(&self.runtime, async move { call.output(&name, &arguments).await }).await;
            output.unwrap_or_else(|| ToolOutput::error(format!("`{}` failed", self.spec.name)))
        })
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}
