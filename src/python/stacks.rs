//! Where the interpreter's threads are, told without its lock.

use std::io::{PipeReader, Read as _, pipe};
use std::os::fd::{AsFd as _, AsRawFd as _, IntoRawFd as _};

use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};

/// The signal at which the interpreter writes its stacks. A hook cannot take it over: handlers are set on the main thread only.
const ASKS: Signal = Signal::USR2;

/// The most that is read: twenty threads of a hundred frames.
const MOST: usize = 1 << 18;

/// Has the interpreter write the stacks of all its threads at a signal (`faulthandler`), from C code that takes no lock; gives what asks for
/// them. For a process that is the engine's own.
pub(crate) fn watch_stacks() -> Result<Box<dyn FnMut() -> Option<String> + Send>, String> {
    let (read, write) = pipe().map_err(|error| error.to_string())?;
    Python::attach(|py| {
        let register = py.import("faulthandler")?.getattr("register")?;
        register.call1((ASKS.as_raw(), write.as_raw_fd(), true)).map(drop)
    })
    .map_err(|error| error.to_string())?;
    // The interpreter writes to it as long as the process lives.
    let _ = write.into_raw_fd();
    let mut read = read;
    Ok(Box::new(move || stacks(&mut read)))
}

fn stacks(from: &mut PipeReader) -> Option<String> {
    kill_process(getpid(), ASKS).ok()?;
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    // The first byte may need the processor; what follows comes at once.
    let mut patience = Timespec { tv_sec: 1, tv_nsec: 0 };
    while bytes.len() < MOST
        && poll(&mut [PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN)], Some(&patience))
            .is_ok_and(|ready| ready > 0)
    {
        let read = from.read(&mut part).ok()?;
        bytes.extend_from_slice(&part[..read]);
        patience = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
