//! What is read of memory, and what is told.

use serde_json::json;

use super::testing::{project_memory, skill_memory};
use crate::skill::{MemoryEntry, MemoryKind, MemorySchema, Visibility};

fn entry(name: &str, kind: MemoryKind, visibility: Visibility) -> MemoryEntry {
    MemoryEntry { visibility, ..MemoryEntry::of(name, kind) }
}

#[test]
fn a_skills_entries_are_public_or_private() {
    let (read, found) = skill_memory(
        "schema:\n  public:\n    reason:\n      type: categorical\n      enum_values: [lost, 2, true]\n      description: Why.\n      \
         llm_settable: true\n      initial_value: LOST\n    count: {type: int, initial_value: 3.0}\n  private:\n    card: {type: text, pii: \
         true}\n    any-1: {type: any, initial_value: [1]}\n",
    );
    assert_eq!(found, Vec::<String>::new());
    let kind = MemoryKind::Categorical(vec![json!("lost"), json!(2), json!(true)]);
    let reason = MemoryEntry {
        description: Some("Why.".to_owned()),
        llm_settable: true,
        initial_value: Some(json!("lost")),
        ..entry("reason", kind, Visibility::Public)
    };
    let count = MemoryEntry { initial_value: Some(json!(3)), ..entry("count", MemoryKind::Int, Visibility::Public) };
    let card = MemoryEntry { pii: true, ..entry("card", MemoryKind::Text, Visibility::Private) };
    let any = MemoryEntry { initial_value: Some(json!([1])), ..entry("any-1", MemoryKind::Any, Visibility::Private) };
    assert_eq!(read, MemorySchema { entries: vec![reason, count, card, any], unread: false });
}

#[test]
fn the_projects_entries_stand_at_the_top_and_are_written_once() {
    let (read, found) = project_memory("phone: {type: text, seed: true}\nplan: {type: json, mutable: true}\n");
    assert_eq!(found, Vec::<String>::new());
    let phone = MemoryEntry { seed: true, mutable: false, ..entry("phone", MemoryKind::Text, Visibility::Public) };
    let plan = entry("plan", MemoryKind::Json, Visibility::Public);
    assert_eq!(read, MemorySchema { entries: vec![phone, plan], unread: false });
}

#[test]
fn the_model_cannot_write_the_projects_memory() {
    let (read, found) = project_memory("ok: {type: bool, llm_settable: true}\n");
    assert_eq!(
        found,
        [
            "memory.yml:1:18: error[project-llm-settable]: `ok` is of the project, which the model cannot write\n  hint: let a tool \
             set it, or move it to the `memory.yml` of a skill"
        ]
    );
    assert!(!read.entries[0].llm_settable);
}

#[test]
fn one_form_of_the_file_is_not_taken_for_the_other() {
    let skill = "memory.yml:1:1: error[misplaced-key]: A skill's memory begins with `schema`\n  hint: write `schema:`, below it \
                 `public:` or `private:`, and the entries below that";
    for text in ["card: {type: text}", "public: {card: {type: text}}"] {
        let (read, found) = skill_memory(text);
        assert_eq!((read.unread, found), (true, vec![skill.to_owned()]));
    }
    let (read, found) = project_memory("a: {type: text}\nschema: {private: {b: {type: text}}}");
    let project = "memory.yml:2:1: error[misplaced-key]: The project's memory has no `schema`\n  hint: put its entries at the top \
                   of the file";
    assert_eq!((read.unread, found), (true, vec![project.to_owned()]));
}

#[test]
fn a_file_that_could_not_be_read_is_marked() {
    for text in ["- a", "schema: [a]", "schema: {public: a}", "a: b: c"] {
        let (read, found) = skill_memory(text);
        assert_eq!((read, found.len()), (MemorySchema { unread: true, entries: vec![] }, 1), "{text}");
    }
    assert_eq!(skill_memory("# none\n"), (MemorySchema::default(), vec![]));
    assert_eq!(project_memory(""), (MemorySchema::default(), vec![]));
}

