//! A tool of a server.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::connection::Connection;
use crate::conversation::Object;
use crate::providers::runtime::run;
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSource, ToolSpec};

/// A tool as its server last described it. It holds the connection, not a session: it outlives the death of its server.
#[derive(Debug)]
pub(super) struct McpTool {
    pub(super) spec: Arc<ToolSpec>,
    pub(super) connection: Arc<Connection>,
}

impl Tool for McpTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// Nothing is sent before this is polled. It needs no runtime of the caller's.
    fn call(&self, arguments: Object, _context: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let call = Arc::clone(&self.connection).call(self.spec.name.clone(), arguments);
            let output = run(&self.connection.runtime, call).await;
            output.unwrap_or_else(|| ToolOutput::error(format!("`{}` failed", self.spec.name)))
        })
    }

    fn source(&self) -> ToolSource {
        ToolSource::Mcp
    }

    fn mcp_server(&self) -> Option<&str> {
        Some(&self.connection.config.name)
    }

    fn timeout(&self) -> Option<Duration> {
        self.connection.config.tool_timeout
    }
}
