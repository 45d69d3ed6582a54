//! Tools that are hidden from the model stay hidden on each way by which a tool set's configuration is read or copied.

use std::fs;

use serde_json::{Value, json};

use super::testing::{manifest, mcp, yaml};
use super::{Manifest, load_manifest};
use crate::quickapp::{ToolSet, ToolSetKind};

/// What is hidden must stay hidden, whatever else a tool set says and however it is read.
#[test]
fn hidden_tools_stay_hidden_on_every_way() {
    let hidden = |read: Option<Manifest>| {
        let app = read.unwrap().clone().app;
        // Every field is named here, so that a new one is looked at.
        let ToolSet { name: _, kind, allowed_tools: _, hidden_from_model, fallback: _ } = app.tool_sets[0].clone();
        assert_eq!(kind, ToolSetKind::Mcp);
        hidden_from_model
    };
    let expected = ["save", "prime"].map(str::to_owned).to_vec();
    let mut set = mcp("memory");
    set["hidden_from_model"] = json!(["save", "prime"]);
    let whole = |set: &Value| json!({"tool_sets": [set]}).to_string();
    let mut sets = vec![set.clone()];
    for (key, value) in [
        ("allowed_tools", json!(["prime", "find", "save"])),
        ("allowed_tools", json!([])),
        ("allowed_tools", Value::Null),
        ("tool_timeout", json!(5)),
        ("mcp_server_info", json!({"command": ["serve"]})),
        ("mcp_server_info", json!({"url": "http://a", "protocol": "sse"})),
        ("mcp_server_info", json!({"url": "http://a", "authorization": {"type": "bearer", "token": "${KEY}"}})),
        (
            "mcp_server_info",
            json!({"url": "http://a", "authorization": {"type": "api_key", "key": "${KEY}", "name": "K"}}),
        ),
        ("fallback_configuration", json!({"strategies": [{"type": "stop"}]})),
        ("attachment", json!({"types": ["*/*"]})),
        ("resources", json!({"enabled": true})),
        ("unknown", json!(1)),
    ] {
        let mut other = set.clone();
        other[key] = value;
        sets.push(other);
    }
    // Sets of DIAL are read on ways of their own up to the server.
    for (kind, transport) in [("dial-mcp", None), ("dial-app", None), ("dial-app", Some("mcp"))] {
        for more in [json!({}), json!({"mcp_url": "http://a/mcp"}), json!({"allowed_tools": ["save", "find", "prime"]})]
        {
            let mut dial = json!({
                "type": kind, "name": "m", "deployment_id": "d", "dial_url": "http://dial", "dial_api_key_env": "KEY",
                "hidden_from_model": ["save", "prime"],
            });
            dial.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            if let Some(transport) = transport {
                dial["transport"] = json!(transport);
            }
            sets.push(dial);
        }
    }
    for set in &sets {
        let (read, found) = manifest(&whole(set));
        assert_eq!(hidden(read), expected, "{set}: {found:?}");
        // JSON is YAML.
        assert_eq!(hidden(yaml(&whole(set)).0), expected, "{set}");
    }
    let info = "mcp_server_info: {url: 'http://a'}";
    for text in [
        format!(
            "tool_sets:\n  - type: mcp\n    name: m\n    hidden_from_model:\n      - save\n      - prime\n    {info}\n"
        ),
        format!(
            "tool_sets: [{{type: mcp, name: m, allowed_tools: &names [save, prime], hidden_from_model: *names, {info}}}]"
        ),
        format!("system_prompt: &x save\ntool_sets: [{{type: mcp, name: m, hidden_from_model: [*x, prime], {info}}}]"),
    ] {
        assert_eq!(hidden(yaml(&text).0), expected, "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.json");
    fs::write(&path, format!("\u{feff}{}", whole(&set))).unwrap();
    assert_eq!(hidden(load_manifest(&path, &|_| None, None).unwrap().0), expected);
}

/// A list that is not what is meant hides nothing: there is no app then.
#[test]
fn a_wrong_list_of_hidden_tools_is_no_empty_one() {
    for wrong in [json!("save"), json!([1]), json!({"save": true}), json!(["save", ["x"]])] {
        let dial = |kind: &str| json!({"type": kind, "name": "m", "deployment_id": "d", "dial_url": "http://dial", "dial_api_key_env": "KEY"});
        for mut set in [mcp("m"), dial("dial-mcp"), dial("dial-app")] {
            set["hidden_from_model"] = wrong.clone();
            assert_eq!(manifest(&json!({"tool_sets": [set]}).to_string()).0, None);
        }
    }
}
