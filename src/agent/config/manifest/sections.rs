//! Which keys a manifest has, and where.

use crate::agent::config::sections::{Section, within};

/// What a manifest is called where it stands for all of them.
pub(in crate::agent::config) const MANIFEST_FILE: &str = "app.json";

pub(super) const TOP: Section = within(
    MANIFEST_FILE,
    "",
    &[
        "$schema",
        "name",
        "system_prompt",
        "model",
        "max_iterations",
        "tool_sets",
        "hooks",
        "dial_url",
        "dial_api_key_env",
    ],
);
pub(super) const MCP: Section = Section {
    unread: &["attachment", "resources"],
    ..within(
        MANIFEST_FILE,
        "tool_sets[type=mcp]",
        &[
            "type",
            "name",
            "mcp_server_info",
            "tool_timeout",
            "allowed_tools",
            "hidden_from_model",
            "fallback_configuration",
        ],
    )
};
pub(super) const SERVER_INFO: Section = within(
    MANIFEST_FILE,
    "tool_sets[].mcp_server_info",
    &["url", "authorization", "protocol", "command", "args", "env", "cwd"],
);
pub(super) const AUTHORIZATION: Section = within(
    MANIFEST_FILE,
    "tool_sets[].mcp_server_info.authorization",
    &["type", "token", "key", "name", "location", "username", "password"],
);
pub(super) const DIAL_MCP: Section = Section {
    unread: &["attachment", "resources", "transport"],
    ..within(
        MANIFEST_FILE,
        "tool_sets[type=dial-mcp]",
        &[
            "type",
            "name",
            "deployment_id",
            "mcp_url",
            "dial_url",
            "dial_api_key_env",
            "tool_timeout",
            "allowed_tools",
            "hidden_from_model",
            "fallback_configuration",
        ],
    )
};
pub(super) const DIAL_APP: Section = Section {
    unread: &["attachment", "conversation_mode"],
    ..within(
        MANIFEST_FILE,
        "tool_sets[type=dial-app]",
        &[
            "type",
            "name",
            "description",
            "deployment_id",
            "transport",
            "mcp_url",
            "api_version",
            "dial_url",
            "dial_api_key_env",
            "tool_timeout",
            "allowed_tools",
            "hidden_from_model",
            "fallback_configuration",
        ],
    )
};
pub(super) const DIAL_DEPLOYMENT: Section = within(
    MANIFEST_FILE,
    "tool_sets[type=dial-deployment]",
    &["type", "name", "tools", "dial_url", "dial_api_key_env", "tool_timeout", "fallback_configuration"],
);
pub(super) const DEPLOYMENT: Section = Section {
    unread: &["attachment", "conversation_mode"],
    ..within(
        MANIFEST_FILE,
        "tool_sets[type=dial-deployment].tools[]",
        &["deployment_id", "name", "description", "system_prompt", "settings", "api_version"],
    )
};
pub(super) const REST: Section = within(
    MANIFEST_FILE,
    "tool_sets[type=rest-api]",
    &["type", "name", "description", "authorization", "tools", "tool_timeout", "fallback_configuration"],
);
pub(super) const REST_TOOL: Section = within(
    MANIFEST_FILE,
    "tool_sets[type=rest-api].tools[]",
    &["name", "description", "parameters", "method", "url", "query", "headers", "body"],
);
pub(super) const INTERNAL: Section =
    within(MANIFEST_FILE, "tool_sets[type=internal]", &["type", "name", "tools", "fallback_configuration"]);
pub(super) const FALLBACK: Section =
    within(MANIFEST_FILE, "tool_sets[].fallback_configuration", &["strategies", "display_error_in_stage"]);
pub(super) const STRATEGY: Section = within(
    MANIFEST_FILE,
    "tool_sets[].fallback_configuration.strategies[]",
    &["type", "trigger_on", "instructions", "forward_tool_error_message"],
);
pub(super) const TRIGGER_ON: Section = within(
    MANIFEST_FILE,
    "tool_sets[].fallback_configuration.strategies[].trigger_on",
    &["type", "value", "case_sensitive"],
);
pub(super) const HOOK: Section = within(
    MANIFEST_FILE,
    "hooks[]",
    &[
        "kind",
        "event",
        "name",
        "toolset_name",
        "tool_name",
        "arguments",
        "timeout_seconds",
        "frequency",
        "refresh_condition",
    ],
);
pub(super) const REFRESH: Section = within(MANIFEST_FILE, "hooks[].refresh_condition", &["kind", "ttl_minutes"]);

