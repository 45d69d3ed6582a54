use std::path::PathBuf;
use std::time::Duration;

use crate::diagnostic::Diagnostic;

/// Why a worker process could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is not there, or cannot be run.
    #[error(
        "The worker `{}` cannot be started: {reason}\n  hint: hooks in a process of their own need the command `tenterhook`: install it, or name another with `worker_command`",
        program.display()
    )]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        reason: std::io::Error,
    },
    /// It ended, or said something else, before the agent was loaded.
    #[error("The worker `{}` ended while it loaded the agent: {how}\n  hint: what it said last is on stderr", program.display())]
    Ended {
        /// The program.
        program: PathBuf,
        /// How it ended.
        how: String,
    },
    /// The agent was not loaded in time.
    #[error(
        "The worker has not loaded the agent after {limit:?}: it was killed\n  hint: look for a module that never ends its import"
    )]
    Timeout {
        /// The time it had.
        limit: Duration,
    },
    /// The worker's own engine could not load the agent.
    #[error("{message}")]
    Load {
        /// Why, for people.
        message: String,
        /// What is wrong in the modules, where that is why.
        problems: Vec<Diagnostic>,
    },
}
