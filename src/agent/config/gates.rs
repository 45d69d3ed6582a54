//! What the front matter of a `skill.md` says of tools: which the skill imports, and the gates before them.

use std::collections::{BTreeMap, HashMap};

use super::report::{Field, Report};
use super::sections::{CONFIRMATION, CONSTRAINT};
use super::yaml::Yaml;
use super::{conditions, steps};
use crate::diagnostic::Place;
use crate::hooks::ENGINE_TOOLS;
use crate::skill::{Confirmation, Import, Referent, ToolConstraint};

/// Reads `import_tools`: names of shared tools, and `mcp/<server>:<tool>`.
pub(super) fn imports(field: &Field<'_>, report: &mut Report) -> Vec<Import> {
    let mut read: Vec<Import> = vec![];
    let mut places: HashMap<String, Place> = HashMap::new();
    for item in report.items(field, "a list of tools") {
        let Some(text) = report.text(&item) else { continue };
        let place = item.node.place;
        let Some(import) = import(&text) else {
            let hint = "write `<tool>` for a tool of the folder `tools`, or `mcp/<server>:<tool>`".to_owned();
            report.error("invalid-value", place, format!("`{}` names no tool: `{text}`", item.name), hint);
            continue;
        };
        let tool = import.tool().to_owned();
        if ENGINE_TOOLS.contains(&&*tool) {
            let hint = match import {
                Import::Shared(_) => "leave it out: the engine offers its tools itself",
                Import::Mcp { .. } => "the server has to give its tool another name",
            };
            report.error("reserved-name", place, format!("`{tool}` is a tool of the engine's"), hint.to_owned());
            continue;
        }
        if let Some(first) = places.get(&tool) {
            if read.contains(&import) {
                let message = format!("`{text}` is there twice");
                report.warning("duplicate-import", place, message, "keep one of the two".to_owned());
            } else {
                let message = format!("`{text}` has the name of another tool of this skill");
                report.error("clashing-tools", place, message, "import one of the two only".to_owned());
            }
            report.relate("it is here first", *first);
            continue;
        }
        places.insert(tool, place);
        report.refer(text, place, Referent::Import(import.clone()));
        read.push(import);
    }
    read
}

/// Reads `tool_constraints`: a list of mappings, each from a tool's name to its gates.
pub(super) fn constraints(field: &Field<'_>, report: &mut Report) -> BTreeMap<String, ToolConstraint> {
    let mut read = BTreeMap::new();
    let mut places: HashMap<&str, Place> = HashMap::new();
    for item in report.items(field, "a list of tools") {
        let Some(fields) = report.free_fields(&item) else { continue };
        let Yaml::Map(entries) = &item.node.value else { continue };
        for entry in entries {
            let (name, place) = (&*entry.key, entry.place);
            let constrained = Field { name: format!("{}.{name}", item.name), node: &entry.value };
            if let Some(first) = places.get(name) {
                let message = format!("The tool `{name}` is there twice");
                report.error("duplicate-key", place, message, "put all of its gates into one".to_owned());
                report.relate("it is here first", *first);
                continue;
            }
            if CONSTRAINT.keys.contains(&name) {
                let message = format!("`{}` stands beside the tool, not below it", constrained.name);
                report.error("misplaced-key", place, message, "indent it further".to_owned());
                continue;
            }
            places.insert(name, place);
            steps::tool(name, place, report);
            // One that says nothing is told of, unless what it should say stands beside it.
            if !entry.value.is_null() {
                read.insert(name.to_owned(), constraint(&constrained, report));
            } else if fields.all().next().is_none() {
                let hint = format!("give it one of `{}`", CONSTRAINT.keys.join("`, `"));
                report.warning("missing-key", place, format!("`{}` constrains nothing", constrained.name), hint);
            }
        }
    }
    read
}

fn import(text: &str) -> Option<Import> {
    let Some(path) = text.strip_prefix("mcp/") else {
        let name = |letter: char| letter.is_alphanumeric() || letter == '_';
        return (!text.is_empty() && text.chars().all(name)).then(|| Import::Shared(text.to_owned()));
    };
    let (server, tool) = path.split_once(':')?;
    let given = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
    (given(server) && given(tool)).then(|| Import::Mcp { server: server.to_owned(), tool: tool.to_owned() })
}

