//! What a call of a modify hook costs, beside what it costs in plain Python and by pyo3-async-runtimes.
//!
//! Payloads of 1, 20 and 100 messages of 200 characters; handlers that return the payload, append a message, or rewrite all
//! messages; one call at a time and 64 at once. All three runners call the same handler in the same interpreter, in
//! alternating rounds of equally many calls. Measured from the payload to the result, in µs a call:
//!
//! * tenterhook: `HookEngine::modify`, payload and outcome owned by Rust;
//! * plain Python: `asyncio.wait_for(handler(payload.model_copy(deep=True)), 0.5)`, never leaving Python;
//! * pyo3-async-runtimes + pythonize: messages to Python, `into_future_with_locals` under `tokio::time::timeout`, messages back.
//!
//! `cargo bench --bench dispatch -- [--quick] [--messages N] [--growth DIR] [--rounds N] [--json FILE] [--asyncio]`. The interpreter's packages are those
//! of `VIRTUAL_ENV`, else of `.venv` in the crate's folder. Without cargo's `--bench` the results are checked and nothing is
//! timed.

mod case;
mod growth;
mod report;
mod runner;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use tenterhook::{HookEngine, ModelRequestPayload};
use tokio::runtime::Runtime;

use case::{AT_ONCE, MESSAGES, Variant, messages};
use report::{RUNNERS, Report, Row};
use runner::{PythonSide, Runner, Tenterhook};

/// As the command has it: with the system's allocator 64 calls at once take about a sixth longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures what a call of a modify hook costs, in µs.
#[derive(Debug, Parser)]
struct Arguments {
    /// Also write what was measured to FILE
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// How many rounds each row has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Only payloads of N messages: 1, 20 or 100
    #[arg(long, value_name = "N")]
    messages: Option<usize>,
    /// Measure how cost grows with payload and observers instead, and write the plots into DIR
    #[arg(long, value_name = "DIR")]
    growth: Option<PathBuf>,
    /// Fewer and shorter rounds, for a first look
    #[arg(long)]
    quick: bool,
    /// Run all loops on asyncio's own implementation, even where uvloop is installed
    #[arg(long)]
    asyncio: bool,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// How much is measured.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    /// How long plain Python runs in a round, roughly.
    round: Duration,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let (rounds, millis) = if arguments.quick { (7, 10) } else { (31, 30) };
    let rounds = arguments.rounds.map_or(rounds, usize::from);
    let effort = arguments.bench.then_some(Effort { rounds, round: Duration::from_millis(millis) });

    let agents = tempfile::tempdir()?;
    let runtime = Runtime::new()?;
    start_interpreter(agents.path())?;
    let python = PythonSide::new(arguments.asyncio)?;
    if let Some(folder) = &arguments.growth {
        return growth::measure(&runtime, &python, agents.path(), rounds, folder);
    }
    let mut rows = Vec::new();
    for variant in Variant::ALL {
        let folder = agents.path().join(variant.name());
        variant.write_agent(&folder)?;
        let engine = HookEngine::load(&folder)?;
        for count in MESSAGES.into_iter().filter(|count| arguments.messages.is_none_or(|only| only == *count)) {
            rows.extend(measure(&runtime, &engine, &python, &folder, variant, count, effort)?);
        }
        for hook in engine.statistics() {
            ensure!(hook.failures.is_empty(), "Calls of `{}` failed: {:?}", hook.handler, hook.failures);
        }
    }
    if effort.is_none() {
        println!("The runners agree. `cargo bench` measures them.");
        return Ok(());
    }
    rows.sort_by_key(|row| (row.messages, row.at_once));
    let report = Report::new(python.about.clone(), rounds, rows);
    println!("{}", report.as_text());
    if let Some(file) = arguments.json {
        let text = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(&file, text).with_context(|| format!("`{}` cannot be written", file.display()))?;
    }
    Ok(())
}

/// Starts Python by a load of an agent that is not measured: what is measured may need modules that are set up before.
fn start_interpreter(agents: &Path) -> anyhow::Result<()> {
    let folder = agents.join("first");
    Variant::Unchanged.write_agent(&folder)?;
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv");
    let builder = HookEngine::builder(&folder);
    let named = std::env::var_os("VIRTUAL_ENV").is_some_and(|name| !name.is_empty());
    if named || !own.is_dir() {
        builder.load()?
    } else {
        builder.python(own).load()?
    };
    Ok(())
}

/// Checks that the runners agree, then measures them at each concurrency.
fn measure(
    runtime: &Runtime,
    engine: &HookEngine,
    python: &PythonSide,
    folder: &Path,
    variant: Variant,
    count: usize,
    effort: Option<Effort>,
) -> anyhow::Result<Vec<Row>> {
    let messages = messages(count);
    let handler = python.handler(folder)?;
    let payload = ModelRequestPayload::new("bench", messages.clone());
    let tenterhook = Tenterhook { runtime, engine, payload };
    let plain = python.plain(&handler, &messages)?;
    let bridge = python.bridge(runtime, &handler, &messages)?;
    let runners: [&dyn Runner; RUNNERS.len()] = [&tenterhook, &plain, &bridge];
    for (runner, name) in runners.iter().zip(RUNNERS) {
        let right = runner.once()? == variant.expected(&messages);
        ensure!(right, "{name} gives a wrong result for {count} messages, {}", variant.name());
    }
    let Some(Effort { rounds, round }) = effort else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for at_once in AT_ONCE {
        let most = AT_ONCE[AT_ONCE.len() - 1];
        plain.measure(most / at_once, at_once)?;
        let trial = plain.measure(most / at_once, at_once)?;
        let times = usize::try_from(round.as_nanos() / trial.as_nanos().max(1))?.max(1);
        let batches = times * most / at_once;
        for runner in runners {
            runner.measure(batches.div_ceil(4), at_once)?;
        }
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let mut round = [Duration::ZERO; RUNNERS.len()];
            for (time, runner) in round.iter_mut().zip(runners) {
                *time = runner.measure(batches, at_once)?;
            }
            times.push(round);
        }
        rows.push(Row::new(count, variant.name(), at_once, batches * at_once, &times));
    }
    Ok(rows)
}
