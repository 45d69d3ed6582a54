//! Values that are one of a few words, and names that are meant.

use crate::agent::config::report::{Field, Report};
use crate::agent::config::sections::near;

/// Among how many names the nearest is sought: a file may have a hundred thousand.
const MOST_COMPARED: usize = 200;

/// One of a few words; another is told with the nearest.
pub(in crate::agent::config) fn choice<T: Copy>(
    field: &Field<'_>,
    what: &str,
    among: &[(&'static str, T)],
    report: &mut Report,
) -> Option<T> {
    let text = report.text(field)?;
    if let Some((_, value)) = among.iter().find(|(known, _)| *known == text) {
        return Some(*value);
    }
    let names = among.iter().map(|(known, _)| *known);
    let hint = meant(&text, names.clone(), report).unwrap_or_else(|| {
        let all: Vec<_> = names.map(|known| format!("`{known}`")).collect();
        format!("there {} {}", if all.len() == 1 { "is only" } else { "are" }, all.join(", "))
    });
    report.error("invalid-value", field.node.place, format!("There is no {what} `{text}`"), hint);
    None
}

/// The hint for a name that is unknown, where another is near.
pub(super) fn meant<'k>(name: &str, known: impl Iterator<Item = &'k str>, report: &Report) -> Option<String> {
    if !report.may_compare() {
        return None;
    }
    near(name, known.take(MOST_COMPARED)).map(|near| format!("did you mean `{near}`?"))
}