fn constraint(field: &Field<'_>, report: &mut Report) -> ToolConstraint {
    let mut read = ToolConstraint::default();
    let Some(fields) = report.fields(field, &CONSTRAINT) else { return read };
    read.requires = fields.get("requires").map(|requires| conditions::gate(&requires, report));
    read.confirmation = fields.get("requires_confirmation").and_then(|asked| confirmation(&asked, report));
    read.on_success = fields.get("on_success").and_then(|name| steps::response(&name, report));
    read.on_failure = fields.get("on_failure").and_then(|name| steps::response(&name, report));
    read
}

/// None: the gate is not enabled. One that is wrong is, so that nothing runs unasked.
fn confirmation(field: &Field<'_>, report: &mut Report) -> Option<Confirmation> {
    let mut read = Confirmation::default();
    if matches!(field.node.value, Yaml::Bool(_)) {
        report.wrong_type(field, "a mapping", Some("write `requires_confirmation: {enabled: true}`".to_owned()));
        return Some(read);
    }
    let Some(fields) = report.fields(field, &CONFIRMATION) else { return Some(read) };
    read.utter_for_confirmation = fields.get("utter_for_confirmation").and_then(|name| steps::response(&name, report));
    read.utter_on_user_denial = fields.get("utter_on_user_denial").and_then(|name| steps::response(&name, report));
    let enabled = fields.get("enabled");
    if enabled.is_none() {
        let message = format!("`{}` has no effect: it is not enabled", field.name);
        report.warning("missing-key", field.node.place, message, "add `enabled: true`".to_owned());
        return None;
    }
    enabled.and_then(|enabled| report.flag(&enabled)).unwrap_or(true).then_some(read)
}

#[cfg(test)]
mod tests {
    use super::super::testing::skill;
    use super::*;
    use crate::condition::Condition;
    use crate::skill::Skill;

    fn read(keys: &str) -> (Skill, Vec<String>) {
        skill(&format!("---\nname: a\ndescription: b\n{keys}---\n"))
    }

    #[test]
    fn tools_are_imported_from_the_folder_or_from_a_server() {
        let (read, found) = read("import_tools:\n  - load_profile\n  - mcp/bank:get.balance\n");
        assert_eq!(found, Vec::<String>::new());
        let mcp = Import::Mcp { server: "bank".to_owned(), tool: "get.balance".to_owned() };
        assert_eq!(read.import_tools, [Import::Shared("load_profile".to_owned()), mcp]);
    }

    #[test]
    fn what_cannot_be_imported_is_told() {
        let (read, found) = read(
            "import_tools:\n  - listen\n  - mcp/bank:set_fields\n  - mcp/bank\n  - tools/x.py\n  - pay\n  - pay\n  - mcp/bank:pay\n",
        );
        let form = "write `<tool>` for a tool of the folder `tools`, or `mcp/<server>:<tool>`";
        assert_eq!(
            found,
            [
                "skill.md:5:5: error[reserved-name]: `listen` is a tool of the engine's\n  hint: leave it out: the engine offers its \
                 tools itself"
                    .to_owned(),
                "skill.md:6:5: error[reserved-name]: `set_fields` is a tool of the engine's\n  hint: the server has to give its tool \
                 another name"
                    .to_owned(),
                format!("skill.md:7:5: error[invalid-value]: `import_tools[2]` names no tool: `mcp/bank`\n  hint: {form}"),
                format!("skill.md:8:5: error[invalid-value]: `import_tools[3]` names no tool: `tools/x.py`\n  hint: {form}"),
                "skill.md:10:5: warning[duplicate-import]: `pay` is there twice\n  hint: keep one of the two".to_owned(),
                "skill.md:11:5: error[clashing-tools]: `mcp/bank:pay` has the name of another tool of this skill\n  hint: import one \
                 of the two only"
                    .to_owned(),
            ]
        );
        assert_eq!(read.import_tools, [Import::Shared("pay".to_owned())]);
    }

