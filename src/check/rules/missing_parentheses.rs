//! A hook decorator that is not called.
//!
//! ## Why
//!
//! A decorator without parentheses gets the function as its first argument; the module cannot be imported.
//!
//! ## Bad
//!
//! ```python
//! @modify_outgoing_text
//! async def trim(payload: OutgoingTextPayload) -> OutgoingTextPayload:
//!     return payload
//! ```
//!
//! ## Good
//!
//! ```python
//! @modify_outgoing_text()
//! async def trim(payload: OutgoingTextPayload) -> OutgoingTextPayload:
//!     return payload
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "missing-parentheses", severity: Severity::Error, source: include_str!("missing_parentheses.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.handlers.iter().filter(|handler| handler.arguments.is_none()) {
        let name = handler.decorator_name();
        let message = format!("`@{name}` is used without parentheses");
        report.add(context, &RULE, handler.module, handler.decorator.span, message).hint(format!("write `@{name}()`"));
    }
    for tool in context.tools.iter().filter(|tool| !tool.is_called) {
        let message = "`@tool` is used without parentheses".to_owned();
        let hint = "write `@tool(description=\"...\")`: the model reads the description";
        report.add(context, &RULE, tool.module, tool.decorator.span, message).hint(hint);
    }
}
