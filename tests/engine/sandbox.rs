//! Generated code in the real sandbox, with a host that answers by name.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook::{
    Code, CodeError, CodeErrorKind, CodeFrame, CodeHost, CodeLimits, CodeOutcome, CodeRunner, CodeSession, HostCall,
    HostRefusal, Sandbox,
};

use crate::agents::environment;

/// `echo` gives its first argument, `slow` does so after 50 ms, `fail` raises, `stop` ends the code, `never` takes for ever.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) calls: Mutex<Vec<HostCall>>,
    heard: Mutex<String>,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

const FUNCTIONS: [&str; 5] = ["echo", "slow", "fail", "stop", "never"];

impl CodeHost for Host {
    fn call(&self, call: HostCall) -> BoxFuture<'_, Result<Value, HostRefusal>> {
        self.calls.lock().unwrap().push(call.clone());
        Box::pin(async move {
            let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
            self.most_open.fetch_max(open, Ordering::Relaxed);
            let answer = match call.name.as_str() {
                "fail" => Err(HostRefusal::Raise { kind: "ValueError".into(), message: "no such thing".into() }),
                "stop" => Err(HostRefusal::Stop),
                "never" => std::future::pending().await,
                name => {
                    if name == "slow" {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    Ok(call.positional.first().cloned().unwrap_or_default())
                }
            };
            self.open.fetch_sub(1, Ordering::Relaxed);
            answer
        })
    }

    fn printed(&self, text: &str) {
        self.heard.lock().unwrap().push_str(text);
    }
}

