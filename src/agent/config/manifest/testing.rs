//! What the tests of manifests share.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::{CheckTemplates, Connect, LocalTools, MANIFEST_FILE, Manifest, Surroundings, TemplateProblem, read_bytes};
use crate::agent::config::testing::variables;
use crate::agent::config::variables::Environment;

/// A manifest's text as JSON, and what is said of it.
pub(in crate::agent::config) fn manifest(text: &str) -> (Option<Manifest>, Vec<String>) {
    manifest_with(text, None)
}

/// As [`manifest`], with a check of templates.
pub(super) fn manifest_with(text: &str, templates: Option<&dyn CheckTemplates>) -> (Option<Manifest>, Vec<String>) {
    read(MANIFEST_FILE, text.as_bytes(), templates, None)
}

/// As [`manifest`], of a text that is YAML.
pub(super) fn yaml(text: &str) -> (Option<Manifest>, Vec<String>) {
    read("app.yml", text.as_bytes(), None, None)
}

/// As [`manifest`], with these Python tools beside it.
pub(super) fn manifest_beside(text: &str, tools: Option<&[&str]>) -> (Option<Manifest>, Vec<String>) {
    let local = || tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect::<BTreeSet<_>>());
    read(MANIFEST_FILE, text.as_bytes(), None, Some(&local))
}

pub(super) fn read(
    name: &str,
    bytes: &[u8],
    templates: Option<&dyn CheckTemplates>,
    local: Option<LocalTools<'_>>,
) -> (Option<Manifest>, Vec<String>) {
    let variables = Environment(&variables);
    let around = Surroundings { folder: Path::new(""), variables, templates, local, connect: None };
    let (read, found) = read_bytes(Path::new(name), bytes, &around);
    (read, found.iter().map(ToString::to_string).collect())
}

/// What is said of a manifest whose servers are asked.
pub(super) fn connected(text: &str, connect: Connect<'_>) -> Vec<String> {
    let (variables, connect) = (Environment(&variables), Some(connect));
    let around = Surroundings { folder: Path::new(""), variables, templates: None, local: None, connect };
    let (_, found) = read_bytes(Path::new(MANIFEST_FILE), text.as_bytes(), &around);
    found.iter().map(ToString::to_string).collect()
}

/// What is said of a manifest.
pub(super) fn told(text: &str) -> Vec<String> {
    manifest(text).1
}

/// A tool set that has nothing wrong.
pub(super) fn mcp(name: &str) -> Value {
    json!({"type": "mcp", "name": name, "mcp_server_info": {"url": "http://a/mcp"}})
}

/// A function that finds problems.
impl<F: Fn(&str, &str) -> Vec<TemplateProblem>> CheckTemplates for F {
    fn check(&self, arguments: &str, event: &str) -> Vec<TemplateProblem> {
        self(arguments, event)
    }
}

/// A problem of a template.
pub(super) fn problem(path: &str, message: &str, hint: Option<&str>) -> TemplateProblem {
    TemplateProblem { path: path.to_owned(), message: message.to_owned(), hint: hint.map(str::to_owned) }
}
