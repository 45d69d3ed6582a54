//! One step of an ordered block: what it does is told by which key it has.

use serde_json::Value;

use super::report::{Field, Fields, Report};
use super::sections::STEP;
use super::yaml::{Entry, Yaml};
use super::{body, conditions};
use crate::conversation::Object;
use crate::diagnostic::Place;
use crate::hooks::ENGINE_TOOLS;
use crate::skill::{Argument, Referent, StepKind, Target};

/// The id of a step that ends its block, and how `next` names the end.
pub(super) const END: &str = "END";

/// What a step can do, and which keys it can have beside its `id`. `utter` is the older spelling of `action`.
const KINDS: [(&str, &[&str]); 9] = [
    ("instructions", &["complete_when", "next"]),
    ("collect", &["utterance", "next"]),
    ("action", &["next"]),
    ("utter", &["next"]),
    ("execute_tool", &["parameters", "next"]),
    ("set_memory", &["next"]),
    ("call", &["next"]),
    ("link", &[]),
    ("noop", &["next"]),
];

/// Where a block stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    /// The id of its skill.
    pub(super) skill: &'a str,
    /// The ids of all blocks of the skill.
    pub(super) blocks: &'a [&'a str],
}

/// A step whose successors are not known yet.
#[derive(Debug)]
pub(super) struct Sketch<'n> {
    pub(super) id: String,
    /// Where the id stands.
    pub(super) place: Place,
    /// What it does. None where that is wrong.
    pub(super) kind: Option<StepKind>,
    pub(super) next: Option<Field<'n>>,
}

/// Reads a step. None: it has no id by which it could be known.
pub(super) fn read<'n>(item: &Field<'n>, scene: &Scene<'_>, report: &mut Report) -> Option<Sketch<'n>> {
    let fields = report.fields(item, &STEP)?;
    let id_field = fields.require("id", report);
    let id = id_field.as_ref().and_then(|field| report.text(field));
    let ends = id.as_deref() == Some(END);
    let kind = kind(item, &fields, ends, scene, report);
    let next = fields.get("next");
    if kind == Some(StepKind::Noop) && next.is_none() {
        let message = format!("`{}` neither does anything nor leads anywhere", item.name);
        report.error("missing-key", item.node.place, message, "give it a `next`".to_owned());
    }
    Some(Sketch { id: id?, place: id_field?.node.place, kind, next })
}

fn kind(item: &Field<'_>, fields: &Fields<'_>, ends: bool, scene: &Scene<'_>, report: &mut Report) -> Option<StepKind> {
    let given: Vec<_> = KINDS.iter().filter_map(|(key, beside)| Some((*key, *beside, fields.get(key)?))).collect();
    let (key, beside, field) = match &*given {
        [] if ends => ("end", &[][..], None),
        [] => {
            let hint = "give it one of `instructions`, `collect`, `action`, `execute_tool`, `set_memory`, `call`, `link` and `noop`";
            let message = format!("`{}` does not say what to do", item.name);
            report.error("missing-key", item.node.place, message, hint.to_owned());
            return None;
        }
        [(key, beside, field)] => (*key, *beside, Some(field)),
        [first, second, ..] => {
            let asked = first.0 == "collect" && second.0 == "utter";
            let hint = if asked { "the response that asks is its `utterance`" } else { "make two steps of it" };
            let message = format!("`{}` stands beside `{}`: a step does one thing", second.2.name, first.0);
            report.error("conflicting-keys", fields.place(second.0), message, hint.to_owned());
            return None;
        }
    };
    for (other, field) in fields.all().filter(|(other, _)| STEP.keys.contains(other)) {
        if other != "id" && other != key && !beside.contains(&other) {
            let message = format!("`{}` has no effect: the step is of the kind `{key}`", field.name);
            report.warning("misplaced-key", fields.place(other), message, None);
        }
    }
    let Some(field) = field else { return Some(StepKind::End) };
    if ends {
        let hint = "give this step another `id`".to_owned();
        report.error("reserved-name", fields.place("id"), format!("`{END}` ends a block, and does nothing else"), hint);
    }
    match key {
        "instructions" => instructions(field, fields, scene, report),
        "collect" => collect(field, fields, report),
        "action" | "utter" => response(field, report).map(|response| StepKind::Action { response }),
        "execute_tool" => execute(field, fields, report),
        "set_memory" => set_memory(field, report),
        "call" => target(field, scene, report).map(StepKind::Call),
        "link" => target(field, scene, report).map(StepKind::Link),
        _ => noop(field, report),
    }
}

