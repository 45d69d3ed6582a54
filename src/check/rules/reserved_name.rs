//! A tool with the name of one of the engine's own.
//!
//! ## Why
//!
//! The model is offered both, and could not say which of the two it calls. A load refuses it.
//!
//! ## Bad
//!
//! ```python
//! from rasa.mantle.tools.decorator import tool
//! from rasa.mantle.tools.result import ToolResult
//!
//!
//! @tool(description="Search the archive")
//! async def search_knowledge(words: str) -> ToolResult:
//!     return ToolResult(llm_response=[words])
//! ```
//!
//! ## Good
//!
//! ```python
//! from rasa.mantle.tools.decorator import tool
//! from rasa.mantle.tools.result import ToolResult
//!
//!
//! @tool(description="Search the archive")
//! async def search_archive(words: str) -> ToolResult:
//!     return ToolResult(llm_response=[words])
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::diagnostic::Severity;
use crate::hooks::ENGINE_TOOLS;

pub(super) const RULE: Rule =
    Rule { name: "reserved-name", severity: Severity::Error, source: include_str!("reserved_name.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for tool in context.tools.iter().filter(|tool| ENGINE_TOOLS.contains(&tool.function.name.as_str())) {
        let message = format!("`{}` is a tool of the engine's own", tool.function.name);
        report.add(context, &RULE, tool.module, tool.function.name_span, message).hint("give the tool another name");
    }
}
