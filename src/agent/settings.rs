//! Settings of an agent: `[tool.tenterhook]` of `pyproject.toml`, or `tenterhook.toml`, the nearest above what is checked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::builder::Isolation;
use super::error::Error;
use crate::check::{self, CheckSettings, Installed, NEWEST_MINOR, RULES};
use crate::diagnostic::Diagnostic;
use crate::python::{self, PythonChoice};

/// The keys, for errors about others.
const KEYS: [&str; 7] =
    ["select", "ignore", "per-file-ignores", "target-version", "turn-budget-ms", "max-iterations", "isolation"];

/// What a settings file says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Settings {
    pub(crate) select: Vec<String>,
    pub(crate) ignore: Vec<String>,
    /// Rules that are ignored in files whose path ends so.
    pub(crate) per_file_ignores: BTreeMap<String, Vec<String>>,
    pub(crate) target_version: Option<u8>,
    pub(crate) turn_budget_ms: Option<u64>,
    pub(crate) max_iterations: Option<u64>,
    /// Where the agent's hooks run.
    pub(crate) isolation: Option<Isolation>,
}

impl Settings {
    /// The settings for `path`: of its folder, or of the nearest folder above that has some.
    pub(crate) fn near(path: &Path) -> Result<Self, Error> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        for folder in path.ancestors() {
            for (name, inside) in [("tenterhook.toml", None), ("pyproject.toml", Some("tool"))] {
                let file = folder.join(name);
                if file.is_file()
                    && let Some(settings) = Self::read(&file, inside)?
                {
                    return Ok(settings);
                }
            }
        }
        Ok(Self::default())
    }

    fn read(file: &Path, inside: Option<&str>) -> Result<Option<Self>, Error> {
        let text = fs::read_to_string(file).map_err(|reason| Error::Unreadable { path: file.to_owned(), reason })?;
        Self::parse(&text, inside).map_err(|message| Error::Settings { file: file.to_owned(), message })
    }

    fn parse(text: &str, inside: Option<&str>) -> Result<Option<Self>, String> {
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        if let Some(outer) = inside {
            match table.remove(outer).and_then(|tool| tool.get("tenterhook").and_then(Value::as_table).cloned()) {
                Some(own) => table = own,
                None => return Ok(None),
            }
        }
        Self::of_table(table).map(Some)
    }

    fn of_table(table: Table) -> Result<Self, String> {
        let mut settings = Self::default();
        for (key, value) in table {
            match (key.as_str(), value) {
                ("select", value) => settings.select = rules(&key, value)?,
                ("ignore", value) => settings.ignore = rules(&key, value)?,
                ("per-file-ignores", Value::Table(files)) => {
                    for (file, value) in files {
                        let names = rules(&key, value)?;
                        settings.per_file_ignores.insert(file, names);
                    }
                }
                ("target-version", Value::String(version)) => {
                    let parsed = check::parse_version(&version);
                    settings.target_version = Some(parsed.map_err(|wrong| format!("`target-version`: {wrong}"))?);
                }
                ("turn-budget-ms", Value::Integer(number)) if number > 0 => {
                    settings.turn_budget_ms = u64::try_from(number).ok();
                }
                ("max-iterations", Value::Integer(number)) if number > 0 => {
                    settings.max_iterations = u64::try_from(number).ok();
                }
                ("isolation", Value::String(name)) => {
                    settings.isolation = Some(match name.as_str() {
                        "thread" => Isolation::Thread,
                        "process" => Isolation::Process,
                        _ => return Err(format!("`isolation` is `{name}`\n  hint: it is `thread` or `process`")),
                    });
                }
                (known, _) if KEYS.contains(&known) => return Err(format!("`{known}` has a value of a wrong type")),
                (unknown, _) => {
                    let near = check::nearest(unknown, KEYS.into_iter());
                    let hint = near.map_or_else(
                        || format!("the keys are {}", KEYS.join(", ")),
                        |near| format!("did you mean `{near}`?"),
                    );
                    return Err(format!("There is no key `{unknown}`\n  hint: {hint}"));
                }
            }
        }
        Ok(settings)
    }

    /// What a check is made for, for Python 3.`minor`.
    pub(crate) fn for_check(&self, minor: u8) -> CheckSettings {
        let default = CheckSettings::default();
        CheckSettings {
            minor,
            turn_budget_ms: self.turn_budget_ms,
            iterations: self.max_iterations.unwrap_or(default.iterations),
            installed: None,
        }
    }

    /// As [`Settings::for_check`], for the environment that a load of `path` would use: `python` where it is asked for. `minor` wins over
    /// the settings' own version, that over the linked interpreter's.
    pub(crate) fn for_environment(
        &self,
        path: &Path,
        python: Option<PathBuf>,
        minor: Option<u8>,
    ) -> Result<CheckSettings, Error> {
        let agent = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        let choice = PythonChoice { asked: python, agent: agent.to_owned() };
        let installed = match python::chosen(&choice) {
            Ok(executable) => Installed::of(&executable),
            Err(error) if choice.asked.is_some() => return Err(error.into()),
            Err(_) => None,
        };
        if installed.is_none() {
            tracing::info!(
                "The environment's packages are not known: `import-not-found` looks at the agent's own modules only"
            );
        }
        let minor = minor.or(self.target_version).unwrap_or_else(python::linked_minor);
        Ok(CheckSettings { installed, ..self.for_check(minor.min(NEWEST_MINOR)) })
    }

    /// Whether the settings let a problem count.
    pub(crate) fn wants(&self, problem: &Diagnostic) -> bool {
        (self.select.is_empty() || self.select.contains(&problem.rule)) && !self.ignores(&problem.rule, &problem.file)
    }

    /// Whether the settings keep `rule` from `file`.
    pub(crate) fn ignores(&self, rule: &str, file: &Path) -> bool {
        self.ignore.iter().any(|ignored| ignored == rule)
            || self
                .per_file_ignores
                .iter()
                .any(|(end, rules)| file.ends_with(PathBuf::from(end)) && rules.iter().any(|ignored| ignored == rule))
    }
}