/// The name of a response, which is noted.
pub(super) fn response(field: &Field<'_>, report: &mut Report) -> Option<String> {
    let name = report.text(field)?;
    report.refer(&name, field.node.place, Referent::Response(name.clone()));
    Some(name)
}

/// The name of a tool, which is noted and must not be one of the engine's.
pub(super) fn tool(name: &str, place: Place, report: &mut Report) {
    if ENGINE_TOOLS.contains(&name) {
        let hint = "only tools of the agent's own can be named here".to_owned();
        report.error("reserved-name", place, format!("`{name}` is a tool of the engine's"), hint);
    } else {
        report.refer(name, place, Referent::Tool(name.to_owned()));
    }
}

fn instructions(field: &Field<'_>, fields: &Fields<'_>, scene: &Scene<'_>, report: &mut Report) -> Option<StepKind> {
    let complete_when = fields.get("complete_when").and_then(|condition| conditions::read(&condition, report));
    let text = report.text(field)?.trim_end().to_owned();
    body::note_mentions(&text, field.node.place, scene.blocks, report);
    Some(StepKind::Instructions { text, complete_when })
}

fn collect(field: &Field<'_>, fields: &Fields<'_>, report: &mut Report) -> Option<StepKind> {
    let utterance = fields.get("utterance").and_then(|name| response(&name, report));
    let entry = report.text(field)?;
    report.refer(&entry, field.node.place, Referent::Collected(entry.clone()));
    Some(StepKind::Collect { entry, utterance })
}

fn execute(field: &Field<'_>, fields: &Fields<'_>, report: &mut Report) -> Option<StepKind> {
    let mut parameters = vec![];
    if let Some(given) = fields.get("parameters")
        && let Some(given) = report.free_fields(&given)
    {
        for (name, value) in given.all() {
            parameters.push((name.to_owned(), argument(&value, report)));
        }
    }
    let name = report.text(field)?;
    tool(&name, field.node.place, report);
    Some(StepKind::ExecuteTool { tool: name, parameters })
}

/// An argument: a text that begins with `session.` names an entry.
fn argument(field: &Field<'_>, report: &mut Report) -> Argument {
    if let Yaml::Text(text) = &field.node.value
        && let Some(path) = text.strip_prefix("session.")
    {
        if let Some((namespace, entry)) = path.split_once('.').filter(|(_, entry)| !entry.contains('.')) {
            let (namespace, entry) = (namespace.to_owned(), entry.to_owned());
            let to = Referent::Entry { namespace: namespace.clone(), entry: entry.clone() };
            report.refer(text, field.node.place, to);
            return Argument::Entry { namespace, entry };
        }
        let hint = "write `session.project.<entry>` or `session.<skill id>.<entry>`".to_owned();
        report.error("invalid-value", field.node.place, format!("`{}` names no memory entry", field.name), hint);
    }
    Argument::Value(field.node.json())
}

fn set_memory(field: &Field<'_>, report: &mut Report) -> Option<StepKind> {
    report.free_fields(field)?;
    let Yaml::Map(entries) = &field.node.value else { return None };
    let mut values = Object::new();
    for Entry { key, place, value } in entries {
        let value = value.json();
        if matches!(&value, Value::String(text) if text.starts_with("session.")) {
            let message = format!("`{}.{key}` is set to this text itself", field.name);
            let hint = "values are written as they stand here: let a tool copy one entry to another".to_owned();
            report.warning("no-condition", *place, message, hint);
        }
        let to = Referent::Written { entry: key.clone(), value: value.clone() };
        report.refer(key, *place, to);
        values.insert(key.clone(), value);
    }
    Some(StepKind::SetMemory { values })
}

