//! `tools`: what a model would be offered of an agent's own.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::points::bare_table;
use super::run::builder;
use super::{Global, OutputFormat, Status, logging, say};
use crate::providers::{Script, ScriptedModel};
use crate::turn::TurnEngine;

/// What `tools` is given.
#[derive(Debug, Args)]
pub(super) struct ToolsArgs {
    /// The agent's folder
    agent: PathBuf,
    /// How the list looks on stdout
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    output_format: OutputFormat,
}

pub(super) fn run(arguments: &ToolsArgs, global: &Global) -> anyhow::Result<Status> {
    crate::python::console(logging::of_python(global));
    // No model is asked: none need be configured.
    let loader = TurnEngine::loader(&arguments.agent).hooks(builder(&arguments.agent, global));
    let agent = loader.model(ScriptedModel::new(Script::default())).load()?;
    for warning in &agent.warnings {
        say(format_args!("{warning}"));
    }
    let tools = agent.engine.tools();
    let mut out = io::stdout().lock();
    if arguments.output_format == OutputFormat::Json {
        let tool = |(skill, specs): &(Option<String>, Vec<_>)| json!({"skill": skill, "tools": specs});
        writeln!(out, "{:#}", json!({"version": 1, "offered": tools.iter().map(tool).collect::<Vec<_>>()}))?;
        return Ok(Status::Clean);
    }
    let mut table = bare_table(&["skill", "tool", "arguments", "description"]);
    for (skill, specs) in &tools {
        for spec in specs {
            let skill = skill.clone().unwrap_or_default();
            table.add_row([skill, spec.name.clone(), arguments_of(&spec.parameters), spec.description.clone()]);
        }
    }
    writeln!(out, "{}", table.trim_fmt())?;
    Ok(Status::Clean)
}

/// Names and types; those that may be left out with a question mark.
fn arguments_of(schema: &crate::conversation::Object) -> String {
    let required: Vec<_> = schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let argument = |(name, of): (&String, &Value)| {
        let kind = of.get("type").and_then(Value::as_str).map(|kind| format!(": {kind}")).unwrap_or_default();
        let optional = if required.iter().any(|other| *other == name) { "" } else { "?" };
        format!("{name}{optional}{kind}")
    };
    properties.map(argument).collect::<Vec<_>>().join(", ")
}
