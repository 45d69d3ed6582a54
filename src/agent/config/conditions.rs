//! Conditions in YAML: what is wrong in one is told at its own column.

use std::ops::Range;

use super::report::{Field, Report};
use super::yaml::Yaml;
use crate::condition::Condition;
use crate::diagnostic::Place;

/// Reads a condition; what is wrong in it is told.
pub(super) fn read(field: &Field<'_>, report: &mut Report) -> Option<Condition> {
    let text = match field.node.value {
        // Without quotes they are no texts, and plainly meant.
        Yaml::Bool(true) => "True".to_owned(),
        Yaml::Bool(false) => "False".to_owned(),
        _ => report.text(field)?,
    };
    match Condition::parse(&text) {
        Ok(condition) => {
            for name in condition.names() {
                let message = format!("`{name}` is never set: there is no memory yet");
                report.warning("unset-entry", within(field.node.place, &text, &name.range), message, None);
            }
            Some(condition)
        }
        Err(error) => {
            let place = within(field.node.place, &text, &error.range);
            report.error("invalid-condition", place, format!("`{}`: {}", field.name, error.message), error.hint);
            None
        }
    }
}

/// Where in the file some characters of the text stand: exactly where it is written on one line as it is, else where the text begins.
fn within(whole: Place, text: &str, range: &Range<usize>) -> Place {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let written = (whole.end_line == whole.line).then(|| whole.end_column - whole.column);
    let quote = match written.and_then(|written| written.checked_sub(number(text.chars().count()))) {
        Some(0) => 0,
        Some(2) => 1,
        _ => return whole,
    };
    let column = whole.column + quote + number(range.start);
    let end_column = whole.column + quote + number(range.end);
    Place { column, end_column, ..whole }
}

#[cfg(test)]
mod tests {
    use super::super::testing::told;

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
        assert_eq!(
            said("not session.project.a"),
            ["responses.yml:4:22: warning[unset-entry]: `session.project.a` is never set: there is no memory yet"]
        );
    }
}
