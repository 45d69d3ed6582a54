//! What a turn costs beside its model: three model calls and two tool calls with a model that answers at once.
//!
//! Without hooks, and with a modify hook and an observe hook in Python at every point; one turn at a time and 64 at once, in alternating
//! rounds. Then what 10,000 open conversations cost in memory, what a call of a Python tool costs beside awaiting its function, and what 1,000 tools
//! cost.
//!
//! `cargo bench --bench turn -- [--rounds N]`. The interpreter's packages are those of `VIRTUAL_ENV`, else of `.venv` in the crate's folder.
//! Without cargo's `--bench` each turn is played once and nothing is timed.

mod tools;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join_all};
use serde_json::json;
use tenterhook::{
    HookEngine, Model, ModelError, ModelReply, ModelRequest, Object, POINTS, RequestedCall, Tokens, Tool, ToolContext,
    ToolOutput, ToolSpec, Toolbox, TurnEngine, TurnInput,
};
use tokio::runtime::Runtime;

/// Measures what a turn costs beside its model, in µs.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many rounds each row has
    #[arg(long, value_name = "N", default_value_t = 15)]
    rounds: usize,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Asks for a tool twice, then answers.
struct Instantly;

impl Model for Instantly {
    fn name(&self) -> &'static str {
        "instantly"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let user = request.messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
        let results = request.messages[user..].iter().filter(|message| message["role"] == "tool").count();
        let call = || RequestedCall { id: None, tool_name: "look".into(), arguments: Ok(Object::new()) };
        let reply = match results {
            0 | 1 => ModelReply { calls: vec![call()], ..ModelReply::default() },
            _ => ModelReply::text("Your parcel has not arrived yet."),
        };
        Box::pin(async { Ok(reply) })
    }
}

struct Look(Arc<ToolSpec>);

impl Tool for Look {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn call(&self, _: Object, _: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async { ToolOutput::of(json!({"place": "Hamburg"})) })
    }
}

struct Tools(Arc<Look>);

impl Toolbox for Tools {
    fn offered(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::clone(&self.0) as Arc<dyn Tool>]
    }
}

fn engine(hooks: Option<Arc<HookEngine>>) -> TurnEngine {
    let builder =
        TurnEngine::builder(Instantly).toolbox(Tools(Arc::new(Look(Arc::new(ToolSpec::new("look", "Looks"))))));
    match hooks {
        Some(hooks) => builder.hooks(hooks),
        None => builder,
    }
    .build()
}

/// A hook of each lane at each point that has it.
fn hooks(folder: &Path) -> anyhow::Result<Arc<HookEngine>> {
    let mut source = "from rasa.mantle.hooks import *\n".to_owned();
    for spec in &POINTS {
        let (name, payload) = (spec.point.name(), spec.payload);
        writeln!(source, "\n@{}()\nasync def see_{name}(payload: {payload}) -> None:\n    pass", spec.observe)?;
        if let Some(modify) = spec.modify {
            writeln!(
                source,
                "\n@{modify}()\nasync def keep_{name}(payload: {payload}) -> {payload}:\n    return payload"
            )?;
        }
    }
    fs::write(folder.join("hooks.py"), source)?;
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv");
    let named = std::env::var_os("VIRTUAL_ENV").is_some_and(|name| !name.is_empty());
    let builder = HookEngine::builder(folder);
    Ok(Arc::new(if named { builder.load()? } else { builder.python(own).load()? }))
}

/// How long `batches` batches of `at_once` turns take, each turn of a conversation that is new.
fn measure(runtime: &Runtime, engine: &TurnEngine, batches: usize, at_once: usize, first: &mut usize) -> Duration {
    let mut sender = || {
        *first += 1;
        format!("c{first}")
    };
    let start = Instant::now();
    for _ in 0..batches {
        let turns: Vec<_> =
            (0..at_once).map(|_| engine.turn(TurnInput::new(sender(), "Where is my parcel?"))).collect();
        runtime.block_on(join_all(turns.into_iter().map(StreamExt::count)));
    }
    start.elapsed()
}

fn memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or_default()
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir()?;
    let runtime = Runtime::new()?;
    let hooks = hooks(folder.path())?;
    let engines = [engine(None), engine(Some(Arc::clone(&hooks)))];
    let mut sender = 0;
    if !arguments.bench {
        for engine in &engines {
            measure(&runtime, engine, 1, 1, &mut sender);
        }
        tools::try_out(&runtime)?;
        println!("Both engines play. `cargo bench` measures them.");
        return Ok(());
    }
    println!("at once   without hooks    all points hooked    turns a second (hooked)");
    for at_once in [1, 64] {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=arguments.rounds {
            for (engine, times) in engines.iter().zip(&mut times) {
                let batches = 256 / at_once;
                let took = measure(&runtime, engine, batches, at_once, &mut sender);
                if round > 0 {
                    times.push(took.as_secs_f64() * 1e6 / 256.0);
                }
            }
        }
        let [bare, hooked] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        println!("{at_once:>7}   {bare:>10.1} µs    {hooked:>14.1} µs    {:>10.0}", 1e6 / hooked);
    }
    println!(
        "A turn of 3 model calls and 2 tool calls with an instant model; median of {} rounds of 256 turns",
        arguments.rounds
    );
    let before = memory_kb();
    let engine = engine(None);
    measure(&runtime, &engine, 10_000 / 50, 50, &mut sender);
    println!("10,000 conversations of one turn, kept in memory: {} kB more", memory_kb().saturating_sub(before));
    tools::measure(&runtime, arguments.rounds)?;
    Ok(())
}
