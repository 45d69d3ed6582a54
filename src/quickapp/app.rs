//! A Quick App, once its manifest has been read: plain values, which know nothing of JSON or YAML.

use std::time::Duration;

use super::fallback::FallbackConfiguration;
use super::placing::Frequency;
use crate::conversation::Object;

/// How long a start hook may take where the manifest does not say (Hooks document, `timeout_seconds`).
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(15);

/// The same of a completion hook.
pub(crate) const COMPLETION_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the model is asked for one request unless the manifest says otherwise.
pub(crate) const MAX_ITERATIONS: u32 = 10;

/// An app.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct App {
    /// Its name, for spans and logs.
    pub(crate) name: String,
    /// What stands before every conversation.
    pub(crate) system_prompt: Option<String>,
    /// How often the model is asked for one request at most.
    pub(crate) max_iterations: u32,
    /// Where its tools are from, in order.
    pub(crate) tool_sets: Vec<ToolSet>,
    /// What is called at fixed points, in order.
    pub(crate) hooks: Vec<AppHook>,
}

/// A hook: one call of one tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AppHook {
    /// Its label in logs.
    pub(crate) name: Option<String>,
    /// When it runs.
    pub(crate) event: HookEvent,
    /// The tool set of its tool; none: the tool's name is the whole one.
    pub(crate) toolset_name: Option<String>,
    /// The tool, by its name in the set.
    pub(crate) tool_name: String,
    /// Its arguments, a template.
    pub(crate) arguments: Object,
    /// Whether there is anything in the arguments to be rendered.
    pub(crate) is_template: bool,
    /// The time of one run.
    pub(crate) timeout: Duration,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookEvent {
    /// Before the first call of the model; its result joins the conversation.
    RequestStart {
        /// How often a pair is added.
        frequency: Frequency,
        /// After how many minutes a result is asked for again; none: each time.
        ttl_minutes: Option<u64>,
    },
    /// After the answer, for its effect alone.
    Completion,
}

/// Tools that are configured together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolSet {
    /// Its name, which stands before the names of its tools, internal tools and deployments aside.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: ToolSetKind,
    /// The tools that it may have, by their own names; none: all.
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// Those that hooks call and the model is not shown.
    pub(crate) hidden_from_model: Vec<String>,
    /// What becomes of failures.
    pub(crate) fallback: FallbackConfiguration,
}

/// Where the tools of a set are from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToolSetKind {
    /// A server that speaks the Model Context Protocol, by its name among those that the caller connects to.
    Mcp,
    /// Requests over HTTP; these, by their names in the set.
    Rest(Vec<String>),
    /// Models that are asked; these, by their names.
    Deployments(Vec<String>),
    /// Python tools beside the manifest; these, by their names.
    Internal(Vec<String>),
}

impl HookEvent {
    /// The manifest's name for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RequestStart { .. } => "on_request_start",
            Self::Completion => "on_completion",
        }
    }
}

impl ToolSetKind {
    /// Whether the set's name stands before those of its tools.
    pub(crate) fn is_prefixed(&self) -> bool {
        matches!(self, Self::Mcp | Self::Rest(_))
    }
}

impl AppHook {
    /// What logs call it.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.tool_name)
    }

    /// The name of its tool among all tools of the app.
    pub(crate) fn function_name(&self) -> String {
        super::names::function_name(self.toolset_name.as_deref(), &self.tool_name)
    }
}
