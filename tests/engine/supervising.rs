//! A handler that does not give its thread back: what becomes of it, and of the others (cases R1, R2, R3, R5, R7, R21, R24, R28, L15).

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tenterhook::{
    FailureCause, IncomingMessagePayload, ModelRequestPayload, Outcome, OutgoingTextPayload, StaticCheck,
    ToolCallPayload, TurnStartedPayload,
};

use crate::agents::{Agent, agent, agent_of, builder, failure, folder, indented, proceeded, until};

fn text(text: &str) -> OutgoingTextPayload {
    OutgoingTextPayload::new("s", text)
}

fn request() -> ModelRequestPayload {
    ModelRequestPayload::new("s", vec![])
}

/// An agent whose model-request hook has 100 ms and does `body`; its outgoing-text hook, which has 400 ms, is a good one.
fn blocking(body: &str) -> Agent {
    let body = indented(body);
    agent(&format!(
        "
import asyncio, os, re, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
count = []

@modify_model_request(timeout_ms=100)
async def block(request: ModelRequestPayload) -> ModelRequestPayload:
{body}
    return request

@modify_outgoing_text(timeout_ms=400)
async def good(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    count.append(1)
    return payload.model_copy(update={{'text': f'{{payload.text}} {{len(count)}}'}})
"
    ))
}

/// Lets the handler block, and meanwhile calls the good one five times: the blocker times out on time, and all good ones answer.
async fn survives(agent: &Agent) {
    let start = Instant::now();
    let blocked = async {
        let outcome = agent.engine.modify(request()).await;
        (outcome, start.elapsed())
    };
    let others = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let calls = (0..5).map(|_| agent.engine.modify(text("call")));
        futures_util::future::join_all(calls).await
    };
    let ((outcome, after), others) = tokio::join!(blocked, others);
    let Outcome::Failed(failed) = outcome else { panic!("the handler does not end in time: {outcome:?}") };
    assert_eq!(failed.cause, FailureCause::Timeout { limit_ms: 100 });
    assert!(after >= Duration::from_millis(100) && after < Duration::from_millis(300), "{after:?}");
    // On a busy machine the lane may have taken the first of them together with the blocker: it is then served last.
    let mut texts: Vec<_> = others.into_iter().map(|outcome| proceeded(outcome).0.text).collect();
    texts.sort();
    assert_eq!(texts, ["call 1", "call 2", "call 3", "call 4", "call 5"]);
    assert_eq!(proceeded(agent.engine.modify(text("next")).await).0.text, "next 6");
}

#[tokio::test]
async fn r1_a_handler_that_sleeps_times_out_on_time_and_the_others_are_moved() {
    let agent = blocking("time.sleep(1)");
    survives(&agent).await;
    let health = until(&agent, |health| health.retired.len() == 1).await;
    assert_eq!(health.taken_over, 1);
    assert_eq!(health.retired[0].handler.as_ref().unwrap().function, "block");
    until(&agent, |health| !health.retired[0].stack.is_empty()).await;
    // The thread comes back when the sleep is over, and leaves the count.
    // It ends when its tasks have, and counts as serving until then.
    let health = until(&agent, |health| health.retired.is_empty() && health.serving == 1).await;
    assert_eq!((health.serving, health.stuck, health.exhausted), (1, 0, false));
}

#[tokio::test]
async fn r1_a_short_sleep_costs_no_thread_and_the_lane_becomes_home_again() {
    let agent = blocking("time.sleep(0.2)");
    survives(&agent).await;
    let health = until(&agent, |health| health.stuck == 0 && health.serving == 1).await;
    assert_eq!((health.retired.len(), health.taken_over), (0, 1));
    assert_eq!(proceeded(agent.engine.modify(text("home")).await).0.text, "home 7");
}

#[tokio::test]
async fn r2_an_endless_loop_is_interrupted_and_its_thread_serves_again() {
    for body in ["while True: pass", "await asyncio.sleep(0)\nwhile True: pass"] {
        let agent = blocking(body);
        survives(&agent).await;
        let health = until(&agent, |health| health.stuck == 0 && health.serving == 1).await;
        assert_eq!((health.retired.len(), health.quarantined.len()), (0, 0), "{body}");
    }
}

