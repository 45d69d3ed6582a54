//! Hooks in a process of their own: the frames between, the process and its end, the worker's side.
//!
//! The engine's side serves a queue of `dispatch` as a lane of Python's does, with verdicts by the same clock and the same policies. The
//! worker's side is an engine that keeps its own handlers in check as far as that can be done within a process; where it cannot (C code
//! that keeps the interpreter's lock, a thread that would have to be given up), the engine kills the process and starts it again.

mod apart;
mod error;
mod frame;
mod host;
mod keeper;
mod pipe;
mod process;
mod starting;

pub(crate) use apart::Apart;
pub use error::Error;
pub(crate) use frame::{FoundHandler, FoundProblem, LoadSettings, Order, Reader, Report};
pub(crate) use host::{host, tell_lost};
pub(crate) use keeper::{Keeper, LoadRequest, load};
pub(crate) use pipe::Pipe;
pub(crate) use process::WorkerCommand;
