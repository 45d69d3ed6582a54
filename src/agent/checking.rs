//! A whole agent checked without importing anything: its modules, its configuration, and what each names of the other. A Quick App's
//! manifest, and the tools beside it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use super::apps::folder_of;
use super::config::execution::{EXECUTION_FILE, check_execution};
use super::config::{self, Connect, ServerConfig};
use super::discovery::{agent_files, tool_modules};
use super::engine::HookEngine;
use super::error::Error;
use super::serving::reached;
use super::templates::LazyTemplates;
use crate::check::{CheckSettings, Checked, check_agent};
use crate::diagnostic::Diagnostic;
use crate::providers::McpServers;

/// A rule that says nothing of the modules of an execution.
pub(super) const UNUSED_HOOK_MODULE: &str = "unused-hook-module";

/// What is wrong with an agent's folder, with a single module, or with a manifest.
/// `python` is the interpreter that checks templates, which is started for nothing else.
pub(crate) fn check_path(
    path: &Path,
    settings: &CheckSettings,
    python: Option<&Path>,
) -> Result<Vec<Diagnostic>, Error> {
    check_asking(path, settings, python, None)
}

/// As [`check_path`], of a manifest whose servers are asked for their tools as well: 10 s for each, all at once.
pub(crate) fn check_connected(
    manifest: &Path,
    settings: &CheckSettings,
    python: Option<&Path>,
) -> Result<Vec<Diagnostic>, Error> {
    let ask = |servers: &[ServerConfig]| {
        let listed = McpServers::listed_blocking(servers.iter().map(reached).collect());
        listed.into_iter().map(|names| names.map_err(|error| error.to_string())).collect()
    };
    check_asking(manifest, settings, python, Some(&ask))
}

fn check_asking(
    path: &Path,
    settings: &CheckSettings,
    python: Option<&Path>,
    connect: Option<Connect<'_>>,
) -> Result<Vec<Diagnostic>, Error> {
    if is_manifest(path) {
        let local = || local_tools(path, settings);
        let builder = HookEngine::builder(folder_of(path));
        let builder = python.map(|python| builder.clone().python(python)).unwrap_or(builder);
        let templates = LazyTemplates { builder, started: OnceLock::new(), told: AtomicBool::new(false) };
        return Ok(config::check_manifest(path, Some(&templates), &local, connect)?);
    }
    let Checked { mut found, tools } = check_agent(&agent_files(path)?, settings);
    if path.is_dir() {
        found.extend(config::check(path, &tools)?);
    }
    if path.join(EXECUTION_FILE).is_file() {
        // Hooks of an execution have no decorators.
        found.retain(|problem| problem.rule != UNUSED_HOOK_MODULE);
        found.extend(check_execution(path)?);
    }
    Ok(found)
}

/// Whether a path is that of a manifest, whether it is there or not: a file of JSON or YAML.
pub(crate) fn is_manifest(path: &Path) -> bool {
    let kinds = ["json", "yml", "yaml"];
    let has = |kind: &std::ffi::OsStr| kinds.iter().any(|known| kind.eq_ignore_ascii_case(known));
    path.extension().is_some_and(has) && !path.is_dir()
}

/// The Python tools beside a manifest; none where one of their modules does not tell which it has.
fn local_tools(manifest: &Path, settings: &CheckSettings) -> Option<BTreeSet<String>> {
    let folder = folder_of(manifest);
    let modules = tool_modules(&folder).ok()?.into_iter().filter(|module| !module.starts_with("skills"));
    let files: Vec<_> = modules.map(|module| (folder.join(&module), module, false)).collect();
    let tools: Option<Vec<_>> = check_agent(&files, settings).tools.into_iter().map(|module| module.tools).collect();
    Some(tools?.concat().into_iter().collect())
}
