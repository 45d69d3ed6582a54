//! A hook that returns a control signal.
//!
//! ## Why
//!
//! A control signal is an exception: it is raised. A hook that returns one fails, since that is no payload.
//!
//! ## Bad
//!
//! ```python
//! @modify_model_response()
//! async def retry(response: ModelResponsePayload) -> ModelResponsePayload:
//!     return RetryModel("Be brief.")
//! ```
//!
//! ## Good
//!
//! ```python
//! @modify_model_response()
//! async def retry(response: ModelResponsePayload) -> ModelResponsePayload:
//!     raise RetryModel("Be brief.")
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::flow;
use crate::check::names::Scope;
use crate::check::outline::StmtKind;
use crate::check::walk;
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "returned-signal", severity: Severity::Error, source: include_str!("returned_signal.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered() {
        let function = handler.function;
        let scope = Scope::of(handler.module, &function.parameters, &function.body);
        walk::statements(&function.body, &mut |statement| {
            if let StmtKind::Return(Some(value)) = &statement.kind
                && let Some(signal) = flow::signal_of(context, handler.module, &scope, value)
            {
                let message = format!("`{}` returns `{signal}`", function.name);
                report
                    .add(context, &RULE, handler.module, statement.span, message)
                    .hint(format!("write `raise {signal}(...)`"));
            }
        });
    }
}
