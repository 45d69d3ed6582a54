//! A modify hook that raises a control signal which its point does not take.
//!
//! ## Why
//!
//! The engine logs and discards such a signal and goes on with the original payload: the veto or the retry that
//! was meant does not happen.
//!
//! ## Bad
//!
//! ```python
//! @modify_model_request()
//! async def guard(request: ModelRequestPayload) -> ModelRequestPayload:
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
    Rule { name: "unsupported-signal", severity: Severity::Error, source: include_str!("unsupported_signal.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered().filter(|handler| handler.lane == Lane::Modify) {
        for raised in flow::signals(context, handler.module, handler.function) {
            if raised.path.is_empty() && !super::takes(handler, raised.signal) {
                let point = handler.spec.point.name().replace('_', " ");
                let message = format!("`{}` raises `{}`, which {point} does not take", handler.function.name, raised.signal);
                report.add(context, &RULE, raised.module, raised.span, message).hint(super::signals_of(handler));
            }
        }
    }
}
