//! A modify hook that may end without returning its payload.
//!
//! ## Why
//!
//! A modify hook that returns nothing fails. At a closed point that ends the turn. To leave a payload as it is,
//! return it.
//!
//! ## Bad
//!
//! ```python
//! @modify_outgoing_text()
//! async def trim(payload: OutgoingTextPayload) -> OutgoingTextPayload:
//!     if payload.text.endswith(" "):
//!         return payload.model_copy(update={"text": payload.text.strip()})
//! ```
//!
//! ## Good
//!
//! ```python
//! @modify_outgoing_text()
//! async def trim(payload: OutgoingTextPayload) -> OutgoingTextPayload:
//!     if payload.text.endswith(" "):
//!         return payload.model_copy(update={"text": payload.text.strip()})
//!     return payload
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::flow;
use crate::check::outline::{ExprKind, StmtKind};
use crate::check::walk;
use crate::diagnostic::Severity;
use crate::hooks::Lane;

pub(super) const RULE: Rule =
    Rule { name: "missing-return", severity: Severity::Warning, source: include_str!("missing_return.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered().filter(|handler| handler.lane == Lane::Modify) {
        let function = handler.function;
        let hint = format!("return the payload to leave it as it is: `return {}`", super::payload_name(handler));
        if !flow::always_ends(&function.body) && !super::is_stub(&function.body) {
            let message = format!("`{}` may end without returning its payload", function.name);
            report.add(context, &RULE, handler.module, function.name_span, message).hint(hint.as_str());
        }
        walk::statements(&function.body, &mut |statement| {
            let nothing = match &statement.kind {
                StmtKind::Return(value) => value.as_ref().is_none_or(|value| matches!(value.kind, ExprKind::None)),
                _ => false,
            };
            if nothing {
                let message = format!("`{}` returns nothing here", function.name);
                report.add(context, &RULE, handler.module, statement.span, message).hint(hint.as_str());
            }
        });
    }
}
