//! The thread that keeps connections. A turn is a future that any executor may drive, or none for a while: connections that depended on it
//! would stand still, so they have a small runtime of their own.

use std::future::{Future, pending};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

/// The name of the thread.
const THREAD: &str = "tenterhook-net";

static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);

/// The runtime of all servers of the process, started by the first.
pub(super) fn runtime() -> io::Result<Handle> {
    let mut started = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*started {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new().name(THREAD.to_owned()).spawn(move || runtime.block_on(pending::<()>()))?;
    *started = Some(handle.clone());
    Ok(handle)
}

/// Runs a future over there and waits for it here, under whatever executor. Who drops the wait drops the future.
pub(super) fn run<T: Send + 'static>(
    runtime: &Handle,
    future: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = Option<T>> + Send {
    let mut task = Aborted(runtime.spawn(future));
    async move { (&mut task.0).await.ok() }
}

/// A task that ends with whoever waits for it.
struct Aborted<T>(JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
