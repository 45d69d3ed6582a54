//! The tools of a Quick App: those of servers and requests over HTTP, by names that tell their set, deployments, and Python tools beside the
//! manifest.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::engine::HookEngine;
use super::tooling::root_tools;
use crate::providers::McpServers;
use crate::quickapp::{App, AppTool, AppTools, FallbackConfiguration, ToolSet, ToolSetKind, ToolSource, function_name};
use crate::telemetry::LOAD;
use crate::tools::{Tool, ToolSpec};

/// Where an app's tools are from.
pub(super) struct AppSource {
    pub(super) sets: Vec<(ToolSet, Arc<FallbackConfiguration>)>,
    pub(super) servers: McpServers,
    /// Tools that are made of what the manifest says, by their set.
    pub(super) made: HashMap<String, Vec<Arc<dyn Tool>>>,
    /// What runs Python tools, where the app has any.
    pub(super) engine: Option<Arc<HookEngine>>,
}

impl AppSource {
    /// Names in the manifest that no tool has: a server may get them later.
    pub(super) fn missing(&self, app: &App) -> Vec<String> {
        let mut missing = Vec::new();
        for (set, _) in &self.sets {
            let names: Vec<_> = self.of(set).into_iter().map(|(name, _)| name).collect();
            let wanted = match &set.kind {
                ToolSetKind::Mcp => set.allowed_tools.as_deref().unwrap_or_default(),
                ToolSetKind::Internal(tools) => tools,
                // They are what the manifest says.
                ToolSetKind::Rest(_) | ToolSetKind::Deployments(_) => &[],
            };
            let hidden = set.hidden_from_model.iter().filter(|name| !wanted.contains(name));
            for name in wanted.iter().chain(hidden).filter(|name| !names.contains(name)) {
                missing.push(format!("The tool set `{}` names `{name}`, which it does not have", set.name));
            }
        }
        let tools = self.tools();
        for hook in &app.hooks {
            let name = hook.function_name();
            if tools.for_hook(&name).is_none() {
                missing.push(format!("Hook `{}`: tool '{name}' not found in initialized tools", hook.label()));
            }
        }
        missing
    }

    /// The tools of a set by their own names, in order.
    fn of(&self, set: &ToolSet) -> Vec<(String, Arc<dyn Tool>)> {
        match &set.kind {
            ToolSetKind::Mcp => {
                let named = |name: String| Some((name.clone(), self.servers.tool(&set.name, &name)?));
                self.servers.names(&set.name).into_iter().filter_map(named).collect()
            }
            ToolSetKind::Rest(_) | ToolSetKind::Deployments(_) => {
                let tools = self.made.get(&set.name).into_iter().flatten();
                tools.map(|tool| (tool.spec().name.clone(), Arc::clone(tool))).collect()
            }
            ToolSetKind::Internal(wanted) => {
                let tools = self.engine.as_ref().map(root_tools).unwrap_or_default();
                let named = |tool: Arc<dyn Tool>| (tool.spec().name.clone(), tool);
                tools.into_iter().map(named).filter(|(name, _)| wanted.contains(name)).collect()
            }
        }
    }
}

impl ToolSource for AppSource {
    fn tools(&self) -> AppTools {
        let (mut tools, mut names) = (AppTools::default(), BTreeSet::new());
        for (set, fallback) in &self.sets {
            let allowed = set.allowed_tools.as_ref().filter(|allowed| !allowed.is_empty());
            for (name, tool) in self.of(set) {
                if allowed.is_some_and(|allowed| !allowed.contains(&name)) {
                    continue;
                }
                let prefix = set.kind.is_prefixed().then_some(set.name.as_str());
                let known = function_name(prefix, &name);
                if !names.insert(known.clone()) {
                    tracing::warn!(target: LOAD, "Two tools have the name `{known}`: the first is used");
                    continue;
                }
                let spec = if known == tool.spec().name {
                    Arc::clone(tool.spec())
                } else {
                    Arc::new(ToolSpec { name: known, ..ToolSpec::clone(tool.spec()) })
                };
                let tool = AppTool { spec, tool, fallback: Arc::clone(fallback) };
                if set.hidden_from_model.contains(&name) {
                    tools.hidden.push(tool);
                } else {
                    tools.visible.push(tool);
                }
            }
        }
        tools
    }
}
