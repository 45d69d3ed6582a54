//! `tenterhook points`: the catalogue, or what an agent registers.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use comfy_table::{Table, presets};
use serde_json::{Value, json};

use super::{Global, OutputFormat, Status, logging};
use crate::agent::HookEngine;
use crate::hooks::{CATALOGUE_VERSION, FailPolicy, FieldSpec, Lane, OnClosed, POINTS, PointSpec};
use crate::python;

#[derive(Debug, Args)]
pub(super) struct PointsArgs {
    /// The agent's folder: what is registered where
    agent: Option<PathBuf>,
    /// How the result looks on stdout
    #[arg(long, value_enum, default_value_t)]
    output_format: OutputFormat,
}

pub(super) fn run(arguments: &PointsArgs, global: &Global) -> anyhow::Result<Status> {
    let engine = match &arguments.agent {
        Some(agent) => {
            python::console(logging::of_python(global));
            Some(super::run::builder(agent, global).load()?)
        }
        None => None,
    };
    let mut out = io::stdout().lock();
    match (arguments.output_format, &engine) {
        (OutputFormat::Table, None) => writeln!(out, "{}", catalogue())?,
        (OutputFormat::Table, Some(engine)) => writeln!(out, "{}", registered(engine))?,
        (OutputFormat::Json, engine) => {
            serde_json::to_writer_pretty(&mut out, &as_json(engine.as_ref()))?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(Status::Clean)
}

fn catalogue() -> String {
    let mut table = bare_table(&["point", "observe", "modify", "signals", "on failure", "payload", "may be changed"]);
    for spec in &POINTS {
        let signals: Vec<_> = spec.signals.iter().map(|signal| signal.name()).collect();
        let mutable: Vec<_> = spec.fields().iter().filter(|field| field.mutable).map(|field| field.name).collect();
        table.add_row([
            spec.point.name(),
            spec.observe,
            spec.modify.unwrap_or("-"),
            or_dash(&signals.join(", ")),
            on_failure(spec),
            spec.payload,
            or_dash(&mutable.join(", ")),
        ]);
    }
    let timeout = |lane| PointSpec::default_timeout(lane).as_millis();
    format!(
        "{}\nDefault time-outs: {} ms observe, {} ms modify. A decorator's `timeout_ms` wins.",
        table.trim_fmt(),
        timeout(Lane::Observe),
        timeout(Lane::Modify)
    )
}

fn registered(engine: &HookEngine) -> String {
    let mut table = bare_table(&["point", "lane", "hook", "time-out", "place"]);
    for spec in &POINTS {
        for hook in engine.registered(spec.point) {
            let file = hook.file.strip_prefix(engine.root()).unwrap_or(&hook.file);
            table.add_row([
                spec.point.name().to_owned(),
                hook.lane.name().to_owned(),
                hook.to_string(),
                format!("{} ms", hook.timeout.as_millis()),
                format!("{}:{}", file.display(), hook.line),
            ]);
        }
    }
    table.trim_fmt()
}

/// The JSON form, version [`CATALOGUE_VERSION`].
fn as_json(engine: Option<&HookEngine>) -> Value {
    let points: Vec<_> = POINTS
        .iter()
        .map(|spec| {
            let mut point = json!({
                "point": spec.point,
                "payload": spec.payload,
                "observe": spec.observe,
                "modify": spec.modify,
                "signals": spec.signals,
                "policy": spec.policy,
                "on_closed": spec.on_closed,
                "fields": spec.fields().iter().map(field_as_json).collect::<Vec<_>>(),
            });
            if let Some(engine) = engine {
                point["hooks"] = json!(engine.registered(spec.point));
            }
            point
        })
        .collect();
    json!({
        "version": CATALOGUE_VERSION,
        "default_timeouts_ms": {
            "observe": PointSpec::default_timeout(Lane::Observe).as_millis(),
            "modify": PointSpec::default_timeout(Lane::Modify).as_millis(),
        },
        "points": points,
    })
}

fn field_as_json(field: &FieldSpec) -> Value {
    json!({
        "name": field.name, "type": field.kind.annotation(), "mutable": field.mutable, "required": field.required,
    })
}

fn on_failure(spec: &PointSpec) -> &'static str {
    match (spec.policy, spec.on_closed) {
        (Some(FailPolicy::Open), _) => "open",
        (Some(FailPolicy::Closed), Some(OnClosed::SkipStep)) => "closed: skips the step",
        (Some(FailPolicy::Closed), _) => "closed: stops the turn",
        (None, _) => "-",
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// A table without frames: its lines can be cut by `awk`.
pub(super) fn bare_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}
