//! `tenterhook stubs`: type stubs for the names `rasa.mantle.*`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::Status;

/// The stubs, path below the folder and text. `rasa` has no `__init__.pyi` beyond an empty one: other modules of an installed
/// `rasa` are not described here.
const STUBS: [(&str, &str); 10] = [
    ("rasa/__init__.pyi", ""),
    ("rasa/exceptions.pyi", "from tenterhook.mantle.exceptions import *\n"),
    ("rasa/mantle/__init__.pyi", ""),
    ("rasa/mantle/hooks.pyi", "from tenterhook.mantle.hooks import *\n"),
    ("rasa/mantle/validation.pyi", "from tenterhook.mantle.validation import *\n"),
    ("rasa/mantle/tools/__init__.pyi", ""),
    ("rasa/mantle/tools/decorator.pyi", "from tenterhook.mantle.tools.decorator import *\n"),
    ("rasa/mantle/tools/result.pyi", "from tenterhook.mantle.tools.result import *\n"),
    ("rasa/mantle/orchestration/__init__.pyi", ""),
    ("rasa/mantle/orchestration/turn_context.pyi", "from tenterhook.mantle.orchestration.turn_context import *\n"),
];

#[derive(Debug, Args)]
pub(super) struct StubsArgs {
    /// The folder to write to; pyright looks into `typings` by itself, mypy is told by `mypy_path = "typings"`
    #[arg(default_value = "typings")]
    folder: PathBuf,
}

pub(super) fn run(arguments: &StubsArgs) -> anyhow::Result<Status> {
    for (path, text) in STUBS {
        let path = arguments.folder.join(path);
        let folder = path.parent().unwrap_or(&arguments.folder);
        fs::create_dir_all(folder).with_context(|| format!("Folder `{}` cannot be made", folder.display()))?;
        fs::write(&path, text).with_context(|| format!("`{}` cannot be written", path.display()))?;
    }
    super::say(format_args!("Stubs written to `{}`", arguments.folder.display()));
    Ok(Status::Clean)
}
