use std::fmt;
use std::path::PathBuf;

use crate::diagnostic::{Diagnostic, Severity};

/// Why an agent's hooks could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such folder.
    #[error("Agent folder `{}` does not exist", .0.display())]
    NotFound(PathBuf),
    /// A file was given in place of a folder.
    #[error("`{}` is a file\n  hint: give the agent's folder, the one that holds `hooks.py` or `hooks/`", .0.display())]
    NotAFolder(PathBuf),
    /// The folder has no hook modules.
    #[error(
        "Agent folder `{}` has no hook modules\n  hint: put `hooks.py`, or a folder `hooks/` with `.py` files in it, at its root",
        .0.display()
    )]
    NoModules(PathBuf),
    /// The folder has hooks in a place that is no hook module.
    #[error(
        "Agent folder `{}` has no hook modules: `hooks/__init__.py` is none\n  hint: move its hooks to `hooks.py`, or to a module of their own in `hooks/`",
        .0.display()
    )]
    OnlyInit(PathBuf),
    /// The modules register no hook.
    #[error(
        "The hook modules in `{}` register no hook\n  hint: decorate an `async def` function, for example with `@modify_model_request()` from `rasa.mantle.hooks`",
        .0.display()
    )]
    NoHooks(PathBuf),
    /// A file or folder cannot be read.
    #[error("`{}` cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        reason: std::io::Error,
    },
    /// A settings file says something that is not understood.
    #[error("Settings `{}`: {message}", file.display())]
    Settings {
        /// The file.
        file: PathBuf,
        /// What is wrong in it.
        message: String,
    },
    /// The modules are not well formed.
    #[error("The hooks in `{}` cannot be loaded\n{}", root.display(), Listed(problems))]
    Invalid {
        /// The agent's folder.
        root: PathBuf,
        /// What is wrong, warnings included.
        problems: Vec<Diagnostic>,
    },
    /// The interpreter is not there, is another one, or failed.
    #[error(transparent)]
    Python(#[from] crate::python::Error),
    /// The agent's configuration is not well formed.
    #[error("The configuration of `{}` cannot be used\n{}", root.display(), Listed(problems))]
    Configuration {
        /// The agent's folder.
        root: PathBuf,
        /// What is wrong.
        problems: Vec<Diagnostic>,
    },
    /// The agent names no model.
    #[error(
        "The agent in `{}` names no model\n  hint: name one in its `integrations.yml`; `tenterhook init DIR` writes an agent that has one",
        .0.display()
    )]
    NoModel(PathBuf),
    /// The file of an execution names no model.
    #[error("The execution in `{}` names no model\n  hint: name one in its `execution.yml`: `model: {{provider: openai, model: …}}`", .0.display())]
    NoExecutionModel(PathBuf),
    /// The execution cannot be run as it is described.
    #[error(transparent)]
    Execution(#[from] crate::execute::Error),
    /// The references cannot be read or indexed.
    #[error("The references cannot be searched: {0}")]
    References(String),
    /// The file that conversations are kept in cannot be used.
    #[error(transparent)]
    Store(#[from] crate::turn::StoreError),
    /// The model's settings cannot be used.
    #[error(transparent)]
    Model(#[from] crate::providers::SettingsError),
    /// The key that seals what hooks leave in conversations is too short.
    #[error(
        "The key of the app has {bytes} bytes, and needs {least}\n  hint: put at least {least} random bytes into `TENTERHOOK_APP_KEY`"
    )]
    ShortKey {
        /// What it has.
        bytes: usize,
        /// What it needs.
        least: usize,
    },
    /// A server that skills import tools from is not there, or does not have them.
    #[error(transparent)]
    Server(#[from] crate::providers::McpError),
    /// The tools of a set that are requests over HTTP cannot be called.
    #[error(transparent)]
    Rest(#[from] crate::providers::RestError),
    /// A file of the configuration cannot be read.
    #[error(transparent)]
    Config(#[from] super::config::ConfigError),
    /// The agent has tools, or hooks of an execution, and its hooks are to run in a process of their own.
    #[error(
        "The agent in `{}` has tools of its own, or hooks of an execution, which run on threads only\n  hint: take `isolation = \"process\"` out of its settings",
        .0.display()
    )]
    ToolsApart(PathBuf),
    /// The worker process for the hooks is not there, or failed.
    #[error(transparent)]
    Worker(#[from] crate::worker::Error),
}

struct Listed<'a>(&'a [Diagnostic]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.0 {
            writeln!(out, "{problem}")?;
        }
        let errors = self.0.iter().filter(|problem| problem.severity == Severity::Error).count();
        write!(out, "{errors} error{}", if errors == 1 { "" } else { "s" })
    }
}