fn rules(key: &str, value: Value) -> Result<Vec<String>, String> {
    let Value::Array(items) = value else { return Err(format!("`{key}` is no list of rules")) };
    items
        .into_iter()
        .map(|item| match item {
            Value::String(name) if RULES.iter().any(|rule| rule.name == name) => Ok(name),
            Value::String(name) => Err(check::unknown_rule(&name)),
            other => Err(format!("`{key}` holds a value of type {}, which is no rule", other.type_str())),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, String> {
        Settings::of_table(text.parse().unwrap())
    }

    #[test]
    fn the_nearest_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        let agent = folder.path().join("agents/one");
        fs::create_dir_all(&agent).unwrap();
        fs::write(
            folder.path().join("pyproject.toml"),
            "[tool.tenterhook]\nignore = ['blocking-call']\nturn-budget-ms = 5\n",
        )
        .unwrap();
        fs::write(folder.path().join("agents/pyproject.toml"), "[tool.other]\n").unwrap();
        let settings = Settings::near(&agent).unwrap();
        assert_eq!((settings.ignore.as_slice(), settings.turn_budget_ms), (&["blocking-call".to_owned()][..], Some(5)));
        fs::write(
            agent.join("tenterhook.toml"),
            "target-version = '3.12'\n[per-file-ignores]\n'hooks/a.py' = ['missing-return']\n",
        )
        .unwrap();
        let settings = Settings::near(&agent).unwrap();
        assert_eq!((settings.target_version, settings.turn_budget_ms), (Some(12), None));
        assert!(settings.ignores("missing-return", Path::new("/x/hooks/a.py")));
        assert!(!settings.ignores("missing-return", Path::new("/x/hooks/b.py")));
    }

    #[test]
    fn what_is_not_known_is_told_with_the_nearest_name() {
        let said = |text: &str| read(text).unwrap_err();
        assert_eq!(said("slect = []"), "There is no key `slect`\n  hint: did you mean `select`?");
        assert_eq!(
            said("ignore = ['bloking-call']"),
            "There is no rule `bloking-call`\n  hint: did you mean `blocking-call`?"
        );
        assert_eq!(said("select = 1"), "`select` is no list of rules");
        assert_eq!(said("turn-budget-ms = 0"), "`turn-budget-ms` has a value of a wrong type");
        assert_eq!(said("isolation = 'container'"), "`isolation` is `container`\n  hint: it is `thread` or `process`");
        assert_eq!(said("target-version = '2.7'"), "`target-version`: expected 3.11 to 3.14");
    }
}
