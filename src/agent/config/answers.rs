//! Files that take the place of a model.

use std::path::Path;

use super::{ConfigError, yaml};
use crate::providers::{RecordedConversation, Script};

/// Reads the first conversation of a file.
pub(crate) fn recording(file: &Path) -> Result<RecordedConversation, ConfigError> {
    let text =
        std::fs::read_to_string(file).map_err(|reason| ConfigError::Unreadable { path: file.to_owned(), reason })?;
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    RecordedConversation::from_line(line).map_err(|message| ConfigError::Recording { path: file.to_owned(), message })
}

/// Reads the answers of a scripted model.
pub(crate) fn script(file: &Path) -> Result<Script, ConfigError> {
    let unreadable = |reason| ConfigError::Unreadable { path: file.to_owned(), reason };
    let broken = |message| ConfigError::Script { path: file.to_owned(), message };
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    let node = yaml::parse(&text).map_err(|faults| {
        let told = |fault: &yaml::Fault| format!("line {}: {}", fault.place.line, fault.message);
        broken(faults.iter().map(told).collect::<Vec<_>>().join("; "))
    })?;
    let value = node.map_or_else(|| serde_json::json!({}), |node| node.json());
    let read = serde_path_to_error::deserialize(value);
    read.map_err(|error| broken(format!("`{}`: {}", error.path(), error.inner())))
}
