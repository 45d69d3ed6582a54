//! A model behind an endpoint as a tool: it is asked one thing, and its text is the result.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::runtime::Handle;

use super::{OpenAiModel, OpenAiSettings, SettingsError};
use crate::conversation::{Object, message};
use crate::hooks::ModelSettings;
use crate::providers::runtime::{run, runtime};
use crate::step::{Model as _, ModelError, ModelRequest};
use crate::telemetry::TURN;
use crate::tools::{Tool, ToolContext, ToolOutput, ToolSpec};

/// What the tool's one argument is called, and what it is called elsewhere.
pub(crate) const QUERY: [&str; 2] = ["query", "prompt"];

#[derive(Debug)]
struct DeploymentTool {
    spec: Arc<ToolSpec>,
    model: Arc<OpenAiModel>,
    system_prompt: Option<String>,
    timeout: Duration,
    runtime: Handle,
}

/// A model as a tool, whose one argument is the text that it is asked. A call has the total time of the settings; nothing is sent yet.
pub(crate) fn deployment_tool(
    spec: ToolSpec,
    settings: OpenAiSettings,
    system_prompt: Option<String>,
) -> Result<Arc<dyn Tool>, SettingsError> {
    let thread = |error: std::io::Error| SettingsError::Client {
        model: settings.name.clone(),
        reason: format!("there is no thread for its connections: {error}"),
    };
    let runtime = runtime().map_err(thread)?;
    let timeout = settings.total_timeout;
    let model = Arc::new(OpenAiModel::new(settings)?);
    Ok(Arc::new(DeploymentTool { spec: Arc::new(spec), model, system_prompt, timeout, runtime }))
}

impl Tool for DeploymentTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// Nothing is sent before this is polled. It needs no runtime of the caller's.
    fn call(&self, arguments: Object, _context: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let name = &self.spec.name;
            let Some(Value::String(query)) = QUERY.iter().find_map(|key| arguments.get(*key)) else {
                return ToolOutput::error(format!("`{name}` failed: its argument `query` is to be a text"));
            };
            let system = self.system_prompt.as_deref().map(|prompt| message("system", prompt));
            let messages = system.into_iter().chain([message("user", query)]).collect();
            let request = ModelRequest { messages, tools: Vec::new(), settings: ModelSettings::default() };
            let model = Arc::clone(&self.model);
            let reply = run(&self.runtime, async move { model.complete(&request, None).await }).await;
            match reply {
                Some(Ok(reply)) => match reply.text {
                    Some(text) => ToolOutput::of(text),
                    None => ToolOutput::error(format!("`{name}` failed: the answer has no text")),
                },
                Some(Err(error)) => {
                    tracing::warn!(target: TURN, tool = name, kind = &*error.kind(), "The call of a deployment failed");
                    ToolOutput::error(format!("`{name}` failed: {}", sentence(&error)))
                }
                None => ToolOutput::error(format!("`{name}` failed")),
            }
        })
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.timeout)
    }
}

/// The error without its advice, which is for whoever configures the agent's own model.
fn sentence(error: &ModelError) -> String {
    let told = error.to_string();
    told.split_once("\n  hint: ").map_or(told.as_str(), |(sentence, _)| sentence).to_owned()
}
