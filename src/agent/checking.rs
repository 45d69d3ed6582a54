//! A whole agent checked without importing anything: its modules, its configuration, and what each names of the other.

use std::path::Path;

use super::config;
use super::discovery::agent_files;
use super::error::Error;
use crate::check::{CheckSettings, Checked, check_agent};
use crate::diagnostic::Diagnostic;

/// What is wrong with an agent's folder, or with a single module.
pub(crate) fn check_path(path: &Path, settings: &CheckSettings) -> Result<Vec<Diagnostic>, Error> {
    let Checked { mut found, tools } = check_agent(&agent_files(path)?, settings);
    if path.is_dir() {
        found.extend(config::check(path, &tools)?);
    }
    Ok(found)
}
