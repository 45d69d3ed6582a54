//! What the tests of the files share.

use std::path::Path;

use super::{AgentConfig, read};

/// The values of one file's text, and what is said of it. `KEY` and `HOST` are the variables that are set, `EMPTY` is empty.
pub(super) fn config(name: &str, text: &str) -> (AgentConfig, Vec<String>) {
    config_in(Path::new(""), name, text)
}

/// As [`config`], of an agent in `root`.
pub(super) fn config_in(root: &Path, name: &str, text: &str) -> (AgentConfig, Vec<String>) {
    let variables = |name: &str| match name {
        "KEY" => Some("k-123".to_owned()),
        "HOST" => Some("models.local".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    let mut config = AgentConfig::default();
    let found = read(root, name, text.as_bytes(), &variables, &mut config);
    (config, found.iter().map(ToString::to_string).collect())
}

/// What is said of one file's text.
pub(super) fn told(name: &str, text: &str) -> Vec<String> {
    config(name, text).1
}
