//! Tool sets whose tools a server has that speaks the Model Context Protocol. All of them are read here, so that what is hidden from the model
//! is read in one place.

use std::collections::BTreeSet;
use std::time::Duration;

use super::fallback;
use super::tool_sets::{Known, Made, Named, ReadSet, Tools, bare, names};
use crate::agent::config::report::{Fields, Report};
use crate::agent::config::servers::{Reached, ServerConfig};
use crate::agent::config::variables::Secret;
use crate::quickapp::{FallbackConfiguration, ToolSet, ToolSetKind};

/// How many names a message lists.
const MOST_LISTED: usize = 20;

/// Reads what all these sets have. `reached` is how the server is, with what no error may show of it.
pub(super) fn read(
    fields: &Fields<'_>,
    unread: ReadSet,
    reached: Option<(Reached, Vec<Secret>)>,
    report: &mut Report,
) -> ReadSet {
    let name = unread.name.clone().unwrap_or_default();
    let tool_timeout = time(fields, report);
    let allowed = fields.get("allowed_tools").map(|field| names(&field, report));
    let hidden = fields.get("hidden_from_model").map(|field| names(&field, report));
    let tools = match allowed {
        Some(Some(allowed)) if allowed.is_empty() => {
            let message = format!("`{}` is empty: every tool is allowed", fields.path("allowed_tools"));
            let hint = "name the tools, or take it out".to_owned();
            report.warning("invalid-value", fields.place("allowed_tools"), message, hint);
            Tools::Any
        }
        Some(Some(allowed)) => Tools::Known(Known::Allowed, allowed),
        Some(None) => Tools::Unread,
        None => Tools::Any,
    };
    let hidden = hidden.flatten().unwrap_or_default();
    if let Tools::Known(_, allowed) = &tools {
        hidden_are_allowed(&hidden, allowed, fields, report);
    }
    let set = ToolSet {
        kind: ToolSetKind::Mcp,
        allowed_tools: match &tools {
            Tools::Known(_, allowed) => Some(bare(allowed)),
            Tools::Any | Tools::Unread => None,
        },
        hidden_from_model: bare(&hidden),
        fallback: fallback_of(fields, report),
        name: name.clone(),
    };
    let made = reached.map(|(reached, hidden)| Made::Server(ServerConfig { name, reached, tool_timeout, hidden }));
    ReadSet { tools, hidden, set: Some(set), made, ..unread }
}

/// How long a call may take.
pub(super) fn time(fields: &Fields<'_>, report: &mut Report) -> Option<Duration> {
    fields.get("tool_timeout").and_then(|limit| report.time(&limit, ("seconds", 1.0), false))
}

/// What becomes of failed calls.
pub(super) fn fallback_of(fields: &Fields<'_>, report: &mut Report) -> FallbackConfiguration {
    let field = fields.get("fallback_configuration");
    field.and_then(|field| fallback::read(&field, report)).unwrap_or_default()
}

/// What is hidden and not allowed would be there for nobody: more likely one of the two lists is not what is meant.
fn hidden_are_allowed(hidden: &[Named], allowed: &[Named], fields: &Fields<'_>, report: &mut Report) {
    let allowed: BTreeSet<_> = allowed.iter().map(|(name, _)| name.as_str()).collect();
    let mut missing: Vec<_> =
        hidden.iter().map(|(name, _)| name.as_str()).filter(|name| !allowed.contains(name)).collect();
    if missing.is_empty() {
        return;
    }
    if missing.len() > MOST_LISTED {
        missing.truncate(MOST_LISTED);
        missing.push("…");
    }
    let message = format!("hidden_from_model entries not present in allowed_tools: {}", missing.join(", "));
    let hint = "add them to `allowed_tools`, or take them out of `hidden_from_model`".to_owned();
    report.error("hidden-not-allowed", fields.place("hidden_from_model"), message, hint);
    report.relate("these tools are allowed", fields.place("allowed_tools"));
}