pub(crate) fn runner() -> Arc<dyn CodeRunner> {
    Sandbox::start_in(".".as_ref(), Some(environment())).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) async fn session(limits: CodeLimits) -> Box<dyn CodeSession> {
    runner().open(limits).await.unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn code(source: &str) -> Code {
    Code { source: source.into(), functions: FUNCTIONS.map(Into::into).into(), ..Code::default() }
}

/// What comes of a source, in a session of its own.
pub(crate) async fn run(source: &str) -> CodeOutcome {
    session(CodeLimits::default()).await.run(code(source), &Host::default()).await
}

/// The value, where the code has come to its end.
async fn value(source: &str) -> Value {
    let outcome = run(source).await;
    assert_eq!(outcome.error, None, "{source}");
    outcome.value
}

fn timeless(outcome: CodeOutcome) -> CodeOutcome {
    CodeOutcome { elapsed: Duration::ZERO, ..outcome }
}

#[tokio::test]
async fn code_gives_the_value_of_its_last_expression_its_variables_and_what_it_has_printed() {
    let host = Host::default();
    let outcome = session(CodeLimits::default()).await.run(code("x = 2\nprint('heard')\nx + 1"), &host).await;
    let expected = CodeOutcome {
        value: json!(3),
        variables: [("x".to_owned(), json!(2))].into_iter().collect(),
        printed: "heard\n".into(),
        ..CodeOutcome::default()
    };
    assert_eq!(timeless(outcome), expected);
    assert_eq!(*host.heard.lock().unwrap(), "heard\n");
}

#[tokio::test]
async fn a_call_reaches_the_host_with_its_arguments_and_its_line() {
    let host = Host::default();
    let outcome = session(CodeLimits::default()).await.run(code("\necho([1, None], flag=True)"), &host).await;
    assert_eq!((outcome.error, outcome.value), (None, json!([1, null])));
    let call = HostCall {
        name: "echo".into(),
        positional: vec![json!([1, null])],
        named: [("flag".to_owned(), json!(true))].into_iter().collect(),
        line: 2,
    };
    assert_eq!(*host.calls.lock().unwrap(), [call]);
}

#[tokio::test]
async fn a_call_may_be_plain_awaited_gathered_or_a_task() {
    let table = [
        ("x = echo(1)\nx + 1", json!(2)),
        ("x = await echo(1)\nx + 1", json!(2)),
        ("[echo(i) for i in range(3)]", json!([0, 1, 2])),
        ("[await echo(i) for i in range(3)]", json!([0, 1, 2])),
        ("import asyncio\nawait asyncio.gather(echo(1), slow(2))", json!([1, 2])),
        ("import asyncio\nawait asyncio.gather(*[slow(i) for i in range(3)])", json!([0, 1, 2])),
        ("import asyncio\nt = asyncio.create_task(slow(1))\nx = echo(2)\n[await t, x]", json!([1, 2])),
        (
            "from asyncio import create_task, gather\nl = [create_task(slow(i)) for i in range(2)]\nawait gather(*l)",
            json!([0, 1]),
        ),
        ("t = slow(1)\nu = slow(2)\n[await u, await t]", json!([2, 1])),
        (
            "async def f(i):\n    x = echo(i)\n    return await slow(x + 1)\nimport asyncio\nawait asyncio.gather(f(1), f(5))",
            json!([2, 6]),
        ),
        ("async def f():\n    return echo(3)\nawait f()", json!(3)),
        ("def f():\n    return slow(3)\nawait f()", json!(3)),
        ("import asyncio\nasync def main():\n    return await slow(4)\nasyncio.run(main())", json!(4)),
        ("f = echo\nf('by another name')", json!("by another name")),
        ("eval('echo(5)')", json!(5)),
        ("return echo('at the top')", json!("at the top")),
        ("try:\n    fail()\nexcept ValueError as error:\n    x = str(error)\nx", json!("no such thing")),
        ("try:\n    await fail()\nexcept ValueError as error:\n    x = str(error)\nx", json!("no such thing")),
    ];
    for (source, expected) in table {
        assert_eq!(value(source).await, expected, "{source}");
    }
}

#[tokio::test]
async fn calls_that_are_gathered_run_at_once_and_plain_ones_one_after_the_other() {
    for (source, at_once) in [
        ("import asyncio\nawait asyncio.gather(*[slow(i) for i in range(8)])", 8),
        ("l = [slow(i) for i in range(3)]\nfor t in l:\n    await t", 3),
        ("for i in range(3):\n    slow(i)", 1),
        ("for i in range(3):\n    await slow(i)", 1),
    ] {
        let host = Host::default();
        let outcome = session(CodeLimits::default()).await.run(code(source), &host).await;
        assert_eq!((outcome.error, host.most_open.into_inner()), (None, at_once), "{source}");
    }
}

#[tokio::test]
async fn calls_that_nobody_has_waited_for_have_ended_and_are_told() {
    let host = Host::default();
    let source = "import asyncio\nasyncio.create_task(slow(1))\n'done'";
    let outcome = session(CodeLimits::default()).await.run(code(source), &host).await;
    assert_eq!((outcome.value, outcome.unawaited), (json!("done"), vec!["slow".to_owned()]));
    assert_eq!(host.open.into_inner(), 0);
}

#[tokio::test]
async fn what_code_defines_is_there_for_the_code_after_it_and_lives_through_errors() {
    let mut session = session(CodeLimits::default()).await;
    let host = Host::default();
    for source in ["kept = {1, 2}\ndef f():\n    return echo(len(kept))", "1 / 0", "f(", "class A(B): pass", "stop()"] {
        assert!(!session.run(code(source), &host).await.session_ended, "{source}");
    }
    let outcome = session.run(code("x = f()\nx"), &host).await;
    assert_eq!((outcome.value, outcome.error), (json!(2), None));
}

#[tokio::test]
async fn variables_given_are_names_of_the_code() {
    let given = Code {
        variables: [("order".to_owned(), json!({"items": [1, 2.5, null]}))].into_iter().collect(),
        ..code("order['items'].append('x')\norder")
    };
    let outcome = session(CodeLimits::default()).await.run(given, &Host::default()).await;
    assert_eq!((outcome.error, outcome.value), (None, json!({"items": [1, 2.5, null, "x"]})));
}

#[tokio::test]
async fn variables_that_are_no_json_are_left_out() {
    let source = "a = {1}\nb = len\nc = b'x'\nd = float('nan')\ne = 10 ** 30\nf = (1, 'two')\ndef g(): pass\nh = []\nh.append(h)\ni = 'x' * 5_000_000";
    let outcome = run(source).await;
    assert_eq!((outcome.error, json!(outcome.variables)), (None, json!({"f": [1, "two"]})));
}

#[tokio::test]
async fn variables_are_told_whatever_names_the_code_sets() {
    let outcome = run("type = 'parcel'\nlen = str = list = dict = 1\nimport json\njson = 2\nx = ['a']").await;
    let expected = json!({"type": "parcel", "len": 1, "str": 1, "list": 1, "dict": 1, "json": 2, "x": ["a"]});
    assert_eq!((outcome.error, json!(outcome.variables)), (None, expected));
}

#[tokio::test]
async fn variables_that_are_large_stay_in_the_session() {
    let mut session = session(CodeLimits { memory: 64 << 20, ..CodeLimits::default() }).await;
    let source = "many = [0] * 1_000_000\nlong = 'x' * 40_000_000\nnested = []\nfor i in range(64): nested = [nested, nested]\nsmall = 1";
    let outcome = session.run(code(source), &Host::default()).await;
    assert_eq!((outcome.error, json!(outcome.variables)), (None, json!({"i": 63, "small": 1})));
    assert_eq!(session.run(code("len(many) + len(long)"), &Host::default()).await.value, json!(41_000_000));
}

#[tokio::test]
async fn an_argument_that_is_no_json_is_a_type_error_in_the_code() {
    for (argument, said) in [
        ("b'x'", "a value of type `bytes`"),
        ("float('inf')", "the number inf"),
        ("2 ** 64", "a whole number beyond 64 bits"),
        ("lambda: 1", "`<function '<lambda>'>`"),
        ("len", "a value of type `len`"),
    ] {
        let outcome =
            run(&format!("try:\n    echo({argument})\nexcept TypeError as error:\n    x = str(error)\nx")).await;
        let expected = format!("echo(): argument 1 holds {said}, which is no value of JSON");
        assert_eq!((outcome.error, outcome.value), (None, json!(expected)));
    }
}

#[tokio::test]
async fn code_that_raises_is_told_with_its_places() {
    let error = run("def f(x):\n    return 1 / x\n\nf(0)").await.error.unwrap();
    let frame = |line, column, end_column, function: Option<&str>| CodeFrame {
        line,
        column,
        end_column,
        function: function.map(Into::into),
    };
    let expected = CodeError {
        kind: CodeErrorKind::Raised,
        name: "ZeroDivisionError".into(),
        message: "division by zero".into(),
        frames: vec![frame(4, 1, 5, None), frame(2, 12, 17, Some("f"))],
    };
    assert_eq!(error, expected);
}

#[tokio::test]
async fn code_that_cannot_be_read_is_told_with_its_place() {
    let error = run("x = 1\ny = (").await.error.unwrap();
    assert_eq!((error.kind, error.name.as_str(), error.frames[0].line), (CodeErrorKind::Syntax, "SyntaxError", 2));
    let error = run("def f():\n    yield 1").await.error.unwrap();
    let said = "The Python of this sandbox does not know yield expressions";
    assert_eq!((error.kind, error.message.as_str()), (CodeErrorKind::Syntax, said));
}

#[tokio::test]
async fn a_call_that_stops_the_code_cannot_be_caught() {
    for source in [
        "x = 1\nstop()\nx = 2",
        "x = 1\ntry:\n    stop()\nexcept Exception:\n    x = 2",
        "x = 1\nawait stop()\nx = 2",
        "import asyncio\nx = 1\nawait asyncio.gather(slow(1), stop())\nx = 2",
        "x = 1\ntry:\n    stop()\nexcept BaseException:\n    print('after')\n    echo(2)",
    ] {
        let host = Host::default();
        let outcome = session(CodeLimits::default()).await.run(code(source), &host).await;
        let error = CodeError {
            kind: CodeErrorKind::Stopped,
            name: "Stopped".into(),
            message: "A call has stopped the code".into(),
            frames: Vec::new(),
        };
        let expected = CodeOutcome {
            error: Some(error),
            variables: [("x".to_owned(), json!(1))].into_iter().collect(),
            ..CodeOutcome::default()
        };
        assert_eq!(timeless(outcome), expected, "{source}");
        assert!(host.calls.into_inner().unwrap().iter().all(|call| call.name != "echo"), "{source}");
    }
}

#[tokio::test]
async fn code_that_goes_on_after_it_was_stopped_loses_its_session() {
    for source in [
        "while True:\n    try:\n        stop()\n    except BaseException:\n        pass",
        "try:\n    stop()\nexcept BaseException:\n    while True: pass",
    ] {
        let started = Instant::now();
        let outcome = run(source).await;
        let kind = outcome.error.map(|error| error.kind);
        assert_eq!((kind, outcome.session_ended), (Some(CodeErrorKind::Stopped), true), "{source}");
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn a_name_that_is_no_function_of_the_host_is_none_in_the_code() {
    let only = Code { functions: vec!["slow".into()], ..code("echo(1)") };
    let host = Host::default();
    let error = session(CodeLimits::default()).await.run(only, &host).await.error.unwrap();
    assert_eq!((error.name.as_str(), error.message.as_str()), ("NameError", "name 'echo' is not defined"));
    assert!(host.calls.into_inner().unwrap().is_empty());
}

#[tokio::test]
async fn to_drop_a_run_ends_it_and_its_session() {
    for source in ["while True: pass", "never()", "await never()"] {
        let mut session = session(CodeLimits::default()).await;
        let host = Host::default();
        let dropped = tokio::time::timeout(Duration::from_millis(200), session.run(code(source), &host)).await;
        assert!(dropped.is_err(), "{source}");
        let outcome = session.run(code("1"), &host).await;
        let kind = outcome.error.map(|error| error.kind);
        assert_eq!((kind, outcome.session_ended), (Some(CodeErrorKind::Crashed), true));
    }
}
