//! A hook that yields.
//!
//! ## Why
//!
//! A function with `yield` in it is a generator: calling it runs nothing, and there is nothing to await. A hook
//! returns its answer.
//!
//! ## Bad
//!
//! ```python
//! @modify_outgoing_text()
//! async def trim(payload: OutgoingTextPayload) -> OutgoingTextPayload:
//!     yield payload
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
use crate::check::outline::ExprKind;
use crate::check::walk;
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "generator-handler", severity: Severity::Error, source: include_str!("generator_handler.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered() {
        let mut first = None;
        walk::expressions(&handler.function.body, &mut |expr| {
            if matches!(expr.kind, ExprKind::Yield(_)) && first.is_none() {
                first = Some(expr.span);
            }
        });
        if let Some(span) = first {
            let message = format!("`{}` is a generator: it yields here", handler.function.name);
            report
                .add(context, &RULE, handler.module, span, message)
                .hint("take the `yield` out: a hook returns its answer");
        }
    }
}
