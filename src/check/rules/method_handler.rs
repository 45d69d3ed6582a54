//! A decorated method of a class.
//!
//! ## Why
//!
//! The loader looks for functions at module level. A method would need an object to be called on, so it cannot be
//! a hook.
//!
//! ## Bad
//!
//! ```python
//! class Guard:
//!     @on_tool_call()
//!     async def watch(self, payload: ToolCallPayload) -> None: ...
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
use crate::check::handlers::Placement;
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "method-handler", severity: Severity::Error, source: include_str!("method_handler.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered() {
        if let Placement::Class(class) = handler.placement {
            let message = format!("`{class}.{}` is not registered: a method cannot be a hook", handler.function.name);
            report
                .add(context, &RULE, handler.module, handler.function.name_span, message)
                .hint("make it a function at module level");
        }
    }
}
