//! Problems in the forms that people and machines read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Diagnostic, Place, Severity};

/// Raised when the JSON form changes its shape.
const JSON_VERSION: u32 = 1;

/// How problems are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rendering {
    /// With the source, for people; in colour or not.
    Full { colour: bool },
    /// One line each.
    Concise,
    /// Version [`JSON_VERSION`].
    Json,
    /// Workflow commands of GitHub Actions.
    Github,
    /// SARIF 2.1.0.
    Sarif,
    /// The XML of `JUnit`, one test case a problem.
    Junit,
}

/// The problems that a check has found.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "tenterhook check")]
struct Report<'a> {
    /// Raised when the shape changes.
    #[schemars(extend("const" = JSON_VERSION))]
    version: u32,
    /// The problems, sorted by file and place.
    diagnostics: &'a [Diagnostic],
}

/// The JSON schema of [`Rendering::Json`].
pub(crate) fn schema() -> Value {
    let generator: SchemaGenerator = SchemaSettings::draft2020_12().for_serialize().into();
    generator.into_root_schema_for::<Report<'_>>().to_value()
}

/// Shows problems; `source` gives the text of a file where it is known.
pub(crate) fn render(
    problems: &[Diagnostic],
    rendering: Rendering,
    source: &dyn Fn(&Path) -> Option<String>,
) -> String {
    match rendering {
        Rendering::Full { colour } => full(problems, colour, source),
        Rendering::Concise => problems.iter().fold(String::new(), |mut text, problem| {
            let shown = problem.to_string();
            writeln!(text, "{}", shown.split('\n').next().unwrap_or_default()).expect(TAKES_ALL);
            text
        }),
        Rendering::Json => format!("{:#}\n", json!(Report { version: JSON_VERSION, diagnostics: problems })),
        Rendering::Github => github(problems),
        Rendering::Sarif => format!("{:#}\n", sarif(problems)),
        Rendering::Junit => junit(problems),
    }
}

const TAKES_ALL: &str = "a string takes all";

fn full(problems: &[Diagnostic], colour: bool, source: &dyn Fn(&Path) -> Option<String>) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for problem in problems {
        let level = match problem.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = level
            .primary_title(problem.message.as_str())
            .id(problem.rule.as_str())
            .elements(Vec::<annotate_snippets::Element<'_>>::new());
        let own = problem.place.and_then(|place| Some((place, source(&problem.file)?)));
        let mut sources = Vec::new();
        if let Some((place, text)) = own {
            sources.push((problem.file.display().to_string(), text, vec![(place, None)]));
        }
        for related in &problem.related {
            let file = related.file.display().to_string();
            let mark = (related.place, Some(related.message.as_str()));
            match sources.iter_mut().find(|(known, ..)| *known == file) {
                Some((.., marks)) => marks.push(mark),
                None => sources.extend(source(&related.file).map(|text| (file, text, vec![mark]))),
            }
        }
        if sources.is_empty() {
            let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
            group = group.element(Level::NOTE.message(format!("in {}{line}", problem.file.display())));
        }
        for (file, text, marks) in sources {
            let mut snippet = Snippet::source(text.clone()).path(file).fold(true);
            for (place, label) in marks {
                let kind = if label.is_none() { AnnotationKind::Primary } else { AnnotationKind::Context };
                let mark = kind.span(bytes_of(&text, place));
                snippet = snippet.annotation(match label {
                    Some(label) => mark.label(label.to_owned()),
                    None => mark,
                });
            }
            group = group.element(snippet);
        }
        let mut report: Vec<Group<'_>> = vec![group];
        if let Some(hint) = &problem.hint {
            report.push(Group::with_title(Level::HELP.secondary_title(hint.as_str())));
        }
        writeln!(text, "{}\n", renderer.render(&report)).expect(TAKES_ALL);
    }
    text
}

/// The bytes of a place; one that covers several lines is cut at the end of its first.
fn bytes_of(text: &str, place: Place) -> std::ops::Range<usize> {
    let mut start_of_line = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if number == place.line {
            let line = line.trim_end_matches(['\n', '\r']);
            let at = |column: u32| {
                line.char_indices().nth(column as usize - 1).map_or(line.len(), |(at, _)| at) + start_of_line
            };
            let end = if place.end_line == place.line { at(place.end_column) } else { start_of_line + line.len() };
            return at(place.column)..end.max(at(place.column));
        }
        start_of_line += line.len();
    }
    text.len()..text.len()
}

fn github(problems: &[Diagnostic]) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    let mut text = String::new();
    for problem in problems {
        write!(
            text,
            "::{} title={},file={}",
            problem.severity.name(),
            property(&problem.rule),
            property(&problem.file.display().to_string())
        )
        .expect(TAKES_ALL);
        if let Some(line) = problem.line {
            write!(text, ",line={line}").expect(TAKES_ALL);
        }
        if let Some(Place { column, end_line, end_column, .. }) = problem.place {
            write!(text, ",col={column},endLine={end_line},endColumn={end_column}").expect(TAKES_ALL);
        }
        let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        writeln!(text, "::{}", escaped(&format!("{}{hint}", problem.message))).expect(TAKES_ALL);
    }
    text
}

fn sarif(problems: &[Diagnostic]) -> Value {
    let location = |file: &Path, line: Option<u32>, place: Option<Place>| {
        let mut region = json!({"startLine": line.unwrap_or(1)});
        if let Some(place) = place {
            region["startColumn"] = place.column.into();
            region["endLine"] = place.end_line.into();
            region["endColumn"] = place.end_column.into();
        }
        json!({"physicalLocation": {"artifactLocation": {"uri": file.display().to_string()}, "region": region}})
    };
    let results: Vec<_> = problems
        .iter()
        .map(|problem| {
            let related: Vec<_> = problem
                .related
                .iter()
                .map(|related| {
                    let mut at = location(&related.file, Some(related.line), Some(related.place));
                    at["message"] = json!({"text": related.message});
                    at
                })
                .collect();
            let hint = problem.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
            json!({
                "ruleId": problem.rule,
                "level": problem.severity.name(),
                "message": {"text": format!("{}{hint}", problem.message)},
                "locations": [location(&problem.file, problem.line, problem.place)],
                "relatedLocations": related,
            })
        })
        .collect();
    let rules: BTreeMap<_, _> =
        problems.iter().map(|problem| (problem.rule.as_str(), json!({"id": problem.rule}))).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "tenterhook", "version": env!("CARGO_PKG_VERSION"), "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "results": results,
        }],
    })
}

fn junit(problems: &[Diagnostic]) -> String {
    let escaped = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .replace('\n', "&#10;")
    };
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tenterhook\" tests=\"{0}\" failures=\"{0}\">\n",
        problems.len()
    );
    let mut files: BTreeMap<String, Vec<&Diagnostic>> = BTreeMap::new();
    for problem in problems {
        files.entry(problem.file.display().to_string()).or_default().push(problem);
    }
    for (file, problems) in files {
        let count = problems.len();
        writeln!(text, "  <testsuite name=\"{}\" tests=\"{count}\" failures=\"{count}\">", escaped(&file))
            .expect(TAKES_ALL);
        for problem in problems {
            writeln!(
                text,
                "    <testcase name=\"{}\" classname=\"{}\" line=\"{}\"><failure message=\"{}\">{}</failure></testcase>",
                escaped(&problem.rule),
                escaped(&file),
                problem.line.unwrap_or(1),
                escaped(&problem.message),
                escaped(&problem.to_string())
            )
            .expect(TAKES_ALL);
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}
