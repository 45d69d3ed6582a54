//! A decorated function that the loader cannot see.
//!
//! ## Why
//!
//! The loader registers what module-level names of a hook module hold. A function that is nested in another, and
//! is not given back by it, is decorated in vain.
//!
//! ## Bad
//!
//! ```python
//! def set_up():
//!     @on_tool_call()
//!     async def watch(payload: ToolCallPayload) -> None: ...
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
    Rule { name: "unregistered-decorator", severity: Severity::Error, source: include_str!("unregistered_decorator.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered() {
        if (handler.placement == Placement::Function { returned: false }) {
            let name = &handler.function.name;
            let message = format!("`{name}` is not registered: it is nested in a function that does not give it back");
            report
                .add(context, &RULE, handler.module, handler.function.name_span, message)
                .hint("move it to module level");
        }
    }
}