    #[test]
    fn a_tool_has_its_gates() {
        let (read, found) = read(
            "tool_constraints:\n  - pay:\n      requires: session.card.ok\n      requires_confirmation:\n        enabled: true\n        \
             utter_for_confirmation: utter_ask\n        utter_on_user_denial: ~\n      on_success: utter_paid\n      on_failure: \
             utter_failed\n  - look: {requires_confirmation: {enabled: false}}\n",
        );
        assert_eq!(found, Vec::<String>::new());
        let pay = ToolConstraint {
            requires: Some(Condition::parse("session.card.ok").unwrap()),
            confirmation: Some(Confirmation {
                utter_for_confirmation: Some("utter_ask".to_owned()),
                utter_on_user_denial: None,
            }),
            on_success: Some("utter_paid".to_owned()),
            on_failure: Some("utter_failed".to_owned()),
        };
        let expected = BTreeMap::from([("pay".to_owned(), pay), ("look".to_owned(), ToolConstraint::default())]);
        assert_eq!(read.constraints, expected);
    }

    #[test]
    fn what_is_wrong_in_a_gate_keeps_it_shut() {
        let (read, found) = read(
            "tool_constraints:\n  - a: {requires: ok}\n  - b: {requires_confirmation: true}\n  - c: {requires_confirmation: {enabled: 1}}\n",
        );
        assert_eq!(
            found,
            [
                "skill.md:5:19: error[invalid-condition]: `tool_constraints[0].a.requires`: Unknown name `ok` in condition \
                 expression\n  hint: write `session.project.ok` for an entry of the project, or `\"ok\"` for a text",
                "skill.md:6:32: error[wrong-type]: `tool_constraints[1].b.requires_confirmation` is a truth value, expected a \
                 mapping\n  hint: write `requires_confirmation: {enabled: true}`",
                "skill.md:7:42: error[wrong-type]: `tool_constraints[2].c.requires_confirmation.enabled` is a number, expected `true` \
                 or `false`",
            ]
        );
        let asked = ToolConstraint { confirmation: Some(Confirmation::default()), ..ToolConstraint::default() };
        let shut = ToolConstraint { requires: Some(Condition::parse("False").unwrap()), ..ToolConstraint::default() };
        let expected = [("a", shut), ("b", asked.clone()), ("c", asked)].map(|(name, gates)| (name.to_owned(), gates));
        assert_eq!(read.constraints, BTreeMap::from(expected));
    }

    #[test]
    fn what_is_wrong_with_constraints_is_told() {
        let (_, found) = read(
            "tool_constraints:\n  - pay:\n    requires: session.card.ok\n  - look:\n  - pay: {on_sucess: utter_x, requires_confirmation: {}}\n  - \
             set_fields: {requires: 'True'}\n  - x\n",
        );
        assert_eq!(
            found,
            [
                "skill.md:6:5: error[misplaced-key]: `tool_constraints[0].requires` stands beside the tool, not below it\n  hint: \
                 indent it further",
                "skill.md:7:5: warning[missing-key]: `tool_constraints[1].look` constrains nothing\n  hint: give it one of `requires`, \
                 `requires_confirmation`, `on_success`, `on_failure`",
                "skill.md:8:5: error[duplicate-key]: The tool `pay` is there twice\n  hint: put all of its gates into one",
                "skill.md:9:5: error[reserved-name]: `set_fields` is a tool of the engine's\n  hint: only tools of the agent's own can \
                 be named here",
                "skill.md:10:5: error[wrong-type]: `tool_constraints[4]` is a text, expected a mapping",
            ]
        );
    }

    #[test]
    fn a_confirmation_that_is_not_enabled_is_warned_of() {
        assert_eq!(
            read("tool_constraints:\n  - pay: {requires_confirmation: {utter_for_confirmation: utter_x}, on_sucess: utter_y}\n").1,
            [
                "skill.md:5:34: warning[missing-key]: `tool_constraints[0].pay.requires_confirmation` has no effect: it is not \
                 enabled\n  hint: add `enabled: true`",
                "skill.md:5:69: warning[unknown-key]: `tool_constraints[0].pay.on_sucess` has no effect: there is no such key\n  hint: \
                 did you mean `on_success`?",
            ]
        );
    }
}
