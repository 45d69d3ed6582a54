//! Servers of Quick Apps that hang at each stage: while they are connected to, asked who they are, asked for their tools, and called.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures_executor::block_on;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook::{
    McpServerConfig, McpServers, Model, ModelError, ModelReply, ModelRequest, Object, QuickApp, RequestEvent,
    RequestInput, RequestStatus, Tokens,
};

/// Where a server hangs.
#[derive(Clone, Copy)]
enum Hangs {
    Nowhere,
    /// It says nothing to this.
    At(&'static str),
    /// It says the half of its answer to this.
    Within(&'static str),
}

fn result(method: &str) -> Value {
    match method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "seen"}]}),
        _ => json!({}),
    }
}

/// A server over HTTP that hangs there; its address.
fn http(hangs: Hangs) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.unwrap();
            thread::spawn(move || while serve(&connection, hangs).is_some() {});
        }
    });
    url
}

/// Answers one request; none: there are no more.
fn serve(connection: &TcpStream, hangs: Hangs) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(told) = line.strip_prefix("content-length:") {
            length = told.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut out = connection;
    let Ok(asked) = serde_json::from_slice::<Value>(&body) else {
        // A stream of its own is not to be had here.
        return out.write_all(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n").ok();
    };
    let method = asked["method"].as_str()?;
    if matches!(hangs, Hangs::At(at) if at == method) {
        thread::sleep(Duration::from_mins(1));
        return None;
    }
    let Some(id) = asked.get("id") else {
        return out.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").ok();
    };
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result(method)}).to_string();
    write!(out, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len())
        .ok()?;
    if matches!(hangs, Hangs::Within(within) if within == method) {
        out.write_all(&answer.as_bytes()[..answer.len() / 2]).ok()?;
        thread::sleep(Duration::from_mins(1));
        return None;
    }
    out.write_all(answer.as_bytes()).ok()
}

/// The same as a process: a shell that knows what it is asked from the method's name.
const PROCESS: &str = r#"
import json, sys, time
where, results = sys.argv[1].split(":", 1), json.loads(sys.argv[2])
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results.get(method, {})}) + "\n"
    hangs = where[-1] == method
    sys.stdout.write(answer if not hangs else answer[:len(answer) // 2] if where[0] == "within" else "")
    sys.stdout.flush()
    time.sleep(60 if hangs else 0)
"#;

/// How that process is started.
fn arguments(hangs: Hangs) -> Vec<String> {
    let at = match hangs {
        Hangs::Nowhere => "at:nowhere".to_owned(),
        Hangs::At(method) => format!("at:{method}"),
        Hangs::Within(method) => format!("within:{method}"),
    };
    let results: Object = ["initialize", "tools/list", "tools/call"]
        .map(|method| (method.to_owned(), result(method)))
        .into_iter()
        .collect();
    vec!["-c".into(), PROCESS.into(), at, Value::Object(results).to_string()]
}

const STAGES: [Hangs; 4] =
    [Hangs::At("initialize"), Hangs::Within("initialize"), Hangs::At("tools/list"), Hangs::Within("tools/list")];

#[test]
fn a_server_that_hangs_while_it_is_connected_to_refuses_the_load_in_its_time() {
    let hint = "\n  hint: see whether it hangs, or give it more time";
    for hangs in STAGES {
        let url = http(hangs);
        let of_http = McpServerConfig::http("m", &url, None);
        let of_process = McpServerConfig::stdio("m", "python3", arguments(hangs));
        for (mut config, place) in [(of_http, url.as_str()), (of_process, "python3")] {
            config.connect_timeout = Duration::from_secs(1);
            let start = Instant::now();
            let told = block_on(McpServers::connect(&[config], &[])).unwrap_err().to_string();
            assert_eq!(told, format!("The MCP server `m` at `{place}` has not told its tools within 1s{hint}"));
            assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
        }
    }
}

struct Says;

impl Model for Says {
    fn name(&self) -> &'static str {
        "says"
    }

    fn complete<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async { Ok(ModelReply::text("Hm.")) })
    }
}

#[test]
fn a_server_that_hangs_while_it_is_called_costs_its_hook_alone() {
    let hook = |set: &str| json!({"kind": "tool_call", "event": "on_request_start", "toolset_name": set, "tool_name": "look", "timeout_seconds": 0.3});
    for hangs in [Hangs::At("tools/call"), Hangs::Within("tools/call")] {
        let reached = [
            json!({"url": http(hangs)}),
            json!({"command": "python3", "args": arguments(hangs)}),
            json!({"url": http(Hangs::Nowhere)}),
        ];
        let set = |(index, reached)| json!({"type": "mcp", "name": format!("s{index}"), "mcp_server_info": reached});
        let sets: Vec<_> = reached.into_iter().enumerate().map(set).collect();
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("app.json");
        let hooks = [hook("s0"), hook("s1"), hook("s2")];
        std::fs::write(&manifest, json!({"tool_sets": sets, "hooks": hooks}).to_string()).unwrap();
        let app = QuickApp::loader(&manifest).model(Says).load().unwrap().app;
        let user = json!({"role": "user", "content": "Hello"}).as_object().unwrap().clone();
        let start = Instant::now();
        let events: Vec<_> =
            block_on(app.request(RequestInput { messages: vec![Arc::new(user)], ..RequestInput::default() }).collect());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        let Some(RequestEvent::Finished { status, messages }) = events.last() else { panic!("a request ends") };
        let said: Vec<_> = messages.iter().map(|message| message["content"].as_str().unwrap()).collect();
        assert_eq!((*status, said), (RequestStatus::Completed, vec!["Hello", "", "seen", "Hm."]));
        let skipped = |event: &RequestEvent| {
            if let RequestEvent::AppHookRan { skipped, .. } = event { Some(*skipped) } else { None }
        };
        assert_eq!(events.iter().filter_map(skipped).collect::<Vec<_>>(), [true, true, false]);
    }
}
