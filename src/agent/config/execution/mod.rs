//! `execution.yml`: what a model is to do with code, and what that code may use.

mod sections;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

pub(in crate::agent) use sections::EXECUTION_FILE;
pub(super) use sections::EXECUTION_SECTIONS;
#[cfg(test)]
pub(super) use tests::told;

use super::manifest::choice;
use super::model::{ModelConfig, Resolver};
use super::report::{Field, Report};
use super::sections::MODEL;
use super::variables::{Environment, Variables, set_anywhere};
use super::{ConfigError, bytes, decode};
use crate::conversation::Object;
use crate::diagnostic::{Diagnostic, Severity};
use crate::execute::{CodeForm, CodeLimits, Exit, MOST_ITERATIONS};

/// What the model is to do, where that is a file of its own.
const INSTRUCTIONS_FILE: &str = "instructions.md";

/// How the model may give its code.
const FORMS: [(&str, CodeForm); 2] = [("native", CodeForm::Native), ("fenced", CodeForm::Fenced)];

/// What the file says; what it does not say is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExecutionConfig {
    pub(crate) instructions: String,
    pub(crate) model: Option<ModelConfig>,
    pub(crate) exits: Vec<Exit>,
    pub(crate) chat: bool,
    pub(crate) form: CodeForm,
    pub(crate) iterations: Option<u32>,
    pub(crate) hook_timeout: Option<Duration>,
    pub(crate) tool_timeout: Option<Duration>,
    pub(crate) tool_calls: Option<u32>,
    pub(crate) repeats: Option<u32>,
    pub(crate) variables: Object,
    pub(crate) limits: CodeLimits,
}

/// What is wrong in the file of a folder's execution, wherever it is to run: what the environment does not have is not told.
pub(in crate::agent) fn check_execution(folder: &Path) -> Result<Vec<Diagnostic>, ConfigError> {
    Ok(load_execution(folder, &set_anywhere)?.1)
}

/// Reads the execution of a folder. Where something in it is an error there is none.
pub(crate) fn load_execution(
    folder: &Path,
    variables: Variables<'_>,
) -> Result<(Option<ExecutionConfig>, Vec<Diagnostic>), ConfigError> {
    let path = folder.join(EXECUTION_FILE);
    let file = |path: &Path| bytes(path).map_err(|reason| ConfigError::Unreadable { path: path.to_owned(), reason });
    let instructions = file(&folder.join(INSTRUCTIONS_FILE))?;
    let mut report = Report::new(&path);
    let Some(read) = file(&path)? else {
        let message = format!("There is no `{EXECUTION_FILE}`");
        let hint = format!("write one with `instructions` (or a file `{INSTRUCTIONS_FILE}` beside it) and a `model`");
        report.error("missing-file", None, message, hint);
        return Ok((None, report.finish()));
    };
    let apart = instructions.as_deref().and_then(|bytes| decode(bytes, &mut report).map(str::to_owned));
    let environment = Environment(variables);
    let node = decode(&read, &mut report).and_then(|text| report.filled(text));
    let config = node.and_then(|node| {
        execution(&Field { name: String::new(), node: &node }, apart, folder, &environment, &mut report)
    });
    let found = report.finish();
    let is_right = found.iter().all(|problem| problem.severity != Severity::Error);
    Ok((config.filter(|_| is_right), found))
}

