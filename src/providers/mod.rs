//! What a turn needs of the world: models, a store on disk, an index of references.

mod mcp;
mod openai;
mod recorded;
mod references;
#[cfg(test)]
mod replay_tests;
mod scripted;
mod sqlite;

pub use mcp::{McpError, McpServerConfig, McpServers, McpTransport};
pub use openai::{OpenAiModel, OpenAiSettings, SettingsError};
pub use recorded::RecordedConversation;
pub(crate) use recorded::requested;
pub use references::{Chunking, References};
pub(crate) use scripted::{Script, ScriptedModel};
pub use sqlite::{SqliteError, SqliteStore};
