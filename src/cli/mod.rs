//! The command: words at the terminal. Machine output goes to stdout, everything else to stderr.

mod apps;
mod chat;
mod check;
mod execute;
mod hunks;
mod init;
mod logging;
mod points;
mod run;
mod schema;
mod stubs;
mod tools;
mod watch;
mod worker;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::agent::is_manifest;

/// What the command's exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing is wrong.
    Clean,
    /// Problems were found.
    Problems,
    /// The work could not be done.
    Failed,
    /// The user has interrupted the work.
    Interrupted,
}

impl Status {
    /// The exit code: 0, 1, 2 or 130.
    pub const fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Problems => 1,
            Self::Failed => 2,
            Self::Interrupted => 130,
        }
    }
}

/// Runs the Python hook modules of LLM agents, and never lets one hang, crash or corrupt a turn.
#[derive(Debug, Parser)]
#[command(name = "tenterhook", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Global {
    /// Interpreter, or folder of the virtual environment, whose packages the hooks use [default: `$VIRTUAL_ENV`, then `.venv` beside the agent, then `python3`]
    #[arg(long, global = true, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Say more on stderr: once for what is loaded, twice for each dispatch
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// How logs look on stderr
    #[arg(long, global = true, value_enum, default_value_t)]
    log_format: LogFormat,
}

/// How logs look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One object a line
    Json,
}

/// How a result looks on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// For people
    #[default]
    Table,
    /// For machines; the field `version` rises when the shape changes
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play recorded conversations through an agent's hooks and report what each hook did
    Run(run::RunArgs),
    /// Talk to an agent
    Chat(chat::ChatArgs),
    /// Run an execution: a model that answers with code, its tools and hooks, in a folder
    Execute(execute::ExecuteArgs),
    /// Write a small agent to start from
    Init(init::InitArgs),
    /// Find what is wrong with hook modules, without importing them
    Check(check::CheckArgs),
    /// List the rules of `check`
    Rules,
    /// Print the page of a rule: what, why, a bad and a good example
    Explain(check::ExplainArgs),
    /// Print the JSON schema of a machine-readable output
    Schema(schema::SchemaArgs),
    /// List the points of a turn, or what an agent registers at them
    Points(points::PointsArgs),
    /// List the tools that a model would be offered in each skill of an agent
    Tools(tools::ToolsArgs),
    /// Write type stubs, so that mypy and pyright resolve `rasa.mantle.hooks`
    Stubs(stubs::StubsArgs),
    /// Run an agent's hooks for an engine in another process
    #[command(hide = true)]
    Worker(worker::WorkerArgs),
}

/// Runs the command with these arguments, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Status {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come as errors too; what cannot be written is nobody's to hear.
            let _ = error.print();
            return if error.use_stderr() { Status::Failed } else { Status::Clean };
        }
    };
    let _export = logging::start(&cli.global, matches!(cli.command, Command::Worker(_)));
    let done = match &cli.command {
        Command::Run(arguments) if is_manifest(&arguments.agent) => apps::run(arguments, &cli.global),
        Command::Chat(arguments) if is_manifest(&arguments.agent) => apps::chat(arguments, &cli.global),
        Command::Run(arguments) => run::run(arguments, &cli.global),
        Command::Chat(arguments) => chat::run(arguments, &cli.global),
        Command::Execute(arguments) => execute::run(arguments, &cli.global),
        Command::Init(arguments) => init::run(arguments),
        Command::Check(arguments) => check::run(arguments, &cli.global),
        Command::Rules => check::rules(),
        Command::Explain(arguments) => check::explain(arguments),
        Command::Schema(arguments) => schema::run(arguments),
        Command::Points(arguments) => points::run(arguments, &cli.global),
        Command::Tools(arguments) => tools::run(arguments, &cli.global),
        Command::Stubs(arguments) => stubs::run(arguments),
        Command::Worker(arguments) => worker::run(arguments, &cli.global),
    };
    crate::python::finish();
    match done {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => Status::Clean,
        Err(error) => {
            say(format_args!("error: {error:#}"));
            Status::Failed
        }
    }
}

/// Writes a line to stderr. Whoever has closed it does not want to hear.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A reader that has gone away is no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let pipe = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        io.or_else(|| cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind))
    };
    error.chain().any(|cause| pipe(cause) == Some(io::ErrorKind::BrokenPipe))
}
