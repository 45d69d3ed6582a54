//! A hook that is not `async def`.
//!
//! ## Why
//!
//! The engine awaits what a hook gives. A plain function would have nothing to await, and whatever it does would
//! block the event loop.
//!
//! ## Bad
//!
//! ```python
//! @on_tool_call()
//! def watch(payload: ToolCallPayload) -> None: ...
//! ```
//!
//! ## Good
//!
//! ```python
//! @on_tool_call()
//! async def watch(payload: ToolCallPayload) -> None: ...
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "sync-handler", severity: Severity::Error, source: include_str!("sync_handler.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered().filter(|handler| !handler.function.is_async) {
        let (name, decorator) = (&handler.function.name, handler.decorator_name());
        report
            .add(context, &RULE, handler.module, handler.function.name_span, format!("`{name}` is not async"))
            .hint(format!("write `async def` below `@{decorator}()`"));
    }
}
