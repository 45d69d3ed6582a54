//! An import of a module that is not there.
//!
//! ## Why
//!
//! The load of the agent ends at such an import. It is looked for among the agent's own modules, in the standard library
//! and in the packages of the chosen environment; a module that is tried (`except ImportError`) or that only a type
//! checker sees (`if TYPE_CHECKING`) may be absent.
//!
//! ## Bad
//!
//! ```python
//! import htpx
//! ```
//!
//! ## Good
//!
//! ```python
//! try:
//!     import ujson as json
//! except ImportError:
//!     import json
//! ```

use std::collections::HashMap;
use std::path::PathBuf;

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::installed::is_module;
use crate::check::names::is_given;
use crate::check::outline::{Expr, Span, Stmt, StmtKind};
use crate::check::walk;
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "import-not-found", severity: Severity::Warning, source: include_str!("import_not_found.rs"), check };

/// What an `except` clause names where it is there for a module that is absent.
const EXCUSES: [&str; 4] = ["ImportError", "ModuleNotFoundError", "Exception", "BaseException"];

/// Words of a condition under which a module need not be there.
const CONDITIONS: [&str; 4] = ["TYPE_CHECKING", "platform", "version_info", "find_spec"];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut known = HashMap::new();
    for (module, source) in context.project.modules.iter().enumerate() {
        let mut imports = Vec::new();
        gather(source.text(), &source.outline.body, &mut imports);
        for (span, name, level) in imports {
            let dotted = context.names.dotted_module(module, &name, level);
            let missing = known.entry(dotted).or_insert_with_key(|dotted| missing(context, dotted));
            if let Some((message, hint)) = missing {
                report.add(context, &RULE, module, span, message.clone()).hint(hint.clone());
            }
        }
    }
}

/// The imports that must succeed: where, the words, and the dots in front.
fn gather(text: &str, body: &[Stmt], imports: &mut Vec<(Span, String, u32)>) {
    for statement in body {
        match &statement.kind {
            StmtKind::Import(names) => imports.extend(names.iter().map(|alias| (alias.span, alias.name.clone(), 0))),
            StmtKind::ImportFrom { module, level, .. } => imports.push((statement.span, module.clone(), *level)),
            StmtKind::Function(function) => gather(text, &function.body, imports),
            StmtKind::Class(class) => gather(text, &class.body, imports),
            StmtKind::If(arms) => {
                let is_excused = |arm: &(Option<Expr>, _)| {
                    arm.0.as_ref().is_some_and(|test: &Expr| {
                        let words = text.get(test.span.start()..test.span.end()).unwrap_or_default();
                        CONDITIONS.iter().any(|word| words.contains(word))
                    })
                };
                if !arms.iter().any(is_excused) {
                    for (_, body) in arms {
                        gather(text, body, imports);
                    }
                }
            }
            StmtKind::Try { body, handlers, orelse, finally } => {
                let excused = handlers.iter().any(|handler| {
                    handler.catches.as_ref().is_none_or(|caught| {
                        let words = text.get(caught.span.start()..caught.span.end()).unwrap_or_default();
                        EXCUSES.iter().any(|excuse| words.contains(excuse))
                    })
                });
                if !excused {
                    gather(text, body, imports);
                    for handler in handlers {
                        gather(text, &handler.body, imports);
                    }
                }
                gather(text, orelse, imports);
                gather(text, finally, imports);
            }
            _ => walk::blocks(statement).into_iter().for_each(|body| gather(text, body, imports)),
        }
    }
}

/// Why the import of a module fails, and what to do: of the agent's own it must be there in full, of others the top.
fn missing(context: &Context<'_>, dotted: &str) -> Option<(String, String)> {
    if is_given(dotted) || context.project.by_name.contains_key(dotted) {
        return None;
    }
    let top = dotted.split('.').next().filter(|top| !top.is_empty())?;
    let roots: Vec<_> = context.project.roots.iter().filter(|root| is_module(root, top)).collect();
    if roots.is_empty() {
        let installed = context.settings.installed.as_ref().filter(|installed| !installed.has(top))?;
        let place = installed.prefix.display();
        let message = format!("There is no module `{top}`, neither in the agent nor in `{place}`");
        return Some((message, "install it there, mend the name, or choose another environment with `--python`".into()));
    }
    // A package may make its inner modules itself; a folder without `__init__.py` cannot.
    let path: PathBuf = dotted.split('.').collect();
    let (folder, name) = (path.parent()?, path.file_name()?.to_str()?);
    let may_be_there = |root: &&PathBuf| root.join(top).join("__init__.py").is_file() || is_module(&root.join(folder), name);
    (!roots.iter().any(may_be_there))
        .then(|| (format!("The agent has no module `{dotted}`"), format!("write `{}.py`, or mend the name", path.display())))
}