/// A block or a skill: `@block.<id>`, `@skill.<id>`, or an id, which is that of a block beside this one before that of a skill.
fn target(field: &Field<'_>, scene: &Scene<'_>, report: &mut Report) -> Option<Target> {
    let text = report.text(field)?;
    let own = |id: &str| Target { skill: scene.skill.to_owned(), block: Some(id.to_owned()) };
    if let Some(id) = text.strip_prefix("@block.") {
        body::note_mentions(&text, field.node.place, scene.blocks, report);
        return Some(own(id));
    }
    if scene.blocks.contains(&&*text) {
        return Some(own(&text));
    }
    let skill = text.strip_prefix("@skill.").unwrap_or(&text).to_owned();
    report.refer(&text, field.node.place, Referent::Skill(skill.clone()));
    Some(Target { skill, block: None })
}

fn noop(field: &Field<'_>, report: &mut Report) -> Option<StepKind> {
    if report.flag(field)? {
        return Some(StepKind::Noop);
    }
    let message = format!("`{}` is false: the step does not say what to do", field.name);
    report.error("invalid-value", field.node.place, message, "write `noop: true`".to_owned());
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::body;
    use super::*;
    use crate::condition::Condition;

    fn block(steps: &str) -> String {
        format!(":::ordered_block id=b\nsteps:\n{steps}:::\n")
    }

    fn told(steps: &str) -> Vec<String> {
        body(&block(steps)).1
    }

    /// The kind of the first step.
    fn kind(step: &str) -> StepKind {
        let (mut read, found) = body(&block(&format!("  - id: s\n    {step}\n")));
        assert_eq!(found, Vec::<String>::new());
        read.blocks.remove(0).steps.remove(0).kind
    }

    #[test]
    fn the_kind_of_a_step_is_told_by_its_key() {
        let text = |text: &str| text.to_owned();
        let own = |block: &str| Target { skill: text("card"), block: Some(text(block)) };
        for (step, expected) in [
            (
                "instructions: |\n      Ask.\n      Then @block.b.\n    complete_when: session.card.x",
                StepKind::Instructions {
                    text: text("Ask.\nThen @block.b."),
                    complete_when: Some(Condition::parse("session.card.x").unwrap()),
                },
            ),
            ("instructions: Ask.", StepKind::Instructions { text: text("Ask."), complete_when: None }),
            (
                "collect: reason\n    utterance: utter_ask",
                StepKind::Collect { entry: text("reason"), utterance: Some(text("utter_ask")) },
            ),
            ("collect: reason", StepKind::Collect { entry: text("reason"), utterance: None }),
            ("action: utter_x", StepKind::Action { response: text("utter_x") }),
            ("utter: utter_x", StepKind::Action { response: text("utter_x") }),
            ("call: b", StepKind::Call(own("b"))),
            ("call: '@block.b'", StepKind::Call(own("b"))),
            ("link: refund", StepKind::Link(Target { skill: text("refund"), block: None })),
            ("link: '@skill.b'", StepKind::Link(Target { skill: text("b"), block: None })),
            ("noop: true\n    next: END", StepKind::Noop),
        ] {
            assert_eq!(kind(step), expected, "{step}");
        }
    }

    #[test]
    fn arguments_are_values_or_memory_entries() {
        let expected = vec![
            ("card".to_owned(), Argument::Entry { namespace: "project".to_owned(), entry: "card".to_owned() }),
            ("count".to_owned(), Argument::Value(json!(3))),
            ("why".to_owned(), Argument::Value(json!("session of today"))),
            ("all".to_owned(), Argument::Value(json!([1, {"a": true}]))),
        ];
        let step = "execute_tool: lock\n    parameters: {card: session.project.card, count: 3, why: session of today, all: [1, {a: true}]}";
        assert_eq!(kind(step), StepKind::ExecuteTool { tool: "lock".to_owned(), parameters: expected });
    }

    #[test]
    fn memory_is_set_to_what_stands_there() {
        let Value::Object(values) = json!({"a": "x", "b": null, "c": [1]}) else { panic!() };
        assert_eq!(kind("set_memory: {a: x, b: ~, c: [1]}"), StepKind::SetMemory { values });
    }

    #[test]
    fn a_step_does_one_thing() {
        assert_eq!(
            told("  - id: a\n  - id: b\n    collect: x\n    utter: utter_x\n  - id: c\n    call: b\n    link: b\n"),
            [
                "skill.md:7:5: error[missing-key]: `b.steps[0]` does not say what to do\n  hint: give it one of `instructions`, \
                 `collect`, `action`, `execute_tool`, `set_memory`, `call`, `link` and `noop`",
                "skill.md:10:5: error[conflicting-keys]: `b.steps[1].utter` stands beside `collect`: a step does one thing\n  hint: \
                 the response that asks is its `utterance`",
                "skill.md:13:5: error[conflicting-keys]: `b.steps[2].link` stands beside `call`: a step does one thing\n  hint: make \
                 two steps of it",
            ]
        );
    }

    #[test]
    fn keys_of_other_kinds_have_no_effect() {
        assert_eq!(
            told(
                "  - id: a\n    action: utter_x\n    complete_when: session.card.x\n    nxt: b\n  - id: b\n    link: refund\n    next: a\n  - id: END\n    next: a\n"
            ),
            [
                "skill.md:9:5: warning[misplaced-key]: `b.steps[0].complete_when` has no effect: the step is of the kind `action`",
                "skill.md:10:5: warning[unknown-key]: `b.steps[0].nxt` has no effect: there is no such key\n  hint: did you mean \
                 `next`?",
                "skill.md:13:5: warning[misplaced-key]: `b.steps[1].next` has no effect: the step is of the kind `link`",
                "skill.md:15:5: warning[misplaced-key]: `b.steps[2].next` has no effect: the step is of the kind `end`",
            ]
        );
    }

    #[test]
    fn what_is_wrong_in_a_step_is_told() {
        assert_eq!(
            told(
                "  - id: a\n    noop: false\n  - id: b\n    noop: true\n  - action: utter_x\n  - id: END\n    action: utter_x\n  - id: c\n    \
                 execute_tool: set_fields\n    parameters: {a: session.x}\n  - id: d\n    set_memory: {a: session.card.b}\n  - id: e\n    \
                 call: '@block.x'\n"
            ),
            [
                "skill.md:8:11: error[invalid-value]: `b.steps[0].noop` is false: the step does not say what to do\n  hint: write \
                 `noop: true`",
                "skill.md:9:5: error[missing-key]: `b.steps[1]` neither does anything nor leads anywhere\n  hint: give it a `next`",
                "skill.md:11:5: error[missing-key]: `b.steps[2].id` is missing",
                "skill.md:12:5: error[reserved-name]: `END` ends a block, and does nothing else\n  hint: give this step another `id`",
                "skill.md:15:19: error[reserved-name]: `set_fields` is a tool of the engine's\n  hint: only tools of the agent's own \
                 can be named here",
                "skill.md:16:21: error[invalid-value]: `b.steps[4].parameters.a` names no memory entry\n  hint: write \
                 `session.project.<entry>` or `session.<skill id>.<entry>`",
                "skill.md:18:18: warning[no-condition]: `b.steps[5].set_memory.a` is set to this text itself\n  hint: values are \
                 written as they stand here: let a tool copy one entry to another",
                "skill.md:20:12: error[unknown-block]: `@block.x` names no block of this skill\n  hint: a block is opened with \
                 `:::ordered_block id=<id>`",
            ]
        );
    }
}
