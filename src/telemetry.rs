//! Names of spans, events and their fields. No payload content is ever among them.

/// The target of everything that concerns one dispatch.
pub(crate) const DISPATCH: &str = "tenterhook::dispatch";

/// The target of loading an agent's modules.
pub(crate) const LOAD: &str = "tenterhook::load";

/// The target of everything that concerns a turn.
pub(crate) const TURN: &str = "tenterhook::turn";
