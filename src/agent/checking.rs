//! A whole agent checked without importing anything: its modules, its configuration, and what each names of the other. A Quick App's
//! manifest, and the tools beside it.

use std::collections::BTreeSet;
use std::path::Path;

use super::config;
use super::discovery::{agent_files, tool_modules};
use super::error::Error;
use crate::check::{CheckSettings, Checked, check_agent};
use crate::diagnostic::Diagnostic;

/// What is wrong with an agent's folder, with a single module, or with a manifest.
pub(crate) fn check_path(path: &Path, settings: &CheckSettings) -> Result<Vec<Diagnostic>, Error> {
    if is_manifest(path) {
        let local = || local_tools(path, settings);
        return Ok(config::check_manifest(path, None, &local)?);
    }
    let Checked { mut found, tools } = check_agent(&agent_files(path)?, settings);
    if path.is_dir() {
        found.extend(config::check(path, &tools)?);
    }
    Ok(found)
}

/// Whether a path is that of a manifest: a file of JSON or YAML.
fn is_manifest(path: &Path) -> bool {
    let kinds = ["json", "yml", "yaml"];
    let has = |kind: &std::ffi::OsStr| kinds.iter().any(|known| kind.eq_ignore_ascii_case(known));
    path.extension().is_some_and(has) && !path.is_dir()
}

/// The Python tools beside a manifest; none where one of their modules does not tell which it has.
fn local_tools(manifest: &Path, settings: &CheckSettings) -> Option<BTreeSet<String>> {
    let folder = manifest.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let modules = tool_modules(folder).ok()?.into_iter().filter(|module| !module.starts_with("skills"));
    let files: Vec<_> = modules.map(|module| (folder.join(&module), module, false)).collect();
    let tools: Option<Vec<_>> = check_agent(&files, settings).tools.into_iter().map(|module| module.tools).collect();
    Some(tools?.concat().into_iter().collect())
}
