//! The threads of an agent's lanes: started by the assistant, watched without the interpreter, struck by a leaf that holds the GIL.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::lane::{Lane, PyHandler, Waker};
use super::loading::{self, AssistantOrder};
use super::raw;
use crate::dispatch::{Crew, LaneId, LaneQueue, Order, Wake};

/// One lane's thread, as far as it is known without the interpreter.
#[derive(Debug)]
pub(super) struct LaneThread {
    pub(super) waker: Waker,
    /// `tenterhook.lane._Server`, once the thread serves.
    pub(super) server: OnceLock<Py<PyAny>>,
    /// Python's number of the thread; 0: not known yet.
    pub(super) ident: AtomicU64,
    /// The system's.
    native: AtomicI32,
    /// The call whose first step may be running; 0: none.
    pub(super) entered: AtomicU64,
    /// How many calls have been taken in this drain.
    pub(super) taken: AtomicU32,
    /// The thread looks for work without being woken.
    lingering: AtomicBool,
    /// There is something to do.
    poked: AtomicBool,
    /// Until when it looks so.
    linger_until: Mutex<Option<Instant>>,
    /// The call for which an exception was raised in the thread that may not have landed; 0: none.
    struck: AtomicU64,
}

impl LaneThread {
    pub(super) fn new() -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            waker: Waker::nonblocking()?,
            server: OnceLock::new(),
            ident: AtomicU64::new(0),
            native: AtomicI32::new(0),
            entered: AtomicU64::new(0),
            taken: AtomicU32::new(0),
            lingering: AtomicBool::new(false),
            poked: AtomicBool::new(false),
            linger_until: Mutex::new(None),
            struck: AtomicU64::new(0),
        }))
    }

    /// What wakes the thread.
    pub(super) fn wake(self: &Arc<Self>) -> Wake {
        let thread = Arc::clone(self);
        Arc::new(move || {
            // In this order, and the other way round in `linger`: one of the two sees the other.
            thread.poked.store(true, Ordering::SeqCst);
            if !thread.lingering.load(Ordering::SeqCst) {
                thread.waker.wake();
            }
        })
    }

    /// The thread has nothing to do, and looks for work for `time` before it sleeps: to be woken costs more than a short call does.
    pub(super) fn start_lingering(&self, time: Duration) {
        *self.linger_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + time);
        self.lingering.store(true, Ordering::SeqCst);
    }

    /// Whether there is something to do; `None`: not so far, and it is time to sleep.
    pub(super) fn linger(&self) -> Option<bool> {
        let until = *self.linger_until.lock().unwrap_or_else(PoisonError::into_inner);
        let over = until.is_none_or(|until| Instant::now() >= until);
        if over || self.poked.load(Ordering::SeqCst) {
            self.lingering.store(false, Ordering::SeqCst);
        }
        match self.poked.swap(false, Ordering::SeqCst) {
            true => Some(true),
            false if over => None,
            false => Some(false),
        }
    }

    /// The thread looks for what there is to do.
    pub(super) fn answers(&self) {
        self.lingering.store(false, Ordering::SeqCst);
        self.poked.store(false, Ordering::SeqCst);
        self.waker.clear();
    }

    /// The calling thread serves from now on.
    pub(super) fn serves(&self, server: Py<PyAny>, ident: u64, native: i32) {
        // A lane is served once.
        let _ = self.server.set(server);
        self.native.store(native, Ordering::Release);
        self.ident.store(ident, Ordering::Release);
    }

    /// Takes back an exception that was raised for `serial` and has not landed: the call is over.
    pub(super) fn take_back(&self, py: Python<'_>, serial: u64) {
        if self.struck.compare_exchange(serial, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            raw::raise_in_thread(py, self.ident.load(Ordering::Acquire), None);
        }
    }

    fn processor_time(&self) -> Option<Duration> {
        let native = self.native.load(Ordering::Acquire);
        let text = fs::read_to_string(format!("/proc/self/task/{native}/schedstat")).ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    }
}

/// The threads of one agent.
#[derive(Debug, Default)]
pub(super) struct PyCrew {
    threads: Mutex<HashMap<LaneId, Arc<LaneThread>>>,
    /// What all lanes of the agent share in Python: its modules, and the context that they were imported in.
    pub(super) agent: OnceLock<Py<PyAny>>,
}

