//! A worker is started, and started again; its reports are read on a thread of their own.

use std::collections::HashMap;
use std::io::BufReader;
use std::process::ChildStdout;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, MutexGuard, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::error::Error;
use super::frame::{FoundHandler, FoundProblem, Reader, Report};
use super::keeper::{Keeper, LoadRequest, Running, State};
use super::process::Process;
use crate::telemetry::DISPATCH;

/// The longest time between two starts.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Keeper {
    /// Starts another worker, after a pause where the last ones did not live long.
    pub(super) fn start_again<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let pause = match state.short_lives {
            0 | 1 => Duration::ZERO,
            lives => Duration::from_millis(50 << lives.min(8)).min(LONGEST_PAUSE),
        };
        let from = Instant::now();
        let mut state = state;
        while let Some(left) = pause.checked_sub(from.elapsed()).filter(|left| !left.is_zero()) {
            state = self.wait(state, Some(left));
            if state.stopping.is_some() {
                return state;
            }
        }
        drop(state);
        match self.start() {
            Ok((running, _, _)) => {
                let mut state = self.lock();
                state.running = Some(running);
                drop(state);
                self.queue().set_down(false);
                self.drain();
                self.lock()
            }
            Err(error) => {
                tracing::error!(target: DISPATCH, "The worker of {} is not there: {error}", self.request.root.display());
                let mut state = self.lock();
                state.short_lives = (state.short_lives + 1).max(2);
                state
            }
        }
    }

    /// Starts a worker and waits until it has loaded the agent.
    pub(super) fn start(&self) -> Result<(Running, Vec<FoundHandler>, Vec<FoundProblem>), Error> {
        let LoadRequest { command, settings, .. } = &self.request;
        let (process, reader) = Process::start(&self.request)?;
        let (tell, told) = mpsc::sync_channel(1);
        let (me, hearing) = (self.me.clone(), Arc::clone(&process));
        let reading = thread::Builder::new()
            .name("tenterhook-reports".into())
            .spawn(move || read(&me, &hearing, reader, &tell))
            .map(drop)
            .map_err(|reason| Error::Start { program: command.program.clone(), reason });
        // The worker has a limit of its own for the import: this one is for a process that hangs.
        let limit = settings.load_timeout + Duration::from_secs(5);
        let first = reading.map(|()| told.recv_timeout(limit));
        let failed = match first {
            Ok(Ok(Report::Loaded { handlers, problems })) => match places(&self.lock().known, &handlers) {
                Some(places) => {
                    let now = Instant::now();
                    let open = HashMap::new();
                    let running = Running { process, places, since: now, heard: now, pinged: None, open };
                    return Ok((running, handlers, problems));
                }
                None => Error::Load {
                    message: "its modules register other hooks than they did: reload the engine".into(),
                    problems: Vec::new(),
                },
            },
            Ok(Ok(Report::Refused { message, problems })) => {
                Error::Load { message, problems: problems.into_iter().map(Into::into).collect() }
            }
            Ok(Err(RecvTimeoutError::Timeout)) => Error::Timeout { limit },
            Ok(Ok(_) | Err(RecvTimeoutError::Disconnected)) => {
                process.kill();
                Error::Ended { program: command.program.clone(), how: process.reap() }
            }
            Err(error) => error,
        };
        process.kill();
        process.reap();
        Err(failed)
    }
}

/// Reads what a worker says until it ends.
fn read(
    me: &Weak<Keeper>,
    process: &Arc<Process>,
    mut reader: Reader<BufReader<ChildStdout>>,
    tell: &SyncSender<Report>,
) {
    let mut first = true;
    loop {
        match reader.head::<Report>() {
            // Nobody waits for the first any more where the load was given up.
            Ok(Some(report)) if std::mem::take(&mut first) => drop(tell.try_send(report)),
            Ok(Some(report)) => {
                let Some(keeper) = me.upgrade() else { return };
                if let Err(error) = keeper.hear(process, report, &reader) {
                    tracing::error!(target: DISPATCH, "The worker says what is not understood: {error}");
                    keeper.give_up(process);
                    return;
                }
            }
            Ok(None) | Err(_) => break,
        }
    }
    if let Some(keeper) = me.upgrade() {
        keeper.ended(process);
    }
}

/// Where the known handlers are among those found; `None`: they are others. Nothing known: as they are.
fn places(known: &[FoundHandler], found: &[FoundHandler]) -> Option<Vec<u32>> {
    if known.is_empty() {
        return Some((0..).take(found.len()).collect());
    }
    let place = |handler: &FoundHandler| found.iter().position(|other| other.is(handler));
    let places = known.iter().map(|handler| u32::try_from(place(handler)?).ok()).collect::<Option<Vec<_>>>()?;
    (known.len() == found.len()).then_some(places)
}
