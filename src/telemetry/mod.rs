//! Names of spans and events, and where spans go. No content of a payload is ever among them unless it is asked for.

pub(crate) mod export;

/// The target of everything that concerns one dispatch.
pub(crate) const DISPATCH: &str = "tenterhook::dispatch";

/// The target of loading an agent's modules.
pub(crate) const LOAD: &str = "tenterhook::load";

/// The target of everything that concerns a turn.
pub(crate) const TURN: &str = "tenterhook::turn";

/// The target of everything that concerns an execution.
pub(crate) const EXECUTE: &str = "tenterhook::execute";

/// The target of what is said of the export of spans.
pub(crate) const EXPORT: &str = "tenterhook::export";

/// The operation of a span has ended in an error of this kind.
pub(crate) fn fails(span: &tracing::Span, kind: &str) {
    span.record("otel.status_code", "error");
    span.record("error.type", kind);
}
