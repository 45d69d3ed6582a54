//! 64 turns at once over hooks of which some do everything wrong: one call in a hundred, then one in ten.
//!
//! `CHAOS_SECONDS` says how long both phases take together (60 where `CI` is set, else 10); `CHAOS_SEED` replays a run. What is asserted is
//! order and outcome; times are printed.

mod agent;
mod endurance;
mod tally;

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use tenterhook::{
    Error, FailureCause, HandlerFailure, HookEngine, IncomingMessagePayload, Isolation, Outcome, OutgoingTextPayload,
    PythonError, ToolCallPayload,
};

use agent::{BAD_TIMEOUT, KINDS};
use tally::{Phase, memory_kb, threads};

/// Turns at once.
const TURNS: usize = 64;

/// Between two calls of a turn: a model answers meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

/// Engines that share the turns.
const ENGINES: usize = 4;

#[test]
fn every_call_has_one_outcome_whatever_other_hooks_do() {
    chaos(Isolation::Thread, 1);
}

#[test]
fn every_call_has_one_outcome_in_processes_that_are_killed() {
    chaos(Isolation::Process, 3);
}

/// Plays for a part of the time that is asked for.
fn chaos(isolation: Isolation, part: u64) {
    let seed = std::env::var("CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand_seed);
    let default = if std::env::var_os("CI").is_some() { 60 } else { 10 };
    let seconds = std::env::var("CHAOS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    println!("CHAOS_SEED={seed} CHAOS_SECONDS={seconds} {isolation:?}");
    let folders: Vec<_> = (0..ENGINES).map(|_| agent::write()).collect();
    let engines: Vec<_> = folders.iter().map(|folder| Arc::new(agent::load(folder, isolation))).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let phase = Duration::from_secs(seconds / part) / 2;
    // The first calls fill caches and start threads.
    runtime.block_on(play(&engines, seed, 1000, Duration::from_secs(1)));
    let (memory, thread_count) = (memory_kb(), threads());
    for (bad_of, strict) in [(100, true), (10, false)] {
        let tally = runtime.block_on(play(&engines, seed ^ bad_of, bad_of, phase));
        println!("one call in {bad_of} bad:\n{tally}");
        assert_eq!(tally.outcomes, tally.calls, "each call has exactly one outcome");
        assert_eq!(tally.wrong, Vec::<String>::new(), "a good handler's answer is right, or its loop was lost");
        if strict {
            assert_eq!(tally.good_failed, 0, "a good handler that does not await answers");
        }
    }
    let settled = Instant::now();
    while engines.iter().any(|engine| engine.health().stuck > 0) && settled.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let lost: usize = engines.iter().map(|engine| engine.health().retired.len()).sum();
    let restarts: u64 = engines.iter().filter_map(|engine| engine.health().worker).map(|worker| worker.restarts).sum();
    println!("processes started again {restarts}; calls lost with them are told above");
    println!("memory {memory} -> {} kB, threads {thread_count} -> {}, of them given up {lost}", memory_kb(), threads());
    assert!(engines.iter().all(|engine| engine.health().retired.len() <= engine.health().most_lost));
    assert!(memory_kb() < memory + 60_000, "memory grows");
    assert!(threads() <= thread_count + lost + 2 * ENGINES, "threads are left over");
    for engine in &engines {
        runtime.block_on(engine.shutdown(Duration::from_millis(200)));
    }
}

fn rand_seed() -> u64 {
    u64::from(Instant::now().elapsed().subsec_nanos()) ^ u64::from(std::process::id()) << 16
}

async fn play(engines: &[Arc<HookEngine>], seed: u64, bad_of: u64, time: Duration) -> Phase {
    let until = Instant::now() + time;
    let turns = (0..TURNS).map(|turn| {
        let engine = Arc::clone(&engines[turn % engines.len()]);
        tokio::spawn(one_turn(engine, seed.wrapping_mul(31).wrapping_add(turn as u64), bad_of, until))
    });
    let turns: Vec<_> = turns.collect();
    let wardens: Vec<_> = engines.iter().map(|engine| tokio::spawn(let_out(Arc::clone(engine), until))).collect();
    let mut all = Phase::default();
    for turn in turns {
        all.add(turn.await.expect("a turn does not panic"));
    }
    for warden in wardens {
        all.reloads += warden.await.expect("a reload does not panic");
    }
    all
}

/// Reloads an engine when its bad hook has been quarantined: it is to go on; gives how often.
async fn let_out(engine: Arc<HookEngine>, until: Instant) -> u64 {
    let mut reloads = 0;
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let quarantined = engine.health().quarantined;
        assert!(quarantined.iter().all(|handler| handler.function == "bad"), "only the guilty: {quarantined:?}");
        if !quarantined.is_empty() {
            let engine = Arc::clone(&engine);
            match tokio::task::spawn_blocking(move || engine.reload()).await.unwrap() {
                Ok(()) => reloads += 1,
                // The import shares the interpreter with all that is bad: what is loaded goes on, and it is tried again.
                Err(Error::Python(PythonError::LoadTimeout { .. })) => {
                    println!("a reload had not ended after its time");
                }
                Err(other) => panic!("the modules are good: {other}"),
            }
        }
    }
    reloads
}

/// Calls one hook after the other until the time is over.
async fn one_turn(engine: Arc<HookEngine>, seed: u64, bad_of: u64, until: Instant) -> Phase {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut below = move |limit: u64| random.next_u64() % limit;
    let mut tally = Phase::default();
    let sender = format!("turn-{seed}");
    tokio::time::sleep(PAUSE.mul_f64(f64::from(u32::try_from(below(100)).unwrap()) / 100.0)).await;
    while Instant::now() < until {
        tally.calls += 1;
        let start = Instant::now();
        if below(bad_of) == 0 {
            let kind = KINDS[usize::try_from(below(KINDS.len() as u64)).unwrap()];
            let call = engine.modify(ToolCallPayload::new(&sender, kind, serde_json::Map::new()));
            if below(10) == 0 {
                // The caller goes away.
                let outcome = tokio::time::timeout(Duration::from_millis(5), call).await;
                tally.withdrawn += u64::from(outcome.is_err());
            } else {
                let outcome = call.await;
                if let Some(FailureCause::Timeout { .. }) = cause(&outcome) {
                    tally.overrun(start.elapsed().saturating_sub(BAD_TIMEOUT));
                }
                tally.count_bad(kind, &outcome);
            }
        } else if below(2) == 0 {
            let text = format!("{}", below(1000));
            let outcome = engine.modify(OutgoingTextPayload::new(&sender, &text)).await;
            match &outcome {
                Outcome::Proceed { payload, changed: true, .. } if payload.text == format!("good {text}") => {
                    tally.good += 1;
                }
                other => match cause(other) {
                    Some(cause) => tally.good_failure(cause),
                    None => tally.wrong.push(format!("{other:?}")),
                },
            }
        } else {
            let outcome = engine.modify(IncomingMessagePayload::new(&sender, "text")).await;
            match &outcome {
                Outcome::Proceed { payload, changed: true, .. } if payload.text == "waited text" => tally.awaited += 1,
                other => match cause(other) {
                    Some(FailureCause::LoopLost) => tally.loop_lost += 1,
                    Some(cause) => tally.awaiting_failure(cause),
                    None => tally.wrong.push(format!("{other:?}")),
                },
            }
        }
        tally.outcomes += 1;
        tokio::time::sleep(PAUSE).await;
    }
    tally
}

/// Why a call failed, where it did.
fn cause<P>(outcome: &Outcome<P>) -> Option<&FailureCause> {
    match outcome {
        Outcome::Failed(HandlerFailure { cause, .. })
        | Outcome::Proceed { failure: Some(HandlerFailure { cause, .. }), .. } => Some(cause),
        _ => None,
    }
}