#[tokio::test]
async fn r2_a_loop_in_a_task_of_the_handlers_own_and_in_a_callback_is_interrupted() {
    let child = "async def spin():\n    while True: pass\nawait asyncio.create_task(spin())";
    let callback =
        "def spin():\n    while True: pass\nasyncio.get_running_loop().call_soon(spin)\nawait asyncio.sleep(1)";
    for body in [child, callback] {
        let agent = blocking(body);
        let outcome = agent.engine.modify(request()).await;
        assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
        let calls = (0..5).map(|_| agent.engine.modify(text("call")));
        for outcome in futures_util::future::join_all(calls).await {
            proceeded(outcome);
        }
        until(&agent, |health| health.stuck == 0 && health.serving == 1).await;
        assert_eq!(proceeded(agent.engine.modify(text("next")).await).0.text, "next 6", "{body}");
    }
}

#[tokio::test]
async fn r2_a_loop_that_swallows_the_interrupt_is_parked() {
    let agent = blocking("def f():\n    while True: pass\nwhile True:\n    try: f()\n    except BaseException: pass");
    survives(&agent).await;
    let health = until(&agent, |health| health.retired.len() == 1).await;
    assert_eq!(health.retired[0].handler.as_ref().unwrap().function, "block");
    assert_eq!(health.serving, 1);
}

#[tokio::test]
async fn r3_a_swallowed_cancellation_times_out_and_its_late_result_is_dropped() {
    let agent =
        blocking("try:\n    await asyncio.sleep(9)\nexcept asyncio.CancelledError:\n    await asyncio.sleep(0.2)");
    survives(&agent).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let health = agent.engine.health();
    assert_eq!((health.taken_over, health.retired.len(), health.serving), (0, 0, 1));
}

