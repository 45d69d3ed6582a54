//! One worker process: started, told, killed.

use std::ffi::OsString;
use std::io::BufReader;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::Error;
use super::frame::{Order, Reader};
use super::keeper::LoadRequest;
use super::pipe::Pipe;

/// The command that becomes a worker: a program, and what stands before `worker AGENT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerCommand {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

impl Default for WorkerCommand {
    /// `tenterhook` on the path.
    fn default() -> Self {
        Self { program: "tenterhook".into(), arguments: Vec::new() }
    }
}

/// A worker that has been started. It has a process group of its own, so that a Ctrl-C is the engine's alone.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) orders: Arc<Pipe>,
    child: Mutex<Child>,
    pub(super) id: u32,
    killed: AtomicBool,
}

impl Process {
    /// Starts a worker and tells it what to load; what it says is to be read.
    pub(super) fn start(request: &LoadRequest) -> Result<(Arc<Self>, Reader<BufReader<ChildStdout>>), Error> {
        let LoadRequest { command, flags, root, python, settings, .. } = request;
        let failed = |reason| Error::Start { program: command.program.clone(), reason };
        let mut child = Command::new(&command.program);
        child.args(&command.arguments).arg("worker").arg(root).args(flags);
        if let Some(python) = python {
            child.arg("--python").arg(python);
        }
        let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn();
        let mut child = child.map_err(failed)?;
        let (orders, reports) = (child.stdin.take(), child.stdout.take());
        let id = child.id();
        let (Some(orders), Some(reports)) = (orders, reports) else { unreachable!("both were asked for") };
        let orders = match Pipe::new(OwnedFd::from(orders)) {
            Ok(orders) => orders,
            Err(reason) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(reason));
            }
        };
        orders.tell(&Order::Load(settings.clone()));
        let process = Self { orders, child: Mutex::new(child), id, killed: AtomicBool::new(false) };
        Ok((Arc::new(process), Reader::new(BufReader::with_capacity(1 << 16, reports))))
    }

    /// Ends the process, and what it has started, at once.
    pub(super) fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        let group = i32::try_from(self.id).ok().and_then(Pid::from_raw);
        // It may have ended by itself.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    }

    /// Whether the engine has ended it.
    pub(super) fn was_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// Waits for the end of a process that is ending; how it ended.
    pub(super) fn reap(&self) -> String {
        self.orders.close();
        let ended = self.child.lock().unwrap_or_else(PoisonError::into_inner).wait();
        ended.map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}
