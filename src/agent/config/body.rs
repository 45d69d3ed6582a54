//! The prose of a `skill.md`: paragraphs, of which some stand under a condition, and what they mention.
//!
//! ```text
//! Help the customer replace a card.
//!
//! if: session.card_replace.reason == "stolen"
//! Say that the card will be locked, then call @tool.lock_card.
//!
//! Confirm the order with @memory.project.name.
//! ```
//!
//! A condition is the rest of its line, begins in the first column, and holds for the paragraph right below it, up to a blank line.
//! There is no `else:`. A fenced example of code is prose like any other.

use std::mem;

use super::conditions;
use super::markdown::{Lines, Region, column, line};
use super::report::{Field, Report};
use super::sections::meant;
use super::yaml::{Node, Yaml};
use crate::condition::Condition;
use crate::diagnostic::Place;
use crate::hooks::ENGINE_TOOLS;
use crate::skill::{Mention, Part, Referent, mentions};

/// What begins a branch elsewhere.
const BRANCHES: [&str; 4] = ["else:", "elif:", "else if:", "elseif:"];

/// Reads some prose into the parts of a body. `blocks` are the ids of the skill's blocks.
pub(super) fn read(prose: Region<'_>, blocks: &[&str], report: &mut Report) -> Vec<Part> {
    let mut reading =
        Reading { lines: Lines::of(prose), blocks, report, parts: vec![], scope: Scope::Always, start: 0 };
    let count = reading.lines.count();
    for index in 0..count {
        reading.line(index);
    }
    reading.close(count);
    reading.parts
}

/// Notes what a text for the model mentions, and tells what is no mention. `place` is where it stands.
pub(super) fn note_mentions(text: &str, place: Place, blocks: &[&str], report: &mut Report) {
    let found = mentions(text);
    let words: Vec<&str> = found.iter().map(|mentioned| &text[mentioned.range.clone()]).collect();
    let places = report.places(place, &words);
    for ((mentioned, shown), place) in found.iter().zip(words).zip(places) {
        match mentioned.what {
            Mention::Skill(id) => report.refer(shown, place, Referent::Skill(id.to_owned())),
            Mention::Tool(name) if ENGINE_TOOLS.contains(&name) => {}
            Mention::Tool(name) => report.refer(shown, place, Referent::Tool(name.to_owned())),
            Mention::Memory { namespace, entry } => {
                let to = Referent::Entry { namespace: namespace.to_owned(), entry: entry.to_owned() };
                report.refer(shown, place, to);
            }
            Mention::Block(id) if blocks.contains(&id) => {}
            Mention::Block(id) => {
                let hint = meant(id, blocks.iter().copied(), "a block is opened with `:::ordered_block id=<id>`");
                report.error("unknown-block", place, format!("`{shown}` names no block of this skill"), hint);
            }
            Mention::Malformed => {
                let hint =
                    "write `@skill.<id>`, `@block.<id>`, `@tool.<name>` or `@memory.<skill id | project>.<entry>`";
                report.error("invalid-mention", place, format!("`{shown}` is no mention"), hint.to_owned());
            }
        }
    }
    note_conditions(text, place, report);
}

/// Tells what would be read in a condition, and stands in a text that the model is shown as it is.
fn note_conditions(text: &str, place: Place, report: &mut Report) {
    let of_line = |line| match str::trim_start(line) {
        branch if branch.starts_with("if:") && branch.contains("session.") => vec!["if:"],
        _ => entries(line),
    };
    let words: Vec<&str> = text.lines().flat_map(of_line).collect();
    for (word, place) in words.iter().zip(report.places(place, &words)) {
        if *word == "if:" {
            let message = "This `if:` is no condition: the model is shown it".to_owned();
            let hint = "begin it in the first column of a paragraph of the body".to_owned();
            report.warning("no-condition", place, message, hint);
        } else {
            let message = format!("`{word}` is not replaced by its value here");
            let hint = format!("write `@memory.{}`", &word["session.".len()..]);
            report.warning("no-condition", place, message, hint);
        }
    }
}

/// Entries that a line names as conditions do: `session.<namespace>.<entry>`.
fn entries(line: &str) -> Vec<&str> {
    let within = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let entry = |(at, _): (usize, &str)| {
        let rest = &line[at..];
        let path = rest[..rest.find(|letter| !within(letter)).unwrap_or(rest.len())].trim_end_matches(['.', '-']);
        (!line[..at].ends_with(within) && path.split('.').count() == 3).then_some(path)
    };
    line.match_indices("session.").filter_map(entry).collect()
}

