//! Keeps a worker: serves the queue of its agent's hooks, kills the process where it has to be, and starts it again.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::apart::{Alone, Apart, PATIENCE};
use super::error::Error;
use super::frame::{FoundHandler, FoundProblem, LoadSettings, Order, Reader, Report, encode};
use super::process::{Process, WorkerCommand};
use crate::dispatch::{
    Answer, Call, Dispatcher, EngineHealth, FIRST, LaneQueue, QueueLimits, Registered, Wake, WorkerHealth,
};
use crate::hooks::{FailureCause, HandlerId};
use crate::telemetry::DISPATCH;

/// A worker that says nothing for so long while calls run in it is asked whether it is there.
const QUIET: Duration = Duration::from_millis(250);

/// How long it has to answer; its threads that read and write need no interpreter.
const GONE: Duration = Duration::from_secs(1);

/// How long it has to end when it is told to.
const ENDING: Duration = Duration::from_secs(1);

/// A worker that lives less than this is started again only after a while.
const SHORT_LIFE: Duration = Duration::from_secs(10);

/// What is to be loaded, and how.
#[derive(Clone, Debug)]
pub(crate) struct LoadRequest {
    pub(crate) command: WorkerCommand,
    pub(crate) flags: Vec<OsString>,
    pub(crate) root: PathBuf,
    pub(crate) python: Option<PathBuf>,
    pub(crate) settings: LoadSettings,
    pub(crate) limits: QueueLimits,
}

/// What a load gave.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) handlers: Vec<(HandlerId, Apart)>,
    pub(crate) problems: Vec<FoundProblem>,
    pub(crate) queue: Arc<LaneQueue<Apart>>,
    pub(crate) keeper: Arc<Keeper>,
}

/// Starts a worker, has it load the agent, and keeps it. Blocks.
pub(crate) fn load(request: LoadRequest) -> Result<Loaded, Error> {
    let limits = request.limits;
    let keeper = Arc::new_cyclic(|me: &Weak<Keeper>| Keeper {
        request,
        me: me.clone(),
        queue: OnceLock::new(),
        state: Mutex::default(),
        changed: Condvar::new(),
        drains: AtomicU32::new(0),
    });
    let waking = Arc::downgrade(&keeper);
    let wake: Wake = Arc::new(move || drop(waking.upgrade().inspect(|keeper| keeper.drain())));
    let queue = LaneQueue::new(limits, PATIENCE, Arc::new(Alone), wake);
    let _ = keeper.queue.set(Arc::clone(&queue));
    let (running, found, problems) = keeper.start()?;
    let mut state = keeper.lock();
    state.running = Some(running);
    state.known.clone_from(&found);
    drop(state);
    let keeping = Arc::clone(&keeper);
    let thread = thread::Builder::new().name("tenterhook-worker".into()).spawn(move || keeping.keep());
    if let Err(reason) = thread {
        keeper.lock().running.take().inspect(|running| running.process.kill());
        return Err(Error::Start { program: keeper.request.command.program.clone(), reason });
    }
    keeper.drain();
    let handlers = found.into_iter().zip(0..).map(|(found, index)| (found.into(), Apart(index))).collect();
    Ok(Loaded { handlers, problems, queue, keeper })
}

/// Serves the queue of one agent's hooks.
pub(crate) struct Keeper {
    pub(super) request: LoadRequest,
    pub(super) me: Weak<Self>,
    pub(super) queue: OnceLock<Arc<LaneQueue<Apart>>>,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
    /// Drains that have been asked for since the last was begun.
    pub(super) drains: AtomicU32,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) running: Option<Running>,
    /// The agent's handlers as the first worker found them: another must find the same.
    pub(super) known: Vec<FoundHandler>,
    pub(super) handlers: Vec<Arc<Registered<Apart>>>,
    /// Since when all is to end.
    pub(super) stopping: Option<Instant>,
    /// The keeper's thread is to be woken when a call is made.
    pub(super) idle: bool,
    /// Workers that did not live long, in a row.
    pub(super) short_lives: u32,
    pub(super) restarts: u64,
    pub(super) stack: Vec<String>,
    pub(super) last: Pong,
}

/// What a worker has said of its threads.
#[derive(Clone, Copy, Default)]
pub(super) struct Pong {
    serving: usize,
    stuck: usize,
    taken_over: u64,
}

