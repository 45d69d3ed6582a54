//! The lane as Python sees it: a queue to take jobs from, and jobs whose methods are leaves.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use pyo3::exceptions::asyncio::CancelledError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use rustix::event::EventfdFlags;

use super::binding::Binding;
use super::crew::{GiveUp, Hiring, LaneThread, PyCrew};
use super::failure::{self, RaisedSignal};
use super::from_python;
use crate::dispatch::{Answer, Call, FIRST, LaneId, LaneQueue, Patience, QueueLimits, SPIN};
use crate::hooks::{FailureCause, Lane as HookLane};

/// What runs a handler that is written in Python.
pub(crate) struct PyHandler {
    function: Py<PyAny>,
    /// Its name, for the tasks that run it.
    name: PyOnceLock<Py<PyString>>,
}

impl PyHandler {
    pub(super) fn new(function: Py<PyAny>) -> Self {
        Self { function, name: PyOnceLock::new() }
    }
}

/// An eventfd: one thread sleeps on it, any thread wakes it.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    /// One that a thread sleeps on by reading.
    pub(super) fn blocking() -> std::io::Result<Self> {
        Ok(Self(rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?))
    }

    /// One that an event loop watches.
    pub(crate) fn nonblocking() -> std::io::Result<Self> {
        Ok(Self(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes the sleeper.
    pub(crate) fn wake(&self) {
        // The counter cannot overflow in practice, and an eventfd that is open takes every other write.
        let _ = rustix::io::write(self.0.as_fd(), &1_u64.to_ne_bytes());
    }

    /// The descriptor.
    pub(crate) fn fileno(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Forgets the wakes so far.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(self.0.as_fd(), &mut [0_u8; 8]);
    }
}

/// A lane of a queue, held by the thread that serves it.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(super) struct Lane {
    queue: Arc<LaneQueue<PyHandler>>,
    id: LaneId,
    thread: Arc<LaneThread>,
    crew: Arc<PyCrew>,
}

impl Lane {
    pub(super) fn new(
        queue: Arc<LaneQueue<PyHandler>>,
        id: LaneId,
        thread: Arc<LaneThread>,
        crew: Arc<PyCrew>,
    ) -> Self {
        Self { queue, id, thread, crew }
    }

    /// The first lane of a queue, and the queue; a thread of Python's has yet to serve it.
    pub(super) fn first(
        root: &Path,
        limits: QueueLimits,
        patience: Patience,
        lost: Option<GiveUp>,
    ) -> std::io::Result<(Self, Arc<LaneQueue<PyHandler>>)> {
        let (thread, crew) = (LaneThread::new()?, Arc::new(PyCrew::new(root, lost)));
        crew.add(FIRST, Arc::clone(&thread));
        let queue = LaneQueue::new(limits, patience, Arc::new(Hiring(Arc::clone(&crew))), thread.wake());
        Ok((Self::new(Arc::clone(&queue), FIRST, thread, crew), queue))
    }
}

#[pymethods]
impl Lane {
    /// The file descriptor that becomes readable when there is something to do.
    fn fileno(&self) -> i32 {
        self.thread.waker.fileno()
    }

    /// What all lanes of the agent share, once it has been loaded.
    #[getter]
    fn agent(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.crew.agent.get().map(|agent| agent.clone_ref(py))
    }

    /// The agent has been loaded.
    fn loaded(&self, agent: Py<PyAny>) {
        // An agent is loaded once.
        let _ = self.crew.agent.set(agent);
    }

    /// `server` serves the lane on the calling thread, which has these numbers of Python's and of the system's.
    fn serves(&self, server: Py<PyAny>, ident: u64, native: i32) {
        self.thread.serves(server, ident, native);
    }

    /// Opens a drain: the serials of the jobs whose tasks are to be cancelled, whether the lane is to end at once, and whether when
    /// its tasks have.
    fn woken(&self) -> (Vec<u64>, bool, bool) {
        self.thread.answers();
        let woken = self.queue.woken(self.id);
        (woken.cancels, woken.stop, woken.leave)
    }

    /// The next job, or `None`.
    fn take(&self, py: Python<'_>) -> Option<Job> {
        let call = self.queue.take(self.id)?;
        self.thread.taken.fetch_add(1, Ordering::Relaxed);
        Some(Job {
            function: call.handler().runs.function.clone_ref(py),
            call,
            lane: self.id,
            thread: Arc::clone(&self.thread),
            entered: OnceLock::new(),
        })
    }

    /// Closes a drain: what has been left is taken at the next turn of the loop. Whether the thread is to look for work for a while
    /// before it sleeps: so it does after a call that came alone.
    fn drained(&self) -> bool {
        let alone = self.thread.taken.swap(0, Ordering::Relaxed) == 1;
        let lingers = self.queue.drained(self.id) && alone;
        if lingers {
            self.thread.start_lingering(SPIN);
        }
        // After that: who hears of an answer may make the next call at once.
        self.queue.tell(self.id);
        lingers
    }

    /// Whether there is something to do; `None`: not so far, and it is time to sleep.
    fn linger(&self) -> Option<bool> {
        self.thread.linger()
    }

    /// Whether no other lane of an ending agent is left.
    fn is_last(&self) -> bool {
        self.queue.is_last(self.id)
    }

    /// The thread could not be started.
    fn failed(&self, reason: &str) {
        self.crew.remove(self.id);
        self.queue.not_started(self.id, reason);
    }

    /// The lane has ended.
    fn end(&self) {
        self.crew.remove(self.id);
        self.thread.ended();
        self.queue.end(self.id);
    }
}

/// One call of one handler.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(super) struct Job {
    call: Arc<Call<PyHandler>>,
    lane: LaneId,
    thread: Arc<LaneThread>,
    /// The handler.
    #[pyo3(get)]
    function: Py<PyAny>,
    entered: OnceLock<Instant>,
}

