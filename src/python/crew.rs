//! The threads of an agent's lanes: started by the assistant, watched without the interpreter, struck by a leaf that holds the GIL.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
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
use crate::hooks::HandlerId;

/// One lane's thread, as far as it is known without the interpreter.
#[derive(Debug)]
pub(super) struct LaneThread {
    pub(super) waker: Waker,
    /// `tenterhook.lane._Server`, once the thread serves.
    pub(super) server: Mutex<Option<Py<PyAny>>>,
    /// Python's number of the thread; 0: not known yet.
    pub(super) ident: AtomicU64,
    /// The system's.
    native: AtomicI32,
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
            server: Mutex::new(None),
            ident: AtomicU64::new(0),
            native: AtomicI32::new(0),
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
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        self.native.store(native, Ordering::Release);
        self.ident.store(ident, Ordering::Release);
    }

    /// The thread no longer serves: what it has is let go, the file descriptor among it.
    pub(super) fn ended(&self) {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Not under the lock: to let go of an object may run code.
        drop(server);
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

/// Hears that the process is to be given up instead of a thread, and which handlers may be to blame. May not block.
pub(crate) type GiveUp = Arc<dyn Fn(&[Arc<HandlerId>]) + Send + Sync>;

/// The threads of one agent.
pub(super) struct PyCrew {
    /// The agent's folder, as the code of its modules names it: as it was given, and without links.
    roots: [String; 2],
    threads: Mutex<HashMap<LaneId, Arc<LaneThread>>>,
    /// What all lanes of the agent share in Python: its modules, and the context that they were imported in.
    pub(super) agent: OnceLock<Py<PyAny>>,
    lost: Option<GiveUp>,
}

impl PyCrew {
    pub(super) fn new(root: &Path, lost: Option<GiveUp>) -> Self {
        let shown = |path: &Path| format!("{}/", path.display());
        let real = fs::canonicalize(root).map_or_else(|_| shown(root), |real| shown(&real));
        Self { roots: [shown(root), real], threads: Mutex::default(), agent: OnceLock::new(), lost }
    }

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
            let strike = Strike {
                queue: Arc::clone(queue),
                crew: Arc::clone(&self.0),
                lane,
                thread,
                order,
                left: AtomicU32::new(TRIES),
            };
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

    fn lose(&self, culprits: &[Arc<HandlerId>]) -> bool {
        let Some(lost) = &self.0.lost else { return false };
        lost(culprits);
        true
    }
}

/// An order about a lane that does not answer, for the assistant.
#[pyclass(frozen, module = "tenterhook._engine")]
pub(super) struct Strike {
    queue: Arc<LaneQueue<PyHandler>>,
    crew: Arc<PyCrew>,
    lane: LaneId,
    thread: Arc<LaneThread>,
    order: Order,
    /// How often it is still tried; 0: it has been carried out, or given up.
    left: AtomicU32,
}

/// How often it is tried to park a thread, 2 ms apart.
const TRIES: u32 = 500;

#[pymethods]
impl Strike {
    /// Looks whose step is running and strikes it, all while the GIL is kept: `current_tasks` are asyncio's, by loop. Gives Python's
    /// number of the thread where its stack is to be told.
    fn carry_out(&self, py: Python<'_>, current_tasks: &Bound<'_, PyDict>) -> PyResult<Option<u64>> {
        let ident = self.thread.ident.load(Ordering::Acquire);
        let left = self.left.fetch_sub(1, Ordering::AcqRel) - 1;
        let running = self.running(py, current_tasks);
        let (call, class) = match self.order {
            Order::Report => {
                self.left.store(0, Ordering::Release);
                return Ok(Some(ident));
            }
            Order::Look => (None, None),
            Order::Interrupt(call) => (Some(call), Some(intern!(py, "HandlerInterrupted"))),
            Order::Park(call) => (Some(call), Some(intern!(py, "ThreadParked"))),
        };
        let mut again = false;
        // A thread that has ended has given its number back: another may have it by now.
        let serves = self.thread.server.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if let (Some(call), Some(class)) = (call, class)
            && running == call
            && serves
        {
            // What is no task may be the loop itself: then nobody's code is there to be struck. A parked thread keeps what it holds:
            // in somebody else's code that may be a lock that all need.
            let strikes = match self.order {
                Order::Park(_) => self.in_agent(py, ident, 1)?,
                _ => call.is_some() || self.in_agent(py, ident, usize::MAX)?,
            };
            if strikes {
                let class = py.import("tenterhook.lane")?.getattr(class)?.cast_into::<PyType>()?;
                self.thread.struck.store(call.unwrap_or_default(), Ordering::Release);
                raw::raise_in_thread(py, ident, Some(&class));
            } else {
                again = matches!(self.order, Order::Park(_)) && left > 0;
            }
        }
        if !again {
            self.left.store(0, Ordering::Release);
        }
        self.queue.looked(self.lane, running);
        Ok(None)
    }

    /// Whether the order is to be tried again.
    #[getter]
    fn wants_more(&self) -> bool {
        self.left.load(Ordering::Acquire) > 0
    }

    /// Has the order tried again, after those that wait.
    fn again(&self) {
        let order = Self {
            queue: Arc::clone(&self.queue),
            crew: Arc::clone(&self.crew),
            lane: self.lane,
            thread: Arc::clone(&self.thread),
            order: self.order,
            left: AtomicU32::new(self.left.load(Ordering::Acquire)),
        };
        let _ = loading::ask(AssistantOrder::Strike(order));
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
    /// Whether one of the `deepest` innermost frames of a thread is code of the agent's.
    fn in_agent(&self, py: Python<'_>, ident: u64, deepest: usize) -> PyResult<bool> {
        let frames = py.import("sys")?.call_method0(intern!(py, "_current_frames"))?.cast_into::<PyDict>()?;
        let mut frame = frames.get_item(ident)?;
        for _ in 0..deepest {
            let Some(this) = frame.filter(|frame| !frame.is_none()) else { return Ok(false) };
            let file = this.getattr(intern!(py, "f_code")).and_then(|code| code.getattr(intern!(py, "co_filename")));
            let file: String = file.and_then(|file| file.extract()).unwrap_or_default();
            if self.crew.roots.iter().any(|root| file.starts_with(root)) {
                return Ok(true);
            }
            frame = this.getattr(intern!(py, "f_back")).ok();
        }
        Ok(false)
    }

    fn running(&self, py: Python<'_>, current_tasks: &Bound<'_, PyDict>) -> Option<u64> {
        let server =
            self.thread.server.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.clone_ref(py).into_bound(py);
        let task = current_tasks.get_item(server.getattr(intern!(py, "loop")).ok()?).ok()??;
        let dict = |name| server.getattr(name).ok()?.cast_into::<PyDict>().ok();
        if let Some(serial) = dict(intern!(py, "owners"))?.get_item(&task).ok()? {
            return serial.extract().ok();
        }
        let running = dict(intern!(py, "running"))?;
        running.iter().find(|(_, own)| own.is(&task)).and_then(|(serial, _)| serial.extract().ok())
    }
}

impl std::fmt::Debug for PyCrew {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PyCrew").field("roots", &self.roots).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Strike {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Strike").field("lane", &self.lane).field("order", &self.order).finish_non_exhaustive()
    }
}
