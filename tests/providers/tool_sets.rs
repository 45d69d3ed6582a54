//! Tool sets of a Quick App against real servers: requests over HTTP, deployments, and servers behind DIAL Core.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook::{
    LoadedApp, Model, ModelError, ModelReply, ModelRequest, Object, QuickApp, RequestEvent, RequestInput,
    RequestedCall, Tokens,
};

use crate::mcp::Http;
use crate::server::{Server, Step, answer, document};

/// A variable that every test of Cargo has, in the place of a key, and its value.
const KEY: (&str, &str) = ("CARGO_PKG_NAME", env!("CARGO_PKG_NAME"));

/// A model that says what it is to say, and what it was offered.
#[derive(Clone, Default)]
struct Says {
    left: Arc<Mutex<VecDeque<ModelReply>>>,
    offered: Arc<Mutex<Vec<Value>>>,
}

impl Model for Says {
    fn name(&self) -> &'static str {
        "says"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let offered = request.tools.iter().map(|tool| json!(tool));
        self.offered.lock().unwrap().extend(offered);
        let reply = self.left.lock().unwrap().pop_front();
        Box::pin(async move { reply.ok_or_else(|| ModelError::Exhausted("It has no more to say".into())) })
    }
}

struct Asked {
    app: LoadedApp,
    model: Says,
    _folder: TempDir,
}

/// An app of this manifest, whose model calls one tool and is done.
fn app(manifest: &Value, tool: &str, arguments: Value) -> Asked {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.json");
    std::fs::write(&path, manifest.to_string()).unwrap();
    let Value::Object(arguments) = arguments else { panic!("{arguments} is no object") };
    let call = RequestedCall { id: Some("c1".into()), tool_name: tool.into(), arguments: Ok(arguments) };
    let model = Says::default();
    *model.left.lock().unwrap() =
        [ModelReply { calls: vec![call], ..ModelReply::default() }, ModelReply::text("Done.")].into();
    let app = QuickApp::loader(path).model(model.clone()).load().unwrap_or_else(|error| panic!("{error}"));
    Asked { app, model, _folder: folder }
}

impl Asked {
    /// The tool's result as the model reads it.
    async fn result(&self) -> String {
        let user: Object = json!({"role": "user", "content": "Do."}).as_object().unwrap().clone();
        let input = RequestInput { messages: vec![Arc::new(user)], ..RequestInput::default() };
        let events: Vec<_> = self.app.app.request(input).collect().await;
        let Some(RequestEvent::Finished { messages, .. }) = events.last() else { panic!("it ends") };
        let result = messages.iter().find(|message| message["role"] == "tool").expect("a tool was called");
        result["content"].as_str().unwrap().to_owned()
    }

    fn offered(&self) -> Vec<String> {
        let offered = self.model.offered.lock().unwrap();
        let mut names: Vec<_> = offered.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        names.dedup();
        names
    }
}

/// A failure is told to the model as it is.
fn told() -> Value {
    json!({"strategies": [{"type": "continue", "forward_tool_error_message": true}]})
}

/// A set with one tool, which has these keys beside its name and address.
fn rest(address: &str, tool: &Value) -> Value {
    let mut whole = json!({"name": "get", "url": format!("{address}/items")});
    whole.as_object_mut().unwrap().extend(tool.as_object().unwrap().clone());
    json!({"type": "rest-api", "name": "shop", "tools": [whole], "fallback_configuration": told(), "tool_timeout": 20})
}

/// What the model reads of a set's tool `get`.
async fn called(set: Value) -> String {
    app(&json!({"tool_sets": [set]}), "shop_get", json!({})).result().await
}

/// What the model reads where the server does this.
async fn after(script: Vec<Step>) -> String {
    let server = Server::start([script]).await;
    called(rest(&server.address, &json!({}))).await.replace(&server.address, "http://shop")
}