#[pymethods]
impl Job {
    /// The number by which the lane is told to cancel the job.
    #[getter]
    fn serial(&self) -> u64 {
        self.call.serial()
    }

    /// The handler's name, for the task that runs it.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyString> {
        let handler = self.call.handler();
        handler.runs.name.get_or_init(py, || PyString::new(py, &handler.id.to_string()).unbind()).clone_ref(py)
    }

    /// Claims the job: the payload, or `None` when the job is over already.
    fn begin<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.call.begin(self.lane) {
            return Ok(None);
        }
        match Binding::get(py)?.to_python(py, self.call.payload()) {
            Ok(payload) => {
                // Nobody else begins the job.
                let _ = self.entered.set(Instant::now());
                self.call.enter();
                Ok(Some(payload))
            }
            Err(error) => {
                let message = error.value(py).to_string();
                self.call.leave_lane();
                self.call.settle(Answer::Failure(FailureCause::InvalidPayload { message }));
                Ok(None)
            }
        }
    }

    /// The handler has returned; `fields` are the values of the payload's fields, where it is one.
    fn end(&self, py: Python<'_>, returned: &Bound<'_, PyAny>, fields: &Bound<'_, PyAny>) -> PyResult<()> {
        self.left(py);
        let answer = match self.call.handler().id.lane {
            HookLane::Observe => Answer::Unchanged,
            HookLane::Modify => Binding::get(py)?.answer(self.call.payload(), returned, fields),
        };
        self.call.settle(answer);
        Ok(())
    }

    /// The handler gave something that cannot be awaited.
    fn not_awaitable(&self, returned: &Bound<'_, PyAny>) {
        self.left(returned.py());
        let found = from_python::type_name(returned);
        let message = format!("It gave a `{found}` where a coroutine was expected: make it `async def`");
        self.call.settle(Answer::Failure(FailureCause::InvalidResult { message }));
    }

    /// The handler has raised: the exception, its type's name, its text, and the control signal that it is.
    #[expect(clippy::needless_pass_by_value, reason = "arguments come from Python")]
    fn fail(
        &self,
        raised: &Bound<'_, PyAny>,
        kind: &Bound<'_, PyString>,
        text: Option<Bound<'_, PyString>>,
        signal: Option<RaisedSignal<'_>>,
    ) {
        self.left(raised.py());
        let answer = if raised.is_instance_of::<CancelledError>() && self.call.shutting_down() {
            Answer::Failure(FailureCause::ShutDown)
        } else {
            failure::answer(&self.call.handler().id, raised, kind, text.as_ref(), signal)
        };
        self.call.settle(answer);
    }
}

impl Job {
    fn left(&self, py: Python<'_>) {
        self.thread.take_back(py, self.call.serial());
        if let Some(entered) = self.entered.get() {
            self.call.leave(entered.elapsed());
        }
    }
}

impl std::fmt::Debug for PyHandler {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("PyHandler")
    }
}
