//! How a handler runs: its time, its task, its exceptions (cases R4, R6, R9, R15, R22, R23).

use std::process::Command;
use std::time::{Duration, Instant};

use tenterhook::{FailureCause, ModelRequestPayload, Outcome, OutgoingTextPayload, Point};

use crate::agents::{Agent, agent, builder, environment, failure, folder, proceeded};

fn text(text: &str) -> OutgoingTextPayload {
    OutgoingTextPayload::new("s", text)
}

/// What the agent's outgoing-text hook tells, asked again for up to a second while it is not what is hoped for: clean-up follows the
/// verdict.
async fn told_in_time(agent: &Agent, hoped: &str) -> String {
    for _ in 0..100 {
        let (told, _) = proceeded(agent.engine.modify(text("")).await);
        if told.text == hoped {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    proceeded(agent.engine.modify(text("")).await).0.text
}

#[tokio::test]
async fn r4_a_handler_that_awaits_too_long_times_out_and_its_finally_runs() {
    let agent = agent(
        "
import asyncio
state = []

@modify_model_request(timeout_ms=100)
async def slow(request: ModelRequestPayload) -> ModelRequestPayload:
    try:
        await asyncio.sleep(1)
    finally:
        state.append('cleaned up')
    return request

@modify_outgoing_text()
async def tell(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    return payload.model_copy(update={'text': ', '.join(state)})
",
    );
    let start = Instant::now();
    let Outcome::Failed(failed) = agent.engine.modify(ModelRequestPayload::new("s", vec![])).await else {
        panic!("a time-out at a closed point fails")
    };
    assert!(start.elapsed() >= Duration::from_millis(100) && start.elapsed() < Duration::from_millis(900));
    assert_eq!(failed.cause, FailureCause::Timeout { limit_ms: 100 });
    assert_eq!(failed.handler.function, "slow");
    assert_eq!(failed.handler.point, Point::ModelRequest);
    assert_eq!(told_in_time(&agent, "cleaned up").await, "cleaned up");
}

#[tokio::test]
async fn r6_a_cancellation_that_the_handler_raises_itself_is_an_error() {
    let agent = agent(
        "
import asyncio

@modify_outgoing_text()
async def cancel(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    raise asyncio.CancelledError()
",
    );
    assert_eq!(failure(agent.engine.modify(text("a")).await), "it raised asyncio.exceptions.CancelledError");
    assert_eq!(failure(agent.engine.modify(text("a")).await), "it raised asyncio.exceptions.CancelledError");
}

#[tokio::test]
async fn r9_exceptions_of_every_kind_fail_and_a_group_of_one_signal_is_that_signal() {
    let agent = agent(
        "
@modify_model_response()
async def fail(response: ModelResponsePayload) -> ModelResponsePayload:
    match response.text:
        case 'recursion':
            def deeper(): return deeper()
            deeper()
        case 'memory':
            raise MemoryError
        case 'group':
            raise ExceptionGroup('two', [ValueError('v'), RetryModel('again')])
        case 'one signal':
            raise ExceptionGroup('one', [ExceptionGroup('inner', [RetryModel('again')])])
    return response
",
    );
    let outcome = async |case: &str| {
        let mut payload = tenterhook::ModelResponsePayload::new("s");
        payload.text = Some(case.into());
        agent.engine.modify(payload).await
    };
    assert_eq!(failure(outcome("recursion").await), "it raised RecursionError: maximum recursion depth exceeded");
    assert_eq!(failure(outcome("memory").await), "it raised MemoryError");
    assert_eq!(failure(outcome("group").await), "it raised ExceptionGroup: two (2 sub-exceptions)");
    assert_eq!(outcome("one signal").await, Outcome::Retry { feedback: "again".into() });
    proceeded(outcome("none").await);
}

#[tokio::test]
async fn a_failure_tells_the_frames_of_the_agents_own_files() {
    let agent = agent(
        "def inner():\n    raise KeyError('k')\n\n@modify_outgoing_text()\nasync def fail(p: OutgoingTextPayload) -> OutgoingTextPayload:\n    inner()\n",
    );
    let Outcome::Proceed { failure: Some(failed), .. } = agent.engine.modify(text("a")).await else {
        panic!("an open failure proceeds")
    };
    let FailureCause::Raised { kind, message, frames } = &failed.cause else { panic!("it raised") };
    assert_eq!((kind.as_str(), message.as_str()), ("KeyError", "'k'"));
    let file = agent.folder.path().join("hooks.py").display().to_string();
    let places: Vec<_> = frames.iter().map(|frame| (frame.file == file, frame.line, frame.function.as_str())).collect();
    assert_eq!(places, [(true, 7, "fail"), (true, 3, "inner")]);
}

#[tokio::test]
async fn r15_what_a_handler_changed_in_place_before_it_failed_at_an_open_point_is_gone() {
    let agent = agent(
        "
@modify_model_response()
async def fail(response: ModelResponsePayload) -> ModelResponsePayload:
    response.tool_calls.clear()
    raise ValueError('no')
",
    );
    let mut payload = tenterhook::ModelResponsePayload::new("s");
    payload.tool_calls.push(std::sync::Arc::new(serde_json::from_str(r#"{"id": "1"}"#).unwrap()));
    let Outcome::Proceed { payload: next, changed: false, failure: Some(_), .. } =
        agent.engine.modify(payload.clone()).await
    else {
        panic!("an open failure proceeds unchanged")
    };
    assert_eq!(next, payload);
}

#[tokio::test]
async fn r22_a_handler_runs_in_a_task_of_its_own_with_a_context_of_its_own() {
    let agent = agent(
        "
import asyncio, contextvars
import anyio
seen = contextvars.ContextVar('seen', default='nothing')
tasks = set()

@modify_outgoing_text()
async def look(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    before = seen.get()
    seen.set(payload.text)
    task = asyncio.current_task()
    fresh = task is not None and task not in tasks
    tasks.add(task)
    async with asyncio.timeout(1):
        await asyncio.sleep(0)
    async with asyncio.TaskGroup() as group:
        child = group.create_task(asyncio.sleep(0, result=seen.get()))
    with anyio.fail_after(1):
        await anyio.sleep(0)
    return payload.model_copy(update={'text': f'{before} {fresh} {child.result()}'})
",
    );
    for word in ["first", "second"] {
        let (payload, _) = proceeded(agent.engine.modify(text(word)).await);
        assert_eq!(payload.text, format!("nothing True {word}"));
    }
}

#[test]
fn r23_what_handlers_print_and_log_is_kept_until_the_end() {
    let agent = folder(&[
        (
            "hooks.py",
            "
import atexit, logging, structlog
from rasa.mantle.hooks import OutgoingTextPayload, modify_outgoing_text
atexit.register(print, 'printed at exit')

@modify_outgoing_text()
async def tell(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    print('printed', end='')
    logging.getLogger('mine').warning('logged')
    structlog.get_logger().warning('structured', text_length=len(payload.text))
    return payload
",
        ),
        ("in.jsonl", r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#),
    ]);
    let done = Command::new(env!("CARGO_BIN_EXE_tenterhook"))
        .args(["run", "--output-format", "json", "--input"])
        .arg(agent.path().join("in.jsonl"))
        .arg(agent.path())
        .env("VIRTUAL_ENV", environment())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert_eq!(done.status.code(), Some(0), "{err}");
    serde_json::from_str::<serde_json::Value>(&out).expect("stdout holds the report and nothing else");
    for kept in ["printed", "WARNING mine: logged", "structured", "text_length", "printed at exit"] {
        assert!(err.contains(kept), "{kept:?} is missing in: {err}");
    }
}

#[tokio::test]
async fn a_decorators_time_limit_wins_over_the_builders_which_changes_the_default() {
    let folder = folder(&[(
        "hooks.py",
        "
from rasa.mantle.hooks import *

@modify_outgoing_text(timeout_ms=700)
async def own(p: OutgoingTextPayload) -> OutgoingTextPayload: return p

@modify_model_request()
async def default(p: ModelRequestPayload) -> ModelRequestPayload: return p

@on_model_request()
async def watch(p: ModelRequestPayload) -> None: ...
",
    )]);
    let engine = builder(&folder)
        .observe_timeout(Duration::from_millis(30))
        .modify_timeout(Duration::from_millis(40))
        .load()
        .unwrap();
    let times = |point| -> Vec<_> { engine.registered(point).iter().map(|hook| hook.timeout.as_millis()).collect() };
    assert_eq!(times(Point::OutgoingText), [700]);
    assert_eq!(times(Point::ModelRequest), [30, 40]);
}

#[tokio::test]
async fn a_caller_who_gives_up_cancels_the_handler() {
    let agent = agent(
        "
import asyncio
ended = []

@modify_model_request()
async def slow(request: ModelRequestPayload) -> ModelRequestPayload:
    try:
        await asyncio.sleep(5)
    except asyncio.CancelledError:
        ended.append('cancelled')
        raise
    return request

@modify_outgoing_text()
async def tell(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    return payload.model_copy(update={'text': str(ended)})
",
    );
    let waiting = agent.engine.modify(ModelRequestPayload::new("s", vec![]));
    assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err());
    assert_eq!(told_in_time(&agent, "['cancelled']").await, "['cancelled']");
    assert_eq!(agent.engine.statistics()[0].withdrawn, 1);
}

#[tokio::test]
async fn after_a_shutdown_calls_are_answered_by_policy() {
    let agent = agent(
        "@modify_model_request()\nasync def same(p: ModelRequestPayload) -> ModelRequestPayload: return p\n\n@modify_outgoing_text()\nasync def same_text(p: OutgoingTextPayload) -> OutgoingTextPayload: return p\n",
    );
    assert!(agent.engine.shutdown(Duration::from_secs(1)).await);
    assert_eq!(failure(agent.engine.modify(ModelRequestPayload::new("s", vec![])).await), "the engine is shut down");
    let Outcome::Proceed { failure: Some(failed), .. } = agent.engine.modify(text("a")).await else {
        panic!("an open point proceeds")
    };
    assert_eq!(failed.cause, FailureCause::ShutDown);
}

#[tokio::test]
async fn a_shutdown_waits_for_its_grace_and_cancels_the_rest() {
    let agent = agent(
        "
import asyncio

@modify_model_request(timeout_ms=60_000)
async def slow(request: ModelRequestPayload) -> ModelRequestPayload:
    await asyncio.sleep(float(request.messages[0]['content']))
    return request
",
    );
    let engine = std::sync::Arc::new(agent.engine);
    let call = |seconds: &str| {
        let engine = std::sync::Arc::clone(&engine);
        let message = serde_json::from_value(serde_json::json!({"content": seconds})).unwrap();
        let payload = ModelRequestPayload::new("s", vec![std::sync::Arc::new(message)]);
        tokio::spawn(async move { engine.modify(payload).await })
    };
    let (short, long) = (call("0.1"), call("50"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!engine.shutdown(Duration::from_millis(300)).await);
    proceeded(short.await.unwrap());
    assert_eq!(failure(long.await.unwrap()), "the engine is shut down");
}
