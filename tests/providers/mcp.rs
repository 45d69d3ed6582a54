//! Tools of MCP servers against real ones: `mcp_server.py`, made with the protocol's own library.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use futures_executor::block_on;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook::{
    McpServerConfig, McpServers, McpTransport, Object, Tool, ToolContext, ToolOutput, ToolSource, Utterance,
};

/// How long a condition may take to come about.
const PATIENCE: Duration = Duration::from_secs(20);

fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python")
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/providers/mcp_server.py")
}

pub(crate) struct Turn;

impl ToolContext for Turn {
    fn sender_id(&self) -> &'static str {
        "conversation-1"
    }

    fn send(&self, _: Utterance) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// A server over HTTP. It ends with whoever holds it, or with the tests.
pub(crate) struct Http {
    child: Child,
    address: SocketAddr,
    records: Records,
    /// Whether it has the transport of before 2025.
    is_sse: bool,
}

/// Servers that no test changes, with the flags that they are started with: starting one takes a second and a half.
static PLAIN: LazyLock<Http> = LazyLock::new(|| Http::start(&[]));
static OF_BEFORE: LazyLock<Http> = LazyLock::new(|| Http::start(&["--sse"]));
static WITHOUT_EVENTS: LazyLock<Http> = LazyLock::new(|| Http::start(&["--json"]));
static WITH_TOKEN: LazyLock<Http> = LazyLock::new(|| Http::start(&["--token", "secret-1"]));

impl Http {
    /// Each has a host of its own, so that none gets the port of another that is started again.
    pub(crate) fn start(flags: &[&str]) -> Self {
        static LAST: AtomicU8 = AtomicU8::new(1);
        let [.., high, low] = std::process::id().to_be_bytes();
        let host = Ipv4Addr::new(127, high, low, LAST.fetch_add(1, Ordering::Relaxed));
        Self::start_at((host, 0).into(), flags, Records::default())
    }

