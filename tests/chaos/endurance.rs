//! Very many calls: nothing grows.

use std::fs;

use futures_util::future::join_all;
use tenterhook::{Isolation, Outcome, OutgoingTextPayload};

use crate::agent;
use crate::tally::{memory_kb, threads};

/// Calls before what is measured: caches fill.
const WARM_UP: usize = 50_000;

#[test]
fn a_million_calls_leave_memory_threads_and_file_handles_as_they_were() {
    let calls = if std::env::var_os("CI").is_some() { 1_000_000 } else { 100_000 };
    let folder = agent::write();
    let engine = agent::load(&folder, Isolation::Thread);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let play = |calls: usize| {
        runtime.block_on(async {
            for _ in 0..calls / 64 {
                let at_once = join_all((0..64).map(|_| engine.modify(OutgoingTextPayload::new("s", "text")))).await;
                assert!(at_once.iter().all(|outcome| matches!(outcome, Outcome::Proceed { changed: true, .. })));
            }
        });
    };
    let handles = || fs::read_dir("/proc/self/fd").unwrap().count();
    play(WARM_UP);
    let (memory, threads_before, handles_before) = (memory_kb(), threads(), handles());
    play(calls);
    println!("{calls} calls: memory {memory} -> {} kB", memory_kb());
    assert!(memory_kb() < memory + 5_000, "{} kB more", memory_kb() - memory);
    assert_eq!((threads(), handles()), (threads_before, handles_before));
}
