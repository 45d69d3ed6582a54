//! Tool sets: what is wrong in them is told.

use serde_json::{Value, json};

use super::testing::{manifest, manifest_beside, mcp, told};

/// What is said of a tool set of a server, with some keys set; all stands on one line.
fn of_set(keys: &Value) -> Vec<String> {
    let mut set = mcp("m");
    for (key, value) in keys.as_object().unwrap() {
        set[key] = value.clone();
    }
    bare(&told(&json!({"tool_sets": [set]}).to_string()))
}

fn bare(found: &[String]) -> Vec<String> {
    found.iter().map(|told| told.split_once(": ").unwrap().1.to_owned()).collect()
}

#[test]
fn hidden_tools_are_among_those_that_are_allowed() {
    assert_eq!(
        told(
            "{\"tool_sets\": [{\"type\": \"mcp\", \"name\": \"m\", \"mcp_server_info\": {\"command\": \"x\"},\n \"allowed_tools\": \
             [\"a\"],\n \"hidden_from_model\": [\"b\", \"a\", \"c\"]}]}"
        ),
        [
            "app.json:3:2: error[hidden-not-allowed]: hidden_from_model entries not present in allowed_tools: b, c\n  hint: add them \
             to `allowed_tools`, or take them out of `hidden_from_model`"
        ]
    );
    let none = Vec::<String>::new();
    assert_eq!(of_set(&json!({"allowed_tools": ["b", "a"], "hidden_from_model": ["a", "b"]})), none);
    assert_eq!(of_set(&json!({"hidden_from_model": ["b"]})), none);
    assert_eq!(of_set(&json!({"allowed_tools": null, "hidden_from_model": ["b"]})), none);
    assert_eq!(of_set(&json!({"allowed_tools": ["b"], "hidden_from_model": []})), none);
    assert_eq!(
        of_set(&json!({"allowed_tools": [], "hidden_from_model": ["b"]})),
        [
            "warning[invalid-value]: `tool_sets[0].allowed_tools` is empty: every tool is allowed\n  hint: name the tools, or take it \
             out"
        ]
    );
    let many: Vec<_> = (0..30).map(|index| index.to_string()).collect();
    let found = of_set(&json!({"allowed_tools": ["a"], "hidden_from_model": many}));
    assert!(found[0].contains("allowed_tools: 0, 1, 2,") && found[0].contains(", 19, …\n"), "{found:?}");
}

#[test]
fn types_that_are_not_read_are_told() {
    let of = |kind: &str| bare(&told(&json!({"tool_sets": [{"type": kind, "name": "x"}]}).to_string()));
    assert_eq!(
        of("predefined"),
        [
            "error[unsupported-tool-set]: Tool sets of the type `predefined` cannot be read: they name a template of the service\n  \
             hint: its templates are not part of the published interface: write out what the template has"
        ]
    );
    assert_eq!(
        of("dial-ap"),
        ["error[invalid-value]: There is no type of tool set `dial-ap`\n  hint: did you mean `dial-app`?"]
    );
    assert_eq!(
        of("grpc"),
        [
            "error[invalid-value]: There is no type of tool set `grpc`\n  hint: supported are `mcp`, `dial-mcp`, `dial-app`, \
             `dial-deployment`, `rest-api`, `internal`"
        ]
    );
    assert_eq!(
        bare(&told("{\"tool_sets\": [{}]}")),
        ["error[missing-key]: `tool_sets[0].type` is missing", "error[missing-key]: `tool_sets[0].name` is missing"]
    );
}

