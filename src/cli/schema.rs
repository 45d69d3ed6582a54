//! `tenterhook schema`: JSON schemas of what machines read and write, made from types.

use std::io::{self, Write as _};

use clap::{Args, ValueEnum};

use super::Status;
use crate::{agent, diagnostic};

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// What the schema describes
    #[arg(value_enum)]
    of: Described,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Described {
    /// What `tenterhook check --output-format json` prints
    Check,
    /// The manifest of a Quick App
    Quickapp,
}

pub(super) fn run(arguments: &SchemaArgs) -> anyhow::Result<Status> {
    let schema = match arguments.of {
        Described::Check => diagnostic::schema(),
        Described::Quickapp => agent::quickapp_schema(),
    };
    writeln!(io::stdout(), "{schema:#}")?;
    Ok(Status::Clean)
}
