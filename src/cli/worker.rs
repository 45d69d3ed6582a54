//! `worker`: the process that an engine runs an agent's hooks in. Not for people: it speaks frames on stdin and stdout.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use rustix::fd::AsFd as _;

use super::{Global, Status, logging};
use crate::agent;
use crate::worker::Pipe;

#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    /// The agent's folder
    agent: PathBuf,
}

pub(super) fn run(arguments: &WorkerArgs, global: &Global) -> anyhow::Result<Status> {
    crate::python::console(logging::of_python(global));
    let (orders, reports) = take_streams().context("The streams of the worker cannot be had")?;
    let reports = Pipe::new(reports)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let python = global.python.clone();
    let hosted = runtime.block_on(agent::host(&arguments.agent, python, File::from(orders), &reports));
    if let Err(error) = &hosted {
        tracing::error!("The worker ends: {error}");
    }
    crate::python::wind_up();
    // Not back to Python: a hook may keep the interpreter to itself.
    std::process::exit(if hosted.is_ok() { 0 } else { 2 });
}

/// Takes stdin and stdout for the frames alone: what hooks, and what they start, read and write there does not meet them.
fn take_streams() -> io::Result<(OwnedFd, OwnedFd)> {
    let (orders, reports) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((orders, reports))
}
