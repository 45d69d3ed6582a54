//! A helper that raises a control signal which the calling hook's point does not take.
//!
//! ## Why
//!
//! The signal would be logged and discarded, and the hook's own change with it. The calls that lead there are
//! shown; whether they happen is not known.
//!
//! ## Bad
//!
//! ```python
//! def refuse() -> None:
//!     raise HookRejection(reason="no")
//!
//!
//! @modify_model_request()
//! async def guard(request: ModelRequestPayload) -> ModelRequestPayload:
//!     refuse()
//!     return request
//! ```
//!
//! ## Good
//!
//! ```python
//! def refuse() -> None:
//!     raise HookRejection(reason="no")
//!
//!
//! @modify_incoming_message()
//! async def guard(message: IncomingMessagePayload) -> IncomingMessagePayload:
//!     refuse()
//!     return message
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::flow;
use crate::diagnostic::Severity;
use crate::hooks::Lane;

pub(super) const RULE: Rule =
    Rule { name: "unsupported-signal-in-helper", severity: Severity::Warning, source: include_str!("unsupported_signal_in_helper.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered().filter(|handler| handler.lane == Lane::Modify) {
        for raised in flow::signals(context, handler.module, handler.function) {
            let Some((_, module, span)) = raised.path.first() else { continue };
            if super::takes(handler, raised.signal) {
                continue;
            }
            let calls: Vec<_> = raised.path.iter().map(|(name, ..)| format!("`{name}`")).collect();
            let point = handler.spec.point.name().replace('_', " ");
            let message = format!(
                "`{}` may raise `{}` through {}, which {point} does not take",
                handler.function.name,
                raised.signal,
                calls.join(" and ")
            );
            let mut added = report.add(context, &RULE, *module, *span, message).hint(super::signals_of(handler));
            for (name, module, span) in raised.path.iter().skip(1) {
                added = added.related(context, *module, *span, format!("`{name}` is called here"));
            }
            added.related(context, raised.module, raised.span, "it is raised here");
        }
    }
}
