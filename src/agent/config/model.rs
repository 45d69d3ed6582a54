//! One entry of a model group: where the model is served, with which key, and what is passed on to its provider.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::client::{self, ClientConfig};
use super::report::{Field, Fields, Report};
use super::sections::{MODEL, near};
use super::variables::{Environment, Secret, is_variable};
use crate::conversation::Object;

/// Where `openai` is served.
const OPENAI: &str = "https://api.openai.com/v1";

/// The variable that holds its key, where none is named.
const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// Providers that have a meaning of their own.
const PROVIDERS: [&str; 4] = ["openai", "self-hosted", "scripted", "recorded"];

/// Providers whose answers stand in a file of the agent's, and the key that names it.
const FILES: [(&str, &str); 2] = [("scripted", "script"), ("recorded", "recording")];

/// A model that an agent asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ModelConfig {
    /// It is served behind an OpenAI-compatible endpoint.
    Served(ServedModel),
    /// Its answers stand in this file.
    Scripted(PathBuf),
    /// It answers, and its tools do, as the first conversation of this file has it.
    Recorded(PathBuf),
}

/// A model behind an OpenAI-compatible endpoint.
#[derive(Clone, PartialEq)]
pub(crate) struct ServedModel {
    /// Who serves it.
    pub(crate) provider: String,
    /// Its name there.
    pub(crate) model: String,
    /// The address below which `/chat/completions` lies, without a slash at its end.
    pub(crate) api_base: String,
    /// The key, where one is given.
    pub(crate) api_key: Option<Secret>,
    /// How it is asked.
    pub(crate) client: ClientConfig,
    /// Other keys of the entry, for the provider.
    pub(crate) passed_on: Object,
}

/// Shows of the keys that are passed on only the names: their values can come from the environment.
impl fmt::Debug for ServedModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServedModel")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("api_base", &self.api_base)
            .field("api_key", &self.api_key)
            .field("client", &self.client)
            .field("passed_on", &self.passed_on.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// Makes models of entries.
pub(super) struct Resolver<'a> {
    /// The agent's folder.
    pub(super) folder: &'a Path,
    pub(super) variables: Environment<'a>,
}

