//! Source that Python cannot parse, or not at the target version.
//!
//! ## Why
//!
//! The module would not be imported, and none of its hooks would run. Grammar that is newer than the target
//! version is told with the version that it needs.
//!
//! ## Bad
//!
//! ```python
//! @on_turn_started(
//! async def start(payload: TurnStartedPayload) -> None: ...
//! ```
//!
//! ## Good
//!
//! ```python
//! @on_turn_started()
//! async def start(payload: TurnStartedPayload) -> None: ...
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "syntax-error", severity: Severity::Error, source: include_str!("syntax_error.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for (module, source) in context.project.modules.iter().enumerate() {
        for problem in &source.problems {
            report.add(context, &RULE, module, problem.span, problem.message.clone());
        }
    }
}
