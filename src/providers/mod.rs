//! What a turn needs of the world: models, a store on disk, an index of references.

mod authorization;
mod client;
mod mcp;
mod openai;
mod recorded;
mod references;
#[cfg(test)]
mod replay_tests;
mod rest;
mod runtime;
mod scripted;
mod sqlite;
mod wording;

pub use authorization::HttpAuthorization;
pub use mcp::{McpError, McpServerConfig, McpServers, McpTransport};
pub use openai::{OpenAiModel, OpenAiSettings, SettingsError};
pub(crate) use openai::{QUERY, deployment_tool};
pub use recorded::RecordedConversation;
pub(crate) use recorded::requested;
pub use references::{Chunking, References};
pub use rest::RestError;
pub(crate) use rest::{Address, METHODS, RestRequest, RestServer, Shape, Template, encode, rest_tools};
pub(crate) use scripted::{Script, ScriptedModel};
pub use sqlite::{SqliteError, SqliteStore};
