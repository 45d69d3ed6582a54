//! What the sandbox for generated code costs: a call of a function from within it beside the same call without, a session, a run; and what an
//! execution costs around its model.
//!
//! `cargo bench --bench execute -- [--rounds N]`. The interpreter's packages are those of `VIRTUAL_ENV`, else of `.venv` in the crate's folder;
//! `pydantic-monty` is to be among them. Without cargo's `--bench` each row is played once and nothing is timed.

mod iterations;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tenterhook::{Code, CodeHost, CodeLimits, CodeRunner, HostCall, HostRefusal, Sandbox};
use tokio::runtime::Runtime;

/// Measures what the sandbox for generated code costs, in µs.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many rounds each row has
    #[arg(long, value_name = "N", default_value_t = 15)]
    rounds: usize,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Calls in one run.
const CALLS: u32 = 200;

/// Gives what it is given.
struct Echo;

impl CodeHost for Echo {
    fn call(&self, call: HostCall) -> BoxFuture<'_, Result<Value, HostRefusal>> {
        Box::pin(async move { Ok(call.positional.into_iter().next().unwrap_or_default()) })
    }

    fn printed(&self, _: &str) {}
}

/// A row: its name, its source, and how many of what it counts are in it.
const ROWS: [(&str, &str, u32); 5] = [
    ("an empty run", "pass", 1),
    ("a plain call", "for i in range(200): echo(i)", CALLS),
    ("an awaited call", "for i in range(200): await echo(i)", CALLS),
    ("a gathered call", "import asyncio\nawait asyncio.gather(*[echo(i) for i in range(200)])", CALLS),
    ("a turn of a loop within", "for i in range(200): i * i", CALLS),
];

fn main() {
    let arguments = Arguments::parse();
    let rounds = if arguments.bench { arguments.rounds } else { 1 };
    let runtime = Runtime::new().expect("a runtime");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let runner = Sandbox::start_in(folder, None).unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(measure(&runner, rounds));
}

async fn measure(runner: &Arc<dyn CodeRunner>, rounds: usize) {
    println!("{:<44}{:>12}", "", "µs (median)");
    row("a call without the sandbox", middle(direct(rounds).await));
    row("a session opened and dropped", middle(opened(runner, rounds).await));
    for (name, source, parts) in ROWS {
        row(name, middle(run(runner, source, rounds).await) / parts);
    }
    for at_once in [8, 64] {
        let name = format!("a session with 10 awaited calls, {at_once} at once");
        row(&name, middle(together(runner, at_once, rounds).await) / at_once);
    }
    iterations::measure(runner, rounds).await;
}

fn row(name: &str, time: Duration) {
    println!("{name:<44}{:>12.1}", time.as_secs_f64() * 1e6);
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

async fn direct(rounds: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        for i in 0..CALLS {
            let call =
                HostCall { name: "echo".into(), positional: vec![json!(i)], named: serde_json::Map::new(), line: 1 };
            assert_eq!(Echo.call(call).await, Ok(json!(i)));
        }
        times.push(started.elapsed() / CALLS);
    }
    times
}

async fn opened(runner: &Arc<dyn CodeRunner>, rounds: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        drop(runner.open(limits()).await.expect("a session"));
        times.push(started.elapsed());
    }
    times
}

async fn run(runner: &Arc<dyn CodeRunner>, source: &str, rounds: usize) -> Vec<Duration> {
    let mut session = runner.open(limits()).await.expect("a session");
    let mut times = Vec::new();
    for _ in 0..rounds {
        let outcome = session.run(code(source), &Echo).await;
        assert_eq!(outcome.error, None);
        times.push(outcome.elapsed);
    }
    times
}

async fn together(runner: &Arc<dyn CodeRunner>, at_once: u32, rounds: usize) -> Vec<Duration> {
    let one = || async {
        let mut session = runner.open(limits()).await.expect("a session");
        let outcome = session.run(code("for i in range(10): await echo(i)"), &Echo).await;
        assert_eq!(outcome.error, None);
    };
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        join_all((0..at_once).map(|_| one())).await;
        times.push(started.elapsed());
    }
    times
}

fn code(source: &str) -> Code {
    Code { source: source.into(), functions: vec!["echo".into()], ..Code::default() }
}

fn limits() -> CodeLimits {
    CodeLimits { calls: 1_000_000, ..CodeLimits::default() }
}
