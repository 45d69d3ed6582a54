//! A hook that takes another payload than that of its point.
//!
//! ## Why
//!
//! Each point has one payload class. A hook takes that class, the base `HookPayload`, or a union of payload
//! classes; an optional payload does not exist.
//!
//! ## Bad
//!
//! ```python
//! @on_tool_call()
//! async def watch(payload: ToolResultPayload) -> None: ...
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
    Rule { name: "wrong-payload", severity: Severity::Error, source: include_str!("wrong_payload.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered() {
        let Some(first) = super::payload_parameter(handler) else { continue };
        let Some(annotation) = &first.annotation else { continue };
        let Some(classes) = super::annotated(context, handler.module, annotation) else { continue };
        let payload = handler.spec.payload;
        let takes = classes.iter().any(|class| class == payload || class == "HookPayload")
            && classes.iter().all(|class| class.ends_with("Payload"));
        if !takes {
            let shown = classes.join(" | ");
            let point = handler.spec.point.name().replace('_', " ");
            let message = format!("`{}` takes `{shown}` at {point}", handler.function.name);
            report
                .add(context, &RULE, handler.module, annotation.span, message)
                .hint(format!("annotate `{}: {payload}`", first.name));
        }
    }
}
