//! A Quick App from its manifest: model, servers, Python tools and hook modules beside it become a [`QuickApp`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};

use super::answering::model_of;
use super::app_tools::AppSource;
use super::builder::HookEngineBuilder;
use super::calling::made;
use super::config::{self, Manifest};
use super::discovery;
use super::engine::HookEngine;
use super::error::Error;
use super::serving::reached;
use super::templates::{NoTemplates, PythonTemplates};
use super::turning::refuse;
use crate::diagnostic::{Diagnostic, Severity};
use crate::providers::{McpServerConfig, McpServers};
use crate::quickapp::{Parts, QuickApp, Templates, ToolSetKind};
use crate::step::{Hooks, Model, NoHooks};
use crate::tools::TOOL_TIMEOUT;

/// The variable of the environment that has the key with which the ids of pairs are sealed. Without it the process makes one: then no other
/// process, and not this one when it is started again, knows the results that a conversation brings back.
const KEY: &str = "TENTERHOOK_APP_KEY";

/// The fewest bytes of a key: one that is shorter can be guessed, and with it a result that a conversation claims to have.
const SHORTEST_KEY: usize = 16;

/// An app that has been loaded.
#[derive(Debug)]
pub struct LoadedApp {
    /// Answers requests.
    pub app: QuickApp,
    /// The hook modules and Python tools, where it has any.
    pub hooks: Option<Arc<HookEngine>>,
    /// What is unwise in its manifest, though it does not keep it from running.
    pub warnings: Vec<Diagnostic>,
}

/// Settings for the load of an app; made by [`QuickApp::loader`].
#[must_use]
pub struct AppLoader {
    manifest: PathBuf,
    hooks: HookEngineBuilder,
    model: Option<Arc<dyn Model>>,
    key: Option<Vec<u8>>,
}

impl QuickApp {
    /// Loads the app of a manifest, a JSON or YAML file. Hook modules and `tools.py` beside it are its own as well. Blocks while modules are
    /// imported and servers connected to.
    ///
    /// # Errors
    ///
    /// The manifest is not well formed, it names no model, a server is not there, or no fitting interpreter is.
    pub fn load(manifest: impl AsRef<Path>) -> Result<LoadedApp, Error> {
        Self::loader(manifest).load()
    }

    /// Settings for a load.
    pub fn loader(manifest: impl AsRef<Path>) -> AppLoader {
        let manifest = manifest.as_ref().to_owned();
        AppLoader { hooks: HookEngine::builder(folder_of(&manifest)), manifest, model: None, key: None }
    }
}

impl AppLoader {
    /// How hook modules are loaded; as [`HookEngine::builder`] does, for the manifest's folder.
    pub fn hooks(mut self, hooks: HookEngineBuilder) -> Self {
        self.hooks = hooks;
        self
    }

    /// The model, whatever the manifest says.
    pub fn model(mut self, model: impl Model + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// The key with which the ids of pairs are sealed, whatever the environment says; at least 16 bytes.
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Loads the app.
    ///
    /// # Errors
    ///
    /// As [`QuickApp::load`].
    pub fn load(self) -> Result<LoadedApp, Error> {
        let folder = folder_of(&self.manifest);
        let root = std::path::absolute(&folder).map_err(|reason| Error::Unreadable { path: folder, reason })?;
        let variables = |name: &str| std::env::var(name).ok();
        let (manifest, mut warnings) = config::load_manifest(&self.manifest, &variables, None)?;
        refuse(&self.manifest, &mut warnings)?;
        let Some(Manifest { app, model, servers, rest, deployments }) = manifest else {
            unreachable!("a manifest without a value has an error")
        };
        let has_templates = app.hooks.iter().any(|hook| hook.is_template);
        let has_tools = app.tool_sets.iter().any(|set| matches!(set.kind, ToolSetKind::Internal(_)));
        // A tool that a hook calls has the hook's time, which may be longer than that of the model's calls.
        let longest = app.hooks.iter().map(|hook| hook.timeout).fold(TOOL_TIMEOUT, Duration::max);
        let builder = self.hooks.clone();
        let hooks = match (has_tools, discovery::hook_modules(&root)) {
            (true, _) => Some(Arc::new(builder.tools(longest).load()?)),
            (false, Ok(_)) => Some(Arc::new(builder.load()?)),
            (false, Err(Error::NoModules(_) | Error::OnlyInit(_))) => None,
            (false, Err(other)) => return Err(other),
        };
        warnings.extend(hooks.iter().flat_map(|hooks| hooks.warnings()));
        let templates: Box<dyn Templates> = if has_templates {
            let templates = PythonTemplates::alone(self.hooks)?;
            let (_, mut found) = config::load_manifest(&self.manifest, &variables, Some(&templates))?;
            refuse(&self.manifest, &mut found)?;
            Box::new(templates)
        } else {
            Box::new(NoTemplates)
        };
        let model = match self.model {
            Some(model) => model,
            None => model_of(&model.ok_or_else(|| Error::NoModel(self.manifest.clone()))?)?,
        };
        let all = |server| McpServerConfig { all_tools: true, ..reached(server) };
        let servers = McpServers::connect_blocking(servers.iter().map(all).collect(), Vec::new())?;
        let sets = app.tool_sets.iter().map(|set| (set.clone(), Arc::new(set.fallback.clone()))).collect();
        let source = AppSource { sets, servers, made: made(rest, deployments)?, engine: hooks.clone() };
        warnings.extend(source.missing(&app).into_iter().map(|message| Diagnostic {
            rule: "unknown-tool".into(),
            severity: Severity::Warning,
            message,
            hint: None,
            file: self.manifest.clone(),
            line: None,
            place: None,
            related: Vec::new(),
        }));
        let of_modules: Arc<dyn Hooks> = match &hooks {
            Some(hooks) => Arc::<HookEngine>::clone(hooks),
            None => Arc::new(NoHooks),
        };
        let secret = self.key.unwrap_or_else(key);
        if secret.len() < SHORTEST_KEY {
            return Err(Error::ShortKey { bytes: secret.len(), least: SHORTEST_KEY });
        }
        let app = QuickApp::new(Parts { app, model, source: Box::new(source), templates, hooks: of_modules, secret });
        Ok(LoadedApp { app, hooks, warnings })
    }
}

/// The folder of a manifest.
pub(crate) fn folder_of(manifest: &Path) -> PathBuf {
    let folder = manifest.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// The key of the environment, else one of the process.
fn key() -> Vec<u8> {
    if let Some(key) = std::env::var_os(KEY).filter(|key| !key.is_empty()) {
        return key.into_encoded_bytes();
    }
    let mut key = vec![0; 32];
    // Where the system has no randomness there is no TLS either: nothing would come this far.
    let _ = SystemRandom::new().fill(&mut key);
    key
}

impl fmt::Debug for AppLoader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AppLoader").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}