    fn start_at(address: SocketAddr, flags: &[&str], records: Records) -> Self {
        let mut command = Command::new(python());
        command.arg(script()).arg("--host").arg(address.ip().to_string()).arg("--http").arg(address.port().to_string());
        command.args(flags).arg("--record").arg(records.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = (address.ip(), line.trim().parse::<u16>().unwrap()).into();
        Self { child, address, records, is_sse: flags.contains(&"--sse") }
    }

    /// The same server, started again.
    fn again(self, flags: &[&str]) -> Self {
        let (address, records) = (self.address, self.records.clone());
        drop(self);
        Self::start_at(address, flags, records)
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    fn url(&self) -> String {
        self.origin() + if self.is_sse { "/sse" } else { "/mcp" }
    }

    fn config(&self, name: &str) -> McpServerConfig {
        let (url, authorization) = (self.url(), None);
        let transport = if self.is_sse {
            McpTransport::Sse { url, authorization }
        } else {
            McpTransport::Http { url, authorization }
        };
        McpServerConfig::new(name, transport)
    }

    fn with_token(&self, token: Option<&str>) -> McpServerConfig {
        McpServerConfig::http("bank", self.url(), token.map(str::to_owned))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a server tells of what has happened to it.
#[derive(Clone)]
struct Records(Arc<TempDir>);

impl Default for Records {
    fn default() -> Self {
        Self(Arc::new(TempDir::new().unwrap()))
    }
}

impl Records {
    fn path(&self) -> PathBuf {
        self.0.path().join("record")
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.path()).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|known| *known == line).count()
    }
}

/// A server that the client starts.
fn stdio(name: &str, flags: &[&str]) -> McpServerConfig {
    let args = [script().to_str().unwrap()].iter().chain(flags).map(|&arg| arg.to_owned()).collect();
    // A machine that does other work may take long to start an interpreter.
    let patient = Duration::from_mins(1);
    McpServerConfig { connect_timeout: patient, ..McpServerConfig::stdio(name, python().to_str().unwrap(), args) }
}

fn recording(name: &str, records: &Records) -> McpServerConfig {
    stdio(name, &["--record", records.path().to_str().unwrap()])
}

/// Ways to the same tools, by the names of their servers.
const WAYS: [&str; 4] = ["events", "json", "sse", "stdio"];

struct Ways {
    servers: McpServers,
    records: [Records; 4],
}

static WAYS_TO: LazyLock<Ways> = LazyLock::new(|| {
    let of = |server: &Http| server.records.clone();
    let records = [of(&PLAIN), of(&WITHOUT_EVENTS), of(&OF_BEFORE), Records::default()];
    let mut process = recording("stdio", &records[3]);
    let McpTransport::Stdio { env, .. } = &mut process.transport else { unreachable!() };
    env.push(("BANK_KEY".into(), "secret-1".into()));
    let configs = [PLAIN.config("events"), WITHOUT_EVENTS.config("json"), OF_BEFORE.config("sse"), process];
    let names = ["echo", "parts", "document", "fails", "slow", "huge", "environment"];
    let wanted: Vec<_> = WAYS.iter().flat_map(|&way| names.map(|name| (way, name))).collect();
    Ways { servers: connect(&configs, &wanted), records }
});

/// What a tool gives, whichever way it is called.
fn each_way(tool: &str, arguments: &Value) -> [ToolOutput; 4] {
    WAYS.map(|way| call(&WAYS_TO.servers, way, tool, arguments.clone()))
}

fn connect(configs: &[McpServerConfig], wanted: &[(&str, &str)]) -> McpServers {
    block_on(McpServers::connect(configs, wanted)).unwrap()
}

fn refusal(configs: &[McpServerConfig], wanted: &[(&str, &str)]) -> String {
    block_on(McpServers::connect(configs, wanted)).unwrap_err().to_string()
}

/// Why one server is not connected to.
pub(crate) fn refused(config: McpServerConfig) -> String {
    refusal(&[config], &[])
}

fn object(value: Value) -> Object {
    let Value::Object(object) = value else { panic!("{value} is no object") };
    object
}

async fn called(tool: &Arc<dyn Tool>, arguments: Value) -> ToolOutput {
    tool.call(object(arguments), Arc::new(Turn)).await
}

fn call(servers: &McpServers, server: &str, tool: &str, arguments: Value) -> ToolOutput {
    block_on(called(&servers.tool(server, tool).unwrap(), arguments))
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} has not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The state of a process; `None`: there is none, not even a zombie.
fn process(id: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ").map(|(_, rest)| rest[..1].to_owned())
}

#[test]
fn a_tool_is_what_its_server_says() {
    let mut config = PLAIN.config("bank");
    config.tool_timeout = Some(Duration::from_secs(3));
    let servers = connect(&[config], &[("bank", "echo")]);
    let tools: Vec<_> = servers.tools().collect();
    let [(of, tool)] = &tools[..] else { panic!("one is wanted") };
    let expected = json!({"type": "object", "title": "echoArguments", "required": ["text"], "properties": {
        "text": {"title": "Text", "type": "string"},
    }});
    assert_eq!(*of, "bank");
    assert_eq!(tool.spec().name, "echo");
    assert_eq!(tool.spec().description, "Says the same.");
    assert_eq!(Value::from(tool.spec().parameters.clone()), expected);
    assert_eq!((tool.source(), tool.mcp_server()), (ToolSource::Mcp, Some("bank")));
    assert_eq!(tool.timeout(), Some(Duration::from_secs(3)));
}

#[test]
fn a_call_gives_the_result() {
    let text = "Zażółć gęślą jaźń 🎈 \u{2028}\u{2029}\u{85} \"\\\r\n\t\u{7f} ﷽ e\u{301}";
    assert_eq!(each_way("echo", &json!({"text": text})), WAYS.map(|_| ToolOutput::of(text)));
}

#[test]
fn an_address_with_a_slash_at_its_end_leads_there() {
    let config = McpServerConfig::http("bank", PLAIN.url() + "/", None);
    let servers = connect(&[config], &[("bank", "echo")]);
    assert_eq!(call(&servers, "bank", "echo", json!({"text": "hello"})), ToolOutput::of("hello"));
}

#[test]
fn a_call_works_under_a_runtime_of_the_callers_too() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let output = runtime.block_on(async {
        let servers = McpServers::connect(&[PLAIN.config("bank")], &[("bank", "echo")]).await.unwrap();
        called(&servers.tool("bank", "echo").unwrap(), json!({"text": "hello"})).await
    });
    assert_eq!(output, ToolOutput::of("hello"));
}

#[test]
fn many_calls_at_once_get_their_own_results() {
    for way in WAYS {
        let tool = WAYS_TO.servers.tool(way, "echo").unwrap();
        let outputs = block_on(join_all((0..50).map(|number| called(&tool, json!({"text": number.to_string()})))));
        assert_eq!(outputs, (0..50).map(|number| ToolOutput::of(number.to_string())).collect::<Vec<_>>());
    }
}

#[test]
fn parts_of_all_kinds_are_told() {
    let told = "one\n[image image/png, 5 bytes]\n[audio audio/wav, 5 bytes]\ntwo\n[resource file:///a.bin application/octet-stream, 5 \
                bytes]\n[resource b https://a.test/b]";
    assert_eq!(each_way("parts", &json!({})), WAYS.map(|_| ToolOutput::of(told)));
}

#[test]
fn a_document_without_text_is_the_result() {
    let document = json!({"balance": 12.5, "currency": "EUR"});
    assert_eq!(each_way("document", &json!({})), WAYS.map(|_| ToolOutput::of(document.clone())));
}

#[test]
fn an_error_of_the_tool_is_told() {
    let told = "Error executing tool fails: there is no such account";
    assert_eq!(each_way("fails", &json!({})), WAYS.map(|_| ToolOutput::error(told)));
}

#[test]
fn arguments_that_do_not_fit_are_the_servers_to_refuse() {
    for output in each_way("echo", &json!({"text": 1})) {
        let text = output.value.as_str().unwrap();
        assert!(output.is_error && text.contains("Input should be a valid string"), "{output:?}");
    }
}

#[test]
fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    for (way, records) in WAYS.into_iter().zip(&WAYS_TO.records) {
        let tool = WAYS_TO.servers.tool(way, "slow").unwrap();
        let mut call = tool.call(Object::new(), Arc::new(Turn));
        assert!((&mut call).now_or_never().is_none());
        wait_until("the call", || records.count("slow began") == 1);
        drop(call);
        wait_until("the end of the call", || records.count("slow was cancelled") == 1);
        assert_eq!(call_of(&WAYS_TO.servers, way), ToolOutput::of("after"));
    }
}

