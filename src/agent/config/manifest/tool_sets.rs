//! `tool_sets`: where an app's tools are from.

use std::collections::HashMap;

use super::choices::meant;
use super::sections::{INTERNAL, MCP};
use super::served::fallback_of;
use super::{Surroundings, deployments, dial, rest, served, server};
use crate::agent::config::report::{Field, Fields, Report};
use crate::agent::config::servers::ServerConfig;
use crate::agent::config::yaml::Yaml;
use crate::diagnostic::Place;
use crate::quickapp::{ToolSet, ToolSetKind};

pub(crate) use deployments::DeploymentConfig;
pub(crate) use rest::RestConfig;

/// How many tool sets a manifest may have.
const MOST_SETS: usize = 100;

/// The types that are read.
const TYPES: [&str; 6] = ["mcp", "dial-mcp", "dial-app", "dial-deployment", "rest-api", "internal"];

/// A type that names a template of the service that Quick Apps come from.
pub(super) const PREDEFINED: &str = "predefined";

/// A tool set, as far as it could be read.
pub(super) struct ReadSet {
    /// Its name; none where that is wrong.
    pub(super) name: Option<String>,
    /// Where its name stands, or would.
    pub(super) place: Place,
    /// The tools that it has, by their own names.
    pub(super) tools: Tools,
    /// Those that the model is not shown.
    pub(super) hidden: Vec<Named>,
    /// The set; none where its type is not read.
    pub(super) set: Option<ToolSet>,
    /// What its tools are made of; none for Python tools, and where something in it is wrong.
    pub(super) made: Option<Made>,
}

/// What the tools of a set are made of.
pub(super) enum Made {
    /// A server that has them.
    Server(ServerConfig),
    /// Requests over HTTP.
    Rest(RestConfig),
    /// Models that are asked.
    Deployments(Vec<DeploymentConfig>),
}

/// What is known of the tools of a set.
pub(super) enum Tools {
    /// It has these, by their own names, and where each is named.
    Known(Known, Vec<Named>),
    /// It has what its server has.
    Any,
    /// Nothing: what is wrong with the set has been told.
    Unread,
}

/// How it is known which tools a set has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Known {
    /// Its server may have these.
    Allowed,
    /// Its server has these.
    Listed,
    /// They are requests that it describes.
    Rest,
    /// They are deployments.
    Deployments,
    /// They are Python tools.
    Internal,
}

impl Known {
    /// Whether the model and hooks know the tools by their own names alone.
    pub(super) fn is_exact(self) -> bool {
        matches!(self, Self::Deployments | Self::Internal)
    }
}

/// A name, and where it stands.
pub(super) type Named = (String, Place);

/// Reads the list, in its order. `top` is the manifest's own mapping.
pub(super) fn read(
    field: &Field<'_>,
    top: &Fields<'_>,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> Vec<ReadSet> {
    let items = report.items(field, "a list of tool sets");
    if let Some(more) = items.get(MOST_SETS) {
        let message = format!("There are {} tool sets, more than {MOST_SETS}", items.len());
        report.error("invalid-value", more.node.place, message, None);
    }
    let mut seen: HashMap<String, Place> = HashMap::new();
    let mut sets = vec![];
    for item in items.iter().take(MOST_SETS) {
        let Some(set) = tool_set(item, top, report, around) else { continue };
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

fn tool_set(item: &Field<'_>, top: &Fields<'_>, report: &mut Report, around: &Surroundings<'_>) -> Option<ReadSet> {
    let any = report.free_fields(item)?;
    let kind = any.require("type", report).and_then(|kind| Some((report.text(&kind)?, kind.node.place)));
    let name = any.require("name", report).and_then(|field| name(&field, report));
    let place = any.get("name").map_or_else(|| any.place("name"), |field| field.node.place);
    let unread = ReadSet { name, place, tools: Tools::Unread, hidden: vec![], set: None, made: None };
    let Some((kind, place)) = kind else { return Some(unread) };
    match &*kind {
        "mcp" => {
            let fields = report.fields(item, &MCP)?;
            let reached =
                fields.require("mcp_server_info", report).and_then(|info| server::read(&info, report, around));
            Some(served::read(&fields, unread, reached, report))
        }
        "dial-mcp" => dial::toolset(item, unread, top, report, around),
        "dial-app" => dial::app(item, unread, top, report, around),
        "dial-deployment" => deployments::read(item, unread, top, report, around),
        "rest-api" => rest::read(item, unread, report, around),
        "internal" => internal(item, unread, report, around),
        other => {
            not_read(other, place, report);
            Some(unread)
        }
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
    if kind == PREDEFINED {
        let message =
            format!("Tool sets of the type `{PREDEFINED}` cannot be read: they name a template of the service");
        let hint = "its templates are not part of the published interface: write out what the template has".to_owned();
        report.error("unsupported-tool-set", place, message, hint);
        return;
    }
    let known = TYPES.into_iter().chain([PREDEFINED]);
    let hint = meant(kind, known, report).unwrap_or_else(|| format!("supported are `{}`", TYPES.join("`, `")));
    report.error("invalid-value", place, format!("There is no type of tool set `{kind}`"), hint);
}

fn internal(item: &Field<'_>, unread: ReadSet, report: &mut Report, around: &Surroundings<'_>) -> Option<ReadSet> {
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
    let kind = ToolSetKind::Internal(bare(named));
    let set = Some(without_server(&unread, kind, &fields, report));
    Some(ReadSet { tools: tools.map_or(Tools::Unread, |tools| Tools::Known(Known::Internal, tools)), set, ..unread })
}

/// A set that has no server: nothing of it is hidden.
pub(super) fn without_server(read: &ReadSet, kind: ToolSetKind, fields: &Fields<'_>, report: &mut Report) -> ToolSet {
    let name = read.name.clone().unwrap_or_default();
    let fallback = fallback_of(fields, report);
    ToolSet { name, kind, allowed_tools: None, hidden_from_model: vec![], fallback }
}

/// The texts of a list, and where each stands; none where something in it is wrong.
pub(super) fn names(field: &Field<'_>, report: &mut Report) -> Option<Vec<Named>> {
    let items = report.items(field, "a list of texts");
    let read: Vec<_> = items.iter().map(|item| Some((report.text(item)?, item.node.place))).collect();
    if matches!(field.node.value, Yaml::List(_)) { read.into_iter().collect() } else { None }
}

/// Names without their places.
pub(super) fn bare(names: &[Named]) -> Vec<String> {
    names.iter().map(|(name, _)| name.clone()).collect()
}
