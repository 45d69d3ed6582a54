//! A coroutine that is made and not awaited.
//!
//! ## Why
//!
//! Calling an `async def` function runs nothing: what it should do does not happen until it is awaited, or made a
//! task. `context.send` and `context.stream` of a tool are coroutines as well.
//!
//! ## Bad
//!
//! ```python
//! async def store(text: str) -> None: ...
//!
//!
//! @on_outgoing_text()
//! async def watch(payload: OutgoingTextPayload) -> None:
//!     store(payload.text)
//! ```
//!
//! ## Good
//!
//! ```python
//! async def store(text: str) -> None: ...
//!
//!
//! @on_outgoing_text()
//! async def watch(payload: OutgoingTextPayload) -> None:
//!     await store(payload.text)
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::names::{Scope, Target};
use crate::check::outline::{Expr, ExprKind, StmtKind};
use crate::check::walk;
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "unawaited-coroutine", severity: Severity::Warning, source: include_str!("unawaited_coroutine.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for (module, function) in context.coroutines() {
        let scope = Scope::of(module, &function.parameters, &function.body);
        walk::statements(&function.body, &mut |statement| {
            let StmtKind::Expr(expr) = &statement.kind else { return };
            let ExprKind::Call(call) = &expr.kind else { return };
            let name = match context.resolve(module, &[&scope], &call.function) {
                Some(Target::Function(_, called)) if called.is_async => called.name.clone(),
                Some(Target::Outside(dotted)) if dotted == "asyncio.sleep" => dotted,
                _ => match of_context(&call.function) {
                    Some(name) => name,
                    None => return,
                },
            };
            let message = format!("`{name}(...)` is a coroutine that is never awaited");
            report.add(context, &RULE, module, expr.span, message).hint("write `await` in front of it");
        });
    }
}

/// The coroutines of the parameter `context` that the engine gives to tools.
fn of_context(function: &Expr) -> Option<String> {
    let ExprKind::Attribute { base, name } = &function.kind else { return None };
    let is_context = matches!(&base.kind, ExprKind::Name(base) if &**base == "context");
    (is_context && matches!(&**name, "send" | "stream")).then(|| format!("context.{name}"))
}