#[test]
fn what_is_wrong_with_a_tool_set_is_told() {
    for (keys, expected) in [
        (json!({"name": null}), "error[missing-key]: `tool_sets[0].name` is missing"),
        (
            json!({"name": " "}),
            "error[invalid-name]: A tool set cannot have the name ` `\n  hint: hooks name it, and so do its tools",
        ),
        (json!({"mcp_server_info": null}), "error[missing-key]: `tool_sets[0].mcp_server_info` is missing"),
        (
            json!({"mcp_server_info": {}}),
            "error[missing-key]: `tool_sets[0].mcp_server_info` says not how the server is reached\n  hint: add the `url` of a \
             server, or the `command` that starts one",
        ),
        (
            json!({"mcp_server_info": {"url": "a"}}),
            "error[invalid-value]: `tool_sets[0].mcp_server_info.url` is no HTTP address\n  hint: write it as in \
             `http://localhost:8000/mcp/`",
        ),
        (
            json!({"mcp_server_info": {"command": "x", "protocol": "streamable_http"}}),
            "error[conflicting-keys]: `tool_sets[0].mcp_server_info.protocol` stands beside `command`\n  hint: a server is reached by \
             its `url` or started by its `command`: keep one of the two",
        ),
        (
            json!({"mcp_server_info": {"url": "http://a", "protocol": "streamable-http"}}),
            "error[invalid-value]: There is no protocol `streamable-http`\n  hint: did you mean `streamable_http`?",
        ),
        (
            json!({"mcp_server_info": {"url": "http://a", "authorization": {"type": "client_id_secret", "client_id": "x"}}}),
            "error[invalid-value]: The authorization `client_id_secret` is not supported\n  hint: supported are `bearer`, `api_key` and \
             `basic`: fetch the token elsewhere, and give it as `bearer`",
        ),
        (
            json!({"mcp_server_info": {"url": "http://a", "authorization": {"type": "baerer", "token": "x"}}}),
            "error[invalid-value]: There is no authorization `baerer`\n  hint: did you mean `bearer`?",
        ),
        (
            json!({"mcp_server_info": {"url": "http://a", "authorization": {"type": "api_key", "key": "${KEY}"}}}),
            "error[missing-key]: `tool_sets[0].mcp_server_info.authorization.name` is missing",
        ),
        (
            json!({"mcp_server_info": {"url": "http://a", "authorization": {"type": "api_key", "key": "${KEY}", "name": "Host"}}}),
            "error[invalid-name]: `tool_sets[0].mcp_server_info.authorization.name` is no header that may be given\n  hint: write it as in \
             `Api-Key`",
        ),
        (
            json!({"mcp_server_info": {"url": "http://a", "authorization": {"type": "api_key", "key": "${KEY}", "name": "K", "location": "query"}}}),
            "error[invalid-value]: A key cannot be sent in the place `query`\n  hint: only `header` is supported; the `query` and the \
             `body` of a tool may have `${NAME}`",
        ),
        (
            json!({"mcp_server_info": {"url": "http://a", "authorization": {"type": "basic", "username": "a:b", "password": "${KEY}"}}}),
            "error[invalid-value]: `tool_sets[0].mcp_server_info.authorization.username` has a colon\n  hint: the name ends at the first \
             `:` for whoever reads it (RFC 7617)",
        ),
        (
            json!({"mcp_server_info": {"url": "http://a", "authorization": {"type": "bearer", "token": "${KEY}", "username": "a"}}}),
            "warning[misplaced-key]: `tool_sets[0].mcp_server_info.authorization.username` has no effect: the authorization is of \
             another type\n  hint: it has `token`",
        ),
        (
            json!({"mcp_server_info": {"url": "http://a", "authorization": {"type": "bearer"}}}),
            "error[missing-key]: `tool_sets[0].mcp_server_info.authorization.token` is missing",
        ),
        (
            json!({"mcp_server_info": {"url": "http://a", "token": "${KEY}"}}),
            "warning[misplaced-key]: `tool_sets[0].mcp_server_info.token` has no effect: `token` belongs elsewhere\n  hint: move it to \
             `tool_sets[].mcp_server_info.authorization`",
        ),
        (
            json!({"tool_timeout": 0}),
            "error[invalid-value]: `tool_sets[0].tool_timeout` is 0, not more than 0 seconds, and at most a year",
        ),
        (
            json!({"resources": {"enabled": true}}),
            "warning[unsupported-key]: `tool_sets[0].resources` has no effect: it is not supported yet",
        ),
        (
            json!({"allowed_tool": ["x"]}),
            "warning[unknown-key]: `tool_sets[0].allowed_tool` has no effect: there is no such key\n  hint: did you mean \
             `allowed_tools`?",
        ),
    ] {
        assert_eq!(of_set(&keys), [expected], "{keys}");
    }
}

#[test]
fn a_token_in_the_file_is_told_and_not_shown() {
    let info = json!({"url": "http://a", "authorization": {"type": "bearer", "token": "sk-secret"}});
    let mut set = mcp("m");
    set["mcp_server_info"] = info;
    let (read, found) = manifest(&json!({"tool_sets": [set]}).to_string());
    assert_eq!(
        bare(&found),
        [
            "warning[literal-secret]: `tool_sets[0].mcp_server_info.authorization.token` is written into the file\n  hint: keep it \
             in the environment: `${NAME}`"
        ]
    );
    assert!(!format!("{:?}", read.unwrap()).contains("sk-secret"));
}

#[test]
fn two_tool_sets_have_two_names() {
    let text =
        json!({"tool_sets": [mcp("a"), mcp("b"), {"type": "internal", "name": "a", "tools": ["x"]}]}).to_string();
    assert_eq!(
        bare(&told(&text)),
        ["error[duplicate-key]: The tool set `a` is there twice\n  hint: give one of the two another `name`"]
    );
}

#[test]
fn internal_tools_are_named_and_stand_beside_the_manifest() {
    let of = |set: Value| json!({"tool_sets": [set]}).to_string();
    let text = of(json!({"type": "internal", "name": "own", "tools": ["lok", "find"]}));
    assert_eq!(manifest_beside(&text, None).1, Vec::<String>::new());
    assert_eq!(
        bare(&manifest_beside(&text, Some(&["lock", "find"])).1),
        ["error[unknown-tool]: `lok` is no tool beside the manifest\n  hint: did you mean `lock`?"]
    );
    assert_eq!(
        bare(&manifest_beside(&text, Some(&["lok"])).1),
        [
            "error[unknown-tool]: `find` is no tool beside the manifest\n  hint: define it in `tools.py`, or in a module of the folder \
             `tools`"
        ]
    );
    assert_eq!(
        bare(&told(&of(json!({"type": "internal", "name": "own", "tools": []})))),
        [
            "error[invalid-value]: `tool_sets[0].tools` names no tool\n  hint: name Python tools that stand beside the manifest"
        ]
    );
    assert_eq!(
        bare(&told(&of(json!({"type": "internal", "name": "own", "tools": ["x"], "hidden_from_model": ["x"]})))),
        [
            "warning[misplaced-key]: `tool_sets[0].hidden_from_model` has no effect: `hidden_from_model` belongs elsewhere\n  hint: \
             move it to `tool_sets[type=mcp]`"
        ]
    );
}