/// When a part of the prose is shown.
#[derive(Debug, Default)]
enum Scope {
    #[default]
    Always,
    When(Condition),
    /// Its condition is none: what was meant for some is not shown to all.
    Never,
}

#[derive(Debug)]
struct Reading<'a> {
    lines: Lines<'a>,
    blocks: &'a [&'a str],
    report: &'a mut Report,
    parts: Vec<Part>,
    scope: Scope,
    /// The first line of the part that is being read.
    start: usize,
}

impl Reading<'_> {
    fn line(&mut self, index: usize) {
        let text = self.lines.get(index);
        if let Some(condition) = text.strip_prefix("if:") {
            self.close(index);
            self.scope = self.condition(condition, text, index).map_or(Scope::Never, Scope::When);
        } else if let Some(branch) = BRANCHES.iter().find(|branch| text.starts_with(**branch)) {
            self.close(index);
            let message = format!("There is no `{branch}` in prose");
            let hint = "give this paragraph an `if:` with its own condition".to_owned();
            self.report.error("invalid-condition", line(self.lines.number(index), text), message, hint);
            self.scope = Scope::Never;
        } else if text.trim().is_empty() && !matches!(self.scope, Scope::Always) {
            self.close(index);
        } else {
            return;
        }
        self.start = index + 1;
    }

    fn condition(&mut self, written: &str, whole: &str, index: usize) -> Option<Condition> {
        let number = self.lines.number(index);
        let text = written.trim();
        let before = &whole[..whole.len() - written.trim_start().len()];
        let place = Place { column: column(before), ..line(number, whole.trim_end()) };
        let below = self.lines.get(index + 1);
        let (place, message, hint) = if below.trim().is_empty() || below.starts_with("if:") {
            let hint = "write the paragraph on the next line: a blank line ends it";
            (line(number, whole), "Nothing stands under this condition", hint)
        } else if text.starts_with(['>', '|']) {
            (place, "A condition in prose is one line", "write all of it on this line, however long")
        } else if text.len() > 1 && text.starts_with(['"', '\'']) && text.ends_with(&text[..1]) {
            // As in Python it would be a text, which is true.
            (place, "This condition is a text", "leave out the quotes around it: prose is no YAML")
        } else {
            let node = Node { place, value: Yaml::Text(text.to_owned()) };
            return conditions::read(&Field { name: "if".to_owned(), node: &node }, self.report);
        };
        self.report.error("invalid-condition", place, message.to_owned(), hint.to_owned());
        None
    }

    /// Ends the part that is being read before a line.
    fn close(&mut self, end: usize) {
        let shown = |index: &usize| !self.lines.get(*index).trim().is_empty();
        let first = (self.start..end).find(shown);
        let scope = mem::take(&mut self.scope);
        let Some(first) = first else { return };
        let region = self.lines.region(first..end);
        let text = region.text.trim_end().replace("\r\n", "\n");
        let place = Place { end_line: self.lines.number(end) - 1, ..line(self.lines.number(first), "") };
        note_mentions(&text, place, self.blocks, self.report);
        let condition = match scope {
            Scope::Always => None,
            Scope::When(condition) => Some(condition),
            Scope::Never => return,
        };
        self.parts.push(Part { condition, text });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::body;
    use crate::skill::Referent;

    fn told(text: &str) -> Vec<String> {
        body(text).1
    }

    /// The parts: their conditions and texts.
    fn parts(text: &str) -> Vec<(Option<String>, String)> {
        let shown = |part: crate::skill::Part| (part.condition.map(|condition| condition.to_string()), part.text);
        body(text).0.body.into_iter().map(shown).collect()
    }

    #[test]
    fn a_condition_holds_for_the_paragraph_below_it() {
        let expected = [
            (None, "One\n\ntwo\n## Head"),
            (Some("session.card.a"), "  three\nfour"),
            (Some("session.card.b == 1"), "five"),
            (None, "six"),
        ];
        assert_eq!(
            parts(
                "\nOne\n\ntwo\n## Head\nif: session.card.a\n  three\nfour\nif:session.card.b == 1 \nfive\n \n\nsix\n"
            ),
            expected.map(|(condition, text)| (condition.map(str::to_owned), text.to_owned()))
        );
    }

    #[test]
    fn what_stands_under_no_proper_condition_is_shown_to_nobody() {
        let text = "if: session.card.a ==\none\n\nelse:\ntwo\n\nthree";
        assert_eq!(parts(text), [(None, "three".to_owned())]);
        assert_eq!(
            told(text),
            [
                "skill.md:5:22: error[invalid-condition]: `if`: Expected a name or a value, found the end",
                "skill.md:8:1: error[invalid-condition]: There is no `else:` in prose\n  hint: give this paragraph an `if:` with its \
                 own condition",
            ]
        );
    }

    #[test]
    fn what_is_no_condition_is_told() {
        assert_eq!(
            told(
                "if: >\n  session.card.a\n\nif: session.card.a\n\nif: 'session.card.a'\none\n\nif: a\ntwo\nif:\nthree"
            ),
            [
                "skill.md:5:5: error[invalid-condition]: A condition in prose is one line\n  hint: write all of it on this line, \
                 however long",
                "skill.md:6:3: warning[no-condition]: `session.card.a` is not replaced by its value here\n  hint: write \
                 `@memory.card.a`",
                "skill.md:8:1: error[invalid-condition]: Nothing stands under this condition\n  hint: write the paragraph on the \
                 next line: a blank line ends it",
                "skill.md:10:5: error[invalid-condition]: This condition is a text\n  hint: leave out the quotes around it: prose is \
                 no YAML",
                "skill.md:13:5: error[invalid-condition]: `if`: Unknown name `a` in condition expression\n  hint: write \
                 `session.project.a` for an entry of the project, or `\"a\"` for a text",
                "skill.md:15:4: error[invalid-condition]: `if`: The condition is empty\n  hint: leave it out, or name a memory entry \
                 such as `session.project.verified`",
            ]
        );
    }

    #[test]
    fn conditions_that_the_model_would_be_shown_are_warned_of() {
        assert_eq!(
            told(
                "1. One\n   if: session.card.a\n   two {session.project.b}, xsession.a.b, session.a\n\n   if: they ask\n"
            ),
            [
                "skill.md:6:4: warning[no-condition]: This `if:` is no condition: the model is shown it\n  hint: begin it in the first \
                 column of a paragraph of the body",
                "skill.md:7:9: warning[no-condition]: `session.project.b` is not replaced by its value here\n  hint: write \
                 `@memory.project.b`",
            ]
        );
    }

    #[test]
    fn mentions_are_noted_with_their_places() {
        let (read, found) =
            body("é @tool.a,\n\nif: session.project.x\n@memory.card.y @skill.b @tool.set_fields @tool.a\n");
        assert_eq!(found, Vec::<String>::new());
        let noted: Vec<_> = read
            .references
            .all
            .iter()
            .map(|reference| {
                (&*reference.shown, reference.place.line, reference.place.column, reference.place.end_column)
            })
            .collect();
        assert_eq!(
            noted,
            [
                ("@tool.a", 5, 3, 10),
                ("session.project.x", 7, 5, 22),
                ("@memory.card.y", 8, 1, 15),
                ("@skill.b", 8, 16, 24),
                ("@tool.a", 8, 42, 49),
            ]
        );
        assert_eq!(read.references.all[3].to, Referent::Skill("b".to_owned()));
    }

    #[test]
    fn mentions_of_nothing_are_told() {
        assert_eq!(
            told(
                "@block.pick @block.x @memory.project @tool.a.b\n:::ordered_block id=pik\nsteps: [{id: s, action: utter_x}]\n:::\n"
            ),
            [
                "skill.md:5:1: error[unknown-block]: `@block.pick` names no block of this skill\n  hint: did you mean `pik`?",
                "skill.md:5:13: error[unknown-block]: `@block.x` names no block of this skill\n  hint: a block is opened with \
                 `:::ordered_block id=<id>`",
                "skill.md:5:22: error[invalid-mention]: `@memory.project` is no mention\n  hint: write `@skill.<id>`, `@block.<id>`, \
                 `@tool.<name>` or `@memory.<skill id | project>.<entry>`",
                "skill.md:5:38: error[invalid-mention]: `@tool.a.b` is no mention\n  hint: write `@skill.<id>`, `@block.<id>`, \
                 `@tool.<name>` or `@memory.<skill id | project>.<entry>`",
            ]
        );
    }
}
