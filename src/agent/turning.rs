//! A whole agent from its folder: configuration, hooks, tools, references, model and store become a [`TurnEngine`].

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::answering::{Answering, answering};
use super::builder::HookEngineBuilder;
use super::config::{self, AgentConfig, KnownTools};
use super::discovery;
use super::engine::HookEngine;
use super::error::Error;
use super::serving::{Served, serving};
use super::tooling::AgentTools;
use crate::diagnostic::{Diagnostic, Severity};
use crate::providers::{McpServers, References, SqliteStore};
use crate::skill::{Import, Skill};
use crate::step::{Identity, Model};
use crate::telemetry::export;
use crate::turn::{SkillSet, TurnEngine, TurnEngineBuilder};

/// An agent that has been loaded.
#[derive(Debug)]
pub struct LoadedAgent {
    /// Runs its turns.
    pub engine: TurnEngine,
    /// Its hooks and tools, where it has any.
    pub hooks: Option<Arc<HookEngine>>,
    /// The servers that its skills import tools from.
    pub servers: Arc<McpServers>,
    /// What is unwise in its files, though it does not keep it from running.
    pub warnings: Vec<Diagnostic>,
}

/// Settings for the load of a whole agent; made by [`TurnEngine::loader`].
#[must_use]
pub struct AgentLoader {
    folder: PathBuf,
    hooks: HookEngineBuilder,
    model: Option<Arc<dyn Model>>,
    store: Option<PathBuf>,
    keeps_index: bool,
}

impl TurnEngine {
    /// Loads the agent in `folder`: `agent.yml`, `integrations.yml`, `responses.yml`, hooks, tools and references. Conversations are kept
    /// in memory. Blocks while modules are imported.
    ///
    /// # Errors
    ///
    /// A file of the agent is not well formed, no model is configured, or no fitting interpreter is there.
    pub fn load(folder: impl AsRef<Path>) -> Result<LoadedAgent, Error> {
        Self::loader(folder).load()
    }

    /// Settings for a load.
    pub fn loader(folder: impl AsRef<Path>) -> AgentLoader {
        let folder = folder.as_ref().to_owned();
        AgentLoader { hooks: HookEngine::builder(&folder), folder, model: None, store: None, keeps_index: false }
    }
}

impl AgentLoader {
    /// How the hooks are loaded; as [`HookEngine::builder`] does.
    pub fn hooks(mut self, hooks: HookEngineBuilder) -> Self {
        self.hooks = hooks;
        self
    }

