//! A hook that is annotated to return something else than its lane takes.
//!
//! ## Why
//!
//! An observer returns `None`; a modify hook returns the payload of its point. A control signal is raised, never
//! returned.
//!
//! ## Bad
//!
//! ```python
//! @on_tool_call()
//! async def watch(payload: ToolCallPayload) -> ToolCallPayload:
//!     return payload
//! ```
//!
//! ## Good
//!
//! ```python
//! @modify_tool_call()
//! async def change(payload: ToolCallPayload) -> ToolCallPayload:
//!     return payload
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::diagnostic::Severity;
use crate::hooks::Lane;

pub(super) const RULE: Rule =
    Rule { name: "wrong-return", severity: Severity::Error, source: include_str!("wrong_return.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered() {
        let Some(returns) = &handler.function.returns else { continue };
        let Some(classes) = super::annotated(context, handler.module, returns) else { continue };
        let expected = if handler.lane == Lane::Observe { "None" } else { handler.spec.payload };
        if classes == [expected] {
            continue;
        }
        let (name, shown) = (&handler.function.name, classes.join(" | "));
        let signal = classes.iter().any(|class| class == "HookRejection" || class == "RetryModel");
        let hint = match handler.lane {
            _ if signal => "control signals are raised, not returned".to_owned(),
            Lane::Observe => "an observer returns `None`".to_owned(),
            Lane::Modify => format!("write `-> {expected}`"),
        };
        let message = match handler.lane {
            Lane::Observe => format!("`{name}` is an observer and returns `{shown}`"),
            Lane::Modify => format!("`{name}` returns `{shown}`"),
        };
        report.add(context, &RULE, handler.module, returns.span, message).hint(hint);
    }
}
