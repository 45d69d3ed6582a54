//! Is this folder of hooks well formed? Found by reading the source; nothing is imported and no Python is started.

mod context;
mod flow;
mod handlers;
mod ignores;
mod limits;
#[cfg(test)]
mod mutation_tests;
mod names;
mod outline;
mod project;
mod rules;
mod source;
mod walk;

use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use context::{Context, Report};
use names::Names;
use project::Project;
pub(crate) use rules::{RULES, Rule, by_name, nearest};
pub(crate) use source::NEWEST_MINOR;

/// A file of an agent that is read: where it lies, its path below the agent's root, and whether hooks in it are registered.
pub(crate) type AgentFile = (PathBuf, PathBuf, bool);

/// What a check is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckSettings {
    /// The minor version of the Python whose grammar counts.
    pub(crate) minor: u8,
    /// What the modify hooks of one turn may take together, in milliseconds, where that is declared.
    pub(crate) turn_budget_ms: Option<u64>,
    /// How often the model is asked in a turn at most.
    pub(crate) iterations: u64,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self { minor: NEWEST_MINOR, turn_budget_ms: None, iterations: 10 }
    }
}

/// Checks the modules of an agent. What is found is sorted by file and place.
pub(crate) fn check(files: &[AgentFile], settings: CheckSettings) -> Vec<Diagnostic> {
    let mut found = limits::with_deep_stack(|| {
        let (project, mut found) = Project::read(files, settings.minor);
        found.extend(check_project(&project, settings));
        found
    });
    found.sort_by(|one, other| (&one.file, one.place, &one.rule).cmp(&(&other.file, other.place, &other.rule)));
    found
}

/// Checks one module that is given as text.
pub(crate) fn check_text(file: &Path, text: String, settings: CheckSettings) -> Vec<Diagnostic> {
    let mut found = limits::with_deep_stack(|| check_project(&Project::of_text(file, text, settings.minor), settings));
    found.sort_by(|one, other| (one.place, &one.rule).cmp(&(other.place, &other.rule)));
    found
}

fn check_project(project: &Project, settings: CheckSettings) -> Vec<Diagnostic> {
    let names = Names::new(project);
    let handlers = handlers::find(project, &names);
    let context = Context { project, names, handlers, settings };
    let mut report = Report::default();
    for rule in RULES {
        (rule.check)(&context, &mut report);
    }
    let mut found = report.found;
    ignores::apply(project, &mut found);
    found
}
