//! `tenterhook check`, `rules`, `explain`: what is wrong with hook modules, found without importing them.

use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::points::bare_table;
use super::{Global, Status, logging, say};
use crate::agent::{Error, Settings, StaticCheck, check_connected, check_path, is_manifest};
use crate::check::{self, RULES, parse_version};
use crate::diagnostic::{Diagnostic, Rendering, Severity, render};
use crate::python;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(super) struct CheckArgs {
    /// Agents' folders, single modules, or manifests of Quick Apps (`.json`, `.yml`); `-`: a module on stdin
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Warnings count as errors
    #[arg(long)]
    strict: bool,
    /// Look for these rules only
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    select: Vec<String>,
    /// Do not look for these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    ignore: Vec<String>,
    /// The Python whose grammar counts, such as 3.11 [default: that of the linked interpreter]
    #[arg(long, value_name = "3.x", value_parser = parse_version)]
    target_version: Option<u8>,
    /// How the problems look on stdout
    #[arg(long, value_enum, default_value_t)]
    output_format: CheckFormat,
    /// Also import the modules, as a load does, and tell what that finds
    #[arg(long)]
    import: bool,
    /// Also ask the servers of a Quick App for their tools, and tell what the manifest names of them that is not there
    #[arg(long, conflicts_with = "watch")]
    connect: bool,
    /// Count the problems by rule
    #[arg(long)]
    statistics: bool,
    /// Check again whenever a module changes, until Ctrl-C
    #[arg(long, conflicts_with = "import")]
    watch: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    /// With the source
    #[default]
    Full,
    /// One line each
    Concise,
    /// The field `version` rises when the shape changes
    Json,
    /// Annotations of GitHub Actions
    Github,
    /// SARIF 2.1.0
    Sarif,
    /// The XML of `JUnit`
    Junit,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The rule's name
    rule: String,
}

pub(super) fn run(arguments: &CheckArgs, global: &Global) -> anyhow::Result<Status> {
    for name in arguments.select.iter().chain(&arguments.ignore) {
        known(name)?;
    }
    if arguments.connect {
        let other = arguments.paths.iter().find(|path| !is_manifest(path));
        anyhow::ensure!(
            other.is_none(),
            "`{}` is no manifest of a Quick App\n  hint: leave out `--connect`, which asks the servers of manifests",
            other.map(|path| path.display().to_string()).unwrap_or_default()
        );
    }
    if arguments.watch {
        anyhow::ensure!(
            !arguments.paths.iter().any(|path| path == Path::new("-")),
            "Stdin cannot be watched\n  hint: give folders or files"
        );
        return super::watch::repeat(&arguments.paths, || once(arguments, global));
    }
    once(arguments, global)
}

/// Checks all paths once and shows what is found.
fn once(arguments: &CheckArgs, global: &Global) -> anyhow::Result<Status> {
    let mut stdin = None;
    let mut found = Vec::new();
    for path in &arguments.paths {
        let is_stdin = path == Path::new("-");
        let settings = settings_for(arguments, if is_stdin { Path::new(".") } else { path })?;
        let made_for = settings.for_environment(path, global.python.clone(), arguments.target_version)?;
        let mut problems = if is_stdin {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("Stdin cannot be read")?;
            check::check_text(Path::new("<stdin>"), stdin.insert(text).clone(), &made_for)
        } else if arguments.connect {
            check_connected(path, &made_for, global.python.as_deref())?
        } else {
            check_path(path, &made_for, global.python.as_deref())?
        };
        if arguments.import && !is_stdin {
            let more = imported(path, global, &problems)?;
            problems.extend(more);
        }
        found.extend(problems.into_iter().filter(|problem| settings.wants(problem)));
    }
    if arguments.strict {
        for problem in &mut found {
            problem.severity = Severity::Error;
        }
    }
    let source = |file: &Path| match &stdin {
        Some(text) if file == Path::new("<stdin>") => Some(text.clone()),
        _ => fs::read_to_string(file).ok(),
    };
    let mut out = io::stdout().lock();
    if arguments.statistics {
        write!(out, "{}", statistics(&found))?;
    } else {
        write!(out, "{}", render(&found, rendering(arguments.output_format), &source))?;
    }
    out.flush()?;
    let errors = found.iter().filter(|problem| problem.severity == Severity::Error).count();
    let warnings = found.len() - errors;
    if matches!(arguments.output_format, CheckFormat::Full | CheckFormat::Concise) {
        match found.len() {
            0 => say(format_args!("No problems found")),
            _ => say(format_args!("{}, {}", counted(errors, "error"), counted(warnings, "warning"))),
        }
    }
    Ok(if errors > 0 { Status::Problems } else { Status::Clean })
}

/// The settings for `path`; the command line wins over a file's.
fn settings_for(arguments: &CheckArgs, path: &Path) -> Result<Settings, Error> {
    let mut settings = Settings::near(path)?;
    if !arguments.select.is_empty() {
        settings.select.clone_from(&arguments.select);
    }
    settings.ignore.extend(arguments.ignore.iter().cloned());
    Ok(settings)
}

/// What the import of an agent's modules finds beyond `known`.
fn imported(path: &Path, global: &Global, known: &[Diagnostic]) -> anyhow::Result<Vec<Diagnostic>> {
    python::console(logging::of_python(global));
    let loaded = super::run::builder(path, global).static_check(StaticCheck::Off).load();
    let problems = match loaded {
        Ok(engine) => engine.warnings(),
        Err(Error::Invalid { problems, .. }) => problems,
        Err(other) => return Err(other.into()),
    };
    let is_new =
        |problem: &Diagnostic| !known.iter().any(|other| other.file == problem.file && other.line == problem.line);
    Ok(problems.into_iter().filter(is_new).collect())
}

pub(super) fn rules() -> anyhow::Result<Status> {
    let mut table = bare_table(&["rule", "severity", "what it finds"]);
    for rule in RULES {
        table.add_row([rule.name.to_owned(), rule.severity.name().to_owned(), rule.summary()]);
    }
    writeln!(io::stdout(), "{}", table.trim_fmt())?;
    Ok(Status::Clean)
}

pub(super) fn explain(arguments: &ExplainArgs) -> anyhow::Result<Status> {
    let rule = known(&arguments.rule)?;
    writeln!(io::stdout(), "# {} ({})\n\n{}", rule.name, rule.severity.name(), rule.page())?;
    Ok(Status::Clean)
}

/// The rule of that name, or an error with the nearest.
fn known(name: &str) -> anyhow::Result<&'static check::Rule> {
    check::by_name(name).ok_or_else(|| anyhow::anyhow!(check::unknown_rule(name)))
}

fn rendering(format: CheckFormat) -> Rendering {
    match format {
        CheckFormat::Full => {
            Rendering::Full { colour: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
        }
        CheckFormat::Concise => Rendering::Concise,
        CheckFormat::Json => Rendering::Json,
        CheckFormat::Github => Rendering::Github,
        CheckFormat::Sarif => Rendering::Sarif,
        CheckFormat::Junit => Rendering::Junit,
    }
}

fn statistics(found: &[Diagnostic]) -> String {
    let mut table = bare_table(&["rule", "severity", "problems"]);
    for rule in RULES {
        let count = found.iter().filter(|problem| problem.rule == rule.name).count();
        if count > 0 {
            table.add_row([rule.name.to_owned(), rule.severity.name().to_owned(), count.to_string()]);
        }
    }
    format!("{}\n", table.trim_fmt())
}

fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
