//! What happens around one model call, one batch of tool calls, one search, one text in or out, when hooks are there. Whose loop it is,
//! a step does not know.

mod batch;
mod completion;
mod events;
mod hooks;
mod model;
mod search;
mod text;

pub(crate) use batch::{Preflight, preflight, result};
pub(crate) use completion::{Asked, Call, Completion, ask_unseen, complete};
pub use events::EventStream;
pub(crate) use hooks::{Hooked, Ran, Witness};
pub use hooks::{Hooks, Identity, NoHooks};
pub use model::{Model, ModelError, ModelReply, ModelRequest, RequestedCall, Tokens, Usage};
pub use search::{Knowledge, NoKnowledge, Passage};
pub(crate) use search::{NOTHING_FOUND, Query, SEARCH, passages, query, search};
pub(crate) use text::{Incoming, Outgoing, incoming, outgoing};