/// A worker that serves.
pub(super) struct Running {
    pub(super) process: Arc<Process>,
    /// Where the known handlers are in the list of this worker.
    pub(super) places: Vec<u32>,
    pub(super) since: Instant,
    pub(super) heard: Instant,
    pub(super) pinged: Option<Instant>,
    pub(super) open: HashMap<u64, Arc<Call<Apart>>>,
}

impl Keeper {
    /// Learns whom to blame.
    pub(crate) fn knows(&self, dispatcher: &Dispatcher<Apart>) {
        let mut handlers: Vec<_> = dispatcher.handlers().cloned().collect();
        handlers.sort_by_key(|handler| handler.runs.0);
        self.lock().handlers = handlers;
    }

    /// Adds what is known of the process.
    pub(crate) fn complete(&self, health: &mut EngineHealth) {
        let state = self.lock();
        health.serving = if state.running.is_some() { state.last.serving.max(1) } else { 0 };
        health.stuck = state.last.stuck;
        health.taken_over = state.last.taken_over;
        health.worker = Some(WorkerHealth {
            process: state.running.as_ref().map(|running| running.process.id),
            restarts: state.restarts,
            stack: state.stack.clone(),
        });
    }

    pub(super) fn queue(&self) -> &Arc<LaneQueue<Apart>> {
        self.queue.get().expect("set before anything else")
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what waits to the worker, on the thread of whoever asks; who asks meanwhile need not wait.
    pub(super) fn drain(&self) {
        if self.drains.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        loop {
            let seen = self.drains.load(Ordering::Acquire);
            self.drain_once();
            if self.drains.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
        }
    }

    fn drain_once(&self) {
        let queue = self.queue();
        let woken = queue.woken(FIRST);
        let mut state = self.lock();
        if woken.stop {
            state.stopping.get_or_insert_with(Instant::now);
            self.changed.notify_all();
        }
        let process = state.running.as_ref().map(|running| Arc::clone(&running.process));
        drop(state);
        let Some(process) = process else {
            queue.rests(FIRST);
            return;
        };
        for serial in woken.cancels {
            process.orders.tell(&Order::Cancel { serial });
        }
        if woken.stop {
            process.orders.tell(&Order::Stop);
        }
        while let Some(call) = queue.take(FIRST) {
            self.send(&process, call);
        }
        queue.drained(FIRST);
        queue.tell(FIRST);
    }

    fn send(&self, process: &Arc<Process>, call: Arc<Call<Apart>>) {
        if !call.claim(FIRST) {
            return;
        }
        call.enter();
        let (serial, index) = (call.serial(), call.handler().runs.0 as usize);
        let mut state = self.lock();
        let place = state.running.as_ref().filter(|running| Arc::ptr_eq(&running.process, process));
        let Some(place) = place.and_then(|running| running.places.get(index).copied()) else {
            drop(state);
            return finish(&call, Duration::ZERO, Answer::Failure(FailureCause::WorkerRestarted));
        };
        let order = Order::Call { serial, handler: place, waited: call.dispatched().elapsed() };
        let frame = match encode(&order, Some(call.payload())) {
            Ok(frame) => frame,
            Err(message) => {
                drop(state);
                return finish(&call, Duration::ZERO, Answer::Failure(FailureCause::InvalidPayload { message }));
            }
        };
        let idle = std::mem::take(&mut state.idle);
        if let Some(running) = &mut state.running {
            running.open.insert(serial, call);
        }
        drop(state);
        process.orders.send(&frame);
        if idle {
            self.changed.notify_all();
        }
    }

    /// Looks after the worker until all is to end.
    fn keep(self: Arc<Self>) {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let stopping = state.stopping;
            state = match (&mut state.running, stopping) {
                (None, Some(_)) => break,
                (Some(running), Some(since)) => {
                    let left = ENDING.checked_sub(now.saturating_duration_since(since));
                    if left.is_none() {
                        let process = Arc::clone(&running.process);
                        drop(state);
                        self.give_up(&process);
                        self.lock()
                    } else {
                        self.wait(state, left)
                    }
                }
                (None, None) => self.start_again(state),
                (Some(running), None) if running.open.is_empty() => {
                    running.pinged = None;
                    state.idle = true;
                    self.wait(state, None)
                }
                (Some(running), None) => match running.pinged {
                    Some(at) if now.saturating_duration_since(at) >= GONE => {
                        let process = Arc::clone(&running.process);
                        drop(state);
                        tracing::warn!(target: DISPATCH, "The worker of {} does not answer", self.request.root.display());
                        self.give_up(&process);
                        self.lock()
                    }
                    pinged => {
                        if pinged.is_none() && now.saturating_duration_since(running.heard) >= QUIET {
                            running.pinged = Some(now);
                            running.process.orders.tell(&Order::Ping);
                        }
                        self.wait(state, Some(QUIET))
                    }
                },
            };
        }
        drop(state);
        self.queue().end(FIRST);
    }

