//! Comments that keep rules from a line or a file: `# tenterhook: ignore[rule, other-rule]`.

use std::path::PathBuf;

use super::outline::Span;
use super::project::Project;
use super::rules::{self, UNUSED_IGNORE};
use crate::diagnostic::{Diagnostic, Place};

const MARK: &str = "# tenterhook: ignore[";

/// One rule named in one comment.
struct Ignore {
    file: PathBuf,
    /// `None`: the whole file.
    line: Option<u32>,
    rule: String,
    place: Place,
    used: bool,
}

/// Takes out what comments keep away, and reports the comments that keep nothing away or name no rule.
pub(super) fn apply(project: &Project, found: &mut Vec<Diagnostic>) {
    let mut ignores = gather(project);
    found.retain(|problem| {
        let ignore = ignores.iter_mut().find(|ignore| {
            ignore.file == problem.file
                && ignore.rule == problem.rule
                && ignore.line.is_none_or(|line| problem.line == Some(line))
        });
        ignore.map(|ignore| ignore.used = true).is_none()
    });
    for ignore in ignores.into_iter().filter(|ignore| !ignore.used) {
        let (message, hint) = match rules::by_name(&ignore.rule) {
            Some(_) => (format!("`{}` finds nothing here", ignore.rule), "take the comment out".to_owned()),
            None => {
                let near = rules::nearest(&ignore.rule, rules::RULES.iter().map(|rule| rule.name));
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                (
                    format!("There is no rule `{}`", ignore.rule),
                    hint.unwrap_or("`tenterhook rules` lists them".to_owned()),
                )
            }
        };
        found.push(Diagnostic {
            rule: UNUSED_IGNORE.name.to_owned(),
            severity: UNUSED_IGNORE.severity,
            message,
            hint: Some(hint),
            file: ignore.file,
            line: Some(ignore.place.line),
            place: Some(ignore.place),
            related: Vec::new(),
        });
    }
}

fn gather(project: &Project) -> Vec<Ignore> {
    let mut ignores = Vec::new();
    for module in &project.modules {
        // At the top, before any code, a line of its own speaks for the file.
        let mut at_top = true;
        let mut start = 0;
        for line in module.text().split_inclusive('\n') {
            let blank = line.trim_start();
            at_top &= blank.is_empty() || blank.starts_with('#');
            if let Some(at) = line.find(MARK)
                && let Some(length) = line[at + MARK.len()..].find(']')
            {
                let names = &line[at + MARK.len()..at + MARK.len() + length];
                let place = module.place(Span::new(start + at, start + at + MARK.len() + length + 1));
                for rule in names.split(',').map(str::trim).filter(|rule| !rule.is_empty()) {
                    ignores.push(Ignore {
                        file: module.file.clone(),
                        line: (!at_top).then_some(place.line),
                        rule: rule.to_owned(),
                        place,
                        used: false,
                    });
                }
            }
            start += line.len();
        }
    }
    ignores
}
