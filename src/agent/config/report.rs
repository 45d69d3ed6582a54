//! What is wrong in one file, gathered while its values are read.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::json;
use super::sections::{Section, Verdict};
use super::yaml::{self, Entry, Fault, Node, Yaml};
use crate::diagnostic::{Diagnostic, Place, Related, Severity};
use crate::skill::{Reference, References, Referent};

/// From so many problems on, and so many keys of a mapping, the nearest name is not sought.
const MOST_COMPARED: usize = 200;

/// The problems of one file.
#[derive(Debug)]
pub(super) struct Report {
    file: PathBuf,
    /// The file's lines, where they are known.
    lines: Vec<String>,
    found: Vec<Diagnostic>,
    references: Vec<Reference>,
}

/// A text is no YAML, or not what can be meant; why is told.
#[derive(Debug)]
pub(super) struct Broken;

/// A value with its name for people, such as `model_groups[0].id`.
#[derive(Clone, Debug)]
pub(super) struct Field<'n> {
    pub(super) name: String,
    pub(super) node: &'n Node,
}

/// A mapping whose keys have been judged.
#[derive(Debug)]
pub(super) struct Fields<'n> {
    name: String,
    place: Place,
    entries: &'n [Entry],
}

impl<'n> Field<'n> {
    fn item(&self, index: usize, node: &'n Node) -> Self {
        Self { name: format!("{}[{index}]", self.name), node }
    }
}

impl<'n> Fields<'n> {
    /// The value of a key. A key without a value is as none.
    pub(super) fn get(&self, key: &str) -> Option<Field<'n>> {
        self.all().find(|(name, _)| *name == key).map(|(_, field)| field)
    }

    /// The value of a key that must be there.
    pub(super) fn require(&self, key: &str, report: &mut Report) -> Option<Field<'n>> {
        let field = self.get(key);
        if field.is_none() {
            report.error("missing-key", self.place, format!("`{}` is missing", self.path(key)), None);
        }
        field
    }

    /// All keys that have a value.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'n str, Field<'n>)> {
        let entries = self.entries.iter().filter(|entry| !entry.value.is_null());
        entries.map(|entry| (entry.key.as_str(), Field { name: self.path(&entry.key), node: &entry.value }))
    }

    /// The place of a key that is there; of the mapping where it is not.
    pub(super) fn place(&self, key: &str) -> Place {
        self.entries.iter().find(|entry| entry.key == key).map_or(self.place, |entry| entry.place)
    }

    /// The name of a key's value for people.
    pub(super) fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

