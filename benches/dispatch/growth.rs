//! How cost grows: of a call with its payload, and of an observation with the number of observers. Two plots.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use plotters::prelude::*;
use tenterhook::{HookEngine, ModelRequestPayload};
use tokio::runtime::Runtime;

use crate::case::{Variant, messages};
use crate::runner::{PythonSide, Runner, Tenterhook};

/// How many messages the payloads have.
const MESSAGES: [usize; 7] = [1, 3, 10, 30, 100, 300, 1000];

/// How many observers stand at the point.
const OBSERVERS: [usize; 6] = [0, 1, 3, 10, 30, 100];

/// Calls at a time.
const AT_ONCE: usize = 64;

/// Observations that are made one after the other, before all are waited for: fewer than a queue drops.
const BURST: usize = 30;

/// A line of a plot: its name, and its points.
type Line = (&'static str, Vec<(f64, f64)>);

/// Measures both, prints them and writes the plots into `folder`.
pub(crate) fn measure(
    runtime: &Runtime,
    python: &PythonSide,
    agents: &Path,
    rounds: usize,
    folder: &Path,
) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let calls = by_messages(runtime, python, agents, rounds)?;
    let title = format!("A modify call by the size of its payload, {AT_ONCE} at once");
    plot(&folder.join("cost-by-messages.svg"), &title, "messages of 200 characters", &calls)?;
    let observations = by_observers(runtime, agents, rounds)?;
    let title = "What `engine.observe` costs the turn, by the number of observers";
    plot(&folder.join("cost-by-observers.svg"), title, "observers", &observations)?;
    for (what, lines) in [("messages", &calls), ("observers", &observations)] {
        let mut text = format!("{what:>10}");
        for (name, _) in lines {
            write!(text, "  {name:>14}")?;
        }
        for (row, (x, _)) in lines[0].1.iter().enumerate() {
            write!(text, "\n{x:>10}")?;
            for (_, points) in lines {
                write!(text, "  {:>11.1} µs", points[row].1)?;
            }
        }
        println!("{text}\n");
    }
    Ok(())
}

fn by_messages(runtime: &Runtime, python: &PythonSide, agents: &Path, rounds: usize) -> anyhow::Result<Vec<Line>> {
    let folder = agents.join("growth");
    Variant::Unchanged.write_agent(&folder)?;
    let engine = HookEngine::load(&folder)?;
    let handler = python.handler(&folder)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for count in MESSAGES {
        let messages = messages(count);
        let payload = ModelRequestPayload::new("bench", messages.clone());
        let tenterhook = Tenterhook { runtime, engine: &engine, payload };
        let plain = python.plain(&handler, &messages)?;
        let batches = (600 / count).clamp(1, 20);
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..=rounds {
            times[0].push(tenterhook.measure(batches, AT_ONCE)?);
            times[1].push(plain.measure(batches, AT_ONCE)?);
        }
        let [own, other] = times.map(|times| micros(median(times)) / as_f64(batches * AT_ONCE));
        ours.push((as_f64(count), own));
        theirs.push((as_f64(count), other));
    }
    Ok(vec![("tenterhook", ours), ("plain Python", theirs)])
}

fn by_observers(runtime: &Runtime, agents: &Path, rounds: usize) -> anyhow::Result<Vec<Line>> {
    let mut points = Vec::new();
    for count in OBSERVERS {
        let folder = agents.join(format!("observers-{count}"));
        fs::create_dir_all(&folder)?;
        let mut hooks = String::from(
            "from rasa.mantle.hooks import *\n@on_turn_started()\nasync def other(p: TurnStartedPayload) -> None: ...\n",
        );
        for number in 0..count {
            writeln!(hooks, "@on_model_request()\nasync def watch_{number}(p: ModelRequestPayload) -> None: ...")?;
        }
        fs::write(folder.join("hooks.py"), hooks)?;
        let engine = HookEngine::load(&folder)?;
        let payload = ModelRequestPayload::new("bench", messages(20));
        let mut times = Vec::new();
        for _ in 0..=rounds {
            let start = Instant::now();
            for _ in 0..BURST {
                engine.observe(&payload);
            }
            times.push(start.elapsed());
            runtime.block_on(engine.drained());
        }
        points.push((as_f64(count), micros(median(times)) / as_f64(BURST)));
    }
    Ok(vec![("observe", points)])
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are small")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

/// Draws lines on logarithmic axes; 0 stands at the left edge.
fn plot(file: &Path, title: &str, along: &str, lines: &[Line]) -> anyhow::Result<()> {
    let shown = |x: f64| if x == 0.0 { 0.5 } else { x };
    let points = || lines.iter().flat_map(|(_, points)| points);
    let (least, most) = points().fold((f64::MAX, 0_f64), |(low, high), (_, y)| (low.min(*y), high.max(*y)));
    let right = points().fold(1_f64, |high, (x, _)| high.max(*x));
    let left = points().fold(f64::MAX, |low, (x, _)| low.min(shown(*x)));
    let area = SVGBackend::new(file, (760, 420)).into_drawing_area();
    let failed = |error: &dyn std::fmt::Display| anyhow!("`{}` cannot be drawn: {error}", file.display());
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 17))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d((left..right * 1.1).log_scale(), (least * 0.7..most * 1.5).log_scale())
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .x_desc(along)
        .y_desc("µs")
        .light_line_style(WHITE)
        .x_label_formatter(&|x| if *x < 1.0 { "0".to_owned() } else { format!("{x:.0}") })
        .y_label_formatter(&|y| format!("{y}"))
        .draw()
        .map_err(|error| failed(&error))?;
    for ((name, points), colour) in lines.iter().zip([&BLUE, &RED]) {
        let points: Vec<_> = points.iter().map(|(x, y)| (shown(*x), *y)).collect();
        chart
            .draw_series(LineSeries::new(points.clone(), colour).point_size(3))
            .map_err(|error| failed(&error))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour));
    }
    chart
        .configure_series_labels()
        .border_style(BLACK)
        .background_style(WHITE)
        .draw()
        .map_err(|error| failed(&error))?;
    area.present().map_err(|error| failed(&error))?;
    Ok(())
}
