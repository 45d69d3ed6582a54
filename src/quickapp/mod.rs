//! Quick Apps: hooks that a manifest declares.

mod app;
mod call_id;
mod context;
mod engine;
mod event;
#[cfg(test)]
mod failing_tests;
mod fallback;
#[cfg(test)]
mod heard;
#[cfg(test)]
mod hidden_tests;
mod hook;
mod names;
mod pair;
#[cfg(test)]
mod pair_tests;
mod placing;
#[cfg(test)]
mod placing_tests;
mod request;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod scene;
mod statistics;
#[cfg(test)]
mod testing;
mod tools;
mod ttl;

pub(crate) use app::{
    App, AppHook, COMPLETION_TIMEOUT, HookEvent, MAX_ITERATIONS, START_TIMEOUT, ToolSet, ToolSetKind,
};
pub(crate) use engine::Parts;
pub use engine::{QuickApp, RequestInput, RequestStream};
pub use event::{RequestEvent, RequestStatus};
pub(crate) use fallback::{FallbackConfiguration, Strategy, Trigger};
pub(crate) use hook::Templates;
pub(crate) use names::{function_name, sanitize};
pub(crate) use placing::Frequency;
pub use statistics::AppHookStatistics;
pub(crate) use tools::{AppTool, AppTools, ToolSource};