impl Report {
    pub(super) fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), lines: vec![], found: vec![], references: vec![] }
    }

    /// Keeps the file's text, so that words can be found in it.
    pub(super) fn keep(&mut self, text: &str) {
        self.lines = text.lines().map(str::to_owned).collect();
    }

    /// What has been found, by place.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|problem| (problem.line, problem.place));
        self.found
    }

    /// Whether names may still be compared: that costs microseconds for each pair, and a file may have a hundred thousand mistakes.
    pub(super) fn may_compare(&self) -> bool {
        self.found.len() < MOST_COMPARED
    }

    /// Whether something has been found that keeps the agent from running.
    pub(super) fn has_errors(&self) -> bool {
        self.found.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// How much has been found.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Something that keeps the agent from running as it is meant.
    pub(super) fn error(
        &mut self,
        rule: &str,
        place: impl Into<Option<Place>>,
        message: String,
        hint: impl Into<Option<String>>,
    ) {
        self.push(Severity::Error, rule, place.into(), message, hint.into());
    }

    /// Something that has no effect, or hardly the one that is meant.
    pub(super) fn warning(
        &mut self,
        rule: &str,
        place: impl Into<Option<Place>>,
        message: String,
        hint: impl Into<Option<String>>,
    ) {
        self.push(Severity::Warning, rule, place.into(), message, hint.into());
    }

    /// Adds another place to the problem that was told last.
    pub(super) fn relate(&mut self, message: &str, place: Place) {
        if let Some(last) = self.found.last_mut() {
            let file = self.file.clone();
            last.related.push(Related { message: message.to_owned(), file, line: place.line, place });
        }
    }

    /// Takes the excerpt away from the problem that was told last: its line holds a secret.
    pub(super) fn without_excerpt(&mut self) {
        if let Some(last) = self.found.last_mut() {
            last.place = None;
        }
    }

    /// Notes that something is named which stands elsewhere.
    pub(super) fn refer(&mut self, shown: impl Into<String>, place: Place, to: Referent) {
        self.references.push(Reference { shown: shown.into(), place, to });
    }

    /// What has been noted so far, by a file of that skill or of the project.
    pub(super) fn references(&mut self, owner: Option<&str>) -> References {
        let all = std::mem::take(&mut self.references);
        References { file: self.file.clone(), owner: owner.map(str::to_owned), all }
    }

    /// Where words stand that follow each other in a stretch of the file. From one on that is not found, since it is written otherwise
    /// there, they have the whole stretch.
    pub(super) fn places(&self, within: Place, words: &[&str]) -> Vec<Place> {
        let last = self.lines.len().min(within.end_line as usize);
        let mut at = Cursor { line: (within.line as usize).saturating_sub(1), byte: 0, column: 1 };
        let find = |word: &&str| {
            let mut line = at.line;
            let (mut start, mut column) = (at.byte, at.column);
            while line < last {
                let rest = &self.lines[line][start..];
                if let Some(found) = rest.find(*word) {
                    let column = column + count(&rest[..found]);
                    let end_column = column + count(word);
                    at = Cursor { line, byte: start + found + word.len(), column: end_column };
                    let line = u32::try_from(line + 1).unwrap_or(u32::MAX);
                    return Place { line, column, end_line: line, end_column };
                }
                (line, start, column) = (line + 1, 0, 1);
            }
            // To look for the others as far would take long in a long stretch.
            at.line = last;
            within
        };
        words.iter().map(find).collect()
    }

    /// The top value of a text; none where it is empty.
    pub(super) fn document(&mut self, text: &str) -> Result<Option<Node>, Broken> {
        self.keep(text);
        self.document_below(text, 0)
    }

    /// The top value of a text that must have one; that it has none is told.
    pub(super) fn filled(&mut self, text: &str) -> Option<Node> {
        let node = self.document(text).ok()?;
        if node.is_none() {
            self.error("missing-key", None, "The file is empty".to_owned(), None);
        }
        node
    }

    /// As [`Report::document`], of a text that stands in the file below `lines` others.
    pub(super) fn document_below(&mut self, text: &str, lines: u32) -> Result<Option<Node>, Broken> {
        match if self.is_json() { json::parse(text) } else { yaml::parse_below(text, lines) } {
            Ok(root) => Ok(root),
            Err(faults) => {
                for Fault { place, message, hint, first } in faults {
                    let rule = if first.is_some() { "duplicate-key" } else { self.broken() };
                    self.error(rule, place, message, hint.map(str::to_owned));
                    if let Some(first) = first {
                        self.relate("it is here first", first);
                    }
                }
                Err(Broken)
            }
        }
    }

    /// Whether the file is JSON, by its name.
    fn is_json(&self) -> bool {
        self.file.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("json"))
    }

    /// The rule that a text breaks which cannot be read.
    pub(super) fn broken(&self) -> &'static str {
        if self.is_json() { "invalid-json" } else { "invalid-yaml" }
    }

    /// The keys of a mapping; those that nothing reads are warned of.
    pub(super) fn fields<'n>(&mut self, field: &Field<'n>, section: &Section) -> Option<Fields<'n>> {
        let fields = self.free_fields(field)?;
        for (index, entry) in fields.entries.iter().enumerate() {
            let verdict = section.judge(&entry.key, index < MOST_COMPARED && self.may_compare());
            self.tell(&verdict, &entry.key, entry.place, &fields.path(&entry.key), section);
        }
        Some(fields)
    }

    /// The keys of a mapping that may have any.
    pub(super) fn free_fields<'n>(&mut self, field: &Field<'n>) -> Option<Fields<'n>> {
        let Yaml::Map(entries) = &field.node.value else {
            self.wrong_type(field, "a mapping", None);
            return None;
        };
        Some(Fields { name: field.name.clone(), place: field.node.place, entries })
    }

    pub(super) fn text(&mut self, field: &Field<'_>) -> Option<String> {
        let hint = match &field.node.value {
            Yaml::Text(text) => return Some(text.clone()),
            // `- Always: be polite` is a mapping.
            Yaml::Map(_) if !self.is_json() => Some("put the text in quotes: `: ` within it begins a value"),
            Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_) => Some("put it in quotes"),
            Yaml::Null | Yaml::List(_) | Yaml::Map(_) => None,
        };
        self.wrong_type(field, "a text", hint.map(str::to_owned));
        None
    }

    pub(super) fn flag(&mut self, field: &Field<'_>) -> Option<bool> {
        if let Yaml::Bool(value) = field.node.value {
            return Some(value);
        }
        self.wrong_type(field, "`true` or `false`", None);
        None
    }

    /// A whole number within `range`.
    pub(super) fn whole(&mut self, field: &Field<'_>, range: RangeInclusive<u32>) -> Option<u32> {
        let Yaml::Int(value) = field.node.value else {
            self.wrong_type(field, "a whole number", without_quotes(field));
            return None;
        };
        let whole = u32::try_from(value).ok().filter(|whole| range.contains(whole));
        if whole.is_none() {
            let (least, most) = (range.start(), range.end());
            let bounds =
                if *most == u32::MAX { format!("at least {least}") } else { format!("from {least} to {most}") };
            self.error("invalid-value", field.node.place, format!("`{}` is {value}, not {bounds}", field.name), None);
        }
        whole
    }

    /// A time of at most a year, in a unit given by its name and its seconds. `zero`: it may be none.
    pub(super) fn time(&mut self, field: &Field<'_>, unit: (&str, f64), zero: bool) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "whole numbers that large are refused below")]
        let number = match field.node.value {
            Yaml::Int(value) => value as f64,
            Yaml::Float(value) => value,
            _ => {
                self.wrong_type(field, &format!("a number of {}", unit.0), without_quotes(field));
                return None;
            }
        };
        let seconds = number * unit.1;
        // A year, and a nanosecond: shorter times would be rounded to none.
        if (1e-9..=31_536_000.0).contains(&seconds) || (zero && seconds == 0.0) {
            return Some(Duration::from_secs_f64(seconds));
        }
        let bound = if zero { "0 or more" } else { "more than 0" };
        let expected = format!("{bound} {}, and at most a year", unit.0);
        self.error("invalid-value", field.node.place, format!("`{}` is {number}, not {expected}", field.name), None);
        None
    }

    /// The items of a list; `what` is expected.
    pub(super) fn items<'n>(&mut self, field: &Field<'n>, what: &str) -> Vec<Field<'n>> {
        let Yaml::List(items) = &field.node.value else {
            let hint = if self.is_json() { "put it in `[` and `]`" } else { "begin each with `- `" };
            self.wrong_type(field, what, Some(hint.to_owned()));
            return vec![];
        };
        items.iter().enumerate().map(|(index, node)| field.item(index, node)).collect()
    }

    pub(super) fn texts(&mut self, field: &Field<'_>) -> Vec<String> {
        self.items(field, "a list of texts").iter().filter_map(|item| self.text(item)).collect()
    }

    pub(super) fn wrong_type(&mut self, field: &Field<'_>, expected: &str, hint: Option<String>) {
        let name = match (&*field.name, self.file.file_name()) {
            ("", Some(file)) => file.to_string_lossy().into_owned(),
            (name, _) => name.to_owned(),
        };
        let message = format!("`{name}` is {}, expected {expected}", field.node.kind());
        self.error("wrong-type", field.node.place, message, hint);
    }

    fn tell(&mut self, verdict: &Verdict, key: &str, place: Place, path: &str, section: &Section) {
        match verdict {
            Verdict::Known => {}
            Verdict::Unread => {
                self.warning(
                    "unsupported-key",
                    place,
                    format!("`{path}` has no effect: it is not supported yet"),
                    None,
                );
            }
            Verdict::Misplaced(home) => {
                let message = format!("`{path}` has no effect: `{key}` belongs elsewhere");
                self.warning("misplaced-key", place, message, format!("move it to {}", home.shown()));
            }
            Verdict::Unknown(near) => {
                let (message, hint) = match near {
                    // A key that is like a known one of an open mapping is passed on all the same.
                    Some(near) if section.open => (
                        format!("`{path}` is passed on as it is: it is no known key"),
                        format!("did you mean `{near}`?"),
                    ),
                    Some(near) => {
                        (format!("`{path}` has no effect: there is no such key"), format!("did you mean `{near}`?"))
                    }
                    None if key == "<<" => (
                        format!("`{path}` has no effect: YAML 1.2 has no merge keys"),
                        "repeat the keys, or give an alias to a whole value".to_owned(),
                    ),
                    None => {
                        let keys = section.keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
                        (format!("`{path}` has no effect: there is no such key"), format!("the keys here are {keys}"))
                    }
                };
                self.warning("unknown-key", place, message, hint);
            }
        }
    }

    fn push(&mut self, severity: Severity, rule: &str, place: Option<Place>, message: String, hint: Option<String>) {
        self.found.push(Diagnostic {
            rule: rule.to_owned(),
            severity,
            message,
            hint,
            file: self.file.clone(),
            line: place.map(|place| place.line),
            place,
            related: vec![],
        });
    }
}

/// How far a search has come.
#[derive(Debug)]
struct Cursor {
    line: usize,
    byte: usize,
    column: u32,
}

/// How many characters a text has.
fn count(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// The hint for a number that was written as a text.
fn without_quotes(field: &Field<'_>) -> Option<String> {
    match &field.node.value {
        Yaml::Text(text) if text.trim().parse::<f64>().is_ok() => Some("leave out the quotes".to_owned()),
        _ => None,
    }
}
