//! Hooks in a file that is no hook module, or a module in `hooks/` that has none and that nobody imports.
//!
//! ## Why
//!
//! Hooks are registered from `hooks.py` and from the modules in `hooks/`, but not from `hooks/__init__.py`, nor
//! from `lib/` unless a hook module imports them.
//!
//! ## Bad
//!
//! ```python
//! # hooks/__init__.py
//! @on_tool_call()
//! async def watch(payload: ToolCallPayload) -> None: ...
//! ```
//!
//! ## Good
//!
//! ```python
//! # hooks/watch.py
//! @on_tool_call()
//! async def watch(payload: ToolCallPayload) -> None: ...
//! ```

use std::collections::{HashMap, HashSet};

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::outline::{Span, StmtKind};
use crate::check::walk;
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "unused-hook-module", severity: Severity::Warning, source: include_str!("unused_hook_module.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    let imported: HashSet<usize> = imported_modules(context).into_iter().collect();
    let mut first_in = HashMap::new();
    for handler in &context.handlers {
        first_in.entry(handler.module).or_insert(handler);
    }
    for (module, source) in context.project.modules.iter().enumerate() {
        let first = first_in.get(&module);
        if let (true, Some(first)) = (source.file.ends_with("hooks/__init__.py"), first) {
            let message = format!("`{}` is not registered: `hooks/__init__.py` is no hook module", first.function.name);
            report
                .add(context, &RULE, module, first.function.name_span, message)
                .hint("move it to a module of its own in `hooks/`");
        }
        let decorated = first.is_some();
        // Of a module that is checked alone nobody knows who imports it.
        let alone = context.project.modules.len() == 1 && source.name != "hooks";
        if source.is_hook_module && !alone && !decorated && !imported.contains(&module) && source.problems.is_empty() {
            let message = "This module registers no hook, and no other module of the agent imports it".to_owned();
            report
                .add(context, &RULE, module, Span::default(), message)
                .hint("decorate a hook in it, or move it to `lib/`");
        }
    }
}

/// The modules of the agent that another one names in an import.
fn imported_modules(context: &Context<'_>) -> Vec<usize> {
    let mut imported = Vec::new();
    for (module, source) in context.project.modules.iter().enumerate() {
        super::each_body(&source.outline.body, &mut |body| {
            walk::statements(body, &mut |statement| match &statement.kind {
                StmtKind::Import(names) => {
                    imported.extend(names.iter().filter_map(|alias| context.names.module_named(module, &alias.name, 0).ok()));
                }
                StmtKind::ImportFrom { module: from, level, names } => {
                    imported.extend(context.names.module_named(module, from, *level).ok());
                    for alias in names {
                        let inner = if from.is_empty() { alias.name.clone() } else { format!("{from}.{}", alias.name) };
                        imported.extend(context.names.module_named(module, &inner, *level).ok());
                    }
                }
                _ => {}
            });
        });
    }
    imported
}
