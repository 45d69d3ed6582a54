//! A hook whose payload or return value has no annotation.
//!
//! ## Why
//!
//! The annotations are what a hook is checked by, at training and at load.
//!
//! ## Bad
//!
//! ```python
//! @on_tool_call()
//! async def watch(payload): ...
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
use crate::hooks::Lane;

pub(super) const RULE: Rule =
    Rule { name: "missing-annotation", severity: Severity::Error, source: include_str!("missing_annotation.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered() {
        let function = handler.function;
        if let Some(first) = super::payload_parameter(handler).filter(|first| first.annotation.is_none()) {
            let message = format!("`{}` does not annotate `{}`", function.name, first.name);
            report
                .add(context, &RULE, handler.module, first.span, message)
                .hint(format!("write `{}: {}`", first.name, handler.spec.payload));
        }
        if function.returns.is_none() {
            let result = if handler.lane == Lane::Observe { "None" } else { handler.spec.payload };
            let message = format!("`{}` does not annotate what it returns", function.name);
            report
                .add(context, &RULE, handler.module, function.name_span, message)
                .hint(format!("write `-> {result}`"));
        }
    }
}
