//! Tools of servers that speak the [Model Context Protocol](https://modelcontextprotocol.io/specification/2025-11-25).
//!
//! Connections live on a thread of their own, so that a call can be awaited under any executor. A server that dies takes its calls with it;
//! the next call connects anew, and where that fails others fail at once until the pause is over: 100 ms, doubled each time up to 30 s. A call
//! is sent once: only where the server does not know the session any more, so that it has not begun the call, is it sent again. Who drops a
//! call has the server told that it is cancelled.

mod blame;
mod config;
mod connection;
mod content;
mod error;
mod http;
mod listing;
mod pipe;
mod process;
mod session;
mod sse;
mod tool;

pub use config::{McpServerConfig, McpTransport};
pub use error::McpError;

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::runtime::Handle;

use crate::providers::runtime;
use crate::tools::Tool;
use connection::Connection;
use listing::{Listener, Listing};
use session::Session;
use tool::McpTool;

/// Servers that are connected to, and those of their tools that are wanted.
///
/// A session ends, and a process that was started is ended, when the servers and all their tools are dropped, or by
/// [`close`](McpServers::close).
#[derive(Debug, Default)]
pub struct McpServers {
    connections: Vec<Arc<Connection>>,
    wanted: Vec<(String, String)>,
}

impl McpServers {
    /// Connects to all servers at once and lists their tools. `wanted` are servers and tools of them, by their names; a pair that comes twice
    /// is as one.
    ///
    /// # Errors
    ///
    /// The first in the order of `configs` that cannot be reached, does not let us in, does not speak MCP, is too slow, or does not have a
    /// tool that is wanted; a server that is wanted and not configured. The connections to the others are ended.
    pub async fn connect(configs: &[McpServerConfig], wanted: &[(&str, &str)]) -> Result<Self, McpError> {
        let known = || configs.iter().map(|config| config.name.as_str());
        if let Some((server, tool)) = wanted.iter().find(|(server, _)| !known().any(|known| known == *server)) {
            return Err(McpError::unknown_server(server, tool, known()));
        }
        let mut pairs: Vec<(String, String)> = Vec::with_capacity(wanted.len());
        for (server, tool) in wanted {
            if !pairs.iter().any(|(of, name)| of == server && name == tool) {
                pairs.push(((*server).to_owned(), (*tool).to_owned()));
            }
        }
        if configs.is_empty() {
            return Ok(Self::default());
        }
        let runtime = started()?;
        let opening = configs.iter().cloned().map(|config| {
            let runtime = runtime.clone();
            let wanted: Vec<_> =
                pairs.iter().filter(|(server, _)| *server == config.name).map(|(_, tool)| tool.clone()).collect();
            async move {
                let wanted: Vec<_> = wanted.iter().map(String::as_str).collect();
                Connection::open(config, &wanted, runtime).await
            }
        });
        let opened = runtime::run(&runtime, join_all(opening.collect::<Vec<_>>())).await;
        let opened = opened.ok_or_else(|| McpError::Thread { reason: "it has ended".to_owned() })?;
        Ok(Self { connections: opened.into_iter().collect::<Result<_, _>>()?, wanted: pairs })
    }

    /// As [`connect`](McpServers::connect), for callers that are no futures: blocks until the servers have answered.
    ///
    /// # Errors
    ///
    /// As those of `connect`.
    pub fn connect_blocking(configs: Vec<McpServerConfig>, wanted: Vec<(String, String)>) -> Result<Self, McpError> {
        if configs.is_empty() && wanted.is_empty() {
            return Ok(Self::default());
        }
        let (tell, told) = std::sync::mpsc::channel();
        started()?.spawn(async move {
            let wanted: Vec<_> = wanted.iter().map(|(server, tool)| (server.as_str(), tool.as_str())).collect();
            let _ = tell.send(Self::connect(&configs, &wanted).await);
        });
        told.recv().unwrap_or_else(|_| Err(McpError::Thread { reason: "it has ended".to_owned() }))
    }

    /// The names of all tools that each of these servers has, or why they are not known. All are asked at once, each within the time that it
    /// has to connect, and the sessions are ended. Blocks until all have answered.
    pub(crate) fn listed_blocking(configs: Vec<McpServerConfig>) -> Vec<Result<Vec<String>, McpError>> {
        let count = configs.len();
        let failed = |error: McpError| (0..count).map(|_| Err(error.clone())).collect();
        let listed = |config: McpServerConfig| async move {
            let listing = Arc::new(Listing::of_all(&config.name));
            let listener = Listener::new(listing, config.connect_timeout);
            let (session, names) = Session::open(&config, listener).await?;
            session.close().await;
            Ok(names)
        };
        let (tell, told) = std::sync::mpsc::channel();
        match started() {
            Ok(runtime) => runtime.spawn(async move {
                let _ = tell.send(join_all(configs.into_iter().map(listed)).await);
            }),
            Err(error) => return failed(error),
        };
        told.recv().unwrap_or_else(|_| failed(McpError::Thread { reason: "it has ended".to_owned() }))
    }

    /// The names of the tools that a server has now and that are wanted, in its order.
    pub fn names(&self, server: &str) -> Vec<String> {
        let connection = self.connections.iter().find(|connection| connection.config.name == server);
        connection.map(|connection| connection.listing.names()).unwrap_or_default()
    }

    /// A tool as its server describes it now; `None`: it was not wanted. Where the description changes, this gives another tool, and the one
    /// that was given before stays as it was.
    pub fn tool(&self, server: &str, tool: &str) -> Option<Arc<dyn Tool>> {
        let connection = self.connections.iter().find(|connection| connection.config.name == server)?;
        let spec = connection.listing.spec(tool)?;
        Some(Arc::new(McpTool { spec, connection: Arc::clone(connection) }))
    }

    /// All tools that are wanted, with the names of their servers, in the order in which they were.
    pub fn tools(&self) -> impl Iterator<Item = (&str, Arc<dyn Tool>)> {
        self.wanted.iter().filter_map(|(server, tool)| Some((server.as_str(), self.tool(server, tool)?)))
    }

    /// Ends all sessions and waits for their end, 3 s at most. Calls that are under way, and calls after it, fail.
    pub async fn close(&self) {
        let Some(first) = self.connections.first() else { return };
        let connections = self.connections.clone();
        let closing = async move { join_all(connections.iter().map(|connection| connection.close())).await };
        let _ = runtime::run(&first.runtime, closing).await;
    }
}

/// The runtime of the connections.
fn started() -> Result<Handle, McpError> {
    runtime::runtime().map_err(|error| McpError::Thread { reason: error.to_string() })
}
