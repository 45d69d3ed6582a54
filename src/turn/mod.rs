//! One turn: from the user's text to the reply, with every hook point on the way. No Python, no disk and no network is named here.

mod batch;
mod engine;
mod event;
mod fields;
mod gates;
mod guided;
mod history;
mod input;
mod judge;
mod lifecycle;
mod offers;
mod responses;
mod run;
mod running;
mod session;
mod skills;
mod store;
mod voice;

pub use engine::{TurnEngine, TurnEngineBuilder, TurnStream};
pub use event::TurnEvent;
pub use input::{Said, TurnInput};
pub use lifecycle::{Lifecycle, LifecycleEvent, LifecycleStream};
pub use responses::{FixedResponses, Rendered, Response, Responses};
pub(crate) use skills::SkillSet;
pub use store::{ConversationStore, MemoryStore, StoreError};
