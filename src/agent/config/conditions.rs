//! Conditions in YAML: what is wrong in one is told at its own column, and so is what it names.

use std::ops::Range;

use super::report::{Field, Report};
use super::yaml::Yaml;
use crate::condition::Condition;
use crate::diagnostic::Place;
use crate::skill::Referent;

/// Reads a condition; what is wrong in it is told, and what it names is noted.
pub(super) fn read(field: &Field<'_>, report: &mut Report) -> Option<Condition> {
    let text = match field.node.value {
        // Without quotes they are no texts, and plainly meant.
        Yaml::Bool(true) => "True".to_owned(),
        Yaml::Bool(false) => "False".to_owned(),
        Yaml::Map(_) => {
            let hint = "write it as one text, such as `session.project.verified == True`".to_owned();
            report.wrong_type(field, "a condition", Some(hint));
            return None;
        }
        _ => report.text(field)?,
    };
    match Condition::parse(&text) {
        Ok(condition) => {
            note(&condition, field.node.place, &text, report);
            Some(condition)
        }
        Err(error) => {
            let place = within(field.node.place, &text, &error.range).unwrap_or(field.node.place);
            report.error("invalid-condition", place, format!("`{}`: {}", field.name, error.message), error.hint);
            None
        }
    }
}

/// A gate's condition. One that is none keeps the gate shut: what an author meant to be guarded is not left open.
pub(super) fn gate(field: &Field<'_>, report: &mut Report) -> Condition {
    read(field, report).unwrap_or_else(|| Condition::parse("False").expect("a constant is a condition"))
}

/// Notes the entries that a condition names.
fn note(condition: &Condition, whole: Place, text: &str, report: &mut Report) {
    let names: Vec<String> = condition.names().map(ToString::to_string).collect();
    let exact: Option<Vec<Place>> = condition.names().map(|name| within(whole, text, &name.range)).collect();
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let places = exact.unwrap_or_else(|| report.places(whole, &words));
    for (name, place) in condition.names().zip(places) {
        let to = Referent::Entry { namespace: name.namespace.clone(), entry: name.entry.clone() };
        report.refer(name.to_string(), place, to);
    }
}

/// Where in the file some characters of the text stand, where it is written on one line as it is.
fn within(whole: Place, text: &str, range: &Range<usize>) -> Option<Place> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let written = (whole.end_line == whole.line).then(|| whole.end_column.saturating_sub(whole.column))?;
    let quote = match written.checked_sub(number(text.chars().count()))? {
        0 => 0,
        2 => 1,
        _ => return None,
    };
    let column = whole.column + quote + number(range.start);
    let end_column = whole.column + quote + number(range.end);
    Some(Place { column, end_column, ..whole })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{skill, told};
    use crate::skill::Reference;

    #[test]
    fn what_is_wrong_in_a_condition_is_told_at_its_column() {
        let said = |condition: &str| {
            told("responses.yml", &format!("responses:\n  utter_x:\n    - text: a\n      condition: {condition}\n"))
        };
        assert_eq!(
            said("order_id == 3"),
            [
                "responses.yml:4:18: error[invalid-condition]: `responses.utter_x[0].condition`: Unknown name `order_id` in \
                 condition expression\n  hint: write `session.project.order_id` for an entry of the project, or `\"order_id\"` for a text"
            ]
        );
        let quoted = said("'session.project.a && True'");
        assert!(quoted[0].starts_with("responses.yml:4:37: error[invalid-condition]"), "{quoted:?}");
        let folded = said(">\n        session.project.a =\n        1");
        assert!(folded[0].starts_with("responses.yml:5:9: error[invalid-condition]"), "{folded:?}");
        assert!(said("True").is_empty());
        assert!(said("not session.project.a").is_empty());
    }

    #[test]
    fn a_condition_in_the_form_of_a_mapping_is_no_condition() {
        let file = "---\nname: a\ndescription: b\nrequires: {card_id: {exists: true}}\n---\n";
        let (read, found) = skill(file);
        assert_eq!(
            found,
            [
                "skill.md:4:11: error[wrong-type]: `requires` is a mapping, expected a condition\n  hint: write it as one text, such as \
                 `session.project.verified == True`"
            ]
        );
        assert_eq!(read.requires.unwrap().to_string(), "False");
    }

    #[test]
    fn what_a_condition_names_is_noted_with_its_place() {
        let noted = |condition: &str| {
            let (read, _) = skill(&format!("---\nname: a\ndescription: b\nrequires: {condition}\n---\n"));
            let at = |reference: Reference| (reference.shown, reference.place.line, reference.place.column);
            read.references.all.into_iter().map(at).collect::<Vec<_>>()
        };
        let entry = |name: &str, line, column| (format!("session.a.{name}"), line, column);
        assert_eq!(noted("session.a.x or session.a.y"), [entry("x", 4, 11), entry("y", 4, 26)]);
        assert_eq!(noted("'session.a.x'"), [entry("x", 4, 12)]);
        assert_eq!(noted(r#""\tsession.a.x""#), [entry("x", 4, 14)]);
        assert_eq!(
            noted(">\n  session.a.x and\n  session.a.x or session.a.y"),
            [entry("x", 5, 3), entry("x", 6, 3), entry("y", 6, 18)]
        );
        assert_eq!(noted(r#""session\x2Ea.x""#), [entry("x", 4, 11)]);
    }
}
