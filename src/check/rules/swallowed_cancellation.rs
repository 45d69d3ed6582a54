//! A hook that catches its own cancellation and goes on.
//!
//! ## Why
//!
//! At its deadline a hook is cancelled by `asyncio.CancelledError`. One that catches it and goes on keeps the
//! event loop busy for a result that nobody waits for.
//!
//! ## Bad
//!
//! ```python
//! @on_tool_call()
//! async def watch(payload: ToolCallPayload) -> None:
//!     try:
//!         await asyncio.sleep(1)
//!     except asyncio.CancelledError:
//!         pass
//! ```
//!
//! ## Good
//!
//! ```python
//! @on_tool_call()
//! async def watch(payload: ToolCallPayload) -> None:
//!     try:
//!         await asyncio.sleep(1)
//!     except asyncio.CancelledError:
//!         raise
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::flow;
use crate::check::names::Scope;
use crate::check::outline::{Expr, ExprKind, StmtKind};
use crate::check::walk;
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "swallowed-cancellation", severity: Severity::Warning, source: include_str!("swallowed_cancellation.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for (module, function) in context.coroutines() {
        let scope = Scope::of(module, &function.parameters, &function.body);
        walk::statements(&function.body, &mut |statement| {
            let StmtKind::Try { body, handlers, .. } = &statement.kind else { return };
            let mut awaits = false;
            walk::expressions(body, &mut |expr| awaits |= matches!(expr.kind, ExprKind::Await(_)));
            for clause in handlers.iter().filter(|_| awaits) {
                let catches = |expr: &Expr| {
                    matches!(
                        context.dotted(module, &[&scope], expr).as_deref(),
                        Some("asyncio.CancelledError" | "asyncio.exceptions.CancelledError" | "builtins.BaseException")
                    )
                };
                let caught = clause.catches.is_none() || clause.caught().iter().any(catches);
                if caught && !flow::raises_again(&clause.body) {
                    let message = format!("`{}` catches its own cancellation and goes on", function.name);
                    report
                        .add(context, &RULE, module, super::head_of(clause), message)
                        .hint("end with `raise`, or catch `Exception`");
                }
            }
        });
    }
}
