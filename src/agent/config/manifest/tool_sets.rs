//! `tool_sets`: where an app's tools are from.

use std::collections::{BTreeSet, HashMap};

use super::choices::meant;
use super::sections::{INTERNAL, MCP};
use super::{Surroundings, fallback, server};
use crate::agent::config::report::{Field, Fields, Report};
use crate::agent::config::servers::ServerConfig;
use crate::agent::config::yaml::Yaml;
use crate::diagnostic::Place;
use crate::quickapp::{FallbackConfiguration, ToolSet, ToolSetKind};

/// How many tool sets a manifest may have.
const MOST_SETS: usize = 100;

/// How many names a message lists.
const MOST_LISTED: usize = 20;

/// The types that are read, and those that are not yet.
const TYPES: [&str; 2] = ["mcp", "internal"];
pub(super) const LATER: [&str; 5] = ["dial-mcp", "dial-app", "dial-deployment", "rest-api", "predefined"];

/// A tool set, as far as it could be read.
pub(super) struct ReadSet {
    /// Its name; none where that is wrong.
    pub(super) name: Option<String>,
    /// Where its name stands, or would.
    pub(super) place: Place,
    /// The tools that it has, by their own names.
    pub(super) tools: Tools,
    /// The set; none where its type is not read.
    pub(super) set: Option<ToolSet>,
    /// How its server is reached, where it has one.
    pub(super) server: Option<ServerConfig>,
}

/// What is known of the tools of a set.
pub(super) enum Tools {
    /// It has these of a server, each with the set's name before its own.
    Allowed(Vec<Named>),
    /// It has what its server has.
    Any,
    /// It has these, by their own names.
    Internal(Vec<Named>),
    /// Nothing: what is wrong with the set has been told.
    Unread,
}

/// A name, and where it stands.
pub(super) type Named = (String, Place);

/// Reads the list, in its order.
pub(super) fn read(field: &Field<'_>, report: &mut Report, around: &Surroundings<'_>) -> Vec<ReadSet> {
    let items = report.items(field, "a list of tool sets");
    if let Some(more) = items.get(MOST_SETS) {
        let message = format!("There are {} tool sets, more than {MOST_SETS}", items.len());
        report.error("invalid-value", more.node.place, message, None);
    }
    let mut seen: HashMap<String, Place> = HashMap::new();
    let mut sets = vec![];
    for item in items.iter().take(MOST_SETS) {
        let Some(set) = tool_set(item, report, around) else { continue };
        if let Some(name) = &set.name {
            if let Some(first) = seen.get(name) {
                let message = format!("The tool set `{name}` is there twice");
                report.error("duplicate-key", set.place, message, "give one of the two another `name`".to_owned());
                report.relate("it is here first", *first);
            } else {
                seen.insert(name.clone(), set.place);
            }
        }
        sets.push(set);
    }
    sets
}

fn tool_set(item: &Field<'_>, report: &mut Report, around: &Surroundings<'_>) -> Option<ReadSet> {
    let any = report.free_fields(item)?;
    let kind = any.require("type", report).and_then(|kind| Some((report.text(&kind)?, kind.node.place)));
    let name = any.require("name", report).and_then(|field| name(&field, report));
    let shown = name.clone().unwrap_or_default();
    let place = any.get("name").map_or_else(|| any.place("name"), |field| field.node.place);
    let unread = ReadSet { name, place, tools: Tools::Unread, set: None, server: None };
    match kind {
        Some((kind, _)) if kind == "mcp" => {
            let (set, tools, server) = mcp(item, shown, report, around)?;
            Some(ReadSet { tools, set: Some(set), server, ..unread })
        }
        Some((kind, _)) if kind == "internal" => {
            let (set, tools) = internal(item, shown, report, around)?;
            Some(ReadSet { tools, set: Some(set), ..unread })
        }
        Some((kind, place)) => {
            not_read(&kind, place, report);
            Some(unread)
        }
        None => Some(unread),
    }
}

fn name(field: &Field<'_>, report: &mut Report) -> Option<String> {
    let name = report.text(field)?;
    if name.trim().is_empty() {
        let message = format!("A tool set cannot have the name `{name}`");
        report.error("invalid-name", field.node.place, message, "hooks name it, and so do its tools".to_owned());
        return None;
    }
    Some(name)
}

