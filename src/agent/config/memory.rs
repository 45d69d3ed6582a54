//! `memory.yml`: what a skill remembers, and what the project does.
//!
//! A skill's file has its entries below `schema`, in `public` and `private`; the project's has them at its top.

use serde_json::Value;

use super::markdown::is_id;
use super::report::{Field, Fields, Report};
use super::sections::{ENTRY, MEMORY_TOP, SCHEMA, meant};
use super::yaml::{Entry, Node, Yaml};
use crate::diagnostic::Place;
use crate::skill::{MemoryEntry, MemoryKind, MemorySchema, Visibility};

/// The kinds, and other words for some.
const KINDS: [(&str, &[&str]); 8] = [
    ("text", &["string", "str"]),
    ("bool", &["boolean"]),
    ("int", &["integer"]),
    ("float", &["number", "double"]),
    ("list", &["array"]),
    ("json", &["object", "dict", "map"]),
    ("categorical", &["enum", "category"]),
    ("any", &[]),
];

/// Whose entries are read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Owner {
    Project,
    Skill(Visibility),
}

/// Reads the text of a skill's file.
pub(super) fn read_skill(text: &str, report: &mut Report) -> MemorySchema {
    let mut schema = MemorySchema::default();
    let unread = || MemorySchema { unread: true, ..MemorySchema::default() };
    let Ok(root) = report.document(text) else { return unread() };
    let Some(root) = root else { return schema };
    if lacks_schema(&root) {
        let hint = "write `schema:`, below it `public:` or `private:`, and the entries below that".to_owned();
        report.error("misplaced-key", root.place, "A skill's memory begins with `schema`".to_owned(), hint);
        return unread();
    }
    let Some(top) = report.fields(&Field { name: String::new(), node: &root }, &MEMORY_TOP) else { return unread() };
    let Some(field) = top.get("schema") else { return schema };
    let Some(parts) = report.fields(&field, &SCHEMA) else { return unread() };
    for (key, visibility) in [("public", Visibility::Public), ("private", Visibility::Private)] {
        if let Some(field) = parts.get(key) {
            read_entries(&field, Owner::Skill(visibility), &mut schema, report);
        }
    }
    schema
}

/// Reads the text of the project's file.
pub(super) fn read_project(text: &str, report: &mut Report) -> MemorySchema {
    let mut schema = MemorySchema::default();
    let unread = MemorySchema { unread: true, ..MemorySchema::default() };
    let Ok(root) = report.document(text) else { return unread };
    let Some(root) = root else { return schema };
    if let Some(entry) = entries(&root).iter().find(|entry| entry.key == "schema" && has(&entry.value, SCHEMA.keys)) {
        let message = "The project's memory has no `schema`".to_owned();
        report.error("misplaced-key", entry.place, message, "put its entries at the top of the file".to_owned());
        return unread;
    }
    read_entries(&Field { name: String::new(), node: &root }, Owner::Project, &mut schema, report);
    schema
}

/// Reads a mapping from names to attributes. What cannot be read of it is told, and the schema marked.
fn read_entries(field: &Field<'_>, owner: Owner, schema: &mut MemorySchema, report: &mut Report) {
    let Some(fields) = report.free_fields(field) else {
        schema.unread = true;
        return;
    };
    for Entry { key, place, value } in entries(field.node) {
        let name = fields.path(key);
        if !is_id(key) {
            let message = format!("`{name}` cannot be named in a condition");
            report.error("invalid-name", *place, message, "a name has letters, digits and `_`".to_owned());
            continue;
        }
        if schema.get(key).is_some() {
            let message = format!("`{name}` is there twice, in `public` and in `private`");
            report.error("duplicate-key", *place, message, "keep one of the two".to_owned());
            continue;
        }
        let read = Reading { key, place: *place, owner, report: &mut *report }.entry(&Field { name, node: value });
        schema.entries.push(read);
    }
}

/// An entry that is being read.
struct Reading<'a> {
    key: &'a str,
    place: Place,
    owner: Owner,
    report: &'a mut Report,
}

