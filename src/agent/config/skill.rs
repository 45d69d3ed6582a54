//! `skill.md`: the front matter, and with it the whole file.

use super::markdown::{self, Piece, Region};
use super::report::{Field, Fields, Report};
use super::sections::{COMPLETE_WHEN, ROUTING, SKILL_TOP, TRIGGER};
use super::steps::Scene;
use super::yaml::{Node, Yaml};
use super::{blocks, body, conditions, gates};
use crate::skill::{CompleteWhen, Referent, Skill, Trigger, Utter};

/// Reads the text of a file. The skill is there whatever is wrong with it, so that others may name it; what is wrong is told.
pub(super) fn read(id: &str, text: &str, report: &mut Report) -> Skill {
    report.keep(text);
    let mut skill = Skill { id: id.to_owned(), name: id.to_owned(), ..Skill::default() };
    let (front, below) = markdown::split(text, report);
    // Without it there is no telling where the prose begins.
    if let Some(front) = front {
        read_front(front, &mut skill, report);
        read_body(below, &mut skill, report);
    }
    skill.references = report.references(Some(id));
    skill
}

fn read_body(below: Region<'_>, skill: &mut Skill, report: &mut Report) {
    let pieces = markdown::pieces(below, report);
    let ids: Vec<&str> = pieces.iter().filter_map(Piece::id).collect();
    let scene = Scene { skill: &skill.id, blocks: &ids };
    for piece in &pieces {
        match piece {
            Piece::Prose(prose) => skill.body.extend(body::read(*prose, &ids, report)),
            Piece::Block(fenced) => skill.blocks.push(blocks::read(fenced, &scene, report)),
        }
    }
}

fn read_front(front: Region<'_>, skill: &mut Skill, report: &mut Report) {
    let Ok(root) = report.document_below(front.text, front.above) else { return };
    // An empty one lacks its name as any other does.
    let place = markdown::line(front.above, "---");
    let root = root.unwrap_or(Node { place, value: Yaml::Map(vec![]) });
    let Some(fields) = report.fields(&Field { name: String::new(), node: &root }, &SKILL_TOP) else { return };
    if let Some(name) = required(&fields, "name", report) {
        skill.name = name;
    }
    skill.description = required(&fields, "description", report).unwrap_or_default();
    skill.requires = fields.get("requires").map(|requires| conditions::gate(&requires, report));
    skill.complete_when = fields.get("complete_when").and_then(|when| complete_when(&when, report));
    skill.import_tools = fields.get("import_tools").map(|tools| gates::imports(&tools, report)).unwrap_or_default();
    let constraints = fields.get("tool_constraints");
    skill.constraints = constraints.map(|tools| gates::constraints(&tools, report)).unwrap_or_default();
    skill.utter = fields.get("utter").map(|utter| triggers(&utter, report)).unwrap_or_default();
    skill.disabled = flag(&fields, "disabled", report);
    if let Some(routing) = fields.get("routing")
        && let Some(routing) = report.fields(&routing, &ROUTING)
    {
        skill.engine_managed = flag(&routing, "engine_managed", report);
    }
}

/// A text that must be there, and say something.
fn required(fields: &Fields<'_>, key: &str, report: &mut Report) -> Option<String> {
    let field = fields.require(key, report)?;
    let text = report.text(&field)?.trim().to_owned();
    if text.is_empty() {
        report.error("invalid-value", field.node.place, format!("`{}` is empty", field.name), None);
    }
    (!text.is_empty()).then_some(text)
}

fn flag(fields: &Fields<'_>, key: &str, report: &mut Report) -> bool {
    fields.get(key).and_then(|flag| report.flag(&flag)).unwrap_or_default()
}

