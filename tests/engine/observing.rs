//! Observers (cases R26, R27 and L18), and what the turn sees of them: nothing.

use std::time::{Duration, Instant};

use tenterhook::{
    IncomingMessagePayload, ModelRequestPayload, OutgoingTextPayload, TurnFinishedPayload, TurnStartedPayload,
    TurnStatus,
};

use crate::agents::{Agent, agent, builder, folder, proceeded};

/// What the module's `seen` holds, by a hook that tells it.
async fn seen(agent: &Agent) -> String {
    agent.engine.drained().await;
    proceeded(agent.engine.modify(OutgoingTextPayload::new("reader", "")).await).0.text
}

const TELL: &str = "
seen = []

@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={'text': ' '.join(seen)})
";

#[tokio::test]
async fn r26_what_an_observer_changes_nobody_else_sees() {
    let agent = agent(&format!(
        "{TELL}
@on_model_request()
async def spoil(p: ModelRequestPayload) -> None:
    p.messages.append({{'role': 'spoiled'}})
    p.channel.metadata['spoiled'] = True

@on_model_request()
async def watch(p: ModelRequestPayload) -> None:
    seen.append(f'{{len(p.messages)}} {{p.channel.metadata}}')

@modify_model_request()
async def change(p: ModelRequestPayload) -> ModelRequestPayload:
    seen.append(f'{{len(p.messages)}} {{p.channel.metadata}}')
    return p
"
    ));
    let payload = ModelRequestPayload::new("s", vec![]);
    agent.engine.observe(&payload);
    assert_eq!(proceeded(agent.engine.modify(payload.clone()).await), (payload, false));
    assert_eq!(seen(&agent).await, "0 {} 0 {}");
}

#[tokio::test]
async fn r27_a_signal_of_an_observer_is_discarded_and_is_no_failure() {
    let agent = agent(
        "
@on_incoming_message()
async def reject(p: IncomingMessagePayload) -> None:
    raise HookRejection('no')

@on_model_response()
async def retry(p: ModelResponsePayload) -> None:
    raise RetryModel('again')
",
    );
    agent.engine.observe(&IncomingMessagePayload::new("s", "a"));
    agent.engine.observe(&tenterhook::ModelResponsePayload::new("s"));
    agent.engine.drained().await;
    let counts: Vec<_> = agent
        .engine
        .statistics()
        .iter()
        .map(|hook| (hook.calls, hook.discarded_signals, hook.failures.len(), hook.rejections, hook.retries))
        .collect();
    assert_eq!(counts, [(1, 1, 0, 0, 0), (1, 1, 0, 0, 0)]);
}

#[tokio::test]
async fn an_observer_that_fails_is_counted_and_the_others_run() {
    let agent = agent(&format!(
        "{TELL}
import asyncio

@on_incoming_message()
async def fail(p: IncomingMessagePayload) -> None:
    raise ValueError('no')

@on_incoming_message(timeout_ms=50)
async def sleep(p: IncomingMessagePayload) -> None:
    await asyncio.sleep(10)

@on_incoming_message()
async def watch(p: IncomingMessagePayload) -> None:
    seen.append(p.text)
"
    ));
    let start = Instant::now();
    agent.engine.observe(&IncomingMessagePayload::new("s", "a"));
    assert!(start.elapsed() < Duration::from_millis(50), "observing never waits");
    assert_eq!(seen(&agent).await, "a");
    let statistics = agent.engine.statistics();
    let failures: Vec<_> = statistics[..3].iter().map(|hook| format!("{:?}", hook.failures)).collect();
    assert_eq!(failures, [r#"{"raised": 1}"#, r#"{"timeout": 1}"#, "{}"]);
}

#[tokio::test]
async fn l18_a_modifier_sees_the_state_that_observers_filled_earlier_in_the_turn() {
    let agent = agent(
        "
seen = {}

@on_turn_started()
async def start(p: TurnStartedPayload) -> None:
    seen[p.sender_id] = ['started']

@on_incoming_message()
async def hear(p: IncomingMessagePayload) -> None:
    seen[p.sender_id].append(p.text)

@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={'text': ' '.join(seen.pop(p.sender_id))})
",
    );
    for turn in 0..200 {
        let sender = format!("s{turn}");
        agent.engine.observe(&TurnStartedPayload::new(&sender));
        agent.engine.observe(&IncomingMessagePayload::new(&sender, "hello"));
        let (told, _) = proceeded(agent.engine.modify(OutgoingTextPayload::new(&sender, "")).await);
        assert_eq!(told.text, "started hello");
    }
}

#[tokio::test]
async fn when_observers_cannot_keep_up_the_oldest_is_dropped_and_a_turns_pair_only_together() {
    let folder = folder(&[(
        "hooks.py",
        "
import time
from rasa.mantle.hooks import *
started, finished, heard = [], [], []

@on_turn_started()
async def start(p: TurnStartedPayload) -> None:
    started.append(p.turn_id)

@on_turn_finished()
async def finish(p: TurnFinishedPayload) -> None:
    finished.append(p.turn_id)

@on_incoming_message()
async def hear(p: IncomingMessagePayload) -> None:
    heard.append(p.text)
    if p.text == 'block':
        time.sleep(0.3)

@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={'text': f'{started == finished} {len(started)} {len(heard)}'})
",
    )]);
    let engine = builder(&folder).observer_queue(10).load().unwrap();
    engine.observe(&IncomingMessagePayload::new("s", "block"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    for turn in 0..100 {
        let mut started = TurnStartedPayload::new("s");
        started.turn_id = Some(turn.to_string());
        let mut finished = TurnFinishedPayload::new("s", TurnStatus::Completed);
        finished.turn_id = Some(turn.to_string());
        engine.observe(&started);
        engine.observe(&IncomingMessagePayload::new("s", "a"));
        engine.observe(&finished);
    }
    engine.drained().await;
    let (told, _) = proceeded(engine.modify(OutgoingTextPayload::new("t", "")).await);
    let statistics = engine.statistics();
    let dropped: Vec<_> = statistics.iter().map(|hook| hook.dropped).collect();
    let ended: Vec<_> = statistics.iter().map(|hook| hook.calls).collect();
    let [started, heard, told_calls, finished] = ended[..] else { panic!("four hooks") };
    assert_eq!(told_calls, 1);
    assert_eq!(told.text, format!("True {started} {heard}"));
    assert_eq!(started, finished);
    assert_eq!((started + dropped[0], heard + dropped[1], finished + dropped[3]), (100, 101, 100));
    assert!(started + heard + finished <= 13 && started > 0, "{ended:?}");
}
