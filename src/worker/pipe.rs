//! The writing end of a pipe: whoever sends never waits for who reads.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;

use super::frame::encode;

/// Frames on their way. What the pipe has no room for waits in memory and is written by a thread of its own.
#[derive(Debug)]
pub(crate) struct Pipe {
    end: OwnedFd,
    backlog: Mutex<Backlog>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Backlog {
    bytes: Vec<u8>,
    /// Nothing more is written: nobody reads, or the pipe is no longer needed.
    closed: bool,
}

impl Pipe {
    /// # Errors
    ///
    /// The system gives no thread, or the descriptor is none.
    pub(crate) fn new(end: OwnedFd) -> io::Result<Arc<Self>> {
        rustix::io::ioctl_fionbio(&end, true)?;
        let pipe = Arc::new(Self { end, backlog: Mutex::default(), changed: Condvar::new() });
        let writing = Arc::clone(&pipe);
        thread::Builder::new().name("tenterhook-pipe".into()).spawn(move || writing.write_backlog())?;
        Ok(pipe)
    }

    /// Sends a frame; what nobody reads is dropped.
    pub(crate) fn send(&self, frame: &[u8]) {
        let mut backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        if backlog.closed {
            return;
        }
        let written = if backlog.bytes.is_empty() { self.write(frame, &mut backlog) } else { 0 };
        if written < frame.len() && !backlog.closed {
            backlog.bytes.extend_from_slice(&frame[written..]);
            self.changed.notify_all();
        }
    }

    /// Sends a frame without a payload: there is nothing in it that could be refused.
    pub(crate) fn tell(&self, head: &impl Serialize) {
        if let Ok(frame) = encode(head, None) {
            self.send(&frame);
        }
    }

    /// Waits until all has been written, at most for `time`.
    pub(crate) fn flush(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let mut backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        while !backlog.bytes.is_empty() {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return };
            backlog = self.changed.wait_timeout(backlog, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes nothing more.
    pub(crate) fn close(&self) {
        let mut backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        *backlog = Backlog { bytes: Vec::new(), closed: true };
        self.changed.notify_all();
    }

    /// How much of `bytes` could be written.
    fn write(&self, bytes: &[u8], backlog: &mut Backlog) -> usize {
        let mut written = 0;
        while written < bytes.len() {
            match rustix::io::write(&self.end, &bytes[written..]) {
                Ok(more) => written += more,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(_) => {
                    *backlog = Backlog { bytes: Vec::new(), closed: true };
                    self.changed.notify_all();
                    break;
                }
            }
        }
        written
    }

    fn write_backlog(&self) {
        let mut backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            while backlog.bytes.is_empty() && !backlog.closed {
                backlog = self.changed.wait(backlog).unwrap_or_else(PoisonError::into_inner);
            }
            if backlog.closed {
                return;
            }
            drop(backlog);
            // A while is enough: the pipe may be closed meanwhile.
            let tenth = rustix::event::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let _ = poll(&mut [PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::OUT)], Some(&tenth));
            backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = std::mem::take(&mut backlog.bytes);
            let written = self.write(&bytes, &mut backlog);
            if !backlog.closed {
                backlog.bytes = bytes;
                backlog.bytes.drain(..written);
            }
            if backlog.bytes.is_empty() {
                self.changed.notify_all();
            }
        }
    }
}