/// A condition, or a mapping with `condition`, `criteria` or both.
fn complete_when(field: &Field<'_>, report: &mut Report) -> Option<CompleteWhen> {
    let mut read = CompleteWhen::default();
    if !matches!(field.node.value, Yaml::Map(_)) {
        read.condition = Some(conditions::read(field, report)?);
        return Some(read);
    }
    let fields = report.fields(field, &COMPLETE_WHEN)?;
    read.condition = fields.get("condition").map(|condition| conditions::gate(&condition, report));
    if let Some(criteria) = fields.get("criteria") {
        read.criteria = match criteria.node.value {
            Yaml::Text(_) => report.text(&criteria).into_iter().collect(),
            _ => report.texts(&criteria),
        };
    }
    Some(read)
}

/// A list of mappings, each from a response's name to what it is said at.
fn triggers(field: &Field<'_>, report: &mut Report) -> Vec<Utter> {
    let mut read = vec![];
    for item in report.items(field, "a list of responses") {
        let Some(responses) = report.free_fields(&item) else { continue };
        let before = (read.len(), report.len());
        for (name, field) in responses.all() {
            let place = responses.place(name);
            if TRIGGER.keys.contains(&name) {
                let message = format!("`{}` stands beside the response, not below it", field.name);
                report.error("misplaced-key", place, message, "indent it further".to_owned());
                continue;
            }
            report.refer(name, place, Referent::Response(name.to_owned()));
            let trigger = trigger(&field, report);
            read.extend(trigger.map(|trigger| Utter { response: name.to_owned(), trigger }));
        }
        if (read.len(), report.len()) == before {
            let message = format!("`{}` names no response with its trigger", item.name);
            let hint =
                "write below its name, and further to the right, `on: activate` or `when: <condition>`".to_owned();
            report.error("missing-key", item.node.place, message, hint);
        }
    }
    read
}