impl PyCrew {
    pub(super) fn add(&self, lane: LaneId, thread: Arc<LaneThread>) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).insert(lane, thread);
    }

    pub(super) fn remove(&self, lane: LaneId) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).remove(&lane);
    }

    fn thread(&self, lane: LaneId) -> Option<Arc<LaneThread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).get(&lane).map(Arc::clone)
    }
}

/// A crew as the queue knows it: the queue itself must not be kept alive by it.
#[derive(Debug)]
pub(super) struct Hiring(pub(super) Arc<PyCrew>);

impl Crew<PyHandler> for Hiring {
    fn hire(&self, queue: &Arc<LaneQueue<PyHandler>>, lane: LaneId) -> Option<Wake> {
        let thread = LaneThread::new().ok()?;
        self.0.add(lane, Arc::clone(&thread));
        let wake = thread.wake();
        let hired = Lane::new(Arc::clone(queue), lane, thread, Arc::clone(&self.0));
        loading::ask(AssistantOrder::Serve(hired)).ok()?;
        Some(wake)
    }

    fn order(&self, queue: &Arc<LaneQueue<PyHandler>>, lane: LaneId, order: Order) {
        if let Some(thread) = self.0.thread(lane) {
            let strike = Strike { queue: Arc::clone(queue), lane, thread, order };
            // The assistant's eventfd is open as long as the process lives.
            let _ = loading::ask(AssistantOrder::Strike(strike));
        }
    }

    fn is_awake(&self, lane: LaneId) -> bool {
        self.0.thread(lane).is_some_and(|thread| thread.lingering.load(Ordering::Relaxed))
    }

    fn processor_time(&self, lane: LaneId) -> Option<Duration> {
        self.0.thread(lane)?.processor_time()
    }
}

/// An order about a lane that does not answer, for the assistant.
#[pyclass(frozen, module = "tenterhook._engine")]
pub(super) struct Strike {
    queue: Arc<LaneQueue<PyHandler>>,
    lane: LaneId,
    thread: Arc<LaneThread>,
    order: Order,
}

#[pymethods]
impl Strike {
    /// Looks whose step is running and strikes it, all while the GIL is kept: `current_tasks` are asyncio's, by loop. Gives Python's
    /// number of the thread where its stack is to be told.
    fn carry_out(&self, py: Python<'_>, current_tasks: &Bound<'_, PyDict>) -> PyResult<Option<u64>> {
        let running = self.running(py, current_tasks);
        let ident = self.thread.ident.load(Ordering::Acquire);
        let (call, class) = match self.order {
            Order::Look => (None, None),
            Order::Interrupt(call) => (Some(call), Some(intern!(py, "HandlerInterrupted"))),
            Order::Park(call) => (Some(call), Some(intern!(py, "ThreadParked"))),
            Order::Report => return Ok(Some(ident)),
        };
        if let (Some(call), Some(class)) = (call, class)
            && running == call
        {
            let class = py.import("tenterhook.lane")?.getattr(class)?.cast_into::<PyType>()?;
            self.thread.struck.store(call.unwrap_or_default(), Ordering::Release);
            raw::raise_in_thread(py, ident, Some(&class));
        }
        self.queue.looked(self.lane, running);
        Ok(None)
    }

    /// Where the thread is, for the log and for `health()`.
    #[expect(clippy::needless_pass_by_value, reason = "arguments come from Python")]
    fn report(&self, stack: Vec<String>) {
        self.queue.reported(self.lane, &stack);
    }

    /// The order could not be carried out.
    fn failed(&self) {
        self.queue.looked(self.lane, None);
    }
}

impl Strike {
    fn running(&self, py: Python<'_>, current_tasks: &Bound<'_, PyDict>) -> Option<u64> {
        let server = self.thread.server.get()?.bind(py);
        let task = current_tasks.get_item(server.getattr(intern!(py, "loop")).ok()?).ok()??;
        let dict = |name| server.getattr(name).ok()?.cast_into::<PyDict>().ok();
        if let Some(serial) = dict(intern!(py, "owners"))?.get_item(&task).ok()? {
            return serial.extract().ok();
        }
        match dict(intern!(py, "running"))?.iter().find(|(_, own)| own.is(&task)) {
            Some((serial, _)) => serial.extract().ok(),
            // A task at its first step is not known yet.
            None => Some(self.thread.entered.load(Ordering::Acquire)).filter(|serial| *serial != 0),
        }
    }
}

impl std::fmt::Debug for Strike {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Strike").field("lane", &self.lane).field("order", &self.order).finish_non_exhaustive()
    }
}