#[test]
fn what_is_wrong_with_a_type_is_told() {
    let (read, found) = project_memory(
        "a: {type: string}\nb: {type: categorcal}\nc: {type: x}\nd: {type: 3}\ne:\nf: {}\ng: text\nh: 3\n",
    );
    let kinds = "`text`, `bool`, `int`, `float`, `list`, `json`, `categorical`, `any`";
    assert_eq!(
        found,
        [
            "memory.yml:1:11: error[invalid-value]: There is no type `string`\n  hint: did you mean `text`?".to_owned(),
            "memory.yml:2:11: error[invalid-value]: There is no type `categorcal`\n  hint: did you mean `categorical`?"
                .to_owned(),
            format!("memory.yml:3:11: error[invalid-value]: There is no type `x`\n  hint: there are {kinds}"),
            "memory.yml:4:11: error[wrong-type]: `d.type` is a number, expected a text\n  hint: put it in quotes"
                .to_owned(),
            format!(
                "memory.yml:5:1: warning[missing-key]: `e` has no type: it takes anything\n  hint: give it a `type`: {kinds}"
            ),
            format!(
                "memory.yml:6:1: warning[missing-key]: `f` has no type: it takes anything\n  hint: give it a `type`: {kinds}"
            ),
            "memory.yml:7:4: error[wrong-type]: `g` is a text, expected a mapping\n  hint: write `g: {type: text}`"
                .to_owned(),
            "memory.yml:8:4: error[wrong-type]: `h` is a number, expected a mapping".to_owned(),
        ]
    );
    let known: Vec<_> = read.entries.iter().map(|entry| (&*entry.name, &entry.kind)).collect();
    assert_eq!(known, ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| (name, &MemoryKind::Any)));
}

#[test]
fn what_is_wrong_with_values_is_told() {
    let (_, found) = project_memory(
        "a: {type: categorical}\nb: {type: categorical, enum_values: []}\nc: {type: categorical, enum_values: [x, [y], x]}\nd: {type: \
         text, enum_values: [x], initial_value: 3}\ne: {type: categorical, enum_values: [x], initial_value: y}\n",
    );
    assert_eq!(
        found,
        [
            "memory.yml:1:11: error[missing-key]: `a.enum_values` is missing\n  hint: list the values",
            "memory.yml:2:37: error[invalid-value]: `b.enum_values` has no values",
            "memory.yml:3:41: error[wrong-type]: `c.enum_values[1]` is a list, expected a text, a number or a truth value",
            "memory.yml:3:46: warning[duplicate-value]: `c.enum_values[2]` is there twice",
            "memory.yml:4:17: warning[misplaced-key]: `d.enum_values` has no effect: the type is `text`\n  hint: write `type: \
             categorical`",
            "memory.yml:4:50: error[wrong-type]: `d.initial_value` does not fit: `d` takes a text, not `3`",
            "memory.yml:5:57: error[wrong-type]: `e.initial_value` does not fit: `e` takes one of `x`, not the text `y`",
        ]
    );
}

#[test]
fn what_is_wrong_with_an_entry_is_told() {
    let (read, found) = skill_memory(
        "schema:\n  public:\n    a.b: {type: text}\n    c: {type: text, seed: true, mutable: true, llm_setable: true, anonymization: {}}\n  \
         private: {c: {type: int}}\naccess: {}\n",
    );
    assert_eq!(
        found,
        [
            "memory.yml:3:5: error[invalid-name]: `schema.public.a.b` cannot be named in a condition\n  hint: a name has letters, \
             digits and `_`",
            "memory.yml:4:21: warning[misplaced-key]: `schema.public.c.seed` has no effect: it is for the project's memory",
            "memory.yml:4:33: warning[misplaced-key]: `schema.public.c.mutable` has no effect: it is for the project's memory",
            "memory.yml:4:48: warning[unknown-key]: `schema.public.c.llm_setable` has no effect: there is no such key\n  hint: did \
             you mean `llm_settable`?",
            "memory.yml:4:67: warning[unsupported-key]: `schema.public.c.anonymization` has no effect: it is not supported yet",
            "memory.yml:5:13: error[duplicate-key]: `schema.private.c` is there twice, in `public` and in `private`\n  hint: keep \
             one of the two",
            "memory.yml:6:1: warning[unsupported-key]: `access` has no effect: it is not supported yet",
        ]
    );
    assert_eq!(read, MemorySchema { entries: vec![entry("c", MemoryKind::Text, Visibility::Public)], unread: false });
}
