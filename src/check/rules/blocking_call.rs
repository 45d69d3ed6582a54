//! A call that blocks the event loop in a hook.
//!
//! ## Why
//!
//! All hooks of an agent share one thread. While one sleeps, reads a file or waits for the network without
//! `await`, the others stand still, and its own time-out runs out.
//!
//! ## Bad
//!
//! ```python
//! @on_tool_call()
//! async def watch(payload: ToolCallPayload) -> None:
//!     time.sleep(1)
//! ```
//!
//! ## Good
//!
//! ```python
//! @on_tool_call()
//! async def watch(payload: ToolCallPayload) -> None:
//!     await asyncio.sleep(0.01)
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::names::Scope;
use crate::check::outline::ExprKind;
use crate::check::walk;
use crate::diagnostic::Severity;

/// Calls that block, or all of a module's (a trailing dot), and what to do instead.
const BLOCKING: [(&str, &str); 13] = [
    ("time.sleep", "use `await asyncio.sleep(...)`"),
    ("requests.", "use an asynchronous client, such as `httpx.AsyncClient`"),
    ("urllib.request.", "use an asynchronous client, such as `httpx.AsyncClient`"),
    ("http.client.", "use an asynchronous client, such as `httpx.AsyncClient`"),
    ("subprocess.", "use `asyncio.create_subprocess_exec(...)`"),
    ("os.system", "use `asyncio.create_subprocess_exec(...)`"),
    ("os.popen", "use `asyncio.create_subprocess_exec(...)`"),
    ("socket.create_connection", "use `asyncio.open_connection(...)`"),
    ("socket.socket", "use `asyncio.open_connection(...)`"),
    ("socket.getaddrinfo", "use `loop.getaddrinfo(...)`"),
    ("sqlite3.connect", "use `asyncio.to_thread(...)`"),
    ("builtins.open", "read it at import, or use `asyncio.to_thread(...)`"),
    ("builtins.input", "a hook has nobody to ask"),
];

/// Names of those modules that only look: constants, exceptions, classes that do no work.
const HARMLESS: [&str; 6] = ["Session", "Request", "Response", "PIPE", "DEVNULL", "exceptions"];

pub(super) const RULE: Rule =
    Rule { name: "blocking-call", severity: Severity::Warning, source: include_str!("blocking_call.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for (module, function) in context.coroutines().filter(|(_, function)| function.is_async) {
        let scope = Scope::of(module, &function.parameters, &function.body);
        walk::expressions(&function.body, &mut |expr| {
            let ExprKind::Call(call) = &expr.kind else { return };
            let Some(dotted) = context.dotted(module, &[&scope], &call.function) else { return };
            let blocks = |name: &str| {
                name == dotted
                    || name.strip_suffix('.').is_some_and(|module| {
                        let rest = dotted.strip_prefix(module).and_then(|rest| rest.strip_prefix('.'));
                        rest.is_some_and(|rest| !HARMLESS.contains(&rest))
                    })
            };
            if let Some((_, remedy)) = BLOCKING.iter().find(|(name, _)| blocks(name)) {
                let shown = dotted.trim_start_matches("builtins.");
                let message = format!("`{shown}` blocks the event loop of all hooks");
                report.add(context, &RULE, module, expr.span, message).hint(*remedy);
            }
        });
    }
}
