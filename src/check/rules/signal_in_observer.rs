//! An observer that raises a control signal.
//!
//! ## Why
//!
//! Observers have no effect on the turn: the signal is logged and discarded.
//!
//! ## Bad
//!
//! ```python
//! @on_incoming_message()
//! async def watch(message: IncomingMessagePayload) -> None:
//!     raise HookRejection(reason="no")
//! ```
//!
//! ## Good
//!
//! ```python
//! @modify_incoming_message()
//! async def guard(message: IncomingMessagePayload) -> IncomingMessagePayload:
//!     raise HookRejection(reason="no")
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::flow;
use crate::diagnostic::Severity;
use crate::hooks::Lane;

pub(super) const RULE: Rule =
    Rule { name: "signal-in-observer", severity: Severity::Warning, source: include_str!("signal_in_observer.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered().filter(|handler| handler.lane == Lane::Observe) {
        for raised in flow::signals(context, handler.module, handler.function) {
            let message = format!("`{}` is an observer: `{}` has no effect", handler.function.name, raised.signal);
            let hint = match handler.spec.modify.filter(|_| super::takes(handler, raised.signal)) {
                Some(modify) => format!("raise it in a hook under `@{modify}()`"),
                None => "take it out".to_owned(),
            };
            report.add(context, &RULE, raised.module, raised.span, message).hint(hint);
        }
    }
}