fn call_of(servers: &McpServers, of: &str) -> ToolOutput {
    call(servers, of, "echo", json!({"text": "after"}))
}

#[test]
fn an_http_server_that_dies_takes_its_call_and_comes_back() {
    for flags in [&[][..], &["--sse"]] {
        let server = Http::start(flags);
        let servers = connect(&[server.config("bank")], &[("bank", "dies"), ("bank", "echo")]);
        assert_eq!(call(&servers, "bank", "dies", json!({})), ToolOutput::error("`dies` failed"));
        assert_eq!(server.records.count("dies began"), 1);
        let not_there = ToolOutput::error("`echo` failed: the server is not there");
        assert_eq!(call(&servers, "bank", "echo", json!({"text": "1"})), not_there);
        let server = server.again(flags);
        wait_until("the server", || call_of(&servers, "bank") != not_there);
        assert_eq!(call(&servers, "bank", "echo", json!({"text": "2"})), ToolOutput::of("2"));
        assert_eq!(server.records.count("dies began"), 1);
    }
}

#[test]
fn a_process_that_dies_takes_its_call_and_is_started_again() {
    let records = Records::default();
    let servers = connect(&[recording("bank", &records)], &[("bank", "dies"), ("bank", "echo")]);
    assert_eq!(call(&servers, "bank", "dies", json!({})), ToolOutput::error("`dies` failed"));
    assert_eq!(call(&servers, "bank", "echo", json!({"text": "again"})), ToolOutput::of("again"));
    assert_eq!(
        records.lines(),
        ["list 0", "list 4", "list 8", "dies began", "list 0", "list 4", "list 8", "echo again"]
    );
}

#[test]
fn a_session_that_is_forgotten_is_opened_again_and_the_call_sent_once_more() {
    let server = Http::start(&[]);
    let servers = connect(&[server.config("bank")], &[("bank", "echo")]);
    let server = server.again(&[]);
    assert_eq!(call(&servers, "bank", "echo", json!({"text": "hello"})), ToolOutput::of("hello"));
    // That the old session is over is said at some time as well.
    let lines: Vec<_> = server.records.lines().into_iter().filter(|line| line != "DELETE").collect();
    assert_eq!(lines, ["list 0", "list 4", "list 8", "list 0", "list 4", "list 8", "echo hello"]);
}