#[tokio::test]
async fn a_request_has_its_arguments_where_they_are_named() {
    let server = Server::start([document("{\"price\": 12.50}")]).await;
    let tool = json!({
        "description": "Tells.", "method": "POST", "url": format!("{}/items/{{id}}?fixed=1", server.address),
        "parameters": {"type": "object", "properties": {"id": {}, "tags": {}, "deep": {}, "none": {}}},
        "query": {"tag": "{tags}", "none": "{none}"}, "headers": {"X-Item": "no {id}", "X-None": "{none}"},
        "body": {"item": "{id}", "said": "{{{id}}}", "deep": "{deep}", "none": "{none}", "n": 1},
    });
    let mut set = rest(&server.address, &tool);
    set["authorization"] = json!({"type": "api_key", "name": "X-Key", "key": format!("${{{}}}", KEY.0)});
    let arguments = json!({"id": "a/../b ż", "tags": ["x&y", 2], "deep": {"a": [1.5, null]}});
    let asked = app(&json!({"tool_sets": [set]}), "shop_get", arguments);
    assert_eq!((asked.app.warnings.len(), asked.result().await), (0, "{\"price\":12.5}".to_owned()));
    let expected = json!({
        "name": "shop_get", "description": "Tells.",
        "parameters": {"type": "object", "properties": {"id": {}, "tags": {}, "deep": {}, "none": {}}},
    });
    assert_eq!(asked.model.offered.lock().unwrap()[0], expected);
    let request = &server.asked()[0];
    let body = "{\"item\":\"a/../b ż\",\"said\":\"{a/../b ż}\",\"deep\":{\"a\":[1.5,null]},\"n\":1}";
    let head: Vec<_> = request.head.iter().filter(|line| !line.starts_with("host: ")).collect();
    assert_eq!(
        head,
        [
            "POST /items/a%2F..%2Fb%20%C5%BC?fixed=1&tag=x%26y&tag=2 HTTP/1.1",
            "accept: */*",
            &format!("content-length: {}", body.len()),
            "content-type: application/json",
            &format!("user-agent: tenterhook/{}", env!("CARGO_PKG_VERSION")),
            "x-item: no a/../b ż",
            &format!("x-key: {}", KEY.1),
        ]
    );
    assert_eq!(request.body, body);
}

