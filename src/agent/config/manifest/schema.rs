//! The JSON schema of a manifest, for editors and for whoever writes manifests by program.
//!
//! The types here say what may be written; what else has to hold is said by the check. They are not what manifests are read by: their
//! errors would have no places.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schema_sets::ToolSet;
use crate::conversation::Object;
use crate::quickapp::Frequency;

/// The JSON schema of a manifest.
pub(crate) fn quickapp_schema() -> Value {
    let generator: SchemaGenerator = SchemaSettings::draft2020_12().into();
    generator.into_root_schema_for::<Manifest>().to_value()
}

/// The manifest of a Quick App.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "tenterhook quickapp")]
struct Manifest {
    /// Where this schema is.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// The app's name, for spans and logs; by default that of the file.
    name: Option<String>,
    /// What stands before every conversation.
    system_prompt: Option<String>,
    /// The model.
    model: Option<ModelEntry>,
    /// How often the model is asked for one request at most.
    #[schemars(range(min = 1, max = 1_000))]
    max_iterations: Option<u32>,
    /// Where the app's tools are from.
    #[schemars(length(max = 100))]
    tool_sets: Option<Vec<ToolSet>>,
    /// What is called at fixed points of each request, in order.
    #[schemars(length(max = 1_000))]
    hooks: Option<Vec<Hook>>,
    /// The address of DIAL Core, for tool sets of DIAL; by default that of the variable `DIAL_URL`.
    dial_url: Option<String>,
    /// The variable of the environment that holds the key of DIAL Core; by default `DIAL_API_KEY`.
    dial_api_key_env: Option<String>,
}

/// A model. In its texts `${NAME}` is a variable of the environment. Further keys are passed on to the provider.
#[derive(Serialize, Deserialize, JsonSchema)]
struct ModelEntry {
    /// `openai`, `self-hosted`, `scripted`, `recorded`, or any other with `api_base`.
    provider: String,
    /// Its name at the provider.
    model: Option<String>,
    /// The address of an OpenAI-compatible server.
    api_base: Option<String>,
    /// The key.
    api_key: Option<String>,
    /// The variable of the environment that holds the key.
    api_key_env: Option<String>,
    /// The file of a scripted model's answers.
    script: Option<String>,
    /// The file of a recorded conversation.
    recording: Option<String>,
    #[serde(flatten)]
    passed_on: Object,
}

