//! A folder on disk becomes a ready engine.

mod discovery;
mod engine;
mod error;
mod settings;

pub(crate) use discovery::agent_files;
pub use engine::{HookEngine, HookEngineBuilder, RegisteredHook, StaticCheck};
pub use error::Error;
pub(crate) use settings::Settings;