#[tokio::test]
async fn an_argument_that_would_lead_elsewhere_is_not_sent() {
    let server = Server::start([]).await;
    let tool = json!({
        "url": format!("{}/items/{{id}}", server.address), "headers": {"X-Id": "{id}"},
        "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
    });
    for (id, why) in [
        (json!(".."), "the argument `id` would lead to another path"),
        (json!(""), "the argument `id` is empty"),
        (Value::Null, "the argument `id` is missing"),
        (json!("a\r\nX-Admin: 1"), "its arguments cannot stand in the header `X-Id`"),
    ] {
        let set = rest(&server.address, &tool);
        let asked = app(&json!({"tool_sets": [set]}), "shop_get", json!({"id": id}));
        assert_eq!(asked.result().await, format!("`get` failed: {why}"));
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn each_authorization_is_its_header() {
    for (authorization, header) in [
        (json!({"type": "bearer", "token": "t-1"}), "authorization: Bearer t-1"),
        (json!({"type": "api_key", "name": "Api-Key", "key": "k-1"}), "api-key: k-1"),
        (json!({"type": "basic", "username": "me", "password": "p"}), "authorization: Basic bWU6cA=="),
    ] {
        let server = Server::start([document("1")]).await;
        let mut set = rest(&server.address, &json!({}));
        set["authorization"] = authorization;
        assert_eq!(called(set).await, "1");
        assert!(server.asked()[0].head.iter().any(|line| line == header), "{:?}", server.asked());
    }
}

#[tokio::test]
async fn what_comes_back_is_a_document_or_a_text() {
    let with = |kind: &str, body: &str| answer("200 OK", &format!("content-type: {kind}\r\n"), body);
    assert_eq!(after(with("application/json; charset=utf-8", "{\"a\": [1, \"ż\"]}")).await, "{\"a\":[1,\"ż\"]}");
    assert_eq!(after(with("application/hal+json", "[true]")).await, "[true]");
    assert_eq!(after(with("text/plain", "{ as it is }")).await, "{ as it is }");
    assert_eq!(after(answer("204 No Content", "", "")).await, "");
}

#[tokio::test]
async fn a_server_that_says_no_is_told_with_its_status_and_the_beginning_of_its_words() {
    let no = |status: &str, body: &str| after(answer(status, "content-type: application/json\r\n", body));
    assert_eq!(
        no("404 Not Found", "{\"error\":\n \"no such item\"}").await,
        "`get` failed: HTTP 404 Not Found: {\"error\": \"no such item\"}"
    );
    assert_eq!(no("401 Unauthorized", "").await, "`get` failed: HTTP 401 Unauthorized");
    let long = no("500 Internal Server Error", &"x".repeat(100_000)).await;
    assert_eq!(long, format!("`get` failed: HTTP 500 Internal Server Error: {}…", "x".repeat(200)));
}

#[tokio::test]
async fn a_secret_that_comes_back_is_not_shown() {
    let server = Server::start([answer("403 Forbidden", "", &format!("{} {}", "y".repeat(190), KEY.1))]).await;
    let mut set = rest(&server.address, &json!({"query": {"key": format!("${{{}}}", KEY.0)}}));
    set["authorization"] = json!({"type": "bearer", "token": "t-123"});
    assert_eq!(called(set).await, format!("`get` failed: HTTP 403 Forbidden: {} [secret]", "y".repeat(190)));
    assert!(server.asked()[0].head[0].contains(KEY.1));
}

#[tokio::test]
async fn an_answer_that_is_no_answer_is_a_failure() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let say = |text: String| Step::Say(text.into());
    assert_eq!(
        after(answer("200 OK", "content-type: application/json\r\n", "{\"a\": ")).await,
        "`get` failed: its answer is no JSON: it ends too early in line 1, column 6: {\"a\":"
    );
    let broken = after(vec![say(format!("{head}content-length: 100\r\n\r\n{{"))]).await;
    assert!(broken.starts_with("`get` failed: its answer broke off after "), "{broken}");
    let too_long = "`get` failed: its answer is longer than 8000000 bytes";
    assert_eq!(after(vec![say(format!("{head}content-length: 50000000\r\n\r\n")), Step::Hold]).await, too_long);
    let endless = vec![say(format!("{head}\r\n")), Step::Repeat(vec![b' '; 50_000])];
    assert_eq!(after(endless).await, too_long);
    let gone = called(rest("http://127.0.0.1:1", &json!({}))).await;
    assert_eq!(gone, "`get` failed: `http://127.0.0.1:1` does not answer: Connection refused (os error 111)");
}

#[tokio::test]
async fn a_server_that_hangs_anywhere_costs_the_time_of_its_set() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    for said in ["", head, &format!("{head}content-length: 10\r\n\r\n{{")] {
        let server = Server::start([vec![Step::Say(said.into()), Step::Hold]]).await;
        let mut set = rest(&server.address, &json!({}));
        set["tool_timeout"] = json!(0.3);
        let began = Instant::now();
        assert_eq!(called(set).await, "`shop_get` was not done after 300 ms");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_redirection_is_followed_within_the_host_and_never_so_that_a_request_becomes_another() {
    let to = |status: &str, place: &str| answer(status, &format!("location: {place}\r\n"), "");
    let server = Server::start([to("302 Found", "/other"), document("2")]).await;
    let mut set = rest(&server.address, &json!({}));
    set["authorization"] = json!({"type": "api_key", "name": "Api-Key", "key": "k-1"});
    assert_eq!(called(set.clone()).await, "2");
    assert!(server.asked()[1].head.contains(&"api-key: k-1".to_owned()));
    let other = Server::start([document("3")]).await;
    let server = Server::start([to("307 Temporary Redirect", &format!("{}/?key=k-1", other.address))]).await;
    set["tools"][0]["url"] = json!(server.address);
    let refused = format!("`get` failed: HTTP 307 Temporary Redirect: it redirects to `{}`", other.address);
    assert_eq!((called(set).await, other.asked().len()), (refused, 0));
    let server = Server::start([to("302 Found", "/other"), document("2")]).await;
    let set = rest(&server.address, &json!({"method": "POST", "body": {}}));
    let refused = format!("`get` failed: HTTP 302 Found: it redirects to `{}`", server.address);
    assert_eq!((called(set).await, server.asked().len()), (refused, 1));
}

/// A set of one deployment at this address.
fn deployments(address: &str) -> Value {
    let tool = json!({
        "deployment_id": "apps/my model", "name": "ask", "description": "Knows all.", "system_prompt": "Be short.",
        "settings": {"temperature": 0},
    });
    json!({
        "dial_url": format!("{address}/"), "dial_api_key_env": KEY.0,
        "tool_sets": [{"type": "dial-deployment", "name": "models", "tools": [tool], "fallback_configuration": told()}],
    })
}

fn completion(text: &str) -> Vec<Step> {
    document(&json!({"choices": [{"message": {"role": "assistant", "content": text}}]}).to_string())
}

#[tokio::test]
async fn a_deployment_is_asked_and_its_text_is_the_result() {
    let server = Server::start([completion("Blue.")]).await;
    let asked = app(&deployments(&server.address), "ask", json!({"query": "Which colour?"}));
    assert_eq!((asked.app.warnings.len(), asked.result().await), (0, "Blue.".to_owned()));
    assert_eq!(asked.offered(), ["ask"]);
    let request = &server.asked()[0];
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(
        body,
        json!({"model": "apps/my model", "temperature": 0, "messages": [
            {"role": "system", "content": "Be short."}, {"role": "user", "content": "Which colour?"},
        ]})
    );
    let head: Vec<_> = request.head.iter().filter(|line| !line.starts_with("host: ")).collect();
    assert_eq!(
        head,
        [
            "POST /openai/deployments/apps/my%20model/chat/completions?api-version=2024-10-21 HTTP/1.1",
            "accept: */*",
            &format!("api-key: {}", KEY.1),
            &format!("content-length: {}", request.body.len()),
            "content-type: application/json",
            &format!("user-agent: tenterhook/{}", env!("CARGO_PKG_VERSION")),
        ]
    );
}

#[tokio::test]
async fn a_deployment_that_fails_is_told_without_the_key() {
    let said = format!("{{\"error\": {{\"message\": \"no such key: {}\"}}}}", KEY.1);
    let refused = "`ask` failed: The model `ask` refused the request with status 401: no such key: [secret]";
    for (script, expected) in [
        (answer("401 Unauthorized", "", &said), refused),
        (completion(""), "`ask` failed: the answer has no text"),
        (document("{}"), "`ask` failed: The model `ask` gave no completion: its answer has no choices: `{}`"),
    ] {
        let server = Server::start([script]).await;
        assert_eq!(app(&deployments(&server.address), "ask", json!({"query": "?"})).result().await, expected);
    }
    let asked = app(&deployments("http://127.0.0.1:1"), "ask", json!({"question": "?"}));
    assert_eq!(asked.result().await, "`ask` failed: its argument `query` is to be a text");
}

#[tokio::test]
async fn a_deployment_that_hangs_costs_the_time_of_its_set() {
    let server = Server::start([vec![Step::Hold], vec![Step::Hold], vec![Step::Hold]]).await;
    let mut manifest = deployments(&server.address);
    manifest["tool_sets"][0]["tool_timeout"] = json!(0.3);
    let result = app(&manifest, "ask", json!({"query": "?"})).result().await;
    assert!(result.contains("within 300 ms") || result.contains("not done after 300 ms"), "{result}");
}

#[tokio::test]
async fn an_app_that_is_chatted_with_is_a_deployment_and_hides_nothing() {
    let server = Server::start([completion("Hello.")]).await;
    let manifest = json!({
        "dial_url": server.address, "dial_api_key_env": KEY.0,
        "tool_sets": [{
            "type": "dial-app", "name": "Desk", "deployment_id": "applications/public/desk__1.0", "transport": "chat",
            "description": "A desk.", "hidden_from_model": ["x"],
        }],
    });
    let asked = app(&manifest, "applications_public_desk__1_0", json!({"prompt": "Hello?"}));
    let warnings: Vec<_> = asked.app.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        warnings,
        ["`tool_sets[0].hidden_from_model` has no effect: the transport is `chat`, which has one tool"]
    );
    assert_eq!(asked.result().await, "Hello.");
    assert_eq!(
        server.asked()[0].head[0],
        "POST /openai/deployments/applications/public/desk__1.0/chat/completions?api-version=2024-10-21 HTTP/1.1"
    );
}

/// Servers behind DIAL Core, at their addresses there, which want the key.
#[tokio::test]
async fn sets_of_dial_are_servers_that_want_its_key_and_hide_what_is_hidden() {
    for (kind, path) in
        [("dial-mcp", "/v1/toolset/toolsets/public/bank/mcp"), ("dial-app", "/v1/deployments/toolsets/public/bank/mcp")]
    {
        let server = Http::start(&["--key", KEY.1, "--path", path]);
        let manifest = json!({
            "dial_url": server.origin(), "dial_api_key_env": KEY.0,
            "tool_sets": [{
                "type": kind, "name": "Bank", "deployment_id": "toolsets/public/bank",
                "allowed_tools": ["echo", "fails"], "hidden_from_model": ["fails"],
            }],
        });
        let asked = app(&manifest, "Bank_echo", json!({"text": "hello"}));
        assert_eq!((asked.app.warnings.len(), asked.result().await), (0, "hello".to_owned()));
        assert_eq!(asked.offered(), ["Bank_echo"], "{kind}");
    }
}

#[test]
fn a_wrong_key_of_dial_is_told() {
    let server = Http::start(&["--key", "another", "--path", "/mcp"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.json");
    let url = format!("{}/mcp", server.origin());
    let set = json!({
        "type": "dial-app", "name": "Bank", "deployment_id": "bank", "mcp_url": url, "dial_url": "http://127.0.0.1:1",
        "dial_api_key_env": KEY.0,
    });
    std::fs::write(&path, json!({"tool_sets": [set]}).to_string()).unwrap();
    let error = QuickApp::loader(path).model(Says::default()).load().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "The MCP server `Bank` at `{url}` refuses the key (HTTP 401)\n  hint: correct its key, and see that the header has the \
             name that the server wants"
        )
    );
}