fn execution(
    root: &Field<'_>,
    apart: Option<String>,
    folder: &Path,
    environment: &Environment<'_>,
    report: &mut Report,
) -> Option<ExecutionConfig> {
    let top = report.fields(root, &sections::TOP)?;
    let written = top.get("instructions").and_then(|field| report.text(&field));
    if written.is_some() && apart.is_some() {
        let message = format!("`instructions` stands beside `{INSTRUCTIONS_FILE}`");
        report.error("conflicting-keys", top.place("instructions"), message, "keep one of the two".to_owned());
    }
    let instructions = written.or(apart).filter(|text| !text.trim().is_empty());
    if instructions.is_none() && top.get("instructions").is_none() {
        let hint = format!("say what the model is to do, here or in `{INSTRUCTIONS_FILE}`");
        report.error("missing-key", root.node.place, "`instructions` is missing".to_owned(), hint);
    }
    let model = top.get("model").and_then(|model| {
        let entry = report.fields(&model, &MODEL)?;
        Resolver { folder, variables: Environment(environment.0) }.resolve(&entry, report)
    });
    let mut whole = |key: &str, range| top.get(key).and_then(|field| report.whole(&field, range));
    let iterations = whole("iterations", 1..=MOST_ITERATIONS);
    let (tool_calls, repeats) = (whole("tool_calls", 0..=1_000_000), whole("repeats", 1..=1_000_000));
    let mut time = |key: &str| top.get(key).and_then(|field| report.time(&field, ("seconds", 1.0), false));
    let (timeout, hook_timeout, tool_timeout) = (time("timeout"), time("hook_timeout"), time("tool_timeout"));
    let variables = top.get("variables").and_then(|field| object(&field, environment, report)).unwrap_or_default();
    let mut limits = top.get("limits").map(|field| limits(&field, report)).unwrap_or_default();
    limits.time = timeout.unwrap_or(limits.time);
    Some(ExecutionConfig {
        instructions: instructions.unwrap_or_default(),
        model,
        exits: top.get("exits").map(|field| exits(&field, environment, report)).unwrap_or_default(),
        chat: top.get("chat").and_then(|field| report.flag(&field)).unwrap_or_default(),
        form: top.get("form").and_then(|field| choice(&field, "form", &FORMS, report)).unwrap_or_default(),
        iterations,
        hook_timeout,
        tool_timeout,
        tool_calls,
        repeats,
        variables,
        limits,
    })
}

fn exits(field: &Field<'_>, environment: &Environment<'_>, report: &mut Report) -> Vec<Exit> {
    let items = report.items(field, "a list of exits");
    items.iter().filter_map(|item| exit(item, environment, report)).collect()
}

fn exit(item: &Field<'_>, environment: &Environment<'_>, report: &mut Report) -> Option<Exit> {
    let fields = report.fields(item, &sections::EXIT)?;
    let name = fields.require("name", report).and_then(|name| report.text(&name));
    let description = fields.require("description", report).and_then(|text| report.text(&text));
    let aliases = fields.get("aliases").map(|aliases| report.texts(&aliases)).unwrap_or_default();
    let schema = fields.get("schema").and_then(|schema| object(&schema, environment, report));
    let mut exit = Exit::new(name?, description?);
    exit.aliases = aliases;
    exit.schema = schema.map(Into::into);
    Some(exit)
}

fn limits(field: &Field<'_>, report: &mut Report) -> CodeLimits {
    let mut limits = CodeLimits::default();
    let Some(fields) = report.fields(field, &sections::LIMITS) else { return limits };
    let mut whole = |key: &str, range| {
        fields.get(key).and_then(|field| report.whole(&field, range)).and_then(|whole| usize::try_from(whole).ok())
    };
    if let Some(megabytes) = whole("memory_mb", 1..=65_536) {
        limits.memory = megabytes << 20;
    }
    if let Some(kilobytes) = whole("output_kb", 1..=65_536) {
        limits.output = kilobytes << 10;
    }
    if let Some(kilobytes) = whole("source_kb", 1..=1_024) {
        limits.source = kilobytes << 10;
    }
    limits.recursion = whole("recursion", 1..=1_000).unwrap_or(limits.recursion);
    limits.calls = whole("calls", 1..=1_000_000).unwrap_or(limits.calls);
    limits
}

/// A mapping as JSON.
fn object(field: &Field<'_>, environment: &Environment<'_>, report: &mut Report) -> Option<Object> {
    report.free_fields(field)?;
    match environment.json(field, report)? {
        serde_json::Value::Object(object) => Some(object),
        _ => None,
    }
}
