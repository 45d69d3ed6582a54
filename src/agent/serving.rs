//! The servers whose tools skills import: connected to when the agent is loaded.

use std::collections::HashMap;
use std::sync::Arc;

use super::config::{AgentConfig, Authorization, Reached, ServerConfig};
use super::error::Error;
use crate::providers::{HttpAuthorization, McpServerConfig, McpServers, McpTransport};
use crate::skill::Import;
use crate::tools::Tool;

/// Servers that are connected to, and the tools that each skill imports from them.
#[derive(Debug, Default)]
pub(super) struct Served {
    pub(super) servers: Arc<McpServers>,
    /// Server and tool, by the skill's id.
    pub(super) imports: HashMap<String, Vec<(String, String)>>,
}

impl Served {
    /// The tools that a skill imports, as their servers describe them now.
    pub(super) fn of_skill(&self, skill: &str) -> Vec<Arc<dyn Tool>> {
        let imports = self.imports.get(skill).map(Vec::as_slice).unwrap_or_default();
        imports.iter().filter_map(|(server, tool)| self.servers.tool(server, tool)).collect()
    }
}

/// Connects to the servers that a skill in use imports from. Blocks until all have told their tools.
pub(super) fn serving(config: &AgentConfig) -> Result<Served, Error> {
    let imported = |import: &Import| match import {
        Import::Mcp { server, tool } => Some((server.clone(), tool.clone())),
        Import::Shared(_) => None,
    };
    let mut imports = HashMap::new();
    for skill in config.skills.iter().filter(|skill| !skill.disabled) {
        let tools: Vec<_> = skill.import_tools.iter().filter_map(imported).collect();
        if !tools.is_empty() {
            imports.insert(skill.id.clone(), tools);
        }
    }
    let wanted: Vec<_> = imports.values().flatten().cloned().collect();
    let used = config.servers.iter().filter(|server| wanted.iter().any(|(name, _)| *name == server.name));
    // A server without a limit of its own has that of the agent's tools.
    let limited = |server| {
        let server = reached(server);
        McpServerConfig { tool_timeout: server.tool_timeout.or(Some(config.tool_timeout)), ..server }
    };
    let servers = Arc::new(McpServers::connect_blocking(used.map(limited).collect(), wanted)?);
    Ok(Served { servers, imports })
}

/// A server as it is connected to.
pub(super) fn reached(server: &ServerConfig) -> McpServerConfig {
    let transport = match &server.reached {
        Reached::Http { url, authorization, sse } => {
            let (url, authorization) = (url.clone(), authorization.as_ref().map(sent));
            if *sse { McpTransport::Sse { url, authorization } } else { McpTransport::Http { url, authorization } }
        }
        Reached::Program { command, env, folder } => McpTransport::Stdio {
            command: command.first().cloned().unwrap_or_default(),
            args: command.iter().skip(1).cloned().collect(),
            env: env.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect(),
            cwd: Some(folder.clone()),
        },
    };
    McpServerConfig {
        tool_timeout: server.tool_timeout,
        secrets: server.hidden.iter().map(|secret| secret.reveal().to_owned()).collect(),
        ..McpServerConfig::new(&server.name, transport)
    }
}

/// What a server wants to see, as it is sent.
pub(super) fn sent(authorization: &Authorization) -> HttpAuthorization {
    match authorization {
        Authorization::Bearer(token) => HttpAuthorization::Bearer(token.reveal().to_owned()),
        Authorization::Key { name, key } => {
            HttpAuthorization::Header { name: name.clone(), value: key.reveal().to_owned() }
        }
        Authorization::Basic { username, password } => {
            HttpAuthorization::Basic { username: username.clone(), password: password.reveal().to_owned() }
        }
    }
}