/// A call of one tool at a fixed point of each request.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Hook {
    /// `tool_call`, the only kind.
    kind: HookKind,
    /// When it runs.
    event: Event,
    /// A label for logs.
    name: Option<String>,
    /// The tool set of the tool; left out for internal tools.
    toolset_name: Option<String>,
    /// The tool's name in its set, or its whole name where no set is given.
    tool_name: String,
    /// The tool's arguments, a JSON-e template.
    arguments: Option<Object>,
    /// How long one run may take; by default 15 at the start and 30 at the end.
    #[schemars(extend("exclusiveMinimum" = 0))]
    timeout_seconds: Option<f64>,
    /// How often a result joins the conversation; of `on_request_start` only.
    frequency: Option<Frequency>,
    /// When a result that stands in the conversation is asked for again; of `on_request_start` only, and without a template.
    refresh_condition: Option<Refresh>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum HookKind {
    ToolCall,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Event {
    /// Before the first call of the model: the result joins the conversation.
    OnRequestStart,
    /// After the answer: the result is discarded.
    OnCompletion,
}

/// When a result is asked for again.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Refresh {
    /// After some minutes.
    Ttl {
        /// How many.
        #[schemars(range(min = 1))]
        ttl_minutes: u32,
    },
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::super::testing::{manifest, mcp};
    use super::super::{MANIFEST_SECTIONS, sections};
    use super::*;
    use crate::agent::config::sections::{MODEL, Section};

    /// The names of the properties of a schema, those of all its variants included.
    fn properties(schema: &Value, root: &Value) -> BTreeSet<String> {
        let own = schema["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned());
        let variants = ["oneOf", "anyOf"].iter().filter_map(|key| schema[key].as_array()).flatten();
        let referred = schema["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?));
        own.chain(variants.chain(referred).flat_map(|inner| properties(inner, root))).collect()
    }

    #[test]
    fn it_has_the_keys_that_are_read() {
        let root = quickapp_schema();
        let of = |name: &str| properties(&root["$defs"][name], &root);
        let of_type = |name: &str| {
            let variants = root["$defs"]["ToolSet"]["oneOf"].as_array().unwrap();
            properties(variants.iter().find(|variant| variant["properties"]["type"]["const"] == name).unwrap(), &root)
        };
        let keys = |section: &Section| {
            section.keys.iter().chain(section.unread).map(|key| (*key).to_owned()).collect::<BTreeSet<_>>()
        };
        let described = [
            (&sections::TOP, properties(&root, &root)),
            (&sections::MCP, of_type("mcp")),
            (&sections::SERVER_INFO, of("ServerInfo")),
            (&sections::AUTHORIZATION, of("Authorization")),
            (&sections::INTERNAL, of_type("internal")),
            (&sections::DIAL_MCP, of_type("dial-mcp")),
            (&sections::DIAL_APP, of_type("dial-app")),
            (&sections::DIAL_DEPLOYMENT, of_type("dial-deployment")),
            (&sections::DEPLOYMENT, of("Deployment")),
            (&sections::REST, of_type("rest-api")),
            (&sections::REST_TOOL, of("RestTool")),
            (&sections::FALLBACK, of("FallbackConfiguration")),
            (&sections::STRATEGY, of("Strategy")),
            (&sections::TRIGGER_ON, of("Trigger")),
            (&sections::HOOK, of("Hook")),
            (&sections::REFRESH, of("Refresh")),
        ];
        assert_eq!(described.len(), MANIFEST_SECTIONS.len());
        for (section, described) in described {
            assert_eq!(described, keys(section), "{}", section.shown());
        }
        assert_eq!(of("ModelEntry"), keys(&MODEL));
    }

    /// Manifests like those of the Hooks document, with the tool sets that it leaves out.
    fn examples() -> [Value; 3] {
        let server = |tools: &[&str]| {
            let mut set = mcp("notes");
            set["allowed_tools"] = json!(tools);
            set
        };
        let remember = json!({
            "kind": "tool_call", "event": "on_completion", "name": "keep", "toolset_name": "notes", "tool_name": "keep_note",
            "arguments": {
                "asked": {"$eval": "last_user_message.content"},
                "answered": {"$eval": "last_assistant_message.content"},
            },
            "timeout_seconds": 20,
        });
        let recall = json!({
            "kind": "tool_call", "event": "on_request_start", "toolset_name": "notes", "tool_name": "find_notes",
            "arguments": {"about": "${last_user_message.content}"},
        });
        let said = json!({
            "kind": "tool_call", "event": "on_completion", "toolset_name": "notes", "tool_name": "keep_note",
            "arguments": {"said": {
                "$map": {"$eval": "messages"},
                "each(one)": {"$if": "one.role == 'user'", "then": {"text": {"$eval": "one.content"}}},
            }},
        });
        let mut hidden = server(&["prepare", "keep_note", "find_notes"]);
        hidden["hidden_from_model"] = json!(["prepare", "keep_note"]);
        let prepare = json!({
            "kind": "tool_call", "event": "on_request_start", "toolset_name": "notes", "tool_name": "prepare",
            "refresh_condition": {"kind": "ttl", "ttl_minutes": 5}, "frequency": "always",
        });
        [
            json!({"tool_sets": [server(&["find_notes", "keep_note"])], "hooks": [recall, remember.clone()]}),
            json!({"tool_sets": [server(&["keep_note"])], "hooks": [said]}),
            json!({"tool_sets": [hidden], "hooks": [prepare, remember], "model": {"provider": "x", "model": "y", "api_base": "http://a", "top_p": 1}}),
        ]
    }

    #[test]
    fn the_documents_examples_fit_it_and_are_read() {
        for example in examples() {
            serde_json::from_value::<Manifest>(example.clone()).unwrap();
            let (read, found) = manifest(&example.to_string());
            assert_eq!(found, Vec::<String>::new());
            assert!(read.is_some());
        }
        for set in sets() {
            let example = json!({"dial_url": "http://dial", "dial_api_key_env": "KEY", "tool_sets": [set]});
            serde_json::from_value::<Manifest>(example.clone()).unwrap_or_else(|error| panic!("{error}: {example}"));
            let (read, found) = manifest(&example.to_string());
            assert_eq!((read.is_some(), found), (true, Vec::new()), "{example}");
        }
    }

    /// A set of each further type, with all that it may have.
    fn sets() -> [Value; 4] {
        let hidden =
            json!({"allowed_tools": ["prepare", "find_notes"], "hidden_from_model": ["prepare"], "tool_timeout": 5});
        let with = |mut set: Value| {
            set.as_object_mut().unwrap().extend(hidden.as_object().unwrap().clone());
            set
        };
        [
            with(
                json!({"type": "dial-app", "name": "Notes", "deployment_id": "notes", "transport": "mcp", "mcp_url": "http://a"}),
            ),
            with(json!({"type": "dial-mcp", "name": "Notes", "deployment_id": "toolsets/public/notes"})),
            json!({"type": "dial-deployment", "name": "models", "tools": [
                {"deployment_id": "gpt-4o"},
                {"deployment_id": "x/y", "name": "ask", "description": "Asks.", "system_prompt": "Be short.", "settings": {"temperature": 0},
                 "api_version": "2024-10-21"},
            ]}),
            json!({"type": "rest-api", "name": "weather", "authorization": {"type": "api_key", "key": "${KEY}", "name": "X-Key"}, "tools": [{
                "name": "forecast", "description": "Tells.", "method": "post", "url": "https://${HOST}/v1/{city}",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
                "query": {"days": "{days}", "units": "metric", "n": 1, "list": ["a", "{city}"]}, "headers": {"X-City": "{city}"},
                "body": {"days": "{days}", "deep": [{"a": null, "b": "{{}}"}]},
            }]}),
        ]
    }

    #[test]
    fn what_it_refuses_is_told_by_the_check() {
        let refused = |value: Value| serde_json::from_value::<Manifest>(value).is_err();
        for wrong in [
            json!({"hoks": []}),
            json!({"hooks": [{"event": "on_completion", "tool_name": "x"}]}),
            json!({"hooks": [{"kind": "tool_call", "event": "on_end", "tool_name": "x"}]}),
            json!({"tool_sets": [{"type": "mcp", "name": "a"}]}),
            json!({"tool_sets": [{"type": "grpc", "name": "a"}]}),
            json!({"tool_sets": [{"type": "internal", "name": "a", "tools": ["x"], "hidden_from_model": ["x"]}]}),
        ] {
            assert!(refused(wrong.clone()), "{wrong}");
            assert!(!manifest(&wrong.to_string()).1.is_empty(), "{wrong}");
        }
    }
}
