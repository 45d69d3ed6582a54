//! Agents whose skills import tools of servers that speak the Model Context Protocol. The server is the example's own.

use std::path::Path;

use serde_json::json;
use tenterhook::{HookEngine, TurnEngine};

use crate::agents::{environment, folder};
use crate::scene::{Answers, activate, call, said, scene};

const SKILL: &str = "---
name: Status
description: Tell whether a flight is on time.
import_tools:
  - mcp/flights:flight_status
---
Call @tool.flight_status.
";

/// `mcp_servers` with the example's server under each of these names.
fn integrations(names: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks-examples/airline-desk/servers/flights.py");
    let of = |name: &&str| format!("  - {{name: {name}, command: [python3, {}]}}\n", json!(script.to_str().unwrap()));
    format!("mcp_servers:\n{}", names.iter().map(of).collect::<String>())
}

#[tokio::test]
async fn a_tool_of_a_server_is_called_by_its_bare_name_and_its_event_names_the_server() {
    let integrations = integrations(&["flights", "others"]);
    let other = SKILL.replace("mcp/flights", "mcp/others");
    let files = [
        ("integrations.yml", integrations.as_str()),
        ("skills/status/skill.md", SKILL),
        ("skills/other/skill.md", other.as_str()),
    ];
    let flight = |number: &str| call("flight_status", json!({"flight": number}));
    let replies = [activate("status"), flight("502"), activate("other"), flight("7"), said("Yes.")];
    let scene = scene(&files, replies);
    assert_eq!(scene.say("Is 502 on time? And 7?").await, ["Yes."]);
    let results = scene.kept(&["tool_executed"]);
    let of_server = results.iter().filter(|event| event["source"] == "mcp");
    let shown: Vec<_> = of_server
        .map(|event| json!([event["tool_name"], event["mcp_server"], event["value"], event["is_error"] == true]))
        .collect();
    assert_eq!(
        shown,
        [
            json!(["flight_status", "flights", "Flight 502 is on time.", false]),
            json!(["flight_status", "others", "There is no flight 7 today.", true]),
        ]
    );
    assert!(scene.offered()[1].contains(&"flight_status".to_owned()));
}

/// Why an agent with these files is not loaded.
fn refused(files: &[(&str, &str)]) -> String {
    let folder = folder(files);
    let hooks = HookEngine::builder(folder.path()).python(environment());
    let model = Answers::default();
    let refused = TurnEngine::loader(folder.path()).hooks(hooks).model(model).load().unwrap_err().to_string();
    refused.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn an_agent_whose_server_is_not_there_or_lacks_the_tool_is_not_loaded() {
    let gone = "mcp_servers: [{name: flights, url: 'http://127.0.0.1:1/mcp'}]";
    let told = refused(&[("integrations.yml", gone), ("skills/status/skill.md", SKILL)]);
    assert!(told.starts_with("The MCP server `flights` cannot be reached at `http://127.0.0.1:1/mcp`"), "{told}");
    let lacks = SKILL.replace("flight_status", "flight_statu");
    let integrations = integrations(&["flights"]);
    let told = refused(&[("integrations.yml", &integrations), ("skills/status/skill.md", &lacks)]);
    assert!(told.contains("`flights`") && told.contains("did you mean `flight_status`?"), "{told}");
}

#[test]
fn a_tool_of_a_server_that_has_the_name_of_another_is_an_error() {
    let integrations = integrations(&["flights", "others"]);
    let twice = SKILL.replace("  - mcp/flights", "  - mcp/others:flight_status\n  - mcp/flights");
    let told = refused(&[("integrations.yml", &integrations), ("skills/status/skill.md", &twice)]);
    assert!(
        told.contains("error[clashing-tools]: `mcp/flights:flight_status` has the name of another tool of this skill"),
        "{told}"
    );
    let own = "from rasa.mantle.tools.decorator import tool\nfrom rasa.mantle.tools.result import ToolResult\n\n@tool(description='x')\nasync \
               def flight_status() -> ToolResult:\n    return ToolResult(llm_response=1)\n";
    let files = [
        ("integrations.yml", integrations.as_str()),
        ("skills/status/skill.md", SKILL),
        ("skills/status/tools.py", own),
    ];
    let told = refused(&files);
    assert!(
        told.contains("error[clashing-tools]: `mcp/flights:flight_status` has the name of a tool of the skill itself"),
        "{told}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_answer_has_the_time_of_the_agents_tools() {
    let skill = SKILL.replace("mcp/flights:flight_status", "mcp/bad:hang").replace("@tool.flight_status", "@tool.hang");
    let files = [
        ("agent.yml", "agent: {persona: You.}\ntool_timeout: 0.5\n"),
        ("integrations.yml", "mcp_servers: [{name: bad, command: [python3, bad.py]}]"),
        ("bad.py", crate::quickapps::BAD_SERVER),
        ("skills/status/skill.md", skill.as_str()),
    ];
    let scene = scene(&files, [activate("status"), call("hang", json!({})), said("It does not answer.")]);
    assert_eq!(scene.say("Is it on time?").await, ["It does not answer."]);
    assert_eq!(crate::scene::results(&scene, "hang"), ["`hang` was not done after 500 ms"]);
}