#[test]
fn calls_at_once_share_an_attempt_and_others_do_not_wait_for_the_next() {
    let mut server = Http::start(&[]);
    let servers = connect(&[server.config("bank")], &[("bank", "dies"), ("bank", "echo")]);
    assert_eq!(call(&servers, "bank", "dies", json!({})), ToolOutput::error("`dies` failed"));
    server.child.wait().unwrap();
    let attempts = hanging_up(server.address);
    let tool = servers.tool("bank", "echo").unwrap();
    let outputs = block_on(join_all((0..8).map(|_| called(&tool, json!({"text": "hello"})))));
    let not_there = ToolOutput::error("`echo` failed: the server is not there");
    assert_eq!((outputs, attempts.load(Ordering::Relaxed)), (vec![not_there.clone(); 8], 1));
    // After the fifth attempt the pause is 1.6 s.
    wait_until("the fifth attempt", || {
        call_of(&servers, "bank");
        attempts.load(Ordering::Relaxed) == 5
    });
    assert_eq!((call_of(&servers, "bank"), attempts.load(Ordering::Relaxed)), (not_there, 5));
}

/// Reads requests and answers none of them; how often it was asked for a session.
fn hanging_up(address: SocketAddr) -> Arc<AtomicU8> {
    let listener = TcpListener::bind(address).unwrap();
    let asked = Arc::new(AtomicU8::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            connection.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            let (mut read, mut buffer) = (String::new(), [0; 4096]);
            while let Ok(length @ 1..) = connection.read(&mut buffer) {
                read += &String::from_utf8_lossy(&buffer[..length]);
                if read.contains("\"method\"") || !read.starts_with("POST") {
                    break;
                }
            }
            if read.contains("\"method\":\"initialize\"") {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    asked
}

#[test]
fn a_changed_list_is_read_again() {
    let (server, before) = (Http::start(&[]), Http::start(&["--sse"]));
    for config in [server.config("bank"), before.config("bank"), stdio("bank", &[])] {
        let servers = connect(&[config], &[("bank", "changes"), ("bank", "echo"), ("bank", "parts")]);
        let before = servers.tool("bank", "echo").unwrap();
        assert_eq!(call(&servers, "bank", "changes", json!({})), ToolOutput::of("changed"));
        let described = || servers.tool("bank", "echo").unwrap().spec().description.clone();
        wait_until("the new list", || described() == "Says it again.");
        let expected = json!({"words": {"title": "words", "type": "string"}});
        assert_eq!(servers.tool("bank", "echo").unwrap().spec().parameters["properties"], expected);
        assert_eq!(before.spec().description, "Says the same.");
        assert_eq!(block_on(called(&before, json!({"words": "hello"}))), ToolOutput::of("hello"));
        let gone = "The server `bank` has no tool `parts` any more";
        assert_eq!(call(&servers, "bank", "parts", json!({})), ToolOutput::error(gone));
    }
}

#[test]
fn a_tool_that_a_restarted_server_lacks_is_named() {
    let server = Http::start(&[]);
    let servers = connect(&[server.config("bank")], &[("bank", "parts"), ("bank", "echo")]);
    let _server = server.again(&["--only", "fails", "--says", "Another."]);
    assert_eq!(
        call(&servers, "bank", "parts", json!({})),
        ToolOutput::error("The server `bank` has no tool `parts` any more")
    );
    assert_eq!(servers.tool("bank", "echo").unwrap().spec().description, "Another.");
}

#[test]
fn a_token_lets_in() {
    let servers = connect(&[WITH_TOKEN.with_token(Some(" secret-1\n"))], &[("bank", "echo")]);
    assert_eq!(call(&servers, "bank", "echo", json!({"text": "hello"})), ToolOutput::of("hello"));
}

#[test]
fn a_token_that_is_refused_is_told() {
    let said = |token: Option<&str>| refusal(&[WITH_TOKEN.with_token(token)], &[]);
    let refuses = format!("The MCP server `bank` at `{}` refuses", WITH_TOKEN.url());
    assert_eq!(
        said(Some("secret-2")),
        format!(
            "{refuses} the token (HTTP 401)\n  hint: correct its `token`: it may have expired, or belong to another server"
        )
    );
    assert_eq!(
        said(Some("weak")),
        format!(
            "{refuses} what the token is for (HTTP 403)\n  hint: its `token` must allow that tools are listed and called"
        )
    );
    for none in [None, Some(" ")] {
        assert_eq!(said(none), format!("{refuses} requests without a token (HTTP 401)\n  hint: give it a `token`"));
    }
    assert_eq!(
        said(Some("secret\n1")),
        "The `token` of the MCP server `bank` holds characters that a header cannot\n  hint: look for a line break in it"
    );
}

#[test]
fn a_server_that_cannot_be_reached_is_named() {
    let port = free_port();
    let config = McpServerConfig::http("bank", format!("http://127.0.0.1:{port}/mcp?key=secret"), None);
    assert_eq!(
        refusal(&[config], &[]),
        format!(
            "The MCP server `bank` cannot be reached at `http://127.0.0.1:{port}/mcp`: Connection refused (os error 111)\n  hint: \
             start it, or correct its `url`"
        )
    );
}

#[test]
fn the_first_of_several_that_fail_is_told() {
    let there = PLAIN.config("there");
    let gone = |name: &str| McpServerConfig::http(name, format!("http://127.0.0.1:{}/mcp", free_port()), None);
    let said = refusal(&[there, gone("one"), gone("two")], &[]);
    assert!(said.starts_with("The MCP server `one` cannot be reached at"), "{said}");
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    assert_eq!(
        refusal(&[McpServerConfig::stdio("bank", "/nowhere/server", vec![])], &[]),
        "The MCP server `bank` cannot be started: `/nowhere/server`: No such file or directory (os error 2)\n  hint: `command` is \
         the name of a program on the `PATH`, or its path"
    );
}

#[test]
fn a_process_that_ends_at_once_is_told_with_its_last_words() {
    let shell = |script: &str| McpServerConfig::stdio("bank", "sh", vec!["-c".into(), script.into()]);
    assert_eq!(
        refusal(&[shell("echo one >&2; echo no such file >&2; exit 4")], &[]),
        "The MCP server `bank` cannot be reached at `sh`: its process has ended (exit status: 4): no such file\n  hint: run its \
         `command` by hand to see what it lacks"
    );
}

#[test]
fn a_server_that_is_silent_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let mut configs = [
        McpServerConfig::http("http", &url, None),
        McpServerConfig::stdio("stdio", "sh", vec!["-c".into(), "echo loading >&2; sleep 60".into()]),
    ];
    for config in &mut configs {
        config.connect_timeout = Duration::from_millis(300);
    }
    let hint = "\n  hint: see whether it hangs, or give it more time";
    assert_eq!(
        refusal(&configs[..1], &[]),
        format!("The MCP server `http` at `{url}` has not told its tools within 300ms{hint}")
    );
    assert_eq!(
        refusal(&configs[1..], &[]),
        format!("The MCP server `stdio` at `sh` has not told its tools within 300ms: it last said `loading`{hint}")
    );
}

#[test]
fn what_does_not_speak_mcp_is_told() {
    let elsewhere = PLAIN.url().replace("/mcp", "/elsewhere");
    let hint = "\n  hint: its `url` ends with the path of its endpoint, often `/mcp`";
    assert_eq!(
        refusal(&[McpServerConfig::http("bank", &elsewhere, None)], &[]),
        format!(
            "What answers for the MCP server `bank` at `{elsewhere}` does not speak MCP: HTTP 404 Not Found: Not Found{hint}"
        )
    );
    for (answer, said) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>",
            "it answers with `text/html`",
        ),
        ("SSH-2.0-OpenSSH_9.6\r\n\r\n", "its answer is no HTTP: invalid HTTP version parsed"),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
            "its answer is no message of the protocol",
        ),
        ("HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n", "HTTP 302 Found:"),
        ("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", "HTTP 503"),
    ] {
        let address = answering(answer);
        assert_eq!(
            refusal(&[McpServerConfig::http("bank", format!("{address}/mcp"), None)], &[]),
            format!("What answers for the MCP server `bank` at `{address}/mcp` does not speak MCP: {said}{hint}")
        );
    }
}

