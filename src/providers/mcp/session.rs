//! A conversation with a server, from `initialize` to its end.

use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{ClientInitializeError, Peer, RoleClient, RunningService, ServiceExt as _};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::blame::{Blame, Failure};
use super::config::{McpServerConfig, McpTransport};
use super::error::McpError;
use super::http;
use super::listing::Listener;
use super::process::Process;
use super::sse;
use crate::conversation::Object;

/// How long the end of a session is waited for, where it is.
const CLOSING: Duration = Duration::from_secs(3);

/// An open session. It ends when it is dropped: an HTTP server is told, a process is ended.
#[derive(Debug)]
pub(super) struct Session {
    server: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Listener>>>,
    process: Option<Process>,
}

impl Session {
    /// Opens a session and reads the list of tools, all within the time that the server has; the names of all its tools.
    pub(super) async fn open(config: &McpServerConfig, listener: Listener) -> Result<(Self, Vec<String>), McpError> {
        let blame = Blame { config };
        let mut process = None;
        let opened = timeout(config.connect_timeout, async {
            let service = match &config.transport {
                McpTransport::Http { url, .. } => listener.clone().serve(http::transport(config, url)?).await,
                McpTransport::Sse { url, .. } => listener.clone().serve(sse::transport(config, url).await?).await,
                McpTransport::Stdio { .. } => {
                    let (started, pipe) = Process::start(config)?;
                    process = Some(started);
                    listener.clone().serve(pipe).await
                }
            };
            let service = match service {
                Ok(service) => service,
                Err(error) => return Err(blame.unopened(&error, ended(process.as_ref(), &error).await)),
            };
            let names = match listener.read(service.peer()).await {
                Ok(names) => names,
                Err(error) => return Err(blame.unlisted(&error, process.as_ref().and_then(Process::end))),
            };
            Ok((service, names))
        });
        let (service, names) = match opened.await {
            Ok(opened) => opened?,
            Err(_) => return Err(blame.late(&process.as_ref().map(Process::last_line).unwrap_or_default())),
        };
        Ok((Self { server: service.peer().clone(), service: Mutex::new(Some(service)), process }, names))
    }

    /// Whether a call can be sent, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        !self.server.is_transport_closed() && self.process.as_ref().is_none_or(|process| process.end().is_none())
    }

    /// Calls a tool. The server is told where this is dropped before it answers.
    pub(super) async fn call(&self, tool: &str, arguments: Object) -> Result<CallToolResult, Failure> {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.server.call_tool(request).await.map_err(Failure::of)
    }

    /// Ends the session and waits until it has ended, 3 s at most.
    pub(super) async fn close(&self) {
        if let Some(mut service) = self.service.lock().await.take() {
            let _ = service.close_with_timeout(CLOSING).await;
        }
    }

    /// Asks the process, where it is one, to end at once: there may be nobody to see to it later.
    pub(super) fn terminate(&self) {
        if let Some(process) = &self.process {
            process.terminate();
        }
    }
}

/// How a process has ended that said nothing more.
async fn ended(process: Option<&Process>, error: &ClientInitializeError) -> Option<String> {
    let process = process?;
    let is_over =
        matches!(error, ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. });
    if is_over { process.settle().await } else { process.end() }
}
