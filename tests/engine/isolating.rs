//! Hooks in a process of their own: the same answers, and what a thread cannot stop.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenterhook::{
    Error, FailureCause, HookEngine, HookEngineBuilder, IncomingMessagePayload, Isolation, ModelRequestPayload,
    ModelResponsePayload, Outcome, OutgoingTextPayload, StaticCheck, ToolResultPayload, TurnStartedPayload,
    WorkerError, WorkerHealth,
};

use crate::agents::{Agent, builder, failure, folder, indented, proceeded, until};

const NO_ARGUMENTS: [&str; 0] = [];

fn apart(builder: HookEngineBuilder) -> HookEngineBuilder {
    let worker = env!("CARGO_BIN_EXE_tenterhook");
    builder.isolation(Isolation::Process).worker_command(worker, NO_ARGUMENTS).static_check(StaticCheck::Off)
}

fn agent(hooks: &str) -> Agent {
    let folder = folder(&[("hooks.py", &format!("from rasa.mantle.hooks import *\nimport os, re, time\n{hooks}"))]);
    let engine = apart(builder(&folder)).load().unwrap_or_else(|error| panic!("{error}"));
    Agent { engine, folder }
}

/// An agent whose model-request hook has 100 ms and does `body`; its outgoing-text hook counts its calls, its incoming-message
/// hook waits.
fn blocking(body: &str) -> Agent {
    let body = indented(body);
    agent(&format!(
        "
import asyncio
count = []

@modify_model_request(timeout_ms=100)
async def block(request: ModelRequestPayload) -> ModelRequestPayload:
{body}
    return request

@modify_outgoing_text(timeout_ms=4000)
async def good(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    count.append(1)
    return payload.model_copy(update={{'text': f'{{payload.text}} {{len(count)}}'}})

@modify_incoming_message(timeout_ms=4000)
async def wait(payload: IncomingMessagePayload) -> IncomingMessagePayload:
    with open(payload.text, 'a') as file:
        file.write('ran ')
    await asyncio.sleep(3)
    return payload
"
    ))
}

fn request() -> ModelRequestPayload {
    ModelRequestPayload::new("s", vec![])
}

fn text(text: &str) -> OutgoingTextPayload {
    OutgoingTextPayload::new("s", text)
}

fn worker(agent: &Agent) -> WorkerHealth {
    agent.engine.health().worker.expect("the hooks have a process of their own")
}

fn is_alive(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn until_gone(process: u32) {
    let start = Instant::now();
    while is_alive(process) {
        assert!(start.elapsed() < Duration::from_secs(10), "the worker {process} does not end");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What catastrophic matching of a regular expression does: it keeps the interpreter's lock for longer than any test runs.
const CATASTROPHE: &str = "re.match(r'(a+)+$', 'a' * 40 + 'b')";

#[tokio::test]
async fn the_outcomes_are_those_of_hooks_on_a_thread() {
    let agent = agent(
        "
@modify_outgoing_text()
async def reject(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    raise HookRejection(reason='no', response_message='Sorry.')

@modify_model_response()
async def again(payload: ModelResponsePayload) -> ModelResponsePayload:
    raise RetryModel('shorter')

@modify_incoming_message()
async def crash(payload: IncomingMessagePayload) -> IncomingMessagePayload:
    raise ValueError('broken')

@modify_tool_result()
async def wrong(payload: ToolResultPayload) -> ToolResultPayload:
    return None
",
    );
    let outcome = agent.engine.modify(text("hello")).await;
    assert_eq!(outcome, Outcome::Reject { reason: "no".into(), response: Some("Sorry.".into()) });
    let outcome = agent.engine.modify(ModelResponsePayload::new("s")).await;
    assert_eq!(outcome, Outcome::Retry { feedback: "shorter".into() });
    let Outcome::Failed(failed) = agent.engine.modify(IncomingMessagePayload::new("s", "hello")).await else {
        panic!("the point is closed")
    };
    let FailureCause::Raised { kind, message, frames } = failed.cause else { panic!("{:?}", failed.cause) };
    let line = frames.last().map(|frame| (frame.file.ends_with("hooks.py"), frame.line, frame.function.as_str()));
    assert_eq!((kind.as_str(), message.as_str(), line), ("ValueError", "broken", Some((true, 14, "crash"))));
    let result = ToolResultPayload::new("s", "tool", serde_json::Map::new(), json!("value"));
    assert_eq!(
        failure(agent.engine.modify(result).await),
        "It returned a `NoneType`; expected `ToolResultPayload`: to leave it unchanged, return it"
    );
    assert_eq!(proceeded(agent.engine.modify(request()).await), (request(), false));
}

#[tokio::test]
async fn payloads_come_back_as_they_went() {
    let agent = agent(
        "
@modify_model_request()
async def add(payload: ModelRequestPayload) -> ModelRequestPayload:
    return payload.model_copy(update={'messages': [*payload.messages, {'role': 'system'}]})
",
    );
    let deep = (0..120).fold(json!(1), |inner, _| json!([inner]));
    let message = json!({
        "z": 0.1 + 0.2, "a": 1.797_693_134_862_315_7e308, "role": "ü\u{0}🦀", "big": u64::MAX, "small": i64::MIN,
        "deep": deep, "last": -0.0, "none": null,
    });
    let Value::Object(message) = message else { unreachable!() };
    let given = ModelRequestPayload::new("s", vec![message.into()]);
    let (got, changed) = proceeded(agent.engine.modify(given.clone()).await);
    assert!(changed);
    let shown = |payload: &ModelRequestPayload| serde_json::to_string(&payload.messages[0]).unwrap();
    assert_eq!((shown(&got), got.messages.len()), (shown(&given), 2));
}

#[tokio::test]
async fn observers_run_in_the_process_and_before_the_modifiers_after_them() {
    let agent = agent(
        "
seen = []

@on_turn_started()
async def start(payload: TurnStartedPayload) -> None:
    seen.append(payload.turn_id)

@modify_outgoing_text()
async def tell(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    return payload.model_copy(update={'text': f'{seen} {os.getpid()}'})
",
    );
    for turn in ["one", "two"] {
        let mut started = TurnStartedPayload::new("s");
        started.turn_id = Some(turn.into());
        agent.engine.observe(&started);
    }
    let process = worker(&agent).process.unwrap();
    assert_ne!(process, std::process::id());
    let (told, _) = proceeded(agent.engine.modify(text("")).await);
    assert_eq!(told.text, format!("['one', 'two'] {process}"));
    agent.engine.drained().await;
    let counts: Vec<_> = agent.engine.statistics().iter().map(|of| (of.calls, of.failures.len())).collect();
    assert_eq!(counts, [(2, 0), (1, 0)]);
}

#[tokio::test]
async fn c_code_that_keeps_the_lock_costs_the_process_and_its_verdict_is_on_time() {
    let agent = blocking(CATASTROPHE);
    assert_eq!(proceeded(agent.engine.modify(text("call")).await).0.text, "call 1");
    let before = worker(&agent);
    let file = agent.folder.path().join("ran");
    let start = Instant::now();
    let waiting = IncomingMessagePayload::new("s", file.to_str().unwrap());
    let blocked = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let start = Instant::now();
        let outcome = agent.engine.modify(request()).await;
        (failure(outcome), start.elapsed())
    };
    let (waited, (blocked, after)) = tokio::join!(agent.engine.modify(waiting), blocked);
    assert_eq!(blocked, "it was not done after 100 ms");
    assert!(after >= Duration::from_millis(100) && after < Duration::from_millis(250), "{after:?}");
    assert_eq!(failure(waited), "the process that its hooks run in was started again");
    assert!(start.elapsed() < Duration::from_secs(3), "it fails when the process ends, not at its deadline");
    // A call that comes meanwhile waits for the process, whose modules begin anew; what was lost is not run again.
    assert_eq!(proceeded(agent.engine.modify(text("call")).await).0.text, "call 1");
    assert_eq!(fs::read_to_string(file).unwrap(), "ran ");
    let after = worker(&agent);
    assert!(after.process.is_some() && after.process != before.process, "{after:?}");
    assert_eq!(after.restarts, 1);
    let hooks = agent.folder.path().join("hooks.py");
    assert_eq!(after.stack.first(), Some(&format!("{}:9 in block", hooks.display())), "{:?}", after.stack);
}

#[tokio::test]
async fn a_handler_that_has_cost_three_processes_is_quarantined_until_the_reload() {
    let agent = blocking(CATASTROPHE);
    for restarts in 1..=3 {
        assert_eq!(failure(agent.engine.modify(request()).await), "it was not done after 100 ms");
        until(&agent, |health| health.worker.as_ref().is_some_and(|worker| worker.restarts == restarts)).await;
        assert!(proceeded(agent.engine.modify(text("call")).await).1);
    }
    let said = failure(agent.engine.modify(request()).await);
    assert_eq!(said, "it is quarantined, since it has blocked three threads for good; reload the engine");
    let quarantined: Vec<_> = agent.engine.health().quarantined.iter().map(ToString::to_string).collect();
    assert_eq!(quarantined, ["hooks:block"]);
    assert!(proceeded(agent.engine.modify(text("call")).await).1);
    agent.engine.reload().unwrap();
    assert_eq!(failure(agent.engine.modify(request()).await), "it was not done after 100 ms");
}

#[tokio::test]
async fn a_thread_that_would_be_given_up_costs_the_process_instead() {
    let agent = blocking("time.sleep(30)");
    let (blocked, good) = tokio::join!(agent.engine.modify(request()), async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        agent.engine.modify(text("call")).await
    });
    assert_eq!(failure(blocked), "it was not done after 100 ms");
    // It has four seconds, and waits one of them before it is moved: the process is gone by then.
    assert_eq!(failure(good), "the process that its hooks run in was started again");
    let health = until(&agent, |health| health.worker.as_ref().is_some_and(|worker| worker.process.is_some())).await;
    assert_eq!((health.retired.len(), health.worker.unwrap().restarts), (0, 1));
}

#[tokio::test]
async fn a_handler_that_can_be_interrupted_costs_nothing() {
    let agent = blocking("while True:\n    pass");
    let process = worker(&agent).process;
    assert_eq!(failure(agent.engine.modify(request()).await), "it was not done after 100 ms");
    assert_eq!(proceeded(agent.engine.modify(text("call")).await).0.text, "call 1");
    let after = worker(&agent);
    assert_eq!((after.process, after.restarts), (process, 0));
}

#[tokio::test]
async fn a_handler_that_ends_the_process_fails_and_is_not_run_twice() {
    let agent = blocking("open('count', 'a').write('x')\nos._exit(3)");
    let count = std::path::absolute("count").unwrap();
    let _ = fs::remove_file(&count);
    assert_eq!(failure(agent.engine.modify(request()).await), "the process that its hooks run in was started again");
    assert_eq!(proceeded(agent.engine.modify(text("call")).await).0.text, "call 1");
    let ran = fs::read_to_string(&count).unwrap();
    fs::remove_file(count).unwrap();
    assert_eq!(ran, "x");
}

#[tokio::test]
async fn a_process_that_is_stopped_is_killed_and_its_calls_end_on_time() {
    let agent = blocking("pass");
    let process = worker(&agent).process.unwrap();
    assert!(Command::new("kill").args(["-STOP", &process.to_string()]).status().unwrap().success());
    let start = Instant::now();
    assert_eq!(failure(agent.engine.modify(request()).await), "it was not done after 100 ms");
    assert!(start.elapsed() < Duration::from_millis(250), "{:?}", start.elapsed());
    assert_eq!(failure(agent.engine.modify(text("call")).await), "the process that its hooks run in was started again");
    assert_eq!(proceeded(agent.engine.modify(text("call")).await).0.text, "call 1");
    until_gone(process).await;
}

#[tokio::test]
async fn what_hooks_print_does_not_meet_the_frames() {
    let agent = blocking("print('out')\nos.write(1, b'raw')\nos.system('echo child; cat')");
    for _ in 0..3 {
        proceeded(agent.engine.modify(request()).await);
    }
    assert_eq!(worker(&agent).restarts, 0);
}

#[tokio::test]
async fn a_withdrawn_call_is_cancelled_in_the_process() {
    let agent = agent(
        "
import asyncio
ended = []

@modify_model_request(timeout_ms=60000)
async def slow(payload: ModelRequestPayload) -> ModelRequestPayload:
    try:
        await asyncio.sleep(60)
    finally:
        ended.append(1)

@modify_outgoing_text()
async def tell(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    return payload.model_copy(update={'text': str(len(ended))})
",
    );
    assert!(tokio::time::timeout(Duration::from_millis(200), agent.engine.modify(request())).await.is_err());
    let start = Instant::now();
    while proceeded(agent.engine.modify(text("")).await).0.text != "1" {
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_shutdown_and_a_drop_end_the_process() {
    let agent = blocking("pass");
    let process = worker(&agent).process.unwrap();
    proceeded(agent.engine.modify(request()).await);
    assert!(agent.engine.shutdown(Duration::from_secs(2)).await);
    until_gone(process).await;
    assert_eq!(failure(agent.engine.modify(request()).await), "the engine is shut down");
    let agent = blocking(CATASTROPHE);
    let process = worker(&agent).process.unwrap();
    let call = tokio::time::timeout(Duration::from_millis(50), agent.engine.modify(request())).await;
    assert!(call.is_err());
    drop(agent);
    until_gone(process).await;
}

#[tokio::test]
async fn a_reload_swaps_the_process() {
    let agent = blocking("pass");
    let before = worker(&agent).process.unwrap();
    fs::write(
        agent.folder.path().join("hooks.py"),
        "from rasa.mantle.hooks import *\n@modify_outgoing_text()\nasync def new(p: OutgoingTextPayload) -> OutgoingTextPayload:\n    return p.model_copy(update={'text': 'new'})\n",
    )
    .unwrap();
    agent.engine.reload().unwrap();
    assert_eq!(proceeded(agent.engine.modify(text("old")).await).0.text, "new");
    until_gone(before).await;
}

#[tokio::test]
async fn modules_that_have_changed_are_told_of_when_the_process_is_started_again() {
    let agent = blocking("os._exit(3)");
    fs::write(
        agent.folder.path().join("hooks.py"),
        "from rasa.mantle.hooks import *\n@modify_outgoing_text()\nasync def new(p: OutgoingTextPayload) -> OutgoingTextPayload:\n    return p\n",
    )
    .unwrap();
    assert_eq!(failure(agent.engine.modify(request()).await), "the process that its hooks run in was started again");
    assert_eq!(failure(agent.engine.modify(request()).await), "the process that its hooks run in was started again");
    agent.engine.reload().unwrap();
    proceeded(agent.engine.modify(text("old")).await);
}

#[test]
fn the_settings_of_the_agent_ask_for_a_process() {
    let hooks = "from rasa.mantle.hooks import *\n@modify_outgoing_text()\nasync def same(p: OutgoingTextPayload) -> OutgoingTextPayload:\n    return p\n";
    let folder = folder(&[("hooks.py", hooks), ("tenterhook.toml", "isolation = \"process\"\n")]);
    let worker = env!("CARGO_BIN_EXE_tenterhook");
    let engine = builder(&folder).worker_command(worker, NO_ARGUMENTS).load().unwrap();
    assert!(engine.health().worker.is_some());
    let engine = builder(&folder).isolation(Isolation::Thread).load().unwrap();
    assert!(engine.health().worker.is_none());
}

fn refused(hooks: &str, settings: impl FnOnce(HookEngineBuilder) -> HookEngineBuilder) -> String {
    let folder = folder(&[("hooks.py", hooks)]);
    let error = settings(apart(HookEngine::builder(folder.path()).python(crate::agents::environment())))
        .load()
        .expect_err("the load is refused");
    error.to_string().replace(folder.path().to_str().unwrap(), "AGENT")
}

#[test]
fn a_load_that_fails_says_what_it_says_on_a_thread() {
    let same = |builder: HookEngineBuilder| builder;
    assert_eq!(refused("from rasa.mantle.hooks import *\n", same), {
        "The hook modules in `AGENT` register no hook\n  hint: decorate an `async def` function, for example with `@modify_model_request()` from `rasa.mantle.hooks`"
    });
    let folder = folder(&[("hooks.py", "1 / 0\n")]);
    let error = apart(builder(&folder)).load().unwrap_err();
    let Error::Invalid { problems, .. } = error else { panic!("{error}") };
    assert_eq!(problems.iter().map(|problem| problem.rule.as_str()).collect::<Vec<_>>(), ["import-failed"]);
    let said = refused("while True: pass\n", |builder| builder.load_timeout(Duration::from_millis(200)));
    assert!(said.contains("200ms"), "{said}");
}

#[test]
fn a_worker_that_is_not_there_is_told_of() {
    let said = refused("", |builder| builder.worker_command("/no/such/program", NO_ARGUMENTS));
    assert_eq!(
        said,
        "The worker `/no/such/program` cannot be started: No such file or directory (os error 2)\n  hint: hooks in a process of their own need the command `tenterhook`: install it, or name another with `worker_command`"
    );
    let folder = folder(&[("hooks.py", "")]);
    let error = apart(builder(&folder)).worker_command("/bin/false", NO_ARGUMENTS).load().unwrap_err();
    assert!(matches!(error, Error::Worker(WorkerError::Ended { .. })), "{error}");
}