/// All of them.
pub(in crate::agent::config) const MANIFEST_SECTIONS: [&Section; 16] = [
    &TOP,
    &MCP,
    &SERVER_INFO,
    &AUTHORIZATION,
    &INTERNAL,
    &DIAL_MCP,
    &DIAL_APP,
    &DIAL_DEPLOYMENT,
    &DEPLOYMENT,
    &REST,
    &REST_TOOL,
    &FALLBACK,
    &STRATEGY,
    &TRIGGER_ON,
    &HOOK,
    &REFRESH,
];

/// A manifest in which `key` of `section` has a value that no key may have.
#[cfg(test)]
pub(in crate::agent::config) fn wrong(section: &Section, key: &str) -> String {
    let bad = format!("\"{key}\": [[]]");
    let beside = |others: &str| if key == "type" { format!("{{{bad}}}") } else { format!("{{{others}, {bad}}}") };
    let set = |inner: &str| format!("{{\"tool_sets\": [{inner}]}}");
    let mcp = |inner: &str| set(&format!("{{\"type\": \"mcp\", {inner}}}"));
    let info = |inner: &str| mcp(&format!("\"mcp_server_info\": {inner}"));
    let strategy = |inner: &str| mcp(&format!("\"fallback_configuration\": {{\"strategies\": [{inner}]}}"));
    let of_type = |kind: &str| set(&beside(&format!("\"type\": \"{kind}\"")));
    let tool = |kind: &str| set(&format!("{{\"type\": \"{kind}\", \"tools\": [{{{bad}}}]}}"));
    match section.path {
        // Only a set of DIAL reads these.
        "" if key.starts_with("dial_") => format!("{{{bad}, \"tool_sets\": [{{\"type\": \"dial-mcp\"}}]}}"),
        "" => format!("{{{bad}}}"),
        "tool_sets[type=dial-app]" if key == "api_version" || key == "description" => {
            set(&beside("\"type\": \"dial-app\", \"transport\": \"chat\""))
        }
        "tool_sets[type=dial-mcp]" => of_type("dial-mcp"),
        "tool_sets[type=dial-app]" => of_type("dial-app"),
        "tool_sets[type=dial-deployment]" => of_type("dial-deployment"),
        "tool_sets[type=rest-api]" => of_type("rest-api"),
        "tool_sets[type=dial-deployment].tools[]" => tool("dial-deployment"),
        "tool_sets[type=rest-api].tools[]" => tool("rest-api"),
        "tool_sets[type=mcp]" => set(&beside("\"type\": \"mcp\"")),
        "tool_sets[type=internal]" => set(&beside("\"type\": \"internal\"")),
        "tool_sets[].mcp_server_info" => match key {
            "url" | "command" => info(&format!("{{{bad}}}")),
            "authorization" | "protocol" => info(&beside("\"url\": \"http://a\"")),
            _ => info(&beside("\"command\": \"x\"")),
        },
        "tool_sets[].mcp_server_info.authorization" => {
            let of = match key {
                "token" => "\"type\": \"bearer\"",
                "username" | "password" => "\"type\": \"basic\"",
                _ => "\"type\": \"api_key\"",
            };
            info(&format!("{{\"url\": \"http://a\", \"authorization\": {}}}", beside(of)))
        }
        "tool_sets[].fallback_configuration" => mcp(&format!("\"fallback_configuration\": {{{bad}}}")),
        "tool_sets[].fallback_configuration.strategies[]" => strategy(&beside("\"type\": \"continue\"")),
        "tool_sets[].fallback_configuration.strategies[].trigger_on" => {
            strategy(&format!("{{\"type\": \"stop\", \"trigger_on\": {}}}", beside("\"type\": \"equals\"")))
        }
        "hooks[]" => format!("{{\"hooks\": [{{{bad}}}]}}"),
        "hooks[].refresh_condition" => format!("{{\"hooks\": [{{\"refresh_condition\": {{{bad}}}}}]}}"),
        other => panic!("no manifest is made for {other}"),
    }
}
