//! `tenterhook schema`: JSON schemas of what machines read, made from the types that write it.

use std::io::{self, Write as _};

use clap::{Args, ValueEnum};

use super::Status;
use crate::diagnostic;

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
}

pub(super) fn run(arguments: &SchemaArgs) -> anyhow::Result<Status> {
    let schema = match arguments.of {
        Described::Check => diagnostic::schema(),
    };
    writeln!(io::stdout(), "{schema:#}")?;
    Ok(Status::Clean)
}
