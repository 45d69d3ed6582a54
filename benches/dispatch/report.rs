//! What was measured, as a table for people and as JSON for machines.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// Raised when the JSON form changes its shape.
const VERSION: u32 = 1;

/// The runners, in the order in which a round calls them. The second is the measure of the others.
pub(crate) const RUNNERS: [&str; 3] = ["tenterhook", "plain Python", "pyo3-async-runtimes + pythonize"];
const PLAIN: usize = 1;

/// All that was measured, and where.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    version: u32,
    /// The interpreter's version.
    python: String,
    /// Whose event loop all three runners use.
    event_loop: String,
    cpus: usize,
    /// Microseconds to wake a sleeping thread and be woken by it: part of every call from Rust that comes alone.
    wake_ups_us: f64,
    rounds: usize,
    rows: Vec<Row>,
}

/// One handler on one payload at one concurrency.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) messages: usize,
    pub(crate) handler: &'static str,
    pub(crate) at_once: usize,
    /// How many calls each runner makes in a round.
    pub(crate) calls: usize,
    runners: Vec<Measured>,
}

/// What one runner needed.
#[derive(Debug, Serialize)]
struct Measured {
    runner: &'static str,
    /// Microseconds a call, the median of the rounds.
    us: f64,
    /// How many times faster than plain Python: the quartiles of the ratios of each round.
    speedup: Quartiles,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Quartiles {
    low: f64,
    median: f64,
    high: f64,
}

impl Row {
    /// A row of the times that the runners needed in each round.
    pub(crate) fn new(
        messages: usize,
        handler: &'static str,
        at_once: usize,
        calls: usize,
        rounds: &[[Duration; RUNNERS.len()]],
    ) -> Self {
        let per_call = f64::from(u32::try_from(calls).expect("a round has few calls"));
        let measured = |(index, runner): (usize, &&'static str)| {
            let us = quartiles(rounds.iter().map(|round| round[index].as_secs_f64() * 1e6 / per_call)).median;
            let speedup = quartiles(rounds.iter().map(|round| round[PLAIN].div_duration_f64(round[index])));
            Measured { runner, us: rounded(us, 100.0), speedup }
        };
        Self { messages, handler, at_once, calls, runners: RUNNERS.iter().enumerate().map(measured).collect() }
    }
}

impl Report {
    pub(crate) fn new((python, event_loop): (String, String), rounds: usize, rows: Vec<Row>) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { version: VERSION, python, event_loop, cpus, wake_ups_us: wake_ups_us(), rounds, rows }
    }

    /// Microseconds a call, and beside them how many times faster than plain Python that is.
    pub(crate) fn as_text(&self) -> String {
        let mut table = Table::new();
        let header = ["messages", "at once", "handler", RUNNERS[0], RUNNERS[1], RUNNERS[2]];
        table.load_style(presets::NOTHING).set_header(header);
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            column.set_cell_alignment(if index == 2 { CellAlignment::Left } else { CellAlignment::Right });
        }
        for row in &self.rows {
            let mut cells = vec![row.messages.to_string(), row.at_once.to_string(), row.handler.to_owned()];
            cells.extend(row.runners.iter().enumerate().map(|(index, measured)| match index {
                PLAIN => format!("{:.1}", measured.us),
                _ => format!("{:.1} ({:.2}x)", measured.us, measured.speedup.median),
            }));
            table.add_row(cells);
        }
        let Self { python, event_loop, cpus, wake_ups_us, rounds, .. } = self;
        format!(
            "{}\nµs a call, median of {rounds} rounds; in brackets how many times faster than plain Python, median of the \
             ratios of each round\nPython {python}, all on {event_loop} event loops, {cpus} CPUs\n\
             To wake a sleeping thread and be woken by it takes {wake_ups_us:.1} µs here: in every call from Rust that \
             comes alone",
            table.trim_fmt()
        )
    }
}

/// The median of many round trips between two threads that sleep meanwhile.
fn wake_ups_us() -> f64 {
    let (there, asked) = mpsc::sync_channel::<()>(1);
    let (answer, back) = mpsc::sync_channel::<()>(1);
    std::thread::spawn(move || asked.iter().try_for_each(|()| answer.send(())));
    let round_trip = || {
        let start = Instant::now();
        // Both ends live as long as this function.
        let _ = there.send(());
        let _ = back.recv();
        start.elapsed().as_secs_f64() * 1e6
    };
    quartiles((0..2000).map(|_| round_trip())).median
}

fn quartiles(values: impl Iterator<Item = f64>) -> Quartiles {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    let [low, median, high] = [last / 4, last / 2, last * 3 / 4].map(|at| rounded(values[at], 1000.0));
    Quartiles { low, median, high }
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}
