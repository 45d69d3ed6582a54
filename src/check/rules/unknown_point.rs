//! A name that `rasa.mantle.hooks` does not have.
//!
//! ## Why
//!
//! The import fails when the agent is loaded. There are ten points; turn started and turn finished have no modify
//! lane, and audio has no hooks at all.
//!
//! ## Bad
//!
//! ```python
//! from rasa.mantle.hooks import on_mesage
//! ```
//!
//! ## Good
//!
//! ```python
//! from rasa.mantle.hooks import on_incoming_message
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::names::{HOOKS, Target, is_published, published_names};
use crate::check::outline::{ExprKind, Span, StmtKind};
use crate::check::walk;
use crate::diagnostic::Severity;

pub(super) const RULE: Rule =
    Rule { name: "unknown-point", severity: Severity::Error, source: include_str!("unknown_point.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for (module, source) in context.project.modules.iter().enumerate() {
        let mut unknown: Vec<(String, Span)> = Vec::new();
        super::each_body(&source.outline.body, &mut |body| {
            walk::statements(body, &mut |statement| {
                if let StmtKind::ImportFrom { module: from, level, names } = &statement.kind
                    && context.names.module_named(module, from, *level).err().as_deref() == Some(HOOKS)
                {
                    let missing = names.iter().filter(|alias| alias.name != "*" && !is_published(&alias.name));
                    unknown.extend(missing.map(|alias| (alias.name.clone(), alias.span)));
                }
            });
            walk::expressions(body, &mut |expr| {
                // What stands for the module is a name, or has one of its own parts before the last dot.
                if let ExprKind::Attribute { base, name } = &expr.kind
                    && matches!(&base.kind, ExprKind::Name(_) | ExprKind::Attribute { .. })
                    && !name.starts_with('_')
                    && let Some(Target::Outside(dotted)) = context.resolve(module, &[], base)
                    && dotted == HOOKS
                    && !is_published(name)
                {
                    unknown.push((name.to_string(), expr.span));
                }
            });
        });
        for (name, span) in unknown {
            let message = format!("`rasa.mantle.hooks` has no `{name}`");
            report.add(context, &RULE, module, span, message).hint(remedy(&name));
        }
    }
}

fn remedy(name: &str) -> String {
    if name.contains("audio") || name.contains("asr") {
        return "there are no hooks for audio; hooks for incoming and outgoing text see text only".to_owned();
    }
    match super::nearest(name, published_names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`tenterhook points` lists the decorators".to_owned(),
    }
}
