//! Settings of a check: `[tool.tenterhook]` of `pyproject.toml`, or `tenterhook.toml`, the nearest above what is checked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use toml::{Table, Value};

use crate::check::{self, RULES};

/// The keys, for errors about others.
const KEYS: [&str; 6] = ["select", "ignore", "per-file-ignores", "target-version", "turn-budget-ms", "max-iterations"];

/// What a settings file says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Settings {
    pub(super) select: Vec<String>,
    pub(super) ignore: Vec<String>,
    /// Rules that are ignored in files whose path ends so.
    pub(super) per_file_ignores: BTreeMap<String, Vec<String>>,
    pub(super) target_version: Option<u8>,
    pub(super) turn_budget_ms: Option<u64>,
    pub(super) max_iterations: Option<u64>,
}

impl Settings {
    /// The settings for `path`: of its folder, or of the nearest folder above that has some.
    pub(super) fn near(path: &Path) -> anyhow::Result<Self> {
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

    fn read(file: &Path, inside: Option<&str>) -> anyhow::Result<Option<Self>> {
        let place = || format!("Settings `{}`", file.display());
        let text = fs::read_to_string(file).with_context(place)?;
        let mut table: Table = text.parse().with_context(place)?;
        if let Some(outer) = inside {
            match table.remove(outer).and_then(|tool| tool.get("tenterhook").and_then(Value::as_table).cloned()) {
                Some(own) => table = own,
                None => return Ok(None),
            }
        }
        Self::of_table(table).with_context(place).map(Some)
    }

    fn of_table(table: Table) -> anyhow::Result<Self> {
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
                    let parsed = super::check::parse_version(&version);
                    settings.target_version =
                        Some(parsed.map_err(|wrong| anyhow::anyhow!("`target-version`: {wrong}"))?);
                }
                ("turn-budget-ms", Value::Integer(number)) if number > 0 => {
                    settings.turn_budget_ms = u64::try_from(number).ok();
                }
                ("max-iterations", Value::Integer(number)) if number > 0 => {
                    settings.max_iterations = u64::try_from(number).ok();
                }
                (known, _) if KEYS.contains(&known) => bail!("`{known}` has a value of a wrong type"),
                (unknown, _) => {
                    let near = check::nearest(unknown, KEYS.into_iter());
                    let hint = near.map_or_else(
                        || format!("the keys are {}", KEYS.join(", ")),
                        |near| format!("did you mean `{near}`?"),
                    );
                    bail!("There is no key `{unknown}`\n  hint: {hint}");
                }
            }
        }
        Ok(settings)
    }

    /// Whether the settings keep `rule` from `file`.
    pub(super) fn ignores(&self, rule: &str, file: &Path) -> bool {
        self.ignore.iter().any(|ignored| ignored == rule)
            || self
                .per_file_ignores
                .iter()
                .any(|(end, rules)| file.ends_with(PathBuf::from(end)) && rules.iter().any(|ignored| ignored == rule))
    }
}

fn rules(key: &str, value: Value) -> anyhow::Result<Vec<String>> {
    let Value::Array(items) = value else { bail!("`{key}` is no list of rules") };
    items
        .into_iter()
        .map(|item| match item {
            Value::String(name) if RULES.iter().any(|rule| rule.name == name) => Ok(name),
            Value::String(name) => Err(super::check::unknown_rule(&name)),
            other => bail!("`{key}` holds a value of type {}, which is no rule", other.type_str()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Settings> {
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
        let said = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(said("slect = []"), "There is no key `slect`\n  hint: did you mean `select`?");
        assert_eq!(
            said("ignore = ['bloking-call']"),
            "There is no rule `bloking-call`\n  hint: did you mean `blocking-call`?"
        );
        assert_eq!(said("select = 1"), "`select` is no list of rules");
        assert_eq!(said("turn-budget-ms = 0"), "`turn-budget-ms` has a value of a wrong type");
        assert_eq!(said("target-version = '2.7'"), "`target-version`: expected 3.11 to 3.14");
    }
}
