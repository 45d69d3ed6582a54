//! A model setting that the engine ignores.
//!
//! ## Why
//!
//! Of `model_settings` only `temperature`, `top_p`, `max_tokens`, `presence_penalty`, `frequency_penalty`, `stop`
//! and `seed` count, each of its right type; a bool is no number.
//!
//! ## Bad
//!
//! ```python
//! @modify_model_request()
//! async def cool(request: ModelRequestPayload) -> ModelRequestPayload:
//!     return request.model_copy(update={"model_settings": {"model": "other"}})
//! ```
//!
//! ## Good
//!
//! ```python
//! @modify_model_request()
//! async def cool(request: ModelRequestPayload) -> ModelRequestPayload:
//!     return request.model_copy(update={"model_settings": {"temperature": 0.2}})
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::outline::{Expr, ExprKind};
use crate::check::walk;
use crate::diagnostic::Severity;
use crate::hooks::{ModelSettings, Point, SettingKind};

pub(super) const RULE: Rule =
    Rule { name: "ignored-model-setting", severity: Severity::Warning, source: include_str!("ignored_model_setting.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered().filter(|handler| handler.spec.point == Point::ModelRequest) {
        walk::expressions(&handler.function.body, &mut |expr| {
            let Some(update) = super::model_copy_update(expr, super::payload_name(handler)) else { return };
            for (key, value) in update {
                let settings = matches!(key.as_ref().map(|key| &key.kind), Some(ExprKind::Text(name)) if &**name == "model_settings");
                let ExprKind::Dict(items) = &value.kind else { continue };
                for (key, value) in items.iter().filter(|_| settings) {
                    let Some(key) = key else { continue };
                    let ExprKind::Text(name) = &key.kind else { continue };
                    let (span, message) = match ModelSettings::ALLOWED.iter().find(|(allowed, _)| **allowed == **name) {
                        None => (key.span, format!("The setting `{name}` is ignored")),
                        Some((_, kind)) if is_wrong(*kind, value) => {
                            (value.span, format!("The setting `{name}` is ignored: it is no {}", word(*kind)))
                        }
                        Some(_) => continue,
                    };
                    let names: Vec<_> = ModelSettings::ALLOWED.iter().map(|(name, _)| format!("`{name}`")).collect();
                    report
                        .add(context, &RULE, handler.module, span, message)
                        .hint(format!("what counts: {}", names.join(", ")));
                }
            }
        });
    }
}

fn is_wrong(kind: SettingKind, value: &Expr) -> bool {
    let value = match &value.kind {
        ExprKind::Unary { negative: true, operand } => operand,
        _ => value,
    };
    match &value.kind {
        ExprKind::Integer(_) => kind == SettingKind::Stop,
        ExprKind::Float => kind != SettingKind::Number,
        ExprKind::Text(_) | ExprKind::Items(_) => kind != SettingKind::Stop,
        ExprKind::Bool(_) | ExprKind::None | ExprKind::Dict(_) => true,
        _ => false,
    }
}

const fn word(kind: SettingKind) -> &'static str {
    match kind {
        SettingKind::Number => "number",
        SettingKind::Integer => "whole number",
        SettingKind::Stop => "string or list of strings",
    }
}
