//! The ordered blocks of a `skill.md`: their lists of steps, and which step leads to which.
//!
//! A step without `next` leads to the one below it, and the last one ends the block. `next` is the id of a step, `END`, or a list of
//! branches, of which the first that holds is taken:
//!
//! ```text
//! next:
//!   - if: session.card_replace.reason == "stolen"
//!     then: lock
//!   - else: END
//! ```
//!
//! `- then: <id>` is taken for `- else: <id>`: authors write it. Where there is no `else`, the step below is the last resort. Rasa's
//! flows have steps within branches as well; blocks do not.

use std::collections::{BTreeSet, HashMap};

use super::conditions;
use super::markdown::Fenced;
use super::report::{Field, Fields, Report};
use super::sections::{BLOCK, BRANCH, meant};
use super::steps::{self, END, Scene, Sketch};
use super::yaml::Yaml;
use crate::condition::Condition;
use crate::diagnostic::Place;
use crate::skill::{Branch, Goto, Next, OrderedBlock, Step, StepKind};

/// Reads a block. Steps that are wrong are left out; the block itself stays, so that it is known.
pub(super) fn read(fenced: &Fenced<'_>, scene: &Scene<'_>, report: &mut Report) -> OrderedBlock {
    let mut block = OrderedBlock { id: fenced.id.to_owned(), ..OrderedBlock::default() };
    let Ok(root) = report.document_below(fenced.yaml.text, fenced.yaml.above) else { return block };
    let before = report.len();
    let root = root.as_ref().map(|node| Field { name: fenced.id.to_owned(), node });
    if let Some(fields) = root.and_then(|root| report.fields(&root, &BLOCK)) {
        block.name = fields.get("name").and_then(|name| report.text(&name));
        block.description = fields.get("description").and_then(|text| report.text(&text));
        if let Some(items) = fields.get("steps") {
            let items = report.items(&items, "a list of steps");
            let sketches = items.iter().filter_map(|item| steps::read(item, scene, report)).collect();
            block.steps = joined(sketches, report);
        }
    }
    if block.steps.is_empty() && report.len() == before {
        let message = format!("The block `{}` has no steps", block.id);
        report.error("missing-key", fenced.place, message, "give it `steps:` with a list below it".to_owned());
    }
    block
}

/// The steps, each with what comes then.
fn joined(sketches: Vec<Sketch<'_>>, report: &mut Report) -> Vec<Step> {
    let mut places: HashMap<String, Place> = HashMap::new();
    for sketch in &sketches {
        if let Some(first) = places.get(&sketch.id) {
            let hint = "give one of the two another `id`".to_owned();
            report.error("duplicate-key", sketch.place, format!("The step `{}` is there twice", sketch.id), hint);
            report.relate("it is here first", *first);
        } else {
            places.insert(sketch.id.clone(), sketch.place);
        }
    }
    let ids: Vec<String> = sketches.iter().map(|sketch| sketch.id.clone()).collect();
    let whole = sketches.iter().all(|sketch| sketch.kind.is_some());
    let mut steps = vec![];
    for (index, Sketch { id, kind, next, .. }) in sketches.into_iter().enumerate() {
        let below = ids.get(index + 1).map_or(Goto::End, |id| goto(id));
        let next = match (&kind, next) {
            (Some(StepKind::Link(_) | StepKind::End), _) => Next::Always(Goto::End),
            (_, Some(next)) => read_next(&next, below, &ids, report),
            (_, None) => Next::Always(below),
        };
        steps.extend(kind.map(|kind| Step { id, kind, next }));
    }
    // A step that could not be read may lead anywhere.
    if whole {
        tell_unreachable(&steps, &places, report);
    }
    steps
}

fn read_next(field: &Field<'_>, below: Goto, ids: &[String], report: &mut Report) -> Next {
    if !matches!(field.node.value, Yaml::List(_)) {
        return Next::Always(read_goto(field, ids, report).unwrap_or(below));
    }
    let before = report.len();
    let (mut branches, mut last) = (vec![], None);
    for item in report.items(field, "a list of branches") {
        let Some(fields) = report.fields(&item, &BRANCH) else { continue };
        if last.is_some() {
            let message = format!("`{}` is never taken: an earlier branch has no condition", item.name);
            report.warning("unreachable-branch", item.node.place, message, "put `else` last".to_owned());
        }
        match read_branch(&item, &fields, ids, report) {
            Some((Some(condition), then)) => branches.push(Branch { condition, then }),
            Some((None, then)) => last = last.or(Some(then)),
            None => {}
        }
    }
    if last.is_none() && report.len() == before {
        let message = format!("`{}` does not say where to go where no branch holds", field.name);
        report.warning("missing-else", field.node.place, message, "add `- else: <step>`".to_owned());
    }
    Next::Branches { branches, otherwise: last.unwrap_or(below) }
}

