//! The worker's side: orders become calls of its own engine, answers become reports.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::frame::{End, Order, Reader, Report, encode};
use super::pipe::Pipe;
use crate::dispatch::{Call, Dispatcher, Registered, Withdraw as _};
use crate::hooks::{FailureCause, HandlerId};

/// Tells the stacks of all Python threads, the innermost frame of each first, without the interpreter's lock.
pub(crate) type Stacks = Box<dyn FnMut() -> Option<String> + Send>;

/// Calls under way, by the engine's number: `None` while one is being made.
type Open<H> = Arc<Mutex<HashMap<u64, Option<Arc<Call<H>>>>>>;

/// Serves the engine until it says that it is enough, or is gone.
pub(crate) fn host<H: Send + Sync + 'static>(
    dispatcher: &Dispatcher<H>,
    orders: &mut Reader<impl Read>,
    reports: &Arc<Pipe>,
) -> io::Result<()> {
    let handlers: Vec<Arc<Registered<H>>> = dispatcher.handlers().cloned().collect();
    let open: Open<H> = Arc::default();
    while let Some(order) = orders.head()? {
        match order {
            Order::Call { serial, handler, waited } => {
                let handler = handlers.get(handler as usize).ok_or_else(|| io::Error::other("no such handler"))?;
                let payload = orders.payload(handler.id.point)?;
                locked(&open).insert(serial, None);
                let (answered, reports) = (Arc::clone(&open), Arc::clone(reports));
                let call = dispatcher.ask(handler, payload, waited, move |answer, _| {
                    let call = locked(&answered).remove(&serial).flatten();
                    let ran = call.map_or(Duration::ZERO, |call| call.running());
                    report_end(&reports, serial, ran, End::of(answer));
                });
                // It may have been answered meanwhile.
                if let Some(slot) = locked(&open).get_mut(&serial) {
                    *slot = Some(call);
                }
            }
            Order::Cancel { serial } => {
                let call = locked(&open).get(&serial).cloned().flatten();
                if let Some(call) = call {
                    call.withdraw();
                }
            }
            Order::Ping => {
                let health = dispatcher.health();
                let (serving, stuck, taken_over) = (health.serving, health.stuck, health.taken_over);
                reports.tell(&Report::Pong { serving, stuck, taken_over });
            }
            Order::Stop => return Ok(()),
            Order::Load(_) => return Err(io::Error::other("an agent is loaded once")),
        }
    }
    Ok(())
}

/// Waits until the process has to be given up, finds out where it is stuck, and tells the engine, which ends it.
pub(crate) fn tell_lost<H: Send + Sync + 'static>(
    dispatcher: &Dispatcher<H>,
    lost: &Receiver<Vec<Arc<HandlerId>>>,
    mut stacks: Stacks,
    reports: &Pipe,
) {
    let Ok(suspects) = lost.recv() else { return };
    let dump = stacks().unwrap_or_default();
    let mut stack = Vec::new();
    let mut culprit = match suspects.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    // What is suspended is on no stack: a suspect that is found there is at a step.
    for thread in dump.split("\n\n") {
        if let Some(found) = suspects.iter().find(|suspect| thread.lines().any(|line| is_in(line, suspect))) {
            culprit = Some(found);
            stack = frames(thread, found);
            break;
        }
    }
    let culprit = culprit.and_then(|id| dispatcher.handlers().position(|handler| handler.id == *id));
    let culprit = culprit.and_then(|index| u32::try_from(index).ok());
    reports.tell(&Report::Lost { culprit, stack });
}

/// File and rest of a line such as `  File "/agent/hooks.py", line 7 in guard`.
fn frame(line: &str) -> Option<(&str, &str)> {
    line.trim().strip_prefix("File \"")?.split_once("\", line ")
}

/// Whether a line is of this handler's own code.
fn is_in(line: &str, handler: &HandlerId) -> bool {
    let name = handler.function.rsplit('.').next().unwrap_or(&handler.function);
    frame(line).is_some_and(|(file, place)| {
        Path::new(file) == handler.file && place.split_once(" in ").is_some_and(|(_, function)| function == name)
    })
}

/// The frames of a thread from the handler's own on, the innermost last.
fn frames(thread: &str, handler: &HandlerId) -> Vec<String> {
    let lines: Vec<_> = thread.lines().collect();
    let own = lines.iter().position(|line| is_in(line, handler)).unwrap_or_default();
    let shown = lines[..=own].iter().rev().filter_map(|line| frame(line));
    shown.map(|(file, place)| format!("{file}:{place}")).collect()
}

fn report_end(reports: &Pipe, serial: u64, ran: Duration, (end, payload): (End, Option<crate::hooks::AnyPayload>)) {
    let frame = encode(&Report::Ended { serial, ran, end }, payload.as_ref());
    match frame {
        Ok(frame) => reports.send(&frame),
        Err(message) => {
            let end = End::Failure(FailureCause::InvalidResult { message });
            reports.tell(&Report::Ended { serial, ran, end });
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