impl Reading<'_> {
    /// The entry, as far as it can be read: one of an unknown kind takes anything.
    fn entry(mut self, field: &Field<'_>) -> MemoryEntry {
        let (of_project, visibility) = match self.owner {
            Owner::Project => (true, Visibility::Public),
            Owner::Skill(visibility) => (false, visibility),
        };
        let mut read = MemoryEntry {
            name: self.key.to_owned(),
            kind: MemoryKind::Any,
            description: None,
            llm_settable: false,
            initial_value: None,
            seed: false,
            pii: false,
            mutable: !of_project,
            visibility,
        };
        if field.node.is_null() {
            self.no_type(field);
            return read;
        }
        if let Yaml::Text(kind) = &field.node.value {
            let hint = MemoryKind::named(kind).map(|_| format!("write `{}: {{type: {kind}}}`", self.key));
            self.report.wrong_type(field, "a mapping", hint);
            return read;
        }
        let Some(fields) = self.report.fields(field, &ENTRY) else { return read };
        read.kind = self.kind(field, &fields);
        read.description = fields.get("description").and_then(|text| self.report.text(&text));
        read.llm_settable = self.flag(&fields, "llm_settable");
        read.pii = self.flag(&fields, "pii");
        let (seed, mutable) = (self.flag(&fields, "seed"), self.flag(&fields, "mutable"));
        if of_project {
            (read.seed, read.mutable) = (seed, mutable);
            if read.llm_settable {
                let message = format!("`{}` is of the project, which the model cannot write", self.key);
                let hint = "let a tool set it, or move it to the `memory.yml` of a skill".to_owned();
                self.report.error("project-llm-settable", fields.place("llm_settable"), message, hint);
                read.llm_settable = false;
            }
        }
        for (key, set) in [("seed", seed), ("mutable", mutable)] {
            if set && !of_project {
                let message = format!("`{}.{key}` has no effect: it is for the project's memory", field.name);
                self.report.warning("misplaced-key", fields.place(key), message, None);
            }
        }
        if let Some(initial) = fields.get("initial_value") {
            match read.accepts(&initial.node.json()) {
                Ok(value) => read.initial_value = Some(value).filter(|value| !value.is_null()),
                Err(why) => {
                    let message = format!("`{}` does not fit: `{}` {why}", initial.name, self.key);
                    self.report.error("wrong-type", initial.node.place, message, None);
                }
            }
        }
        read
    }

    fn flag(&mut self, fields: &Fields<'_>, key: &str) -> bool {
        fields.get(key).and_then(|flag| self.report.flag(&flag)).unwrap_or_default()
    }

    fn kind(&mut self, field: &Field<'_>, fields: &Fields<'_>) -> MemoryKind {
        let values = fields.get("enum_values").map(|values| self.values(&values));
        let Some(kind) = fields.get("type") else {
            self.no_type(field);
            return MemoryKind::Any;
        };
        let Some(name) = self.report.text(&kind) else { return MemoryKind::Any };
        match (MemoryKind::named(&name), values) {
            (Some(MemoryKind::Categorical(_)), Some(values)) if !values.is_empty() => MemoryKind::Categorical(values),
            (Some(MemoryKind::Categorical(_)), values) => {
                // What is wrong with values that are there has been told.
                if values.is_none() {
                    let message = format!("`{}.enum_values` is missing", field.name);
                    self.report.error("missing-key", kind.node.place, message, "list the values".to_owned());
                }
                MemoryKind::Any
            }
            (Some(kind), values) => {
                if values.is_some() {
                    let message = format!("`{}.enum_values` has no effect: the type is `{name}`", field.name);
                    let hint = "write `type: categorical`".to_owned();
                    self.report.warning("misplaced-key", fields.place("enum_values"), message, hint);
                }
                kind
            }
            (None, _) => {
                let same = KINDS.into_iter().find(|(_, others)| others.contains(&&*name)).map(|(kind, _)| kind);
                let kinds = KINDS.map(|(kind, _)| kind);
                let hint = match same {
                    Some(kind) => format!("did you mean `{kind}`?"),
                    None => meant(&name, kinds.into_iter(), &format!("there are `{}`", kinds.join("`, `"))),
                };
                self.report.error("invalid-value", kind.node.place, format!("There is no type `{name}`"), hint);
                MemoryKind::Any
            }
        }
    }

    fn values(&mut self, field: &Field<'_>) -> Vec<Value> {
        let before = self.report.len();
        let mut read = vec![];
        for item in self.report.items(field, "a list of values") {
            let value = item.node.json();
            if matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
                self.report.wrong_type(&item, "a text, a number or a truth value", None);
            } else if read.contains(&value) {
                let message = format!("`{}` is there twice", item.name);
                self.report.warning("duplicate-value", item.node.place, message, None);
            } else {
                read.push(value);
            }
        }
        if read.is_empty() && self.report.len() == before {
            self.report.error("invalid-value", field.node.place, format!("`{}` has no values", field.name), None);
        }
        read
    }

    fn no_type(&mut self, field: &Field<'_>) {
        let message = format!("`{}` has no type: it takes anything", field.name);
        let kinds = KINDS.map(|(kind, _)| kind).join("`, `");
        self.report.warning("missing-key", self.place, message, format!("give it a `type`: `{kinds}`"));
    }
}

/// The entries of a mapping; none where it is something else.
fn entries(node: &Node) -> &[Entry] {
    match &node.value {
        Yaml::Map(entries) => entries,
        _ => &[],
    }
}

/// Whether it is a mapping with one of these keys.
fn has(node: &Node, keys: &[&str]) -> bool {
    entries(node).iter().any(|entry| keys.contains(&&*entry.key))
}

/// Whether a skill's file begins with what belongs below `schema`.
fn lacks_schema(root: &Node) -> bool {
    !has(root, &["schema"])
        && (has(root, SCHEMA.keys) || entries(root).iter().any(|entry| has(&entry.value, &["type"])))
}
