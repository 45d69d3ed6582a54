//! A server that is a process of ours.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{env, io};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::config::{McpServerConfig, McpTransport};
use super::error::McpError;
use super::pipe::Pipe;
use crate::telemetry::TURN;

/// What a process has of our environment: what programs need to run, and nothing that is meant for us.
const INHERITED: [&str; 9] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// How long a process has to end once its input has, and again once it is asked to by a signal.
const GRACE: Duration = Duration::from_millis(500);

/// How much of what it writes on its standard error is told as one line, in bytes.
const LONGEST_LINE: usize = 2_000;

/// A process that has been started. It has a process group of its own, so that a Ctrl-C is ours alone, and what it starts ends with it.
#[derive(Debug)]
pub(super) struct Process {
    group: Option<Pid>,
    /// Whose child it is: a fork of that process must leave it alone.
    parent: u32,
    ended: watch::Receiver<Option<String>>,
    last_line: Arc<Mutex<String>>,
}

impl Process {
    /// Starts a server and speaks to it by the pipe. It ends when the pipe does.
    pub(super) fn start(config: &McpServerConfig) -> Result<(Self, Pipe), McpError> {
        let McpTransport::Stdio { command, args, env, cwd } = &config.transport else {
            unreachable!("another transport starts nothing")
        };
        let failed = |error: io::Error| McpError::Start {
            server: config.name.clone(),
            command: config.without_secrets(command),
            reason: error.to_string(),
        };
        let mut start = Command::new(command);
        start.args(args).env_clear().envs(INHERITED.into_iter().filter_map(|name| Some((name, env::var_os(name)?))));
        start.envs(env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = cwd {
            start.current_dir(folder);
        }
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        let mut child = start.spawn().map_err(failed)?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("all three were asked for")
        };
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let last_line = Arc::<Mutex<String>>::default();
        tokio::spawn(hear(config.clone(), errors, Arc::clone(&last_line)));
        let (end, ending) = oneshot::channel();
        let (tell, ended) = watch::channel(None);
        tokio::spawn(mind(child, group, ending, tell));
        let pipe = Pipe::new(input, output, config.longest_message, end, ended.clone());
        Ok((Self { group, parent: std::process::id(), ended, last_line }, pipe))
    }

    /// How it has ended, with what it last said, once it has.
    pub(super) fn end(&self) -> Option<String> {
        let how = self.ended.borrow().clone()?;
        let said = self.last_line();
        Some(if said.is_empty() { how } else { format!("{how}: {said}") })
    }

    /// What it last wrote on its standard error.
    pub(super) fn last_line(&self) -> String {
        self.last_line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits a moment for the end of a process that does not answer any more.
    pub(super) async fn settle(&self) -> Option<String> {
        let _ = timeout(GRACE, self.ended.clone().wait_for(Option::is_some)).await;
        self.end()
    }

    /// Asks it to end. Where it does not, whoever minds it does more.
    pub(super) fn terminate(&self) {
        if self.parent == std::process::id() && self.ended.borrow().is_none() {
            signal(self.group, Signal::TERM);
        }
    }
}

/// Waits for the end of a process, or sees to it.
async fn mind(
    mut child: Child,
    group: Option<Pid>,
    ending: oneshot::Receiver<()>,
    tell: watch::Sender<Option<String>>,
) {
    let by_itself = tokio::select! {
        status = child.wait() => Some(status),
        _ = ending => None,
    };
    let status = match by_itself {
        Some(status) => status,
        None => end(&mut child, group).await,
    };
    // What it has started ends with it.
    signal(group, Signal::KILL);
    let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    tell.send_replace(Some(format!("its process has ended ({how})")));
}

async fn end(child: &mut Child, group: Option<Pid>) -> io::Result<std::process::ExitStatus> {
    for next in [Signal::TERM, Signal::KILL] {
        if let Ok(status) = timeout(GRACE, child.wait()).await {
            return status;
        }
        signal(group, next);
    }
    child.wait().await
}

fn signal(group: Option<Pid>, signal: Signal) {
    // It may have ended by itself.
    let _ = group.map(|group| kill_process_group(group, signal));
}

/// Hands what a server says on its standard error to the log, and keeps its last line.
async fn hear(config: McpServerConfig, mut errors: impl AsyncRead + Unpin, last_line: Arc<Mutex<String>>) {
    let mut line = Vec::new();
    let mut read = vec![0; 4096];
    loop {
        let count = errors.read(&mut read).await.unwrap_or(0);
        for byte in &read[..count] {
            if *byte != b'\n' {
                if line.len() < LONGEST_LINE {
                    line.push(*byte);
                }
                continue;
            }
            told(&config, &mut line, &last_line);
        }
        if count == 0 {
            told(&config, &mut line, &last_line);
            return;
        }
    }
}

fn told(config: &McpServerConfig, line: &mut Vec<u8>, last_line: &Mutex<String>) {
    let text = config.without_secrets(String::from_utf8_lossy(line).trim());
    line.clear();
    if !text.is_empty() {
        tracing::debug!(target: TURN, server = config.name, "{text}");
        *last_line.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}
