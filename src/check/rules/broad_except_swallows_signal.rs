//! A broad `except` around a control signal.
//!
//! ## Why
//!
//! Control signals are exceptions: `except Exception` catches them as well, and the veto or the retry that was
//! meant does not happen.
//!
//! ## Bad
//!
//! ```python
//! @modify_model_response()
//! async def retry(response: ModelResponsePayload) -> ModelResponsePayload:
//!     try:
//!         raise RetryModel("Be brief.")
//!     except Exception:
//!         return response
//! ```
//!
//! ## Good
//!
//! ```python
//! @modify_model_response()
//! async def retry(response: ModelResponsePayload) -> ModelResponsePayload:
//!     try:
//!         check(response)
//!     except ValueError:
//!         raise RetryModel("Be brief.") from None
//!     return response
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::flow;
use crate::check::names::Scope;
use crate::check::outline::StmtKind;
use crate::check::walk;
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "broad-except-swallows-signal", severity: Severity::Warning, source: include_str!("broad_except_swallows_signal.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered() {
        let function = handler.function;
        let scope = Scope::of(handler.module, &function.parameters, &function.body);
        walk::statements(&function.body, &mut |statement| {
            let StmtKind::Try { body, handlers, .. } = &statement.kind else { return };
            let mut raised = None;
            walk::statements(body, &mut |inner| {
                if let StmtKind::Raise { exception: Some(exception), .. } = &inner.kind {
                    raised = raised.or_else(|| flow::signal_of(context, handler.module, &scope, exception));
                }
            });
            let Some(signal) = raised else { return };
            for clause in handlers {
                let named = clause.caught().iter().any(|expr| {
                    flow::signal_of(context, handler.module, &scope, expr).is_some()
                        || context.dotted(handler.module, &[&scope], expr).as_deref()
                            == Some("rasa.mantle.hooks.HookControlFlow")
                });
                let broad = flow::catches(context, handler.module, &scope, clause).contains(&signal) && !named;
                if broad && !flow::raises_again(&clause.body) {
                    let message = format!("This `except` also catches `{signal}`, which is raised above");
                    report
                        .add(context, &RULE, handler.module, super::head_of(clause), message)
                        .hint(format!("catch what may go wrong by its name, or put `except {signal}: raise` before it"));
                }
            }
        });
    }
}