impl Resolver<'_> {
    /// The model of an entry; none where something in it is wrong, all of which is told.
    pub(super) fn resolve(&self, entry: &Fields<'_>, report: &mut Report) -> Option<ModelConfig> {
        let field = entry.require("provider", report)?;
        let provider = report.text(&field)?;
        for (other, key) in FILES.into_iter().filter(|(other, key)| *other != provider && entry.get(key).is_some()) {
            let message = format!("`{key}` has no effect: the provider is `{provider}`");
            report.warning("misplaced-key", entry.place(key), message, format!("only `{other}` has a `{key}`"));
        }
        match &*provider {
            "scripted" => return self.file(entry, FILES[0], report).map(ModelConfig::Scripted),
            "recorded" => return self.file(entry, FILES[1], report).map(ModelConfig::Recorded),
            _ => {}
        }
        let model = entry.require("model", report).and_then(|model| self.variables.text(&model, report));
        let api_base = self.api_base(entry, &field, &provider, report);
        let api_key = self.api_key(entry, &provider, report);
        let client = client::read(entry, &self.variables, report);
        let passed_on = self.passed_on(entry, report);
        Some(ModelConfig::Served(ServedModel {
            provider,
            model: model?,
            api_base: api_base?,
            api_key: api_key?,
            client: client?,
            passed_on: passed_on?,
        }))
    }

    /// The file that a provider's answers stand in.
    fn file(&self, entry: &Fields<'_>, (provider, named): (&str, &str), report: &mut Report) -> Option<PathBuf> {
        let told = |key: &str| key == "provider" || key == "model" || FILES.iter().any(|(_, file)| *file == key);
        for (key, field) in entry.all().filter(|(key, _)| !told(key)) {
            let message = format!("`{}` has no effect: the provider is `{provider}`", field.name);
            report.warning("misplaced-key", entry.place(key), message, None);
        }
        let field = entry.require(named, report)?;
        let text = self.variables.text(&field, report)?;
        let below = Path::new(&text).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !below {
            let hint = "give a path below the agent's folder, such as `answers/file`".to_owned();
            report.error(
                "invalid-value",
                field.node.place,
                format!("`{}` leaves the agent's folder", field.name),
                hint,
            );
            return None;
        }
        let path = self.folder.join(&text);
        if !path.is_file() {
            let message = format!("`{}` names a file that does not exist", field.name);
            report.error("missing-file", field.node.place, message, "it is sought in the agent's folder".to_owned());
            return None;
        }
        Some(path)
    }

    fn api_base(&self, entry: &Fields<'_>, named: &Field<'_>, provider: &str, report: &mut Report) -> Option<String> {
        let Some(field) = entry.get("api_base") else {
            if provider == "openai" {
                return Some(OPENAI.to_owned());
            }
            if provider == "self-hosted" {
                entry.require("api_base", report);
                return None;
            }
            let hint = match near(provider, PROVIDERS.into_iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "supported are `openai`, `self-hosted` and any other with the `api_base` of an OpenAI-compatible server, \
                         `scripted` and `recorded`"
                    .to_owned(),
            };
            let message = format!("The provider `{provider}` is not supported without `api_base`");
            report.error("unsupported-provider", named.node.place, message, hint);
            return None;
        };
        let address = self.variables.text(&field, report)?;
        let host = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
        if host.is_some_and(|host| host.starts_with(|letter: char| letter.is_alphanumeric() || letter == '[')) {
            return Some(address.trim_end_matches('/').to_owned());
        }
        let hint = format!("write it as in `{OPENAI}`");
        report.error("invalid-value", field.node.place, format!("`{}` is no HTTP address", field.name), hint);
        None
    }

    /// The key of the entry. The outer value is none where it is wrong.
    #[expect(clippy::option_option, reason = "no key and a wrong key are two things")]
    fn api_key(&self, entry: &Fields<'_>, provider: &str, report: &mut Report) -> Option<Option<Secret>> {
        match (entry.get("api_key"), entry.get("api_key_env")) {
            (Some(_), Some(env)) => {
                let message = format!("`{}` stands beside `api_key`", env.name);
                report.error("conflicting-keys", entry.place("api_key_env"), message, "keep one of the two".to_owned());
                None
            }
            (Some(key), None) => {
                let text = report.text(&key)?;
                if !text.contains("${") {
                    let message = format!("`{}` is written into the file", key.name);
                    let hint = format!("keep it in the environment: `${{{OPENAI_KEY}}}`");
                    report.warning("literal-secret", key.node.place, message, hint);
                    report.without_excerpt();
                }
                self.variables.text(&key, report).map(|key| Some(Secret::new(key)))
            }
            (None, Some(env)) => {
                let name = report.text(&env)?;
                if !is_variable(&name) {
                    // It may be the key itself: it is not repeated.
                    let message = format!("`{}` is no name of a variable", env.name);
                    report.error("invalid-value", env.node.place, message, format!("write it as in `{OPENAI_KEY}`"));
                    report.without_excerpt();
                    return None;
                }
                self.variables.value(&name, &env, report).map(|key| Some(Secret::new(key)))
            }
            (None, None) if provider == "openai" && entry.get("api_base").is_none() => {
                let provider = entry.get("provider")?;
                self.variables.value(OPENAI_KEY, &provider, report).map(|key| Some(Secret::new(key)))
            }
            (None, None) => Some(None),
        }
    }

    fn passed_on(&self, entry: &Fields<'_>, report: &mut Report) -> Option<Object> {
        let others = entry.all().filter(|(key, _)| !MODEL.keys.contains(key) && !client::is_of_client(key));
        let read = others.map(|(key, field)| Some((key.to_owned(), self.variables.json(&field, report)?)));
        // All are read before one that is wrong counts, so that each is told.
        read.collect::<Vec<_>>().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::super::testing::{config, config_in};
    use super::*;

    fn file(entry: &str) -> String {
        format!("llm: {{model_group: main}}\nmodel_groups:\n  - id: main\n    models:\n      - {entry}\n")
    }

    fn told(entry: &str) -> Vec<String> {
        config("integrations.yml", &file(entry)).1
    }

    fn model(entry: &str) -> ModelConfig {
        let (read, found) = config("integrations.yml", &file(entry));
        assert_eq!(found, Vec::<String>::new());
        read.llm.unwrap().models.remove(0)
    }

    #[test]
    fn variables_are_put_in_place_and_other_keys_are_passed_on() {
        let read = model(
            "{provider: self-hosted, model: qwen, api_base: 'https://${HOST}:8000/v1/', api_key: '${KEY}', temperature: 0.2, \
             metadata: {key: 'a ${KEY} b'}}",
        );
        let Value::Object(passed_on) = json!({"temperature": 0.2, "metadata": {"key": "a k-123 b"}}) else { panic!() };
        let expected = ServedModel {
            provider: "self-hosted".to_owned(),
            model: "qwen".to_owned(),
            api_base: "https://models.local:8000/v1".to_owned(),
            api_key: Some(Secret::new("k-123".to_owned())),
            client: ClientConfig::default(),
            passed_on,
        };
        assert_eq!(read, ModelConfig::Served(expected));
        assert!(!format!("{read:?}").contains("k-123"));
    }

    #[test]
    fn how_a_model_is_asked_is_no_part_of_the_body() {
        let ModelConfig::Served(read) = model(
            "{provider: openai, model: x, api_key_env: KEY, timeout: 2.5, num_retries: 4, organization: acme, extra_headers: \
             {X-Key: 'a ${KEY}'}}",
        ) else {
            panic!()
        };
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = ClientConfig {
            timeout: Some(Duration::from_millis(2500)),
            retries: Some(4),
            headers: vec![header("OpenAI-Organization", "acme"), header("X-Key", "a k-123")],
        };
        assert_eq!((&read.client, read.passed_on.len()), (&expected, 0));
        assert!(!format!("{read:?}").contains("k-123"));
        assert_eq!(
            told(
                "{provider: openai, model: x, api_key_env: KEY, timeout: soon, num_retries: -1, api_version: '1', headers: [a]}"
            ),
            [
                "integrations.yml:5:65: error[wrong-type]: `model_groups[0].models[0].timeout` is a text, expected a number of \
                 seconds",
                "integrations.yml:5:84: error[invalid-value]: `model_groups[0].models[0].num_retries` is -1, not from 0 to 20",
                "integrations.yml:5:88: warning[unsupported-key]: `api_version` has no effect: the endpoint is asked as \
                 OpenAI's own is\n  hint: name the whole address in `api_base`",
                "integrations.yml:5:115: error[wrong-type]: `model_groups[0].models[0].headers` is a list, expected a mapping",
            ]
        );
    }

    #[test]
    fn openai_has_a_default_address_and_key() {
        let ModelConfig::Served(read) = model("{provider: openai, model: gpt-x, api_key_env: KEY}") else { panic!() };
        assert_eq!((read.api_base.as_str(), read.api_key.unwrap().reveal()), (OPENAI, "k-123"));
        assert_eq!(
            told("{provider: openai, model: gpt-x}"),
            [
                "integrations.yml:5:20: error[missing-variable]: The environment variable `OPENAI_API_KEY` is not set\n  hint: \
              `model_groups[0].models[0].provider` needs it: set it before the agent is started"
            ]
        );
    }

    #[test]
    fn a_provider_that_is_not_supported_is_told_with_those_that_are() {
        assert_eq!(
            told("{provider: cohere, model: command}"),
            [
                "integrations.yml:5:20: error[unsupported-provider]: The provider `cohere` is not supported without `api_base`\n  \
              hint: supported are `openai`, `self-hosted` and any other with the `api_base` of an OpenAI-compatible server, `scripted` \
              and `recorded`"
            ]
        );
        assert_eq!(
            told("{provider: opnai, model: x}"),
            [
                "integrations.yml:5:20: error[unsupported-provider]: The provider `opnai` is not supported without `api_base`\n  \
              hint: did you mean `openai`?"
            ]
        );
        assert_eq!(
            told("{provider: self-hosted}"),
            [
                "integrations.yml:5:9: error[missing-key]: `model_groups[0].models[0].model` is missing",
                "integrations.yml:5:9: error[missing-key]: `model_groups[0].models[0].api_base` is missing",
            ]
        );
    }

    #[test]
    fn what_is_said_of_a_key_does_not_repeat_it() {
        assert_eq!(
            told("{provider: openai, model: x, api_key: sk-secret}"),
            [
                "integrations.yml:5: warning[literal-secret]: `model_groups[0].models[0].api_key` is written into the file\n  hint: \
              keep it in the environment: `${OPENAI_API_KEY}`"
            ]
        );
        assert_eq!(
            told("{provider: openai, model: x, api_key_env: sk-secret}"),
            [
                "integrations.yml:5: error[invalid-value]: `model_groups[0].models[0].api_key_env` is no name of a variable\n  hint: \
              write it as in `OPENAI_API_KEY`"
            ]
        );
        assert_eq!(
            told("{provider: openai, model: x, api_key: 'sk-secret${'}"),
            [
                "integrations.yml:5: error[invalid-value]: `model_groups[0].models[0].api_key` has a `${` that begins no variable\n  \
              hint: a variable is written `${NAME}`: letters, digits and `_`"
            ]
        );
        assert_eq!(
            told("{provider: openai, model: x, api_key: '${KEY}', api_key_env: KEY}"),
            [
                "integrations.yml:5:57: error[conflicting-keys]: `model_groups[0].models[0].api_key_env` stands beside `api_key`\n  \
              hint: keep one of the two"
            ]
        );
        assert_eq!(
            told("{provider: openai, model: x, api_key_env: KEY, api_base: '${KEY}'}"),
            [
                "integrations.yml:5:66: error[invalid-value]: `model_groups[0].models[0].api_base` is no HTTP address\n  hint: write \
              it as in `https://api.openai.com/v1`"
            ]
        );
    }

    #[test]
    fn a_key_that_is_nearly_one_of_ours_is_warned_of() {
        assert_eq!(
            told("{provider: openai, model: x, api_key_env: KEY, api_bas: 'http://a', script: x}"),
            [
                "integrations.yml:5:56: warning[unknown-key]: `model_groups[0].models[0].api_bas` is passed on as it is: it is \
                 no known key\n  hint: did you mean `api_base`?",
                "integrations.yml:5:77: warning[misplaced-key]: `script` has no effect: the provider is `openai`\n  hint: only \
                 `scripted` has a `script`",
            ]
        );
    }

    #[test]
    fn a_script_is_a_file_below_the_agents_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("script.yml"), "").unwrap();
        let (read, found) =
            config_in(folder.path(), "integrations.yml", &file("{provider: scripted, script: script.yml}"));
        assert_eq!(found, Vec::<String>::new());
        assert_eq!(read.llm.unwrap().models, [ModelConfig::Scripted(folder.path().join("script.yml"))]);
        assert_eq!(
            told("{provider: scripted, script: ../script.yml, temperature: 1}"),
            [
                "integrations.yml:5:38: error[invalid-value]: `model_groups[0].models[0].script` leaves the agent's folder\n  \
                 hint: give a path below the agent's folder, such as `answers/file`",
                "integrations.yml:5:53: warning[misplaced-key]: `model_groups[0].models[0].temperature` has no effect: the \
                 provider is `scripted`",
            ]
        );
        assert_eq!(
            told("{provider: scripted, script: none.yml}"),
            [
                "integrations.yml:5:38: error[missing-file]: `model_groups[0].models[0].script` names a file that does not exist\n  \
              hint: it is sought in the agent's folder"
            ]
        );
    }
}
