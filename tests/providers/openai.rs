//! One behaviour a test; the server's answers are written out.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenterhook::{
    Model, ModelError, ModelReply, ModelRequest, ModelSettings, Object, OpenAiModel, OpenAiSettings, RequestedCall,
    ToolSpec, Usage,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::server::{Server, Step, answer, document, event, stream};

const HELLO: &str = r#"{"choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}"#;
const STOP: &str = r#"{"choices": [{"delta": {}, "finish_reason": "stop"}]}"#;

fn object(value: Value) -> Object {
    if let Value::Object(object) = value { object } else { panic!("{value} is no object") }
}

fn request() -> ModelRequest {
    let message = object(json!({"role": "user", "content": "Hi"}));
    ModelRequest { messages: vec![Arc::new(message)], tools: Vec::new(), settings: ModelSettings::default() }
}

fn settings(server: &Server) -> OpenAiSettings {
    OpenAiSettings { retry_pause: Duration::from_millis(1), ..OpenAiSettings::new("main", "m-1", &server.address) }
}

async fn ask_with(settings: OpenAiSettings) -> Result<ModelReply, ModelError> {
    let model = OpenAiModel::new(settings).unwrap();
    let reply = model.complete(&request(), None).await?;
    assert!(reply.latency.is_some());
    Ok(ModelReply { latency: None, ..reply })
}

async fn ask(server: &Server) -> Result<ModelReply, ModelError> {
    ask_with(settings(server)).await
}

/// The answer, and the pieces that were heard.
async fn hear_with(settings: OpenAiSettings) -> (Result<ModelReply, ModelError>, Vec<String>) {
    let model = OpenAiModel::new(settings).unwrap();
    let heard = Mutex::new(Vec::new());
    let reply = model.complete(&request(), Some(&|piece| heard.lock().unwrap().push(piece.to_owned()))).await;
    (reply.map(|reply| ModelReply { latency: None, ..reply }), heard.into_inner().unwrap())
}

async fn hear(server: &Server) -> (Result<ModelReply, ModelError>, Vec<String>) {
    hear_with(settings(server)).await
}

fn call(id: Option<&str>, name: &str, arguments: Result<Value, &str>) -> RequestedCall {
    let arguments = arguments.map(object).map_err(str::to_owned);
    RequestedCall { id: id.map(str::to_owned), tool_name: name.into(), arguments }
}

fn broken(message: &str) -> ModelError {
    ModelError::Broken { model: "main".into(), message: message.into() }
}

fn refused(status: u16, message: &str) -> ModelError {
    ModelError::Refused { model: "main".into(), status, message: message.into() }
}

#[tokio::test]
async fn a_request_goes_out_as_it_was_made() {
    let server = Server::start([document(HELLO)]).await;
    let mut settings = settings(&server);
    settings.api_base.push_str("/v1/");
    settings.api_key = Some("sk-1".into());
    settings.extra = object(json!({"temperature": 0.5, "user": "u", "model": "other", "stream": true}));
    let message = object(json!({"role": "user", "content": "Hi", "a": {"z": 1, "b": null}}));
    let request = ModelRequest {
        messages: vec![Arc::new(message)],
        tools: vec![Arc::new(ToolSpec::new("now", "Tells the time"))],
        settings: serde_json::from_value(json!({"seed": 7, "temperature": 0.1})).unwrap(),
    };
    let reply = OpenAiModel::new(settings).unwrap().complete(&request, None).await.unwrap();
    assert_eq!(reply.text.as_deref(), Some("Hello"));
    let asked = &server.asked()[0];
    let body = concat!(
        r#"{"model":"m-1","messages":[{"role":"user","content":"Hi","a":{"z":1,"b":null}}],"#,
        r#""tools":[{"type":"function","function":{"name":"now","description":"Tells the time","#,
        r#""parameters":{"type":"object","properties":{},"additionalProperties":false}}}],"#,
        r#""temperature":0.1,"user":"u","seed":7}"#,
    );
    assert_eq!(asked.body, body);
    let host = server.address.trim_start_matches("http://");
    let head = [
        "POST /v1/chat/completions HTTP/1.1".to_owned(),
        "accept: */*".to_owned(),
        "authorization: Bearer sk-1".to_owned(),
        format!("content-length: {}", body.len()),
        "content-type: application/json".to_owned(),
        format!("host: {host}"),
        format!("user-agent: tenterhook/{}", env!("CARGO_PKG_VERSION")),
    ];
    assert_eq!(asked.head, head);
}

