//! `integrations.yml`: the models that an agent asks, and with them the whole file.

use std::collections::HashMap;
use std::path::Path;

use super::model::{ModelConfig, Resolver};
use super::report::{Field, Fields, Report};
use super::sections::{GROUP, INTEGRATIONS_TOP, LLM, MODEL, near};
use super::variables::{Environment, Variables};
use super::{AgentConfig, servers};

/// The models of an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LlmConfig {
    /// The id of their group.
    pub(crate) group: String,
    /// The models of the group, in order; at least one.
    pub(crate) models: Vec<ModelConfig>,
    /// How long a prompt may be, in tokens, where that is limited.
    pub(crate) max_prompt_tokens: Option<u32>,
}

/// Reads the file into `config`.
pub(super) fn read(
    root: &Field<'_>,
    report: &mut Report,
    folder: &Path,
    variables: Variables<'_>,
    config: &mut AgentConfig,
) {
    let Some(top) = report.fields(root, &INTEGRATIONS_TOP) else { return };
    config.llm = read_llm(&top, report, folder, variables);
    if let Some(field) = top.get("mcp_servers") {
        config.servers = servers::read(&field, report, folder, &Environment(variables));
    }
}

/// Of the groups only the one that is picked needs its variables: others may be meant for another machine.
fn read_llm(top: &Fields<'_>, report: &mut Report, folder: &Path, variables: Variables<'_>) -> Option<LlmConfig> {
    let groups = top.get("model_groups").map(|groups| read_groups(&groups, report)).unwrap_or_default();
    let Some(llm) = top.get("llm") else {
        if !groups.is_empty() {
            let hint = format!("pick a group: `llm: {{model_group: {}}}`", groups[0].id);
            report.warning(
                "missing-key",
                top.place("model_groups"),
                "`llm` is missing: no group is used".to_owned(),
                hint,
            );
        }
        return None;
    };
    let fields = report.fields(&llm, &LLM)?;
    let most = fields.get("max_prompt_tokens").and_then(|most| report.whole(&most, 1..=u32::MAX));
    let picked = fields.require("model_group", report)?;
    let group = report.text(&picked)?;
    let Some(of_group) = groups.iter().find(|known| known.id == group) else {
        let hint = near(&group, groups.iter().map(|known| known.id.as_str())).map_or_else(
            || "the groups are the entries of `model_groups`, each with an `id`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        report.error("unknown-model-group", picked.node.place, format!("There is no model group `{group}`"), hint);
        return None;
    };
    let resolver = Resolver { folder, variables: Environment(variables) };
    let models: Vec<_> = of_group.models.iter().filter_map(|model| resolver.resolve(model, report)).collect();
    (!models.is_empty()).then_some(LlmConfig { group, models, max_prompt_tokens: most })
}

/// A group as it is written.
struct Group<'n> {
    id: String,
    models: Vec<Fields<'n>>,
}

fn read_groups<'n>(groups: &Field<'n>, report: &mut Report) -> Vec<Group<'n>> {
    let mut seen = HashMap::new();
    let mut read = vec![];
    for item in report.items(groups, "a list of groups") {
        let Some(fields) = report.fields(&item, &GROUP) else { continue };
        let models = fields.require("models", report).map(|models| read_models(&models, report)).unwrap_or_default();
        let Some(field) = fields.require("id", report) else { continue };
        let Some(id) = report.text(&field) else { continue };
        if let Some(first) = seen.get(&id) {
            let message = format!("The model group `{id}` is there twice");
            report.error("duplicate-key", field.node.place, message, "give one of the two another `id`".to_owned());
            report.relate("it is here first", *first);
            continue;
        }
        seen.insert(id.clone(), field.node.place);
        read.push(Group { id, models });
    }
    read
}

fn read_models<'n>(models: &Field<'n>, report: &mut Report) -> Vec<Fields<'n>> {
    let before = report.len();
    let items = report.items(models, "a list of models");
    if items.is_empty() && report.len() == before {
        report.error("invalid-value", models.node.place, format!("`{}` has no models", models.name), None);
    }
    items.iter().filter_map(|item| report.fields(item, &MODEL)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{config, told};

    #[test]
    fn the_picked_group_is_read() {
        let (read, found) = config(
            "integrations.yml",
            "llm: {model_group: main, max_prompt_tokens: 4000}\nmodel_groups:\n  - id: other\n    models: [{provider: openai, model: x, \
             api_key: '${NOT_HERE}'}]\n  - id: main\n    models:\n      - {provider: self-hosted, model: a, api_base: \
             'http://a:1/v1'}\n      - {provider: scripted, script: Cargo.toml}\n",
        );
        assert_eq!(found, Vec::<String>::new());
        let llm = read.llm.unwrap();
        assert_eq!((llm.group.as_str(), llm.models.len(), llm.max_prompt_tokens), ("main", 2, Some(4000)));
    }

    #[test]
    fn a_group_that_is_not_there_is_an_error_with_the_nearest() {
        let groups = "model_groups: [{id: main, models: [{provider: openai, model: x, api_key_env: KEY}]}]\n";
        assert_eq!(
            told("integrations.yml", &format!("{groups}llm: {{model_group: mian}}\n")),
            [
                "integrations.yml:2:20: error[unknown-model-group]: There is no model group `mian`\n  hint: did you mean `main`?"
            ]
        );
        assert_eq!(
            told("integrations.yml", "llm: {model_group: main}"),
            [
                "integrations.yml:1:20: error[unknown-model-group]: There is no model group `main`\n  hint: the groups are the \
              entries of `model_groups`, each with an `id`"
            ]
        );
        assert_eq!(
            told("integrations.yml", groups),
            [
                "integrations.yml:1:1: warning[missing-key]: `llm` is missing: no group is used\n  hint: pick a group: `llm: \
              {model_group: main}`"
            ]
        );
    }

    #[test]
    fn what_is_wrong_in_the_groups_is_told() {
        assert_eq!(
            told(
                "integrations.yml",
                "llm: {model_group: a, model: x}\nmodel_groups:\n  - id: a\n    models: []\n  - id: a\n    models: {}\n  - models: \
                 [x]\nchannels: {}\nmodelgroups: []\npersona: x\n"
            ),
            [
                "integrations.yml:1:23: warning[misplaced-key]: `llm.model` has no effect: `model` belongs elsewhere\n  hint: \
                 move it to `model_groups[].models[]` in `integrations.yml`",
                "integrations.yml:4:13: error[invalid-value]: `model_groups[0].models` has no models",
                "integrations.yml:5:9: error[duplicate-key]: The model group `a` is there twice\n  hint: give one of the two \
                 another `id`",
                "integrations.yml:6:13: error[wrong-type]: `model_groups[1].models` is a mapping, expected a list of models\n  \
                 hint: begin each with `- `",
                "integrations.yml:7:5: error[missing-key]: `model_groups[2].id` is missing",
                "integrations.yml:7:14: error[wrong-type]: `model_groups[2].models[0]` is a text, expected a mapping",
                "integrations.yml:8:1: warning[unsupported-key]: `channels` has no effect: it is not supported yet",
                "integrations.yml:9:1: warning[unknown-key]: `modelgroups` has no effect: there is no such key\n  hint: did you \
                 mean `model_groups`?",
                "integrations.yml:10:1: warning[unknown-key]: `persona` has no effect: there is no such key\n  hint: the keys \
                 here are `llm`, `model_groups`, `mcp_servers`",
            ]
        );
    }
}