/// A server that always says the same.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn a_tool_that_is_not_there_is_told_with_the_nearest() {
    let said = |tool: &str| refusal(&[PLAIN.config("bank")], &[("bank", "echo"), ("bank", tool)]);
    assert_eq!(said("ecoh"), "The MCP server `bank` has no tool `ecoh`\n  hint: did you mean `echo`?");
    assert_eq!(
        said("zzz"),
        "The MCP server `bank` has no tool `zzz`\n  hint: its tools are `parts`, `document`, `fails`, `slow`, `dies`, `changes`, `huge`, \
         `environment`, `begets`, `echo`"
    );
}

#[test]
fn a_server_that_is_not_configured_is_told_with_the_nearest() {
    assert_eq!(
        refusal(&[PLAIN.config("bank")], &[("bnak", "echo")]),
        "There is no MCP server `bnak`, of which the tool `echo` is wanted\n  hint: did you mean `bank`?"
    );
    assert_eq!(
        refusal(&[], &[("bank", "echo")]),
        "There is no MCP server `bank`, of which the tool `echo` is wanted\n  hint: servers are entries of `mcp_servers`, each with \
         a `name`"
    );
}

#[test]
fn a_result_that_is_too_long_is_an_error_and_nothing_more() {
    for way in WAYS {
        let too_long = ToolOutput::error("The result is longer than 8000000 bytes");
        assert_eq!(call(&WAYS_TO.servers, way, "huge", json!({"size": 50_000_000})), too_long);
        assert_eq!(call_of(&WAYS_TO.servers, way), ToolOutput::of("after"));
        let long = call(&WAYS_TO.servers, way, "huge", json!({"size": 7_000_000}));
        assert_eq!((long.is_error, long.value.as_str().unwrap().len()), (false, 7_000_000));
    }
}