#[tokio::test]
async fn a_request_that_is_heard_asks_for_a_stream_and_its_usage() {
    let server = Server::start([stream([event(STOP)])]).await;
    hear(&server).await.0.unwrap();
    let body = concat!(
        r#"{"model":"m-1","messages":[{"role":"user","content":"Hi"}],"#,
        r#""stream":true,"stream_options":{"include_usage":true}}"#,
    );
    assert_eq!(server.asked()[0].body, body);
}

#[tokio::test]
async fn a_completion_is_text_calls_and_usage() {
    let body = json!({
        "choices": [{"finish_reason": "tool_calls", "message": {"content": "One moment", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "find", "arguments": r#"{"z": 1, "b": [2]}"#}},
            {"function": {"name": "now", "arguments": ""}},
            {"id": "c", "function": {"name": "now"}},
            {"id": "d", "function": {"name": "now", "arguments": null}},
            {"id": "e", "function": {"name": "now", "arguments": {"zone": "UTC"}}},
            {"id": "f", "function": {"name": "find", "arguments": r#"{"z": "#}},
            {"id": "g", "function": {"name": "find", "arguments": "[1]"}},
        ]}}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
    });
    let server = Server::start([document(&body.to_string())]).await;
    let expected = ModelReply {
        text: Some("One moment".into()),
        calls: vec![
            call(Some("a"), "find", Ok(json!({"z": 1, "b": [2]}))),
            call(None, "now", Ok(json!({}))),
            call(Some("c"), "now", Ok(json!({}))),
            call(Some("d"), "now", Ok(json!({}))),
            call(Some("e"), "now", Ok(json!({"zone": "UTC"}))),
            call(Some("f"), "find", Err(r#"{"z": "#)),
            call(Some("g"), "find", Err("[1]")),
        ],
        usage: Some(Usage { input: 12, output: 3 }),
        latency: None,
    };
    assert_eq!(ask(&server).await, Ok(expected));
}

#[tokio::test]
async fn an_empty_completion_is_one() {
    for message in [json!({}), json!({"content": null, "tool_calls": null}), json!({"content": ""})] {
        let body = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": null});
        let server = Server::start([document(&body.to_string())]).await;
        assert_eq!(ask(&server).await, Ok(ModelReply::default()), "{message}");
    }
}

#[tokio::test]
async fn a_stream_is_heard_as_it_comes_wherever_it_is_cut() {
    let events = [
        ": a comment\n\n",
        "data: {\"choices\": [{\"delta\": {\"role\": \"assistant\", \"content\": \"\"}}]}\n\n",
        "data: {\"choices\": [{\"delta\": {\"content\": \"Grü\"}}]}\r\n\r\n",
        "event: message\ndata: {\"choices\": [{\"delta\":\ndata: {\"content\": \"ße\"}}], \"usage\": null}\n\n",
        "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n",
        "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 2}}\n\n",
        "data: [DONE]\n\n",
    ];
    let bytes = events.concat().into_bytes();
    for size in [1, 7, bytes.len()] {
        let server = Server::start([stream(bytes.chunks(size).map(|piece| Step::Say(piece.into())))]).await;
        let (reply, heard) = hear(&server).await;
        let usage = Some(Usage { input: 5, output: 2 });
        assert_eq!(reply, Ok(ModelReply { usage, ..ModelReply::text("Grüße") }));
        assert_eq!(heard, ["Grü", "ße"]);
    }
}

#[tokio::test]
async fn a_piece_is_heard_before_the_next_is_sent() {
    let first = event(r#"{"choices": [{"delta": {"content": "One"}}]}"#);
    let server = Server::start([stream([first, Step::Hold])]).await;
    let model = OpenAiModel::new(settings(&server)).unwrap();
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let asking = tokio::spawn(async move {
        let hear = |piece: &str| told.send(piece.to_owned()).unwrap();
        model.complete(&request(), Some(&hear)).await
    });
    assert_eq!(hears.recv().await.as_deref(), Some("One"));
    asking.abort();
}

#[tokio::test]
async fn calls_of_a_stream_come_in_pieces_by_their_index() {
    let piece = |calls: Value| event(&json!({"choices": [{"delta": {"tool_calls": calls}}]}).to_string());
    let server = Server::start([stream([
        piece(json!([{"index": 0, "id": "a", "function": {"name": "find", "arguments": ""}}])),
        piece(json!([{"index": 1, "id": "b", "function": {"name": "now"}}])),
        piece(json!([{"index": 0, "function": {"arguments": "{\"x\":"}}])),
        piece(json!([{"index": 0, "id": "a", "function": {"name": "find", "arguments": " 1}"}}])),
        piece(json!([{"index": 2, "function": {"name": "find", "arguments": "{\"x\":"}}])),
        event(STOP),
    ])])
    .await;
    let calls = vec![
        call(Some("a"), "find", Ok(json!({"x": 1}))),
        call(Some("b"), "now", Ok(json!({}))),
        call(None, "find", Err("{\"x\":")),
    ];
    assert_eq!(hear(&server).await, (Ok(ModelReply { calls, ..ModelReply::default() }), Vec::new()));
}

#[tokio::test]
async fn calls_of_a_stream_without_numbers_are_told_apart_by_their_ids() {
    let calls = json!([
        {"index": 0, "id": "a", "function": {"name": "find", "arguments": "{\"x\": 1}"}},
        {"index": 0, "id": "b", "function": {"name": "find", "arguments": "{\"x\": 2}"}},
        {"id": "c", "function": {"name": "find", "arguments": "{\"x\": 3}"}},
        {"id": "d", "function": {"name": "find", "arguments": "{\"x\": 4}"}},
    ]);
    let piece = json!({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]});
    let server = Server::start([stream([event(&piece.to_string())])]).await;
    let (reply, _) = hear(&server).await;
    let expected: Vec<_> =
        [("a", 1), ("b", 2), ("c", 3), ("d", 4)].map(|(id, x)| call(Some(id), "find", Ok(json!({"x": x})))).into();
    assert_eq!(reply.unwrap().calls, expected);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_heard_at_once() {
    let server = Server::start([document(HELLO)]).await;
    assert_eq!(hear(&server).await, (Ok(ModelReply::text("Hello")), vec!["Hello".to_owned()]));
}

#[tokio::test]
async fn a_busy_provider_is_asked_again() {
    for status in ["429 Too Many Requests", "500 Oh", "502 Bad Gateway", "503 Oh", "504 Oh"] {
        let busy = answer(status, "", "busy");
        let server = Server::start([busy.clone(), busy, document(HELLO)]).await;
        assert_eq!(ask(&server).await, Ok(ModelReply::text("Hello")), "{status}");
        let asked = server.asked();
        assert_eq!(asked.len(), 3);
        assert!(asked.iter().all(|again| again.body == asked[0].body && again.head == asked[0].head));
    }
}

#[tokio::test]
async fn a_provider_that_stays_busy_has_refused() {
    let server = Server::start(vec![answer("429 Oh", "", r#"{"error": {"message": "Slow down"}}"#); 3]).await;
    assert_eq!(ask(&server).await, Err(refused(429, "Slow down")));
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn a_refusal_is_final() {
    for status in [400, 401, 403, 404, 422, 501] {
        let server = Server::start([answer(&format!("{status} Oh"), "", r#"{"detail": "No"}"#)]).await;
        assert_eq!(ask(&server).await, Err(refused(status, "No")));
    }
    let server = Server::start([answer("404 Oh", "", "")]).await;
    assert_eq!(ask(&server).await, Err(refused(404, "Not Found")));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server = Server::start([answer("301 Oh", "location: /elsewhere\r\n", "<html>")]).await;
    assert_eq!(ask(&server).await, Err(refused(301, "It redirects to `/elsewhere`")));
}

#[tokio::test]
async fn the_pause_is_what_the_provider_asks_for_but_never_longer_than_the_limit() {
    for (asked, longest, waits) in [("0", 10_000, 0), ("3600", 100, 100), ("Sun, 06 Nov 1994 08:49:37 GMT", 10_000, 0)]
    {
        let busy = answer("503 Oh", &format!("retry-after: {asked}\r\n"), "");
        let server = Server::start([busy, document(HELLO)]).await;
        let mut settings = settings(&server);
        settings.retry_pause = Duration::from_secs(5);
        settings.longest_pause = Duration::from_millis(longest);
        let began = Instant::now();
        assert_eq!(ask_with(settings).await, Ok(ModelReply::text("Hello")));
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(waits) && took < Duration::from_secs(4), "{asked}: {took:?}");
    }
}

#[tokio::test]
async fn pauses_double() {
    let server = Server::start([answer("503 Oh", "", ""), answer("503 Oh", "", ""), document(HELLO)]).await;
    let began = Instant::now();
    let settings = OpenAiSettings { retry_pause: Duration::from_millis(100), ..settings(&server) };
    assert_eq!(ask_with(settings).await, Ok(ModelReply::text("Hello")));
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
}

#[tokio::test]
async fn limits_may_be_as_long_as_they_can() {
    let server = Server::start([answer("503 Oh", "retry-after: 0\r\n", ""), document(HELLO)]).await;
    let (longest, retries) = (Duration::MAX, u32::MAX);
    let settings = OpenAiSettings {
        connect_timeout: longest,
        first_byte_timeout: longest,
        total_timeout: longest,
        retry_pause: longest,
        longest_pause: longest,
        retries,
        ..settings(&server)
    };
    assert_eq!(ask_with(settings).await, Ok(ModelReply::text("Hello")));
}

#[tokio::test]
async fn nobody_waits_for_an_attempt_that_would_come_too_late() {
    let server = Server::start([answer("503 Oh", "retry-after: 9\r\n", "busy")]).await;
    let settings = OpenAiSettings { total_timeout: Duration::from_secs(8), ..settings(&server) };
    let began = Instant::now();
    assert_eq!(ask_with(settings).await, Err(refused(503, "busy")));
    assert!(began.elapsed() < Duration::from_secs(7));
}

#[tokio::test]
async fn a_connection_that_is_dropped_is_made_again() {
    let server = Server::start([vec![], document(HELLO)]).await;
    assert_eq!(ask(&server).await, Ok(ModelReply::text("Hello")));
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_connection_that_is_always_dropped_is_none() {
    let server = Server::start([vec![], vec![], vec![]]).await;
    let message = format!("`{}`: connection closed before message completed", server.address);
    assert_eq!(ask(&server).await, Err(ModelError::Unreachable { model: "main".into(), message }));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let server = Server::start([]).await;
    tokio::task::yield_now().await;
    let refused = std::net::TcpStream::connect(server.address.trim_start_matches("http://")).unwrap_err();
    let message = format!("`{}`: {refused}", server.address);
    assert_eq!(ask(&server).await, Err(ModelError::Unreachable { model: "main".into(), message }));
}

#[tokio::test]
async fn a_server_without_encryption_is_unreachable_by_https() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let message = format!("`{address}`: received corrupt message of type InvalidContentType");
    let expected = ModelError::Unreachable { model: "main".into(), message };
    assert_eq!(ask_with(OpenAiSettings::new("main", "m-1", &address)).await, Err(expected));
}

#[tokio::test]
async fn what_is_no_completion_is_broken() {
    let page = "<!DOCTYPE html><title>Sign in</title>";
    let cases = [
        (document(""), "its answer has no body"),
        (
            answer("200 OK", "content-type: text/html\r\n", page),
            "its answer is a page and no JSON: `<!DOCTYPE html><title>Sign in</title>`",
        ),
        (
            document(r#"{"choices": [{"mess"#),
            r#"its answer is JSON that ends too early, after 19 bytes: `{"choices": [{"mess`"#,
        ),
        (document("Hello"), "its answer is no JSON: expected value at line 1 column 1: `Hello`"),
        (document(r#"{"choices": []}"#), r#"its answer has no choices: `{"choices": []}`"#),
        (document(r#"{"object": "list"}"#), r#"its answer has no choices: `{"object": "list"}`"#),
        (document(r#"{"choices": [{"message": {"tool_calls": [{"id": "a"}]}}]}"#), "a tool call names no tool"),
        (
            vec![Step::Say("HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{\"choices\"".into())],
            "its answer broke off after 10 bytes: end of file before message length reached",
        ),
        (vec![Step::Say("220 mail.test ESMTP\r\n".into())], "its answer is no HTTP: invalid HTTP version parsed"),
    ];
    for (script, message) in cases {
        let server = Server::start([script]).await;
        assert_eq!(ask(&server).await, Err(broken(message)));
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn an_error_with_status_200_is_a_refusal() {
    let server = Server::start([document(r#"{"error": {"message": "No credit", "code": "billing"}}"#)]).await;
    assert_eq!(ask(&server).await, Err(refused(200, "No credit")));
    let server = Server::start([document(r#"{"error": {"message": "No such model", "code": 404}}"#)]).await;
    assert_eq!(ask(&server).await, Err(refused(404, "No such model")));
    let server = Server::start([document(r#"{"error": {"message": "Busy", "code": 503}}"#), document(HELLO)]).await;
    assert_eq!(ask(&server).await, Ok(ModelReply::text("Hello")));
}

#[tokio::test]
async fn a_stream_that_is_no_completion_is_broken() {
    let hel = || event(r#"{"choices": [{"delta": {"content": "Hel"}}]}"#);
    let cases = [
        (stream([hel()]), "its stream ended before the answer did"),
        (stream([]), "its stream ended before the answer did"),
        (stream([event("[DONE]")]), "its stream has no choices"),
        (stream([event("{\"choices\"")]), "an event of its stream is no JSON: `{\"choices\"`"),
        (stream([Step::Say("data: \u{fffd}".into()), Step::Say(b"\xff\n\n".into())]), "its stream cannot be read: "),
        (answer("200 OK", "content-type: text/html\r\n", "<p>"), "its answer is a page and no JSON: `<p>`"),
        (
            vec![Step::Say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n".into())],
            "its answer broke off after 5 bytes: unexpected EOF during chunk size line",
        ),
    ];
    for (script, expected) in cases {
        let server = Server::start([script]).await;
        let Err(ModelError::Broken { message, .. }) = hear(&server).await.0 else { panic!("not broken: {expected}") };
        assert!(
            if expected.ends_with(": ") { message.starts_with(expected) } else { message == expected },
            "{message}"
        );
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_reason_or_its_mark() {
    let hello = r#"{"choices": [{"delta": {"content": "Hello"}}]}"#;
    for end in [event(STOP), event("[DONE]")] {
        let server = Server::start([stream([event(hello), end])]).await;
        assert_eq!(hear(&server).await.0, Ok(ModelReply::text("Hello")));
    }
    // The mark ends it, though the connection stays.
    let server = Server::start([stream([event(hello), event("[DONE]"), Step::Hold])]).await;
    assert_eq!(hear(&server).await.0, Ok(ModelReply::text("Hello")));
}

#[tokio::test]
async fn nothing_is_attempted_again_once_a_piece_was_heard() {
    let hel = || event(r#"{"choices": [{"delta": {"content": "Hel"}}]}"#);
    let busy = || event(r#"{"error": {"message": "Overloaded", "code": 503}}"#);
    let server = Server::start([stream([hel(), busy()])]).await;
    assert_eq!(hear(&server).await, (Err(refused(503, "Overloaded")), vec!["Hel".to_owned()]));
    let server = Server::start([stream([busy()]), stream([hel(), event(STOP)])]).await;
    assert_eq!(hear(&server).await, (Ok(ModelReply::text("Hel")), vec!["Hel".to_owned()]));
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
#[cfg_attr(not(target_os = "linux"), ignore = "other systems refuse what they have no room for")]
async fn a_connection_that_is_not_accepted_is_given_up() {
    let limit = Duration::from_millis(100);
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(connected) = timeout(limit, TcpStream::connect(address)).await {
        waiting.push(connected.unwrap());
    }
    let settings = OpenAiSettings::new("main", "m-1", format!("http://{address}"));
    let expected = ModelError::Timeout { model: "main".into(), what: "accept the connection", limit };
    assert_eq!(ask_with(OpenAiSettings { connect_timeout: limit, ..settings }).await, Err(expected));
}

#[tokio::test]
async fn an_answer_that_does_not_begin_is_given_up() {
    let server = Server::start([vec![Step::Hold]]).await;
    let limit = Duration::from_millis(100);
    let settings = OpenAiSettings { first_byte_timeout: limit, ..settings(&server) };
    let expected = ModelError::Timeout { model: "main".into(), what: "begin to answer", limit };
    assert_eq!(ask_with(settings).await, Err(expected));
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_given_up() {
    let limit = Duration::from_millis(200);
    let expected = ModelError::Timeout { model: "main".into(), what: "finish its answer", limit };
    let alive = Step::Say(": alive\n\n".into());
    let slow: Vec<_> = std::iter::repeat_n([alive, Step::Pause(Duration::from_millis(20))], 50).flatten().collect();
    for script in [stream(slow), stream([Step::Hold])] {
        let server = Server::start([script]).await;
        let settings = OpenAiSettings { total_timeout: limit, ..settings(&server) };
        assert_eq!(hear_with(settings).await.0, Err(expected.clone()));
    }
}

#[tokio::test]
async fn a_stream_that_never_pauses_does_not_outrun_its_time() {
    let limit = Duration::from_millis(200);
    let server = Server::start([stream([Step::Repeat(b": alive\n\n".repeat(1000))])]).await;
    let settings = OpenAiSettings { total_timeout: limit, longest_reply: usize::MAX, ..settings(&server) };
    let expected = ModelError::Timeout { model: "main".into(), what: "finish its answer", limit };
    assert_eq!(hear_with(settings).await.0, Err(expected));
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_read_to_its_end() {
    let expected = broken("its answer is longer than 100000 bytes");
    let endless = || stream([Step::Repeat(b": more\n\n".repeat(1000))]);
    let server = Server::start([endless(), endless()]).await;
    let settings = OpenAiSettings { longest_reply: 100_000, ..settings(&server) };
    assert_eq!(ask_with(settings.clone()).await, Err(expected.clone()));
    assert_eq!(hear_with(settings).await.0, Err(expected));
}

#[tokio::test]
async fn a_long_refusal_is_cut() {
    let server = Server::start([answer("400 Oh", "", &"ä".repeat(100_000))]).await;
    assert_eq!(ask(&server).await, Err(refused(400, &"ä".repeat(2_000))));
}

#[tokio::test]
async fn the_key_is_in_no_error() {
    let told = "Incorrect key sk-1: see sk-1";
    let scripts = [
        (answer("401 Oh", "", told), refused(401, "Incorrect key [key]: see [key]")),
        (document(&json!({"error": told}).to_string()), refused(200, "Incorrect key [key]: see [key]")),
        (
            document(told),
            broken("its answer is no JSON: expected value at line 1 column 1: `Incorrect key [key]: see [key]`"),
        ),
        (answer("302 Oh", "location: /?key=sk-1\r\n", ""), refused(302, "It redirects to `/?key=[key]`")),
    ];
    for (script, expected) in scripts {
        let server = Server::start([script]).await;
        let settings = OpenAiSettings { api_key: Some("sk-1\n".into()), ..settings(&server) };
        assert!(!format!("{settings:?} {:?}", OpenAiModel::new(settings.clone()).unwrap()).contains("sk-1"));
        assert_eq!(ask_with(settings).await, Err(expected));
    }
}

#[tokio::test]
async fn a_model_has_the_name_that_is_shown() {
    let model = OpenAiModel::new(OpenAiSettings::new("main", "m-1", "http://api.test/v1")).unwrap();
    assert_eq!(model.name(), "main");
}
