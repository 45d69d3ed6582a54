//! A hook that takes anything but one payload by position.
//!
//! ## Why
//!
//! The engine calls a hook with the payload and nothing else. What a hook needs beside it belongs into its
//! module.
//!
//! ## Bad
//!
//! ```python
//! @on_tool_call()
//! async def watch(payload: ToolCallPayload, limit: int = 3) -> None: ...
//! ```
//!
//! ## Good
//!
//! ```python
//! LIMIT = 3
//!
//!
//! @on_tool_call()
//! async def watch(payload: ToolCallPayload) -> None: ...
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::handlers::Placement;
use crate::check::outline::ParameterKind;
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "extra-parameter", severity: Severity::Error, source: include_str!("extra_parameter.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered() {
        if matches!(handler.placement, Placement::Class(_)) {
            continue;
        }
        let (function, payload) = (handler.function, handler.spec.payload);
        let name = &function.name;
        let Some((first, rest)) = function.parameters.split_first() else {
            report
                .add(context, &RULE, handler.module, function.name_span, format!("`{name}` takes no parameter"))
                .hint(format!("take the payload: `payload: {payload}`"));
            continue;
        };
        let (span, message) = match (first.kind, rest.first()) {
            (ParameterKind::Rest, _) => (first.span, format!("`{name}` takes `*{}`", first.name)),
            (ParameterKind::Keywords, _) => (first.span, format!("`{name}` takes `**{}`", first.name)),
            (ParameterKind::KeywordOnly, _) => (first.span, format!("`{name}` takes `{}` by keyword only", first.name)),
            (ParameterKind::Positional, Some(second)) => {
                (second.span, format!("`{name}` takes a second parameter, `{}`", second.name))
            }
            (ParameterKind::Positional, None) => continue,
        };
        report
            .add(context, &RULE, handler.module, span, message)
            .hint(format!("a hook takes the payload and nothing else: `payload: {payload}`"));
    }
}