#[test]
fn tools_of_one_name_stay_apart() {
    let (one, two) = (Http::start(&["--says", "One."]), Http::start(&["--says", "Two."]));
    let servers = connect(&[one.config("one"), two.config("two")], &[("one", "echo"), ("two", "echo")]);
    let told: Vec<_> = servers.tools().map(|(of, tool)| (of.to_owned(), tool.spec().description.clone())).collect();
    assert_eq!(told, [("one".to_owned(), "One.".to_owned()), ("two".to_owned(), "Two.".to_owned())]);
    assert_eq!(call(&servers, "two", "echo", json!({"text": "hello"})), ToolOutput::of("hello"));
    assert_eq!((one.records.count("echo hello"), two.records.count("echo hello")), (0, 1));
}

#[test]
fn a_process_has_only_the_environment_that_it_is_given() {
    let output = call(&WAYS_TO.servers, "stdio", "environment", json!({}));
    let names: Vec<_> = output.value.as_str().unwrap().split(' ').collect();
    assert!(names.contains(&"BANK_KEY") && names.contains(&"PATH"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}

#[test]
fn a_process_ends_with_its_last_tool_and_all_that_it_started() {
    let servers = connect(&[stdio("bank", &[])], &[("bank", "begets")]);
    let tool = servers.tool("bank", "begets").unwrap();
    drop(servers);
    let output = block_on(called(&tool, json!({})));
    let both: Vec<_> = output.value.as_str().unwrap().split(' ').collect();
    assert!(both.iter().all(|id| process(id).is_some()));
    drop(tool);
    // Its child is not ours to reap: init does.
    let is_gone = |id: &str| process(id).is_none_or(|state| state == "Z");
    wait_until("the end of the process", || process(both[0]).is_none() && is_gone(both[1]));
}

#[test]
fn a_session_over_http_is_closed_with_its_last_tool() {
    let server = Http::start(&[]);
    let servers = connect(&[server.config("bank")], &[("bank", "echo")]);
    drop(servers);
    wait_until("the end of the session", || server.records.count("DELETE") == 1);
}

#[test]
fn closing_waits_until_the_process_has_ended() {
    let servers = connect(&[stdio("bank", &[])], &[("bank", "begets"), ("bank", "echo")]);
    let output = call(&servers, "bank", "begets", json!({}));
    let (id, _) = output.value.as_str().unwrap().split_once(' ').unwrap();
    block_on(servers.close());
    assert_eq!(process(id), None);
    assert_eq!(call_of(&servers, "bank"), ToolOutput::error("`echo` failed: the server is not there"));
}

#[test]
fn a_process_that_does_not_want_to_end_is_killed() {
    let stubborn = "import os, runpy, signal, sys, threading; signal.signal(signal.SIGTERM, signal.SIG_IGN); \
                    threading.Thread(target=lambda: __import__('time').sleep(60)).start(); sys.argv = sys.argv[1:]; \
                    runpy.run_path(sys.argv[0], run_name='__main__')";
    let args = vec!["-c".to_owned(), stubborn.to_owned(), script().to_str().unwrap().to_owned()];
    let config = McpServerConfig::stdio("bank", python().to_str().unwrap(), args);
    let servers = connect(&[config], &[("bank", "begets")]);
    let output = call(&servers, "bank", "begets", json!({}));
    let (id, _) = output.value.as_str().unwrap().split_once(' ').unwrap();
    block_on(servers.close());
    assert_eq!(process(id), None);
}
