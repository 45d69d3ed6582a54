//! Is this folder of hooks well formed? Found by reading the source; nothing is imported and no Python is started.

mod context;
mod flow;
mod handlers;
mod ignores;
mod installed;
mod limits;
#[cfg(test)]
mod mutation_tests;
mod names;
mod outline;
mod project;
mod rules;
mod source;
mod tool_functions;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::diagnostic::{Diagnostic, Severity};
use context::{Context, Report};
pub(crate) use installed::Installed;
use names::Names;
use project::Project;
pub(crate) use rules::{RULES, Rule, by_name, nearest, unknown_rule};
pub(crate) use source::{NEWEST_MINOR, OLDEST_MINOR};
pub(crate) use tool_functions::{Named, NamedThing, ToolModule};

/// A file of an agent that is read: where it lies, its path below the agent's root, and whether hooks in it are registered.
pub(crate) type AgentFile = (PathBuf, PathBuf, bool);

/// What a check is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckSettings {
    /// The minor version of the Python whose grammar counts.
    pub(crate) minor: u8,
    /// What the modify hooks of one turn may take together, in milliseconds, where that is declared.
    pub(crate) turn_budget_ms: Option<u64>,
    /// How often the model is asked in a turn at most.
    pub(crate) iterations: u64,
    /// What can be imported beside the agent's own modules, where that is known.
    pub(crate) installed: Option<Installed>,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self { minor: NEWEST_MINOR, turn_budget_ms: None, iterations: 10, installed: None }
    }
}

/// The minor version that a text such as `3.12` names.
pub(crate) fn parse_version(text: &str) -> Result<u8, String> {
    let minor = text.strip_prefix("3.").and_then(|minor| minor.parse().ok());
    minor
        .filter(|minor| (OLDEST_MINOR..=NEWEST_MINOR).contains(minor))
        .ok_or_else(|| format!("expected 3.{OLDEST_MINOR} to 3.{NEWEST_MINOR}"))
}

/// Hook modules that may be imported: nothing else can be. A check has let them through, or its caller has left it out by name.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    root: PathBuf,
    modules: Vec<PathBuf>,
    tools: Vec<PathBuf>,
}

impl Admitted {
    /// Checks the modules below `root` with all that they may import (`files`). `wanted` are the problems that count. Errors
    /// among them come back in place of the modules, warnings beside them.
    pub(crate) fn after_check(
        root: &Path,
        modules: Vec<PathBuf>,
        files: &[AgentFile],
        settings: &CheckSettings,
        wanted: impl Fn(&Diagnostic) -> bool,
    ) -> Result<(Self, Vec<Diagnostic>), Vec<Diagnostic>> {
        let found: Vec<_> = check(files, settings).into_iter().filter(wanted).collect();
        if found.iter().any(|problem| problem.severity == Severity::Error) {
            return Err(found);
        }
        Ok((Self::unchecked(root, modules), found))
    }

    /// The modules below `root`, whatever a check would say.
    pub(crate) fn unchecked(root: &Path, modules: Vec<PathBuf>) -> Self {
        Self { root: root.to_owned(), modules, tools: Vec::new() }
    }

    /// Tool modules beside them, which no check of hooks speaks of.
    pub(crate) fn with_tools(mut self, tools: Vec<PathBuf>) -> Self {
        self.tools = tools;
        self
    }

    /// The tool modules, relative to the folder.
    pub(crate) fn tools(&self) -> &[PathBuf] {
        &self.tools
    }

    /// The agent's folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The hook modules, relative to it.
    pub(crate) fn modules(&self) -> &[PathBuf] {
        &self.modules
    }
}

/// Checks the modules of an agent. What is found is sorted by file and place.
pub(crate) fn check(files: &[AgentFile], settings: &CheckSettings) -> Vec<Diagnostic> {
    check_agent(files, settings).found
}

/// What a check of an agent's modules gives.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The problems, sorted by file and place.
    pub(crate) found: Vec<Diagnostic>,
    /// What its modules of tools have and name.
    pub(crate) tools: Vec<ToolModule>,
}

/// As [`check`]; also tells of the tools.
pub(crate) fn check_agent(files: &[AgentFile], settings: &CheckSettings) -> Checked {
    let (mut found, tools) = limits::with_deep_stack(|| {
        let (project, mut found) = Project::read(files, settings.minor);
        let (more, tools) = check_project(&project, settings);
        found.extend(more);
        (found, tools)
    });
    found.sort_by(|one, other| (&one.file, one.place, &one.rule).cmp(&(&other.file, other.place, &other.rule)));
    Checked { found, tools }
}

/// Checks one module that is given as text.
pub(crate) fn check_text(file: &Path, text: String, settings: &CheckSettings) -> Vec<Diagnostic> {
    let mut found =
        limits::with_deep_stack(|| check_project(&Project::of_text(file, text, settings.minor), settings).0);
    found.sort_by(|one, other| (one.place, &one.rule).cmp(&(other.place, &other.rule)));
    found
}

/// Applies the rules, of a large agent on all cores.
fn apply_rules(context: &Context<'_>) -> Vec<Diagnostic> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut report = Report::default();
        while let Some(rule) = RULES.get(next.fetch_add(1, Ordering::Relaxed)) {
            (rule.check)(context, &mut report);
        }
        report.found
    };
    if context.project.modules.len() < limits::MANY {
        return work();
    }
    thread::scope(|scope| {
        let other = limits::deep_thread().spawn_scoped(scope, work).expect("the process can start threads");
        let mut found = work();
        match other.join() {
            Ok(more) => found.extend(more),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        found
    })
}

fn check_project(project: &Project, settings: &CheckSettings) -> (Vec<Diagnostic>, Vec<ToolModule>) {
    let names = Names::new(project);
    let handlers = handlers::find(project, &names);
    let tools = tool_functions::find(project, &names);
    let context = Context { project, names, handlers, tools, settings };
    let mut found = apply_rules(&context);
    ignores::apply(project, &mut found);
    (found, tool_functions::modules(project, &context.names, &context.tools))
}
