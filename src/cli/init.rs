//! `init`: writes a small agent that answers without a network, until a real model is named.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::Args;

use super::{Status, say};

/// What `init` is given.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The folder to write; it must be empty, or not there
    folder: PathBuf,
}

/// The agent's files.
const FILES: [(&str, &str); 7] = [
    ("agent.yml", include_str!("init/agent.yml")),
    ("integrations.yml", include_str!("init/integrations.yml")),
    ("responses.yml", include_str!("init/responses.yml")),
    ("script.yml", include_str!("init/script.yml")),
    ("hooks.py", include_str!("init/hooks.py.txt")),
    ("tools.py", include_str!("init/tools.py.txt")),
    ("references/prices.md", include_str!("init/references-prices.md")),
];

pub(super) fn run(arguments: &InitArgs) -> anyhow::Result<Status> {
    let folder = &arguments.folder;
    let full = folder.is_dir() && fs::read_dir(folder)?.next().is_some();
    ensure!(
        !full && !folder.is_file(),
        "`{}` is not empty\n  hint: name a folder that does not exist yet",
        folder.display()
    );
    fs::create_dir_all(folder).with_context(|| format!("`{}` cannot be made", folder.display()))?;
    for (name, text) in FILES {
        let file = folder.join(name);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).with_context(|| format!("`{}` cannot be made", parent.display()))?;
        }
        fs::write(&file, text).with_context(|| format!("`{}` cannot be written", file.display()))?;
    }
    say(format_args!("An agent is in {0}. Talk to it: tenterhook chat {0}", folder.display()));
    Ok(Status::Clean)
}
