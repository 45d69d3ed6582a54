//! The interpreter: start it, import an agent's modules, drive their handlers, convert values.
//!
//! No Rust frame ever lies below user code: handlers run as asyncio tasks on threads that Python starts, and Rust is called
//! from them as a leaf that keeps the GIL. No handle of the interpreter leaves this room.

mod binding;
mod console;
mod crew;
#[cfg(not(Py_LIMITED_API))]
mod environment;
mod error;
mod executing;
mod failure;
mod from_python;
mod interpreter;
mod lane;
mod loading;
mod originals;
mod raw;
mod sandbox;
mod sandbox_post;
mod stacks;
mod to_python;
mod tool_calls;

pub(crate) use binding::{payload_to_python, read_payload};
pub(crate) use console::{ConsoleLogs, console, finish, wind_up};
pub(crate) use crew::GiveUp;
pub use error::Error;
pub(crate) use executing::{CallerLane, Controller, ExecutionHandler, FoundExecutionHook};
pub(crate) use from_python::read_json;
pub(crate) use interpreter::{PythonChoice, chosen, ensure_started, fill_module, linked_minor, package_command};
pub(crate) use lane::{PyHandler, Waker};
pub(crate) use loading::{FoundTool, LoadRequest, ToolFound, load};
pub(crate) use sandbox::PySandbox;
pub(crate) use stacks::watch_stacks;