#[tokio::test]
async fn r5_r7_nothing_that_a_handler_does_ends_the_loop_or_the_process() {
    let bodies = [
        ("raise SystemExit(3)", "SystemExit"),
        ("sys.exit()", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("asyncio.get_running_loop().close()", "RuntimeError"),
        ("asyncio.run(asyncio.sleep(0))", "asyncio.run() cannot be called from a running event loop"),
        ("class Late(BaseException):\n    def __del__(self): raise ValueError\nraise Late", "Late"),
        (
            "try:\n    1 / 0\nfinally:\n    sys.setrecursionlimit(100)\n    sys.setrecursionlimit(1000)",
            "ZeroDivisionError",
        ),
        ("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_DFL)", "ValueError"),
        ("threading.Thread(target=sys.exit).start()\nraise LookupError", "LookupError"),
    ];
    for (body, said) in bodies {
        let agent = blocking(body);
        let told = failure(agent.engine.modify(request()).await);
        assert!(told.contains(said), "{body}: {told}");
        assert_eq!(proceeded(agent.engine.modify(text("next")).await).0.text, "next 1", "{body}");
    }
    for body in ["asyncio.get_running_loop().stop()", "asyncio.get_running_loop().call_soon(sys.exit)"] {
        let agent = blocking(body);
        proceeded(agent.engine.modify(request()).await);
        assert_eq!(proceeded(agent.engine.modify(text("next")).await).0.text, "next 1", "{body}");
    }
}

#[tokio::test]
async fn a_child_that_a_handler_forks_ends_without_touching_the_engine() {
    let agent = blocking("if os.fork() == 0:\n    request.messages.append({'role': 'child'})\nelse:\n    os.wait()");
    let (payload, _) = proceeded(agent.engine.modify(request()).await);
    assert_eq!(payload.messages.len(), 0, "the answer is the parent's");
    assert_eq!(proceeded(agent.engine.modify(text("next")).await).0.text, "next 1");
}

#[tokio::test]
async fn r21_a_task_that_outlives_its_handler_runs_on() {
    let agent = blocking(
        "async def later():\n    await asyncio.sleep(0.05)\n    count.append(1)\nasyncio.create_task(later())",
    );
    proceeded(agent.engine.modify(request()).await);
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(proceeded(agent.engine.modify(text("next")).await).0.text, "next 2");
}

#[tokio::test]
async fn r24_a_blocking_observer_delays_neither_the_turn_nor_the_other_observers() {
    let mut hooks = String::from("import time\nseen = []\n");
    for number in 0..10 {
        let body = match number {
            3 => "time.sleep(2)",
            5 => "raise ValueError",
            _ => "seen.append(1)",
        };
        writeln!(hooks, "@on_turn_started()\nasync def watch{number}(p: TurnStartedPayload) -> None: {body}").unwrap();
    }
    hooks += "@modify_outgoing_text()\nasync def tell(p: OutgoingTextPayload) -> OutgoingTextPayload: return p.model_copy(update={'text': str(len(seen))})\n";
    let agent = agent(&hooks);
    let start = Instant::now();
    agent.engine.observe(&TurnStartedPayload::new("s"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(proceeded(agent.engine.modify(text("")).await).0.text, "8");
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    let failures = || -> Vec<_> { agent.engine.statistics().into_iter().flat_map(|row| row.failures).collect() };
    until(&agent, |health| health.open == 0).await;
    assert_eq!(failures(), [("timeout", 1), ("raised", 1)]);
}

#[tokio::test]
async fn r28_what_holds_the_interpreter_in_c_gets_its_verdict_on_time_and_all_is_well_after_it() {
    let agent = blocking("if not count: sum(range(10 ** 8))");
    let start = Instant::now();
    let outcome = agent.engine.modify(request()).await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert!(start.elapsed() < Duration::from_millis(300), "{:?}", start.elapsed());
    // Nobody can be called until C returns; then all is well, on one thread.
    while !matches!(agent.engine.modify(text("again")).await, Outcome::Proceed { failure: None, .. }) {
        assert!(start.elapsed() < Duration::from_secs(30));
    }
    until(&agent, |health| health.stuck == 0 && health.serving == 1 && health.retired.is_empty()).await;
}

#[tokio::test]
async fn what_was_suspended_on_a_blocked_loop_ends_as_loop_lost_and_is_counted_apart() {
    let agent = agent(
        "
import asyncio, time
@modify_model_request(timeout_ms=300)
async def waits(request: ModelRequestPayload) -> ModelRequestPayload:
    await asyncio.sleep(0.05)
    return request
@modify_tool_call(timeout_ms=200)
async def block(call: ToolCallPayload) -> ToolCallPayload:
    time.sleep(1)
    return call
",
    );
    let waiting = agent.engine.modify(request());
    let blocking = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        agent.engine.modify(ToolCallPayload::new("s", "t", serde_json::Map::new())).await
    };
    let (waiting, blocking) = tokio::join!(waiting, blocking);
    let cause = |outcome: String| outcome;
    assert_eq!(cause(failure(waiting)), "it was waiting on an event loop that another hook blocked");
    assert_eq!(cause(failure(blocking)), "it was not done after 200 ms");
    assert_eq!(agent.engine.health().loop_lost, 1);
}

#[tokio::test]
async fn modules_are_kept_and_what_is_bound_to_the_lost_loop_says_so() {
    let agent = agent(
        "
import asyncio, time
seen = {}
lock = asyncio.Lock()
@modify_incoming_message(timeout_ms=400)
async def locks(message: IncomingMessagePayload) -> IncomingMessagePayload:
    seen['calls'] = seen.get('calls', 0) + 1
    async with lock:
        await asyncio.sleep(0.02)
    return message.model_copy(update={'text': str(seen['calls'])})
@modify_tool_call(timeout_ms=50)
async def block(call: ToolCallPayload) -> ToolCallPayload:
    time.sleep(3)
    return call
",
    );
    let locks = || agent.engine.modify(IncomingMessagePayload::new("s", ""));
    // Contended once: the lock is bound to the first loop from here on.
    let (one, other) = tokio::join!(locks(), locks());
    assert_eq!((proceeded(one).0.text, proceeded(other).0.text), ("2".to_owned(), "2".to_owned()));
    failure(agent.engine.modify(ToolCallPayload::new("s", "t", serde_json::Map::new())).await);
    let (one, other) = tokio::join!(locks(), locks());
    let (one, other) = (format!("{one:?}"), format!("{other:?}"));
    assert!(one.contains("text: \"4\""), "module-level state goes on: {one}");
    assert!(other.contains("is bound to a different event loop"), "{other}");
}

/// The source of a hook that has 20 ms and sleeps for so many seconds, and of a good one.
fn costing(seconds: u32) -> String {
    format!(
        "
import time
from rasa.mantle.hooks import *
@modify_model_request(timeout_ms=20)
async def block(request: ModelRequestPayload) -> ModelRequestPayload:
    time.sleep({seconds})
    return request
@modify_outgoing_text()
async def good(payload: OutgoingTextPayload) -> OutgoingTextPayload: return payload
"
    )
}

#[tokio::test]
async fn a_handler_that_has_cost_three_threads_is_quarantined_until_the_reload() {
    let agent = agent_of(&[("hooks.py", &costing(2))]);
    for lost in 1..=3 {
        assert_eq!(failure(agent.engine.modify(request()).await), "it was not done after 20 ms");
        until(&agent, |health| health.retired.len() == lost).await;
    }
    let health = agent.engine.health();
    assert_eq!(health.quarantined.iter().map(|id| id.function.as_str()).collect::<Vec<_>>(), ["block"]);
    let start = Instant::now();
    let said = "it is quarantined, since it has blocked three threads for good; reload the engine";
    assert_eq!(failure(agent.engine.modify(request()).await), said);
    assert!(start.elapsed() < Duration::from_millis(15), "it fails at once");
    proceeded(agent.engine.modify(text("")).await);
    let mended =
        std::fs::read_to_string(agent.folder.path().join("hooks.py")).unwrap().replace("    time.sleep(2)\n", "");
    std::fs::write(agent.folder.path().join("hooks.py"), mended).unwrap();
    agent.engine.reload().unwrap();
    proceeded(agent.engine.modify(request()).await);
    assert_eq!(agent.engine.health().quarantined, []);
}

#[tokio::test]
async fn at_the_cap_calls_are_answered_by_policy_at_once_until_a_thread_comes_back() {
    let folder = folder(&[("hooks.py", &costing(1))]);
    let engine = builder(&folder).static_check(StaticCheck::Off).most_lost_threads(1).load().unwrap();
    let agent = Agent { engine, folder };
    for _ in 0..2 {
        failure(agent.engine.modify(request()).await);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    until(&agent, |health| health.exhausted).await;
    assert_eq!(failure(agent.engine.modify(text("")).await), "too many threads are stuck in hooks");
    until(&agent, |health| !health.exhausted).await;
    proceeded(agent.engine.modify(text("")).await);
}

#[tokio::test]
async fn a_reload_that_fails_leaves_what_runs_and_calls_in_flight_end_on_the_old_modules() {
    let hooks = |word: &str| {
        format!(
            "
import asyncio
from rasa.mantle.hooks import *
@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    await asyncio.sleep(0.2)
    return p.model_copy(update={{'text': '{word}'}})
"
        )
    };
    let agent = agent_of(&[("hooks.py", &hooks("old"))]);
    let file = agent.folder.path().join("hooks.py");
    std::fs::write(&file, "import nothing_of_this_name\n").unwrap();
    assert!(agent.engine.reload().unwrap_err().to_string().contains("nothing_of_this_name"));
    let flight = agent.engine.modify(text(""));
    let reloaded = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        std::fs::write(&file, hooks("new")).unwrap();
        agent.engine.reload().unwrap();
        proceeded(agent.engine.modify(text("")).await).0.text
    };
    let (old, new) = tokio::join!(flight, reloaded);
    assert_eq!((proceeded(old).0.text.as_str(), new.as_str()), ("old", "new"));
}

#[test]
fn l15_an_endless_import_is_refused_and_its_thread_is_taken_back() {
    let hooks = "import threading\nfrom rasa.mantle.hooks import *\nwhile True:\n    try:\n        while True: pass\n    except Exception: pass\n";
    let folder = folder(&[("hooks.py", hooks)]);
    let error =
        builder(&folder).load_timeout(Duration::from_millis(200)).static_check(StaticCheck::Off).load().unwrap_err();
    assert!(error.to_string().contains("were not imported within 200ms"), "{error}");
    // Nothing spins on: another agent is loaded and called as if nothing had been.
    let agent = blocking("pass");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { proceeded(agent.engine.modify(text("next")).await) });
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_no_blocked_thread_behind() {
    let agent = blocking("while True: pass");
    let gone = tokio::time::timeout(Duration::from_millis(20), agent.engine.modify(request())).await;
    assert!(gone.is_err());
    proceeded(agent.engine.modify(text("next")).await);
    until(&agent, |health| health.stuck == 0 && health.serving == 1 && health.retired.is_empty()).await;
}

#[tokio::test]
async fn a_shutdown_ends_though_a_handler_is_stuck() {
    let agent = blocking("time.sleep(30)");
    let engine = agent.engine;
    let (outcome, drained) = tokio::join!(engine.modify(request()), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let start = Instant::now();
        (engine.shutdown(Duration::from_millis(50)).await, start.elapsed())
    });
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert!(drained.1 < Duration::from_secs(2), "{:?}", drained.1);
}

#[tokio::test]
async fn what_is_suspended_on_a_thread_that_was_given_up_goes_on_when_it_comes_back() {
    let agent = agent(
        "
import asyncio, time
@modify_model_request(timeout_ms=100)
async def block(request: ModelRequestPayload) -> ModelRequestPayload:
    time.sleep(0.45)
    return request
@modify_outgoing_text(timeout_ms=5000)
async def waits(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    await asyncio.sleep(0.7)
    return payload.model_copy(update={'text': 'done'})
",
    );
    let (waiting, ()) = tokio::join!(agent.engine.modify(text("")), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        failure(agent.engine.modify(request()).await);
        until(&agent, |health| health.retired.len() == 1).await;
    });
    assert_eq!(proceeded(waiting).0.text, "done");
    until(&agent, |health| health.retired.is_empty() && health.serving == 1).await;
}

#[tokio::test]
async fn a_thread_that_blocks_while_its_handler_cleans_up_leaves_the_count_when_it_comes_back() {
    let agent = blocking("try:\n    await asyncio.sleep(10)\nfinally:\n    time.sleep(0.6)");
    failure(agent.engine.modify(request()).await);
    // Somebody comes once it blocks, and waits: else nobody minds.
    tokio::time::sleep(Duration::from_millis(50)).await;
    proceeded(agent.engine.modify(text("next")).await);
    until(&agent, |health| health.retired.len() == 1).await;
    until(&agent, |health| health.retired.is_empty() && health.stuck == 0).await;
    proceeded(agent.engine.modify(text("next")).await);
}

#[tokio::test]
async fn a_task_that_its_handler_has_left_behind_and_that_blocks_is_interrupted_or_given_up() {
    for (body, lost) in [("while True: pass", 0), ("time.sleep(4)", 1)] {
        let agent = blocking(&format!(
            "async def later():\n    await asyncio.sleep(0.02)\n    {body}\ncount.append(asyncio.create_task(later()))"
        ));
        proceeded(agent.engine.modify(request()).await);
        tokio::time::sleep(Duration::from_millis(60)).await;
        proceeded(agent.engine.modify(text("next")).await);
        until(&agent, |health| health.retired.len() == lost && health.stuck == 0).await;
        assert_eq!(agent.engine.health().taken_over, 1, "{body}");
    }
}

#[tokio::test]
async fn a_handler_that_another_has_kept_from_its_clean_up_is_not_blamed() {
    let agent = agent(
        "
import asyncio, time
@modify_tool_call(timeout_ms=5000)
async def slow(call: ToolCallPayload) -> ToolCallPayload:
    await asyncio.sleep(0.05)
    time.sleep(0.6)
    return call
@modify_outgoing_text(timeout_ms=100)
async def innocent(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    try: await asyncio.sleep(1)
    finally: time.sleep(0.06)
    return payload
",
    );
    for _ in 0..3 {
        let slow = agent.engine.modify(ToolCallPayload::new("s", "t", serde_json::Map::new()));
        let (slow, _) = tokio::join!(slow, agent.engine.modify(text("")));
        proceeded(slow);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let health = agent.engine.health();
    assert_eq!((health.retired.len(), health.quarantined.len()), (0, 0));
}

#[tokio::test]
async fn a_thread_is_not_parked_where_it_may_hold_a_lock_of_others() {
    let agent = agent(
        "
import logging
log = logging.getLogger('x')
log.addHandler(logging.StreamHandler(open('/dev/null', 'w')))
log.setLevel(logging.INFO)
log.propagate = False
@modify_model_request(timeout_ms=100)
async def block(request: ModelRequestPayload) -> ModelRequestPayload:
    while True:
        try: log.info('working')
        except BaseException: pass
@modify_outgoing_text(timeout_ms=2000)
async def logs(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    log.info('hello')
    return payload
",
    );
    failure(agent.engine.modify(request()).await);
    until(&agent, |health| health.retired.len() == 1).await;
    for _ in 0..5 {
        proceeded(agent.engine.modify(text("")).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn take_overs_and_reloads_leave_no_file_handle_behind() {
    let agent = blocking("time.sleep(0.13)");
    let handles = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut before = 0;
    for round in 0..8 {
        if round == 2 {
            before = handles();
        }
        tokio::join!(agent.engine.modify(request()), agent.engine.modify(text("")));
        until(&agent, |health| health.stuck == 0 && health.serving == 1).await;
        agent.engine.reload().unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(handles() <= before + 4, "{before} -> {}", handles());
}
