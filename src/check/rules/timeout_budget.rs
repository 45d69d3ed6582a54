//! Modify hooks that may take longer together than a turn's declared budget.
//!
//! ## Why
//!
//! A turn waits for its modify hooks. Each keeps its time-out, and the user waits for their sum: the hooks of a message and of a
//! text once, those around the model and the tools once an iteration. Without `turn-budget-ms` in the settings nothing is declared,
//! and this rule is silent.
//!
//! ## Bad
//!
//! ```python
//! # turn-budget-ms = 30000, max-iterations = 10
//! @modify_model_request(timeout_ms=4000)
//! async def request(payload: ModelRequestPayload) -> ModelRequestPayload:
//!     return payload
//! ```
//!
//! ## Good
//!
//! ```python
//! # turn-budget-ms = 30000, max-iterations = 10
//! @modify_model_request(timeout_ms=2000)
//! async def request(payload: ModelRequestPayload) -> ModelRequestPayload:
//!     return payload
//! ```

use super::Rule;
use crate::check::context::{Context, Report};
use crate::check::handlers::{Handler, Placement};
use crate::check::outline::ExprKind;
use crate::diagnostic::Severity;
use crate::hooks::{Lane, Point, PointSpec};

pub(super) const RULE: Rule =
    Rule { name: "timeout-budget", severity: Severity::Warning, source: include_str!("timeout_budget.rs"), check };

fn check(context: &Context<'_>, report: &mut Report) {
    let Some(budget) = context.settings.turn_budget_ms else { return };
    let is_hook = |handler: &&Handler<'_>| {
        handler.lane == Lane::Modify
            && handler.placement == Placement::Module
            && context.project.modules[handler.module].is_hook_module
    };
    let mut shares: Vec<_> = context
        .registered()
        .filter(is_hook)
        .map(|handler| {
            let times = match handler.spec.point {
                Point::IncomingMessage | Point::OutgoingText => 1,
                _ => context.settings.iterations,
            };
            (timeout_ms(handler).saturating_mul(times), times, handler)
        })
        .collect();
    let sum: u64 = shares.iter().map(|(share, ..)| share).fold(0, |sum, share| sum.saturating_add(*share));
    if sum <= budget {
        return;
    }
    shares.sort_by_key(|(share, ..)| std::cmp::Reverse(*share));
    let Some((share, times, largest)) = shares.first() else { return };
    let message = format!("The modify hooks of one turn may take {sum} ms; its budget is {budget} ms");
    let mut added = report
        .add(context, &RULE, largest.module, largest.function.name_span, message)
        .hint(format!("give time-outs that fit: `{}` has {share} ms ({times} times {} ms)", largest.function.name, share / times));
    for (share, times, handler) in shares.iter().skip(1) {
        let text = format!("{share} ms ({times} times)");
        added = added.related(context, handler.module, handler.function.name_span, text);
    }
}

/// A handler's time-out as its decorator gives it, else the lane's default.
fn timeout_ms(handler: &Handler<'_>) -> u64 {
    let given = handler.arguments.iter().flat_map(|(_, keywords)| keywords.iter()).find_map(|keyword| {
        match (keyword.name.as_deref(), &keyword.value.kind) {
            (Some("timeout_ms"), ExprKind::Integer(Some(given))) => u64::try_from(*given).ok(),
            _ => None,
        }
    });
    given.unwrap_or_else(|| u64::try_from(PointSpec::default_timeout(Lane::Modify).as_millis()).unwrap_or(u64::MAX))
}
