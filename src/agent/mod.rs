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
mod execution_hooks;
mod execution_model;
mod execution_tools;
mod hosting;
mod lane_calls;
mod serving;
mod settings;
mod templates;
mod tooling;
mod trace_delivery;
mod turning;

pub(crate) use answering::model_of_entry;
pub(crate) use apps::folder_of;
pub use apps::{AppLoader, LoadedApp};
pub use builder::{HookEngineBuilder, Isolation, StaticCheck};
pub(crate) use checking::check_path;
pub use config::ConfigError;
pub(crate) use config::quickapp_schema;
pub use engine::{HookEngine, RegisteredHook};
pub use error::Error;
pub use execution_hooks::LaneHooks;
pub(crate) use execution_model::LaneModel;
pub(crate) use execution_tools::LaneTool;
pub(crate) use hosting::host;
pub(crate) use lane_calls::Lanes;
pub(crate) use settings::Settings;
pub use turning::{AgentLoader, LoadedAgent};
