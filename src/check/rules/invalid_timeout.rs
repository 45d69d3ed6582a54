//! A time-out that is no whole number of milliseconds from 1 to a day.
//!
//! ## Why
//!
//! Such a time-out would make each call fail, or never end. `timeout_ms` is the only argument of a hook
//! decorator.
//!
//! ## Bad
//!
//! ```python
//! @on_tool_call(timeout_ms=0)
//! async def watch(payload: ToolCallPayload) -> None: ...
//! ```
//!
//! ## Good
//!
//! ```python
//! @on_tool_call(timeout_ms=250)
//! async def watch(payload: ToolCallPayload) -> None: ...
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::outline::{Expr, ExprKind};
use crate::diagnostic::Severity;

/// A day, in milliseconds: more is a mistake in the unit.
const LONGEST_MS: i64 = 86_400_000;

pub(super) const RULE: Rule =
    Rule { name: "invalid-timeout", severity: Severity::Error, source: include_str!("invalid_timeout.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in &context.handlers {
        let Some((arguments, keywords)) = handler.arguments else { continue };
        let mut tell = |expr: &Expr, message: String| {
            let hint = "give milliseconds as an `int`: `timeout_ms=250`";
            report.add(context, &RULE, handler.module, expr.span, message).hint(hint);
        };
        for argument in arguments {
            tell(argument, format!("`@{}` takes no argument by position", handler.decorator_name()));
        }
        for keyword in keywords {
            match keyword.name.as_deref() {
                Some("timeout_ms") if is_invalid(&keyword.value) => {
                    tell(&keyword.value, format!("The time-out is no whole number from 1 to {LONGEST_MS}"));
                }
                Some("timeout_ms") | None => {}
                Some(other) => {
                    tell(&keyword.value, format!("`@{}` has no argument `{other}`", handler.decorator_name()));
                }
            }
        }
    }
}

/// Whether a literal is no time-out; what is computed is for the load to look at.
fn is_invalid(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Integer(whole) => !whole.is_some_and(|whole| (1..=LONGEST_MS).contains(&whole)),
        ExprKind::Float
        | ExprKind::Text(_)
        | ExprKind::Bool(_)
        | ExprKind::Items(_)
        | ExprKind::Dict(_)
        | ExprKind::Unary { negative: true, .. } => true,
        _ => false,
    }
}