fn trigger(field: &Field<'_>, report: &mut Report) -> Option<Trigger> {
    let fields = report.fields(field, &TRIGGER)?;
    match (fields.get("on"), fields.get("when")) {
        (Some(on), None) => {
            let event = report.text(&on)?;
            if event == "activate" {
                return Some(Trigger::Activation);
            }
            let hint = "there is `on: activate`, and `when: <condition>`".to_owned();
            report.error(
                "invalid-value",
                on.node.place,
                format!("`{}` is `{event}`, which is no event", on.name),
                hint,
            );
            None
        }
        (None, Some(when)) => conditions::read(&when, report).map(Trigger::When),
        (Some(_), Some(when)) => {
            let message = format!("`{}` stands beside `on`", when.name);
            report.error("conflicting-keys", fields.place("when"), message, "keep one of the two".to_owned());
            None
        }
        (None, None) => {
            let hint = "add `on: activate` or `when: <condition>`".to_owned();
            report.error("missing-key", field.node.place, format!("`{}` is never said", field.name), hint);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::skill;
    use super::*;
    use crate::condition::Condition;
    use crate::skill::Part;

    fn told(text: &str) -> Vec<String> {
        skill(text).1
    }

    fn condition(text: &str) -> Condition {
        Condition::parse(text).unwrap()
    }

    #[test]
    fn a_whole_file_is_read() {
        let (read, found) = skill(
            "---\n# whose\nname: Replace a card\ndescription: >\n  Lost or\n  stolen.\nrequires: session.project.ok\ncomplete_when: \
             {condition: session.card.done, criteria: [The card is sent]}\nutter:\n  - utter_notice: {on: activate}\n  - utter_stolen:\n      \
             when: session.card.reason == 'stolen'\ndisabled: true\nrouting: {engine_managed: true}\n---\n\nHelp.\n",
        );
        assert_eq!(found, Vec::<String>::new());
        let utter = |response: &str, trigger| Utter { response: response.to_owned(), trigger };
        let stolen = Trigger::When(condition("session.card.reason == 'stolen'"));
        let expected = Skill {
            id: "card".to_owned(),
            name: "Replace a card".to_owned(),
            description: "Lost or stolen.".to_owned(),
            requires: Some(condition("session.project.ok")),
            complete_when: Some(CompleteWhen {
                condition: Some(condition("session.card.done")),
                criteria: vec!["The card is sent".to_owned()],
            }),
            utter: vec![utter("utter_notice", Trigger::Activation), utter("utter_stolen", stolen)],
            disabled: true,
            engine_managed: true,
            body: vec![Part { condition: None, text: "Help.".to_owned() }],
            references: read.references.clone(),
            ..Skill::default()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn when_a_skill_is_done_may_be_one_condition() {
        let (read, found) = skill("---\nname: a\ndescription: b\ncomplete_when: session.card.done\n---\n");
        assert_eq!(found, Vec::<String>::new());
        let expected = CompleteWhen { condition: Some(condition("session.card.done")), criteria: vec![] };
        assert_eq!(read.complete_when, Some(expected));
    }

    #[test]
    fn a_skill_has_a_name_and_a_description() {
        let missing = |line, key| format!("skill.md:{line}:1: error[missing-key]: `{key}` is missing");
        assert_eq!(told("---\n---\n"), [missing(1, "name"), missing(1, "description")]);
        assert_eq!(
            told("---\nname: ' '\ndescription: 3\n---\n"),
            [
                "skill.md:2:7: error[invalid-value]: `name` is empty",
                "skill.md:3:14: error[wrong-type]: `description` is a number, expected a text\n  hint: put it in quotes",
            ]
        );
        assert_eq!(
            told("---\n- name\n---\n"),
            ["skill.md:2:1: error[wrong-type]: `skill.md` is a list, expected a mapping"]
        );
    }

    #[test]
    fn keys_that_nothing_reads_are_warned_of() {
        assert_eq!(
            told(
                "---\nname: a\ndescription: b\nimport_tool: [x]\nsteps: []\nrules: []\nmodel: x\nrouting: {x: 1}\n---\n"
            ),
            [
                "skill.md:4:1: warning[unknown-key]: `import_tool` has no effect: there is no such key\n  hint: did you mean \
                 `import_tools`?",
                "skill.md:5:1: warning[misplaced-key]: `steps` has no effect: `steps` belongs elsewhere\n  hint: move it to \
                 `:::ordered_block` in `skill.md`",
                "skill.md:6:1: warning[misplaced-key]: `rules` has no effect: `rules` belongs elsewhere\n  hint: move it to the top \
                 level of `agent.yml`",
                "skill.md:7:1: warning[unknown-key]: `model` has no effect: there is no such key\n  hint: the keys here are `name`, \
                 `description`, `requires`, `complete_when`, `import_tools`, `tool_constraints`, `utter`, `disabled`, `routing`",
                "skill.md:8:11: warning[unknown-key]: `routing.x` has no effect: there is no such key\n  hint: the keys here are \
                 `engine_managed`",
            ]
        );
    }

    #[test]
    fn what_is_wrong_with_a_trigger_is_told() {
        assert_eq!(
            told(
                "---\nname: a\ndescription: b\nutter:\n  - utter_a: {on: start}\n  - utter_b: {}\n  - utter_c: {on: activate, when: \
                 session.card.x}\n  - utter_d:\n    on: activate\n  - {}\n  - utter_e: {when: {x: {equals: 1}}}\n---\n"
            ),
            [
                "skill.md:5:19: error[invalid-value]: `utter[0].utter_a.on` is `start`, which is no event\n  hint: there is `on: \
                 activate`, and `when: <condition>`",
                "skill.md:6:14: error[missing-key]: `utter[1].utter_b` is never said\n  hint: add `on: activate` or `when: \
                 <condition>`",
                "skill.md:7:29: error[conflicting-keys]: `utter[2].utter_c.when` stands beside `on`\n  hint: keep one of the two",
                "skill.md:9:5: error[misplaced-key]: `utter[3].on` stands beside the response, not below it\n  hint: indent it further",
                "skill.md:10:5: error[missing-key]: `utter[4]` names no response with its trigger\n  hint: write below its name, and \
                 further to the right, `on: activate` or `when: <condition>`",
                "skill.md:11:21: error[wrong-type]: `utter[5].utter_e.when` is a mapping, expected a condition\n  hint: write it as \
                 one text, such as `session.project.verified == True`",
            ]
        );
    }
}