    pub(super) fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Option<Duration>) -> MutexGuard<'a, State> {
        match time {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(time) => self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0,
        }
    }

    /// Ends a worker that cannot be helped otherwise.
    pub(super) fn give_up(&self, process: &Arc<Process>) {
        process.kill();
        self.ended(process);
    }

    /// A worker has ended, or is as good as ended.
    pub(super) fn ended(&self, process: &Arc<Process>) {
        let mut state = self.lock();
        if !state.running.as_ref().is_some_and(|running| Arc::ptr_eq(&running.process, process)) {
            return;
        }
        let Some(running) = state.running.take() else { return };
        let stopping = state.stopping.is_some();
        if !stopping {
            state.restarts += 1;
            state.short_lives = if running.since.elapsed() < SHORT_LIFE { state.short_lives + 1 } else { 0 };
            self.queue().set_down(true);
        }
        let handlers = state.handlers.clone();
        drop(state);
        let how = process.reap();
        if !stopping {
            let (root, open) = (self.request.root.display(), running.open.len());
            let what = if process.was_killed() { "was killed" } else { "ended by itself" };
            tracing::warn!(target: DISPATCH, "The worker of {root} {what} ({how}): {open} calls in it fail, and it is started again");
            let mut inside = running.open.values().map(|call| call.handler().runs.0);
            // Who was alone in it when it ended by itself has ended it.
            if let (false, Some(first)) = (process.was_killed(), inside.next())
                && inside.all(|other| other == first)
            {
                blame(&handlers, first);
            }
        }
        let cause = if stopping { FailureCause::ShutDown } else { FailureCause::WorkerRestarted };
        for call in running.open.into_values() {
            finish(&call, call.running(), Answer::Failure(cause.clone()));
        }
        self.changed.notify_all();
    }

    pub(super) fn hear(
        &self,
        process: &Arc<Process>,
        report: Report,
        reader: &Reader<impl Read>,
    ) -> std::io::Result<()> {
        let mut state = self.lock();
        let Some(running) = state.running.as_mut().filter(|running| Arc::ptr_eq(&running.process, process)) else {
            return Ok(());
        };
        running.heard = Instant::now();
        running.pinged = None;
        match report {
            Report::Ended { serial, ran, end } => {
                let call = running.open.remove(&serial);
                drop(state);
                if let Some(call) = call {
                    let answer = end.into_answer(|| reader.payload(call.payload().point()));
                    finish(&call, ran, answer?);
                }
            }
            Report::Lost { culprit, stack } => {
                let known = culprit.and_then(|place| running.places.iter().position(|other| *other == place));
                let handlers = state.handlers.clone();
                state.stack.clone_from(&stack);
                drop(state);
                let culprit = known.and_then(|index| handlers.get(index));
                let who = culprit.map_or_else(|| "A hook".to_owned(), |handler| format!("`{}`", handler.id));
                tracing::warn!(target: DISPATCH, "{who} keeps its process from going on; it is at\n{}", stack.join("\n"));
                if let Some(culprit) = culprit {
                    blame(&handlers, culprit.runs.0);
                }
                self.give_up(process);
            }
            Report::Pong { serving, stuck, taken_over } => state.last = Pong { serving, stuck, taken_over },
            Report::Loaded { .. } | Report::Refused { .. } => {}
        }
        Ok(())
    }
}

fn blame(handlers: &[Arc<Registered<Apart>>], index: u32) {
    let handler = handlers.get(index as usize);
    if let Some(told) = handler.and_then(|handler| handler.blame()) {
        tracing::warn!(target: DISPATCH, "{told}");
    }
}

fn finish(call: &Call<Apart>, ran: Duration, answer: Answer) {
    call.leave(ran);
    call.settle(answer);
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Keeper").field("request", &self.request).finish_non_exhaustive()
    }
}