/// Where a branch leads, and under which condition.
fn read_branch(
    item: &Field<'_>,
    fields: &Fields<'_>,
    ids: &[String],
    report: &mut Report,
) -> Option<(Option<Condition>, Goto)> {
    let (condition, then, otherwise) = (fields.get("if"), fields.get("then"), fields.get("else"));
    let condition = condition.map(|condition| conditions::read(&condition, report));
    let to = match (&condition, &then, &otherwise) {
        (_, Some(to), None) | (None, None, Some(to)) => read_goto(to, ids, report)?,
        (None, None, None) => {
            let hint = "write `- if: <condition>` with `then: <step>` below it, or `- else: <step>`".to_owned();
            report.error("missing-key", item.node.place, format!("`{}` leads nowhere", item.name), hint);
            return None;
        }
        (Some(_), None, None) => {
            fields.require("then", report);
            return None;
        }
        (_, _, Some(otherwise)) => {
            let message = format!("`{}` stands in a branch that has a way already", otherwise.name);
            let hint = "begin it with `- `: it is a branch of its own".to_owned();
            report.error("conflicting-keys", fields.place("else"), message, hint);
            return None;
        }
    };
    match condition {
        Some(condition) => Some((Some(condition?), to)),
        None => Some((None, to)),
    }
}

fn read_goto(field: &Field<'_>, ids: &[String], report: &mut Report) -> Option<Goto> {
    if matches!(field.node.value, Yaml::List(_) | Yaml::Map(_)) {
        let hint = "write the steps below this one, and give the id of the first".to_owned();
        report.wrong_type(field, "the id of a step", Some(hint));
        return None;
    }
    let id = report.text(field)?;
    if id == END || ids.contains(&id) {
        return Some(goto(&id));
    }
    let known = ids.iter().map(String::as_str).chain([END]);
    let hint = meant(&id, known, "give the `id` of a step of this block, or `END`");
    report.error("unknown-step", field.node.place, format!("`{}` names no step: `{id}`", field.name), hint);
    None
}

fn goto(id: &str) -> Goto {
    if id == END { Goto::End } else { Goto::Step(id.to_owned()) }
}

