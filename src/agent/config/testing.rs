//! What the tests of the files share.

use std::path::Path;

use proptest::sample::Index;

use super::execution::{self, EXECUTION_FILE};
use super::manifest::{self, MANIFEST_FILE};
use super::report::Report;
use super::sections::{MEMORY_FILE, SKILL_FILE};
use super::{AgentConfig, memory, read, skill};
use crate::skill::{MemorySchema, Skill};

/// The values of one file's text, and what is said of it. `KEY` and `HOST` are the variables that are set, `EMPTY` is empty.
pub(super) fn config(name: &str, text: &str) -> (AgentConfig, Vec<String>) {
    config_in(Path::new(""), name, text)
}

/// As [`config`], of an agent in `root`.
pub(super) fn config_in(root: &Path, name: &str, text: &str) -> (AgentConfig, Vec<String>) {
    let mut config = AgentConfig::default();
    let found = read(root, name, text.as_bytes(), &variables, &mut config);
    (config, found.iter().map(ToString::to_string).collect())
}

/// The variables that are set.
pub(super) fn variables(name: &str) -> Option<String> {
    match name {
        "KEY" => Some("k-123".to_owned()),
        "HOST" => Some("models.local".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

/// The skill `card` of a text, and what is said of it.
pub(super) fn skill(text: &str) -> (Skill, Vec<String>) {
    let mut report = Report::new(Path::new(SKILL_FILE));
    let read = skill::read("card", text, &mut report);
    (read, shown(report))
}

/// As [`skill`], of what stands below front matter that has nothing wrong: its first line is the fifth.
pub(super) fn body(text: &str) -> (Skill, Vec<String>) {
    skill(&format!("---\nname: a\ndescription: b\n---\n{text}"))
}

/// A skill's memory, and what is said of it.
pub(super) fn skill_memory(text: &str) -> (MemorySchema, Vec<String>) {
    let mut report = Report::new(Path::new(MEMORY_FILE));
    let read = memory::read_skill(text, &mut report);
    (read, shown(report))
}

/// The project's memory, and what is said of it.
pub(super) fn project_memory(text: &str) -> (MemorySchema, Vec<String>) {
    let mut report = Report::new(Path::new(MEMORY_FILE));
    let read = memory::read_project(text, &mut report);
    (read, shown(report))
}

/// What is said of one file's text.
pub(super) fn told(name: &str, text: &str) -> Vec<String> {
    match name {
        SKILL_FILE => skill(text).1,
        MEMORY_FILE if text.starts_with("{schema") => skill_memory(text).1,
        MEMORY_FILE => project_memory(text).1,
        EXECUTION_FILE => execution::told(text),
        MANIFEST_FILE => manifest::testing::manifest(text).1,
        _ => config(name, text).1,
    }
}

fn shown(report: Report) -> Vec<String> {
    report.finish().iter().map(ToString::to_string).collect()
}

/// The text after some changes: where, how many letters go, and what comes in their place.
pub(super) fn changed(text: &str, changes: impl IntoIterator<Item = (Index, usize, String)>) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for (at, removed, added) in changes {
        let from = at.index(letters.len() + 1);
        let to = (from + removed).min(letters.len());
        letters.splice(from..to, added.chars());
    }
    letters.into_iter().collect()
}
