//! What the hooks of a manifest add to a request whose model and tool answer at once, and how it grows with the conversation and with the
//! hooks.
//!
//! Each row is a request of one model call: without hooks, with one start hook whose arguments are written out, and with one whose arguments
//! are a template, of the user's last words and of the last four messages. The tool is a Python function beside the manifest, so that a hook
//! is at least one call on the lane. All rows alternate in each round.
//!
//! `cargo bench --bench quickapp -- [--rounds N]`. The interpreter's packages are those of `VIRTUAL_ENV`, else of `.venv` in the crate's
//! folder. Without cargo's `--bench` each request is played once and nothing is timed.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook::{
    HookEngine, Model, ModelError, ModelReply, ModelRequest, Object, QuickApp, RequestEvent, RequestInput,
    RequestStatus, Tokens,
};
use tokio::runtime::Runtime;

/// Measures what hooks of a manifest add to a request, in µs.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many rounds each row has
    #[arg(long, value_name = "N", default_value_t = 15)]
    rounds: usize,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Answers at once.
struct Instantly;

impl Model for Instantly {
    fn name(&self) -> &'static str {
        "instantly"
    }

    fn complete<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async { Ok(ModelReply::text("Your parcel has not arrived yet.")) })
    }
}

const TOOLS: &str = "from rasa.mantle.tools.decorator import tool
from rasa.mantle.tools.result import ToolResult


@tool(description='Looks')
async def look(query: str) -> ToolResult:
    return ToolResult(llm_response='seen')
";

/// An app with these start hooks, and the folder of its manifest.
struct Loaded {
    app: QuickApp,
    _folder: TempDir,
}

fn loaded(arguments: &[Value]) -> anyhow::Result<Loaded> {
    let folder = tempfile::tempdir()?;
    let hook = |arguments| json!({"kind": "tool_call", "event": "on_request_start", "tool_name": "look", "arguments": arguments});
    let hooks: Vec<_> = arguments.iter().map(hook).collect();
    let manifest =
        json!({"tool_sets": [{"type": "internal", "name": "own", "tools": ["look"]}], "hooks": hooks}).to_string();
    let path = folder.path().join("app.json");
    fs::write(&path, manifest)?;
    fs::write(folder.path().join("tools.py"), TOOLS)?;
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv");
    let named = std::env::var_os("VIRTUAL_ENV").is_some_and(|name| !name.is_empty());
    let builder = HookEngine::builder(folder.path());
    let builder = if named { builder } else { builder.python(own) };
    let app = QuickApp::loader(&path).hooks(builder).model(Instantly).load()?.app;
    Ok(Loaded { app, _folder: folder })
}

/// A conversation of so many messages of 200 characters, the last of the user's.
fn conversation(count: usize) -> Vec<Arc<Object>> {
    let message = |index: usize| {
        let role = if (count - index) % 2 == 1 { "user" } else { "assistant" };
        Arc::new(Object::from_iter([
            ("role".to_owned(), json!(role)),
            ("content".to_owned(), json!(format!("{index:0200}"))),
        ]))
    };
    (0..count).map(message).collect()
}

/// How long a request takes, in µs, the mean of `times`.
fn measure(runtime: &Runtime, loaded: &Loaded, messages: &[Arc<Object>], times: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        let input = RequestInput { messages: messages.to_vec(), ..RequestInput::default() };
        let last = runtime.block_on(loaded.app.request(input).fold(None, async |_, event| Some(event)));
        let done = matches!(last, Some(RequestEvent::Finished { status: RequestStatus::Completed, .. }));
        assert!(done, "{last:?}");
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(times)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The medians of these apps, in alternating rounds.
fn compare(runtime: &Runtime, apps: &[&Loaded], messages: &[Arc<Object>], rounds: usize) -> Vec<f64> {
    let mut times = vec![Vec::new(); apps.len()];
    for round in 0..=rounds {
        for (app, times) in apps.iter().zip(&mut times) {
            let took = measure(runtime, app, messages, 32);
            // The first round warms up.
            if round > 0 {
                times.push(took);
            }
        }
    }
    times.into_iter().map(median).collect()
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime = Runtime::new()?;
    let literal = |index: usize| json!({"query": format!("parcel {index}")});
    let rows = [
        vec![],
        vec![literal(0)],
        vec![json!({"query": "${last_user_message.content}"})],
        vec![json!({"query": {"$json": {"$eval": "messages[-4:]"}}})],
    ];
    let apps = rows.iter().map(|hooks| loaded(hooks)).collect::<anyhow::Result<Vec<_>>>()?;
    let apps: Vec<_> = apps.iter().collect();
    if !arguments.bench {
        for app in apps {
            measure(&runtime, app, &conversation(10), 1);
        }
        println!("Each request is answered. `cargo bench` measures them.");
        return Ok(());
    }
    println!("messages   no hooks   written out   last words   last four   last words / written out");
    for count in [1, 10, 100, 1_000] {
        let found = compare(&runtime, &apps, &conversation(count), arguments.rounds);
        let [bare, literal, words, four] = found[..] else { unreachable!("there are four apps") };
        println!(
            "{count:>8}   {bare:>5.1} µs   {:>+8.1} µs   {:>+7.1} µs   {:>+6.1} µs   {:>24.2}",
            literal - bare,
            words - bare,
            four - bare,
            (words - bare) / (literal - bare)
        );
    }
    println!("What one start hook adds to a request of one model call; medians of {} rounds of 32", arguments.rounds);
    println!("\nhooks   a request   each hook");
    let many = [1, 10, 100].map(|count| (0..count).map(literal).collect::<Vec<_>>());
    for hooks in many {
        let app = loaded(&hooks)?;
        let found = compare(&runtime, &[apps[0], &app], &conversation(10), arguments.rounds);
        #[expect(clippy::cast_precision_loss, reason = "a hundred hooks")]
        let each = (found[1] - found[0]) / hooks.len() as f64;
        println!("{:>5}   {:>6.0} µs   {each:>6.1} µs", hooks.len(), found[1]);
    }
    Ok(())
}
