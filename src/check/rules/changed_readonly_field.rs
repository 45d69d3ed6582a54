//! A change of a field that a hook may not change.
//!
//! ## Why
//!
//! The engine restores such fields from the original payload, so that the change has no effect. `tenterhook
//! points` lists what may be changed.
//!
//! ## Bad
//!
//! ```python
//! @modify_model_request()
//! async def offer(request: ModelRequestPayload) -> ModelRequestPayload:
//!     return request.model_copy(update={"tool_names": ["look"]})
//! ```
//!
//! ## Good
//!
//! ```python
//! @modify_model_request()
//! async def offer(request: ModelRequestPayload) -> ModelRequestPayload:
//!     return request.model_copy(update={"messages": request.messages[-10:]})
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::outline::ExprKind;
use crate::check::walk;
use crate::diagnostic::Severity;
use crate::hooks::Lane;

pub(super) const RULE: Rule =
    Rule { name: "changed-readonly-field", severity: Severity::Warning, source: include_str!("changed_readonly_field.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    for handler in context.registered().filter(|handler| handler.lane == Lane::Modify) {
        walk::expressions(&handler.function.body, &mut |expr| {
            let Some(update) = super::model_copy_update(expr, super::payload_name(handler)) else { return };
            for (key, value) in update {
                let Some(ExprKind::Text(name)) = key.as_ref().map(|key| &key.kind) else { continue };
                let span = key.as_ref().map_or(value.span, |key| key.span);
                match handler.spec.fields().iter().find(|field| field.name == &**name) {
                    Some(field) if field.mutable => {}
                    Some(_) => {
                        let message = format!("`{name}` cannot be changed at {}", handler.spec.point.name().replace('_', " "));
                        report.add(context, &RULE, handler.module, span, message).hint(mutable_fields(handler.spec));
                    }
                    None => {
                        let message = format!("`{}` has no field `{name}`", handler.spec.payload);
                        report.add(context, &RULE, handler.module, span, message).hint(mutable_fields(handler.spec));
                    }
                }
            }
        });
    }
}

fn mutable_fields(spec: &crate::hooks::PointSpec) -> String {
    let names: Vec<_> =
        spec.fields().iter().filter(|field| field.mutable).map(|field| format!("`{}`", field.name)).collect();
    format!("what may be changed: {}", names.join(", "))
}