fn tell_unreachable(steps: &[Step], places: &HashMap<String, Place>, report: &mut Report) {
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&Step> = steps.first().into_iter().collect();
    let by_id: HashMap<&str, &Step> = steps.iter().rev().map(|step| (&*step.id, step)).collect();
    while let Some(step) = open.pop() {
        if reached.insert(&step.id) {
            let ways = step.next.ways().filter_map(|goto| match goto {
                Goto::Step(id) => by_id.get(id.as_str()),
                Goto::End => None,
            });
            open.extend(ways);
        }
    }
    for step in steps.iter().filter(|step| step.kind != StepKind::End && !reached.contains(&*step.id)) {
        if let Some(place) = places.get(&step.id) {
            let message = format!("The step `{}` is never reached", step.id);
            report.warning("unreachable-step", *place, message, "let a `next` lead to it".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::body;
    use super::*;

    fn block(steps: &str) -> String {
        format!(":::ordered_block id=b\nsteps:\n{steps}:::\n")
    }

    fn told(steps: &str) -> Vec<String> {
        body(&block(steps)).1
    }

    fn nexts(steps: &str) -> Vec<(String, Next)> {
        let (mut read, found) = body(&block(steps));
        assert_eq!(found, Vec::<String>::new());
        read.blocks.remove(0).steps.into_iter().map(|step| (step.id, step.next)).collect()
    }

    fn step(id: &str) -> Goto {
        Goto::Step(id.to_owned())
    }

    #[test]
    fn a_step_without_next_leads_to_the_one_below_and_the_last_to_the_end() {
        let steps = "  - {id: a, action: utter_x}\n  - {id: b, action: utter_x, next: d}\n  - {id: c, link: x}\n  - {id: d, action: utter_x, next: c}\n";
        assert_eq!(
            nexts(steps),
            [
                ("a".to_owned(), Next::Always(step("b"))),
                ("b".to_owned(), Next::Always(step("d"))),
                ("c".to_owned(), Next::Always(Goto::End)),
                ("d".to_owned(), Next::Always(step("c"))),
            ]
        );
        let steps = "  - {id: a, action: utter_x}\n  - {id: END}\n";
        assert_eq!(
            nexts(steps),
            [("a".to_owned(), Next::Always(Goto::End)), ("END".to_owned(), Next::Always(Goto::End))]
        );
    }

    #[test]
    fn branches_lead_to_steps_and_the_last_has_no_condition() {
        let branch = Branch { condition: Condition::parse("session.card.x == 1").unwrap(), then: step("a") };
        for last in ["else: END", "then: END"] {
            let steps = format!(
                "  - id: a\n    noop: true\n    next:\n      - if: session.card.x == 1\n        then: a\n      - {last}\n"
            );
            let expected = Next::Branches { branches: vec![branch.clone()], otherwise: Goto::End };
            assert_eq!(nexts(&steps), [("a".to_owned(), expected)]);
        }
    }

    #[test]
    fn where_no_branch_may_hold_the_step_below_is_next() {
        let steps = "  - id: a\n    noop: true\n    next:\n      - {if: session.card.x, then: END}\n  - {id: b, action: utter_x}\n";
        let (read, found) = body(&block(steps));
        assert_eq!(
            found,
            [
                "skill.md:10:7: warning[missing-else]: `b.steps[0].next` does not say where to go where no branch holds\n  hint: add \
                 `- else: <step>`"
            ]
        );
        let branch = Branch { condition: Condition::parse("session.card.x").unwrap(), then: Goto::End };
        let expected = Next::Branches { branches: vec![branch], otherwise: step("b") };
        assert_eq!(read.blocks[0].steps[0].next, expected);
    }

    #[test]
    fn what_is_wrong_in_branches_is_told() {
        let steps = "  - id: a\n    noop: true\n    next:\n      - if: session.card.x\n      - {if: session.card.x, then: a, else: a}\n      - \
                     {if: x, then: aa}\n      - then: [{id: c}]\n      - {}\n      - else: END\n      - {if: session.card.x, then: a}\n";
        assert_eq!(
            told(steps),
            [
                "skill.md:10:9: error[missing-key]: `b.steps[0].next[0].then` is missing",
                "skill.md:11:39: error[conflicting-keys]: `b.steps[0].next[1].else` stands in a branch that has a way already\n  hint: \
                 begin it with `- `: it is a branch of its own",
                "skill.md:12:14: error[invalid-condition]: `b.steps[0].next[2].if`: Unknown name `x` in condition expression\n  hint: \
                 write `session.project.x` for an entry of the project, or `\"x\"` for a text",
                "skill.md:12:23: error[unknown-step]: `b.steps[0].next[2].then` names no step: `aa`\n  hint: did you mean `a`?",
                "skill.md:13:15: error[wrong-type]: `b.steps[0].next[3].then` is a list, expected the id of a step\n  hint: write the \
                 steps below this one, and give the id of the first",
                "skill.md:14:9: error[missing-key]: `b.steps[0].next[4]` leads nowhere\n  hint: write `- if: <condition>` with `then: \
                 <step>` below it, or `- else: <step>`",
                "skill.md:16:9: warning[unreachable-branch]: `b.steps[0].next[6]` is never taken: an earlier branch has no condition\n  \
                 hint: put `else` last",
            ]
        );
    }

    #[test]
    fn steps_that_nothing_leads_to_are_warned_of() {
        assert_eq!(
            told(
                "  - {id: a, action: utter_x, next: c}\n  - {id: b, action: utter_x, next: a}\n  - {id: c, action: utter_x, next: END}\n  - {id: END}\n"
            ),
            [
                "skill.md:8:10: warning[unreachable-step]: The step `b` is never reached\n  hint: let a `next` lead to it"
            ]
        );
    }

    #[test]
    fn no_step_is_called_unreachable_beside_one_that_could_not_be_read() {
        assert_eq!(
            told("  - {id: a, next: b}\n  - {id: b, action: utter_x, next: END}\n  - {id: c, action: utter_x}\n").len(),
            1
        );
    }

    #[test]
    fn two_steps_cannot_have_the_same_id() {
        assert_eq!(
            told("  - {id: a, action: utter_x}\n  - {id: a, action: utter_x}\n"),
            [
                "skill.md:8:10: error[duplicate-key]: The step `a` is there twice\n  hint: give one of the two another `id`"
            ]
        );
    }

    #[test]
    fn a_block_that_cannot_be_read_is_known_all_the_same() {
        let (read, found) =
            body(":::ordered_block id=a\n:::\n:::ordered_block id=b\nid: b\nsteps: {id: s}\n:::\n@block.a @block.c");
        assert_eq!(
            found,
            [
                "skill.md:5:18: error[missing-key]: The block `a` has no steps\n  hint: give it `steps:` with a list below it",
                "skill.md:8:1: warning[misplaced-key]: `b.id` has no effect: `id` belongs elsewhere\n  hint: move it to \
                 `:::ordered_block id=<id>` in `skill.md`",
                "skill.md:9:8: error[wrong-type]: `b.steps` is a mapping, expected a list of steps\n  hint: begin each with `- `",
                "skill.md:11:10: error[unknown-block]: `@block.c` names no block of this skill\n  hint: a block is opened with `:::ordered_block id=<id>`",
            ]
        );
        assert_eq!(read.blocks.len(), 2);
    }

    #[test]
    fn a_block_may_have_a_name_and_a_description() {
        let (read, found) = body(
            ":::ordered_block id=main\nname: Start\ndescription: >\n  Greet\n  them.\nsteps: [{id: a, action: utter_x}]\n:::",
        );
        assert_eq!(found, Vec::<String>::new());
        let block = read.opening().unwrap();
        assert_eq!((block.name.as_deref(), block.description.as_deref()), (Some("Start"), Some("Greet them.\n")));
    }
}