    /// The model, whatever `integrations.yml` says.
    pub fn model(mut self, model: impl Model + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// The file that conversations are kept in; without it they are kept in memory.
    pub fn store(mut self, file: impl Into<PathBuf>) -> Self {
        self.store = Some(file.into());
        self
    }

    /// Keeps the index of the references in `.tenterhook/references.db` below the agent's folder, so that the next load need not read
    /// them again; without it the index is in memory.
    pub fn keep_index(mut self, keeps: bool) -> Self {
        self.keeps_index = keeps;
        self
    }

    /// Loads the agent.
    ///
    /// # Errors
    ///
    /// As [`TurnEngine::load`]; also where the store cannot be opened.
    pub fn load(self) -> Result<LoadedAgent, Error> {
        let root = std::path::absolute(&self.folder)
            .map_err(|reason| Error::Unreadable { path: self.folder.clone(), reason })?;
        let (config, mut warnings) = config::load(&root)?;
        refuse(&root, &mut warnings)?;
        let hooks = if discovery::has_modules(&root)? {
            let hooks = self.hooks.tools(config.tool_timeout).load()?;
            warnings.extend(hooks.warnings());
            Some(Arc::new(hooks))
        } else {
            None
        };
        let tools = known_tools(hooks.as_deref(), &config);
        let told: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        let new = |problem: &Diagnostic| !told.contains(&problem.to_string());
        warnings.extend(config.check_references(&tools).into_iter().filter(new));
        refuse(&root, &mut warnings)?;
        let Answering { model, toolbox } = match self.model {
            Some(model) => Answering { model, toolbox: None },
            None => answering(&config, &root)?,
        };
        let recorded = toolbox.is_some();
        let most = config.llm.as_ref().and_then(|llm| llm.max_prompt_tokens);
        let session_limit = config.session.expiration.filter(|_| config.session.start_after_expiry);
        let open = if self.keeps_index { References::open_kept } else { References::open };
        let references = open(&root, config.chunking);
        references.refresh().map_err(Error::References)?;
        let folder = root.file_name().map(|name| name.to_string_lossy().into_owned());
        let imports = imports(&config);
        // A recording answers for all tools.
        let served = if recorded { Served::default() } else { serving(&config)? };
        let skills: Vec<_> = config.skills.iter().filter(|skill| !skill.disabled).cloned().collect();
        let skills = SkillSet { skills, project: config.memory.clone() };
        let mut builder = TurnEngineBuilder::new(model)
            .name(config.id.clone().or(folder).unwrap_or_else(|| "agent".to_owned()))
            .record_content(export::captures_content())
            .knowledge(references)
            .session_limit(session_limit)
            .lifecycle(config.session.lifecycle)
            .max_iterations(if recorded { u64::MAX } else { config.max_iterations.into() })
            .max_prompt_tokens(most.filter(|_| !recorded).map(|most| usize::try_from(most).unwrap_or(usize::MAX)))
            .responses(config.responses.clone())
            .prompt(move |identity| prompt(&config, identity));
        // A recording's tools are those of no skill.
        if !skills.skills.is_empty() && !recorded {
            builder = builder.skills(skills);
        }
        if let Some(file) = &self.store {
            builder = builder.store(SqliteStore::open(file)?);
        }
        if let Some(hooks) = &hooks {
            builder = builder.hooks(Arc::<HookEngine>::clone(hooks));
        }
        let servers = Arc::clone(&served.servers);
        builder = builder.toolbox(AgentTools { engine: hooks.clone(), imports, served });
        if let Some(toolbox) = toolbox {
            builder = builder.toolbox(toolbox);
        }
        Ok(LoadedAgent { engine: builder.build(), hooks, servers, warnings })
    }
}

/// Refuses a load for what is wrong; warnings do not.
pub(super) fn refuse(root: &Path, found: &mut Vec<Diagnostic>) -> Result<(), Error> {
    if found.iter().all(|problem| problem.severity != Severity::Error) {
        return Ok(());
    }
    found.retain(|problem| problem.severity == Severity::Error);
    Err(Error::Configuration { root: root.to_owned(), problems: std::mem::take(found) })
}

/// The tools that the agent's modules have, by where they lie.
fn known_tools(hooks: Option<&HookEngine>, config: &AgentConfig) -> KnownTools {
    let loaded = hooks.map(HookEngine::loaded);
    let names = |skill: Option<&str>| -> BTreeSet<String> {
        let tools = loaded.iter().flat_map(|loaded| &loaded.tools);
        let those = tools.filter(|tool| tool.skill.as_deref() == skill);
        those.map(|tool| tool.spec.name.clone()).collect()
    };
    let local = config.skills.iter().map(|skill| (skill.id.clone(), names(Some(&skill.id)))).collect();
    KnownTools { shared: Some(names(None)), local, servers: Some(config.server_names()) }
}

/// The tools at the agent's root that each skill imports.
fn imports(config: &AgentConfig) -> HashMap<String, Vec<String>> {
    let shared = |import: &Import| match import {
        Import::Shared(tool) => Some(tool.clone()),
        Import::Mcp { .. } => None,
    };
    let of = |skill: &Skill| (skill.id.clone(), skill.import_tools.iter().filter_map(shared).collect());
    config.skills.iter().map(of).collect()
}

/// The system prompt of a turn.
fn prompt(config: &AgentConfig, identity: &Identity) -> String {
    let mut parts = vec![config.persona.trim().to_owned()];
    if config.language != "en" {
        parts.push(format!("Answer in the language `{}`.", config.language));
    }
    if !config.rules.is_empty() {
        let rules: Vec<_> = config.rules.iter().map(|rule| format!("- {}", rule.trim())).collect();
        parts.push(format!("Rules:\n{}", rules.join("\n")));
    }
    let kind = if identity.is_voice { "voice_rules" } else { "text_rules" };
    parts.extend(config.prompts.texts.get(kind).into_iter().flatten().cloned());
    let now = chrono::Local::now().format("%Y-%m-%d %H:%M");
    parts.push(format!("Current date and time: {now}\nConversation: {}", identity.sender_id));
    parts.join("\n\n")
}

impl fmt::Debug for AgentLoader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AgentLoader").field("folder", &self.folder).finish_non_exhaustive()
    }
}
