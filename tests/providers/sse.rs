//! The MCP transport of before 2025: what a server can do wrong on it. What it does right is told with the other ways, in `mcp.rs`.

use std::time::Duration;

use serde_json::{Value, json};
use tenterhook::{HttpAuthorization, McpServerConfig, McpServers, McpTransport, ToolOutput};

use crate::mcp::{Turn, refused};
use crate::server::{Server, Step, answer, document, event, stream};

const HINT: &str = "\n  hint: its `url` ends with the path of its events, often `/sse`";

fn config(server: &Server) -> McpServerConfig {
    let authorization = Some(HttpAuthorization::Bearer("t-1".into()));
    let transport = McpTransport::Sse { url: format!("{}/sse", server.address), authorization };
    McpServerConfig { connect_timeout: Duration::from_millis(500), ..McpServerConfig::new("bank", transport) }
}

fn named(kind: &str, data: &str) -> Step {
    Step::Say(format!("event: {kind}\ndata: {data}\n\n").into())
}

/// Why a server is not connected to that does this when its events are asked for, and this for each message.
async fn after(events: Vec<Step>, messages: Vec<Step>) -> String {
    let server = Server::start([events, messages]).await;
    let config = config(&server);
    let said = tokio::task::spawn_blocking(move || refused(config)).await.unwrap();
    said.replace(&server.address, "http://bank")
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_none_are_told() {
    let not_mcp = |why: &str| {
        format!("What answers for the MCP server `bank` at `http://bank/sse` does not speak MCP: {why}{HINT}")
    };
    let of = |events| after(events, vec![]);
    assert_eq!(of(document("{}")).await, not_mcp("it answers with `application/json`"));
    assert_eq!(of(answer("404 Not Found", "", "nothing here")).await, not_mcp("HTTP 404 Not Found: nothing here"));
    let ended = "its events end before one names an address for messages";
    assert_eq!(of(stream([event("hello")])).await, not_mcp(ended));
    let elsewhere = "the address that it names for messages is none of its own";
    assert_eq!(of(stream([named("endpoint", "http://evil.test/messages"), Step::Hold])).await, not_mcp(elsewhere));
    assert_eq!(
        of(answer("401 Unauthorized", "", "")).await,
        "The MCP server `bank` at `http://bank/sse` refuses the token (HTTP 401)\n  hint: correct its `token`: it may have expired, or \
         belong to another server"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_anywhere_is_given_up() {
    let late = "The MCP server `bank` at `http://bank/sse` has not told its tools within 500ms\n  hint: see whether it hangs, or give it \
                more time";
    let endpoint = || stream([named("endpoint", "/messages?session=1"), Step::Hold]);
    let accepted = || answer("202 Accepted", "", "Accepted");
    assert_eq!(after(vec![Step::Hold], vec![]).await, late);
    assert_eq!(after(stream([Step::Hold]), vec![]).await, late);
    assert_eq!(after(endpoint(), vec![Step::Hold]).await, late);
    assert_eq!(after(endpoint(), accepted()).await, late);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_posted_to_the_address_that_is_named_with_what_the_server_wants_to_see() {
    let server = Server::start([
        stream([named("endpoint", "/messages?session=1"), Step::Hold]),
        answer("500 Internal Server Error", "", "broken"),
    ])
    .await;
    let config = config(&server);
    let said = tokio::task::spawn_blocking(move || refused(config)).await.unwrap();
    assert!(said.contains("HTTP 500 Internal Server Error: broken"), "{said}");
    let heads: Vec<_> = server.asked().into_iter().map(|asked| asked.head).collect();
    assert_eq!([&*heads[0][0], &*heads[1][0]], ["GET /sse HTTP/1.1", "POST /messages?session=1 HTTP/1.1"]);
    assert!(heads.iter().all(|head| head.contains(&"authorization: Bearer t-1".to_owned())), "{heads:?}");
    let body: Value = serde_json::from_str(&server.asked()[1].body).unwrap();
    assert_eq!(body["method"], "initialize");
}

/// The answer to a request, by its number.
fn result(id: u64, result: &Value) -> Step {
    named("message", &json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_off_takes_its_calls() {
    let pause = || Step::Pause(Duration::from_millis(100));
    let tools = json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "b", "version": "1"}});
    let accepted = || answer("202 Accepted", "", "");
    let server = Server::start([
        stream([
            named("endpoint", "/messages"),
            pause(),
            result(0, &hello),
            pause(),
            result(1, &tools),
            // Long enough for the call to be sent.
            Step::Pause(Duration::from_millis(500)),
            Step::Say(b"data: {\"broken\n\n".to_vec()),
        ]),
        accepted(),
        accepted(),
        accepted(),
        accepted(),
    ])
    .await;
    let config = McpServerConfig { connect_timeout: Duration::from_secs(5), ..config(&server) };
    let servers = McpServers::connect(&[config], &[("bank", "echo")]).await.unwrap();
    let tool = servers.tool("bank", "echo").unwrap();
    let output = tool.call(<_>::default(), std::sync::Arc::new(Turn)).await;
    assert_eq!(output, ToolOutput::error("`echo` failed"));
}
