//! What calling a Python tool costs beside awaiting its function, and what many tools cost.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use tenterhook::{
    HookEngine, Model, ModelError, ModelReply, ModelRequest, RequestedCall, Tokens, TurnEngine, TurnInput,
};
use tokio::runtime::Runtime;

/// How many calls a batch has.
const CALLS: usize = 64;

/// Asks for some calls, then answers.
struct Calling(usize);

impl Model for Calling {
    fn name(&self) -> &'static str {
        "calling"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let called = request.messages.last().is_some_and(|message| message["role"] == "tool");
        let arguments = json!({"number": 17, "name": "parcel"});
        let call = || RequestedCall {
            id: None,
            tool_name: "look_0".into(),
            arguments: Ok(arguments.as_object().cloned().unwrap_or_default()),
        };
        let reply = match self.0 {
            calls if calls > 0 && !called => {
                ModelReply { calls: (0..calls).map(|_| call()).collect(), ..ModelReply::default() }
            }
            _ => ModelReply::text("It is in Hamburg."),
        };
        Box::pin(async { Ok(reply) })
    }
}

fn source(tools: usize) -> String {
    let mut source =
        "from rasa.mantle.tools.decorator import tool\nfrom rasa.mantle.tools.result import ToolResult\n".to_owned();
    for index in 0..tools {
        let _ = write!(
            source,
            "\n\n@tool(description='Look where something is')\nasync def look_{index}(number: int, name: str, kind: str = 'parcel') \
             -> ToolResult:\n    return ToolResult(llm_response={{'place': 'Hamburg', 'number': number}})\n"
        );
    }
    source
}

fn loaded(folder: &Path, tools: usize, calls: usize) -> anyhow::Result<TurnEngine> {
    fs::write(folder.join("agent.yml"), "agent: {persona: You find things.}\n")?;
    fs::write(folder.join("tools.py"), source(tools))?;
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv");
    let named = std::env::var_os("VIRTUAL_ENV").is_some_and(|name| !name.is_empty());
    let hooks = HookEngine::builder(folder);
    let hooks = if named { hooks } else { hooks.python(own) };
    Ok(TurnEngine::loader(folder).hooks(hooks).model(Calling(calls)).load()?.engine)
}

fn turns(runtime: &Runtime, engine: &TurnEngine, number: usize, first: &mut usize) -> Duration {
    let start = Instant::now();
    for _ in 0..number {
        *first += 1;
        let _ = runtime.block_on(engine.turn(TurnInput::new(format!("t{first}"), "Where is it?")).count());
    }
    start.elapsed()
}

/// How long awaiting the tool's function takes in the same interpreter, one after the other.
fn awaited(calls: usize) -> anyhow::Result<f64> {
    Python::attach(|py| -> PyResult<f64> {
        let scope = PyDict::new(py);
        scope.set_item("source", source(1))?;
        scope.set_item("calls", calls)?;
        let code = c_str!(
            "import asyncio, time\nspace = {'__name__': 'plain'}\nexec(source, space)\n\nasync def main():\n    look = \
             space['look_0']\n    start = time.perf_counter()\n    for _ in range(calls):\n        await look(number=17, \
             name='parcel')\n    return time.perf_counter() - start\n\ntook = asyncio.run(main())\n"
        );
        py.run(code, Some(&scope), Some(&scope))?;
        scope.get_item("took")?.map_or(Ok(0.0), |took| took.extract())
    })
    .map_err(Into::into)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Plays each case once and times nothing.
pub(crate) fn try_out(runtime: &Runtime) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    turns(runtime, &loaded(folder.path(), 2, 1)?, 1, &mut 0);
    awaited(1)?;
    Ok(())
}

/// Measures and prints.
pub(crate) fn measure(runtime: &Runtime, rounds: usize) -> anyhow::Result<()> {
    let mut first = 0;
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?, tempfile::tempdir()?];
    let without = loaded(folders[0].path(), 1, 0)?;
    let (mut alone, mut batch, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    let (one, many) = (loaded(folders[1].path(), 1, 1)?, loaded(folders[2].path(), 1, CALLS)?);
    for round in 0..=rounds {
        let nothing = turns(runtime, &without, CALLS, &mut first).as_secs_f64() / 64.0;
        let single = turns(runtime, &one, CALLS, &mut first).as_secs_f64() / 64.0;
        let several = turns(runtime, &many, 4, &mut first).as_secs_f64() / 4.0;
        let direct = awaited(10_000)? / 10_000.0;
        if round > 0 {
            alone.push((single - nothing) * 1e6);
            batch.push((several - nothing) * 1e6 / 64.0);
            plain.push(direct * 1e6);
        }
    }
    println!("\na tool call       µs");
    println!("awaited directly  {:>6.2}", median(plain));
    println!("alone in a turn   {:>6.1}  (with its model call)", median(alone));
    println!("one of {CALLS} at once {:>6.1}", median(batch));
    println!("\ntools   load        a turn of one model call");
    for tools in [1, 1_000] {
        let folder = tempfile::tempdir()?;
        let start = Instant::now();
        let engine = loaded(folder.path(), tools, 0)?;
        let took = start.elapsed();
        turns(runtime, &engine, 8, &mut first);
        let times = (0..rounds).map(|_| turns(runtime, &engine, 16, &mut first).as_secs_f64() * 1e6 / 16.0).collect();
        println!("{tools:>5}   {:>6.0} ms   {:>6.0} µs", took.as_secs_f64() * 1e3, median(times));
    }
    Ok(())
}
