//! A second modify hook at a point.
//!
//! ## Why
//!
//! A point has one modify hook: two would have to agree on who goes first. Any number of observers may stand at a
//! point.
//!
//! ## Bad
//!
//! ```python
//! @modify_outgoing_text()
//! async def trim(payload: OutgoingTextPayload) -> OutgoingTextPayload:
//!     return payload
//!
//!
//! @modify_outgoing_text()
//! async def shorten(payload: OutgoingTextPayload) -> OutgoingTextPayload:
//!     return payload
//! ```
//!
//! ## Good
//!
//! ```python
//! @modify_outgoing_text()
//! async def trim_and_shorten(payload: OutgoingTextPayload) -> OutgoingTextPayload:
//!     return payload
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::handlers::{Handler, Placement};
use crate::diagnostic::Severity;
use crate::hooks::{Lane, POINTS};

pub(super) const RULE: Rule =
    Rule { name: "duplicate-modify", severity: Severity::Error, source: include_str!("duplicate_modify.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for spec in &POINTS {
        let is_hook = |handler: &&Handler<'_>| {
            handler.spec.point == spec.point
                && handler.lane == Lane::Modify
                && handler.placement == Placement::Module
                && context.project.modules[handler.module].is_hook_module
        };
        let mut hooks = context.handlers.iter().filter(is_hook);
        let Some(first) = hooks.next() else { continue };
        for second in hooks {
            let (point, name) = (spec.point.name().replace('_', " "), &second.function.name);
            let message = format!("`{name}` is a second modify hook at {point}");
            report
                .add(context, &RULE, second.module, second.function.name_span, message)
                .hint("keep one, and call the other from it")
                .related(context, first.module, first.function.name_span, format!("the first is `{}`", first.function.name));
        }
    }
}