/// Tells of a type that is not read.
fn not_read(kind: &str, place: Place, report: &mut Report) {
    let supported = format!("`{}`", TYPES.join("` and `"));
    if LATER.contains(&kind) {
        let message = format!("Tool sets of the type `{kind}` are not supported yet");
        report.error("unsupported-tool-set", place, message, format!("supported are {supported}"));
    } else {
        let hint = meant(kind, TYPES.into_iter().chain(LATER), report).unwrap_or(format!("supported are {supported}"));
        report.error("invalid-value", place, format!("There is no type of tool set `{kind}`"), hint);
    }
}

fn mcp(
    item: &Field<'_>,
    name: String,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> Option<(ToolSet, Tools, Option<ServerConfig>)> {
    let fields = report.fields(item, &MCP)?;
    let reached = fields.require("mcp_server_info", report).and_then(|info| server::read(&info, report, around));
    let tool_timeout = fields.get("tool_timeout").and_then(|limit| report.time(&limit, ("seconds", 1.0), false));
    let allowed = fields.get("allowed_tools").map(|field| names(&field, report));
    let hidden = fields.get("hidden_from_model").map(|field| names(&field, report));
    let tools = match allowed {
        Some(Some(allowed)) if allowed.is_empty() => {
            let message = format!("`{}` is empty: every tool is allowed", fields.path("allowed_tools"));
            let hint = "name the tools, or take it out".to_owned();
            report.warning("invalid-value", fields.place("allowed_tools"), message, hint);
            Tools::Any
        }
        Some(Some(allowed)) => Tools::Allowed(allowed),
        Some(None) => Tools::Unread,
        None => Tools::Any,
    };
    let hidden = hidden.flatten().unwrap_or_default();
    if let Tools::Allowed(allowed) = &tools {
        hidden_are_allowed(&hidden, allowed, &fields, report);
    }
    let set = ToolSet {
        kind: ToolSetKind::Mcp,
        allowed_tools: match &tools {
            Tools::Allowed(allowed) => Some(bare(allowed)),
            _ => None,
        },
        hidden_from_model: bare(&hidden),
        fallback: fallback_of(&fields, report),
        name: name.clone(),
    };
    Some((set, tools, reached.map(|reached| ServerConfig { name, reached, tool_timeout })))
}

fn internal(
    item: &Field<'_>,
    name: String,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> Option<(ToolSet, Tools)> {
    let fields = report.fields(item, &INTERNAL)?;
    let tools = fields.require("tools", report).and_then(|field| {
        let tools = names(&field, report)?;
        if tools.is_empty() {
            let hint = "name Python tools that stand beside the manifest".to_owned();
            report.error("invalid-value", field.node.place, format!("`{}` names no tool", field.name), hint);
            return None;
        }
        Some(tools)
    });
    let named = tools.as_deref().unwrap_or_default();
    if let Some(local) = around.local.filter(|_| !named.is_empty()).and_then(|local| local()) {
        for (tool, place) in named.iter().filter(|(tool, _)| !local.contains(tool)) {
            let hint = meant(tool, local.iter().map(String::as_str), report)
                .unwrap_or_else(|| "define it in `tools.py`, or in a module of the folder `tools`".to_owned());
            report.error("unknown-tool", *place, format!("`{tool}` is no tool beside the manifest"), hint);
        }
    }
    let set = ToolSet {
        name,
        kind: ToolSetKind::Internal(bare(named)),
        allowed_tools: None,
        hidden_from_model: vec![],
        fallback: fallback_of(&fields, report),
    };
    Some((set, tools.map_or(Tools::Unread, Tools::Internal)))
}

fn fallback_of(fields: &Fields<'_>, report: &mut Report) -> FallbackConfiguration {
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

/// The texts of a list, and where each stands; none where something in it is wrong.
fn names(field: &Field<'_>, report: &mut Report) -> Option<Vec<Named>> {
    let items = report.items(field, "a list of texts");
    let read: Vec<_> = items.iter().map(|item| Some((report.text(item)?, item.node.place))).collect();
    if matches!(field.node.value, Yaml::List(_)) { read.into_iter().collect() } else { None }
}

fn bare(names: &[Named]) -> Vec<String> {
    names.iter().map(|(name, _)| name.clone()).collect()
}
