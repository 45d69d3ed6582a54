//! A tool that is not `async def`.
//!
//! ## Why
//!
//! Tools are awaited, on the same loop as the hooks: a plain function would block all of them. A load refuses it.
//!
//! ## Bad
//!
//! ```python
//! from rasa.mantle.tools.decorator import tool
//! from rasa.mantle.tools.result import ToolResult
//!
//!
//! @tool(description="Look up a flight")
//! def find_flight(number: str) -> ToolResult:
//!     return ToolResult(llm_response={"number": number})
//! ```
//!
//! ## Good
//!
//! ```python
//! from rasa.mantle.tools.decorator import tool
//! from rasa.mantle.tools.result import ToolResult
//!
//!
//! @tool(description="Look up a flight")
//! async def find_flight(number: str) -> ToolResult:
//!     return ToolResult(llm_response={"number": number})
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "sync-tool", severity: Severity::Error, source: include_str!("sync_tool.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    // A decorator below it may have made a coroutine of it.
    for tool in context.tools.iter().filter(|tool| !tool.function.is_async && tool.function.decorators.len() == 1) {
        let message = format!("The tool `{}` is not async", tool.function.name);
        report.add(context, &RULE, tool.module, tool.function.name_span, message).hint("make it `async def`");
    }
}
