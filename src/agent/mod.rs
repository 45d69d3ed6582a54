//! A folder on disk becomes a ready engine.

mod answering;
mod app_tools;
mod apps;
mod builder;
mod checking;
mod config;
mod discovery;
mod engine;
mod error;
mod hosting;
mod serving;
mod settings;
mod templates;
mod tooling;
mod turning;

pub(crate) use apps::folder_of;
pub use apps::{AppLoader, LoadedApp};
pub use builder::{HookEngineBuilder, Isolation, StaticCheck};
pub(crate) use checking::check_path;
pub use config::ConfigError;
pub(crate) use config::quickapp_schema;
pub use engine::{HookEngine, RegisteredHook};
pub use error::Error;
pub(crate) use hosting::host;
pub(crate) use settings::Settings;
pub use turning::{AgentLoader, LoadedAgent};
