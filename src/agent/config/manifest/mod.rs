//! The manifest of a Quick App: its model, where its tools are from, and the hooks that call them. JSON, or YAML.

mod authorization;
mod choices;
mod connected;
mod deployments;
mod dial;
mod fallback;
#[cfg(test)]
mod hidden_tests;
mod hooks;
mod lookup;
mod rest;
mod schema;
mod schema_sets;
mod sections;
mod served;
mod server;
mod templates;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
mod tool_sets;
#[cfg(test)]
mod tool_sets_tests;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

pub(super) use choices::choice;
pub(crate) use connected::Connect;
pub(crate) use schema::quickapp_schema;
#[cfg(test)]
pub(super) use sections::wrong;
pub(super) use sections::{MANIFEST_FILE, MANIFEST_SECTIONS};
pub(crate) use templates::{CheckTemplates, TemplateProblem};
pub(crate) use tool_sets::{DeploymentConfig, RestConfig};

use super::model::{ModelConfig, Resolver};
use super::report::{Field, Report};
use super::sections::MODEL;
use super::servers::ServerConfig;
use super::variables::{Environment, Variables, set_anywhere};
use super::{ConfigError, bytes, decode};
use crate::diagnostic::{Diagnostic, Severity};
use crate::quickapp::{App, MAX_ITERATIONS};
use lookup::Lookup;
use tool_sets::Made;

/// What a manifest says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    /// The app.
    pub(crate) app: App,
    /// The model, where one is named.
    pub(crate) model: Option<ModelConfig>,
    /// How the servers of tool sets are reached, each by the name of its set.
    pub(crate) servers: Vec<ServerConfig>,
    /// The tools that are requests over HTTP, by set.
    pub(crate) rest: Vec<RestConfig>,
    /// The tools that are deployments.
    pub(crate) deployments: Vec<DeploymentConfig>,
}

/// The tools beside a manifest, by their names; none where they cannot be told.
pub(crate) type LocalTools<'a> = &'a dyn Fn() -> Option<BTreeSet<String>>;

/// What the parts of a manifest need to know of what is around it.
struct Surroundings<'a> {
    /// The manifest's folder.
    folder: &'a Path,
    variables: Environment<'a>,
    templates: Option<&'a dyn CheckTemplates>,
    local: Option<LocalTools<'a>>,
    connect: Option<Connect<'a>>,
}

/// Reads a manifest. Where something in it is an error there is none: an app of which a part is missing could show the model what is to
/// be hidden.
pub(crate) fn load_manifest(
    path: &Path,
    variables: Variables<'_>,
    templates: Option<&dyn CheckTemplates>,
) -> Result<(Option<Manifest>, Vec<Diagnostic>), ConfigError> {
    load_with(path, variables, templates, (None, None))
}

/// What is wrong in a manifest, wherever its app is to run: what the environment does not have is not told, unless servers are to be asked.
pub(crate) fn check_manifest(
    path: &Path,
    templates: Option<&dyn CheckTemplates>,
    local: LocalTools<'_>,
    connect: Option<Connect<'_>>,
) -> Result<Vec<Diagnostic>, ConfigError> {
    // Who asks the servers needs what is set here.
    let set_here = |name: &str| std::env::var(name).ok();
    let any: Variables<'_> = if connect.is_none() { &set_anywhere } else { &set_here };
    Ok(load_with(path, any, templates, (Some(local), connect))?.1)
}

/// Reads an entry as it stands under `model`, the text of a JSON object that lies in no file.
pub(crate) fn model_entry(
    entry: &str,
    folder: &Path,
    variables: Variables<'_>,
) -> (Option<ModelConfig>, Vec<Diagnostic>) {
    let around =
        Surroundings { folder, variables: Environment(variables), templates: None, local: None, connect: None };
    let (read, found) = read_bytes(Path::new("model"), format!("{{\"model\": {entry}}}").as_bytes(), &around);
    (read.and_then(|manifest| manifest.model), found)
}

fn load_with(
    path: &Path,
    variables: Variables<'_>,
    templates: Option<&dyn CheckTemplates>,
    (local, connect): (Option<LocalTools<'_>>, Option<Connect<'_>>),
) -> Result<(Option<Manifest>, Vec<Diagnostic>), ConfigError> {
    let unreadable = |reason| ConfigError::Unreadable { path: path.to_owned(), reason };
    let read = bytes(path).map_err(unreadable)?;
    let absent = || File::open(path).err().unwrap_or_else(|| io::ErrorKind::NotFound.into());
    let bytes = read.ok_or_else(|| unreadable(absent()))?;
    // A server is started in this folder: by a relative path it would be sought from there.
    let folder = std::path::absolute(path).map_err(unreadable)?.parent().unwrap_or(Path::new("/")).to_owned();
    let around = Surroundings { folder: &folder, variables: Environment(variables), templates, local, connect };
    Ok(read_bytes(path, &bytes, &around))
}

fn read_bytes(path: &Path, bytes: &[u8], around: &Surroundings<'_>) -> (Option<Manifest>, Vec<Diagnostic>) {
    let mut report = Report::new(path);
    let node = decode(bytes, &mut report).and_then(|text| report.filled(text));
    let read = node.and_then(|node| manifest(&Field { name: String::new(), node: &node }, path, &mut report, around));
    let found = report.finish();
    let is_right = found.iter().all(|problem| problem.severity != Severity::Error);
    (read.filter(|_| is_right), found)
}

fn manifest(root: &Field<'_>, path: &Path, report: &mut Report, around: &Surroundings<'_>) -> Option<Manifest> {
    let top = report.fields(root, &sections::TOP)?;
    // Editors look the schema up.
    if let Some(schema) = top.get("$schema") {
        report.text(&schema);
    }
    let name = top.get("name").and_then(|name| report.text(&name)).filter(|name| !name.trim().is_empty());
    let stem = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let system_prompt = top.get("system_prompt").and_then(|prompt| report.text(&prompt));
    let max_iterations = top.get("max_iterations").and_then(|most| report.whole(&most, 1..=1_000));
    let model = top.get("model").and_then(|model| {
        let entry = report.fields(&model, &MODEL)?;
        Resolver { folder: around.folder, variables: Environment(around.variables.0) }.resolve(&entry, report)
    });
    let mut sets = top.get("tool_sets").map(|sets| tool_sets::read(&sets, &top, report, around)).unwrap_or_default();
    let hooks = top.get("hooks").map(|hooks| hooks::read(&hooks, report, around.templates)).unwrap_or_default();
    if let Some(connect) = around.connect.filter(|_| !report.has_errors()) {
        connected::ask(&mut sets, connect, report);
    }
    let lookup = Lookup::new(&sets, report);
    for hook in &hooks {
        lookup.check(hook, report);
    }
    let (mut servers, mut rest, mut deployments) = (vec![], vec![], vec![]);
    let mut tool_sets = vec![];
    for read in sets {
        tool_sets.extend(read.set);
        match read.made {
            Some(Made::Server(server)) => servers.push(server),
            Some(Made::Rest(set)) => rest.push(set),
            Some(Made::Deployments(tools)) => deployments.extend(tools),
            None => {}
        }
    }
    let app = App {
        name: name.unwrap_or_else(stem),
        system_prompt,
        max_iterations: max_iterations.unwrap_or(MAX_ITERATIONS),
        tool_sets,
        hooks: hooks.into_iter().map(|read| read.hook).collect(),
    };
    Some(Manifest { app, model, servers, rest, deployments })
}
