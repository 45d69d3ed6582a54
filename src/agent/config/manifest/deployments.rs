//! Tool sets of the type `dial-deployment`, and apps that are asked as a deployment is: each tool is a model.

use std::time::Duration;

use super::Surroundings;
use super::dial::{self, Dial};
use super::rest::twice;
use super::sections::{DEPLOYMENT, DIAL_DEPLOYMENT};
use super::served::time;
use super::tool_sets::{Known, Made, Named, ReadSet, Tools, bare, without_server};
use crate::agent::config::report::{Field, Fields, Report};
use crate::agent::config::variables::Secret;
use crate::agent::config::yaml::Yaml;
use crate::conversation::Object;
use crate::quickapp::{ToolSetKind, sanitize};

/// How many deployments a set may have.
const MOST_TOOLS: usize = 1_000;

/// How long a deployment may take where its set does not say: it is a model.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The version of the interface that is asked for where none is named.
const API_VERSION: &str = "2024-10-21";

/// A deployment that is called as a tool.
#[derive(Clone, PartialEq)]
pub(crate) struct DeploymentConfig {
    /// The set that it is of.
    pub(crate) set: String,
    /// The tool's name, which is the whole one.
    pub(crate) name: String,
    /// What the model is told of it.
    pub(crate) description: String,
    /// The address above `/chat/completions`, with the version of the interface.
    pub(crate) api_base: String,
    /// The key, for the header `Api-Key`.
    pub(crate) key: Secret,
    /// The name that stands in requests.
    pub(crate) model: String,
    /// What stands before the question.
    pub(crate) system_prompt: Option<String>,
    /// Further keys of requests.
    pub(crate) settings: Object,
    /// How long a call may take.
    pub(crate) timeout: Duration,
}

/// Shows no value that may be secret.
impl std::fmt::Debug for DeploymentConfig {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DeploymentConfig")
            .field("set", &self.set)
            .field("name", &self.name)
            .field("key", &self.key)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Reads a set of deployments.
pub(super) fn read(
    item: &Field<'_>,
    unread: ReadSet,
    top: &Fields<'_>,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> Option<ReadSet> {
    let fields = report.fields(item, &DIAL_DEPLOYMENT)?;
    let dial = dial::read(&fields, top, report, around);
    let timeout = time(&fields, report).unwrap_or(TIMEOUT);
    let tools = fields.require("tools", report).and_then(|field| {
        let items = report.items(&field, "a list of deployments");
        if items.is_empty() || items.len() > MOST_TOOLS {
            if matches!(field.node.value, Yaml::List(_)) {
                let message = format!("`{}` has {} deployments, not from 1 to {MOST_TOOLS}", field.name, items.len());
                report.error("invalid-value", field.node.place, message, None);
            }
            return None;
        }
        let read: Vec<_> = items
            .iter()
            .map(|item| {
                let fields = report.fields(item, &DEPLOYMENT)?;
                deployment(&fields, dial.as_ref(), report, around)
            })
            .collect();
        read.into_iter().collect::<Option<Vec<_>>>()
    });
    Some(made(&fields, unread, tools, timeout, report))
}

/// An app that is asked as a deployment is.
pub(super) fn app(
    fields: &Fields<'_>,
    unread: ReadSet,
    top: &Fields<'_>,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> ReadSet {
    let dial = dial::read(fields, top, report, around);
    let timeout = time(fields, report).unwrap_or(TIMEOUT);
    // A set's name is not its tool's, which is known by that of the deployment.
    let tool = deployment(fields, dial.as_ref(), report, around);
    made(fields, unread, tool.map(|tool| vec![tool]), timeout, report)
}

/// A tool: its name, and what it is where that is known.
type Tool = (Named, Option<DeploymentConfig>);

fn made(
    fields: &Fields<'_>,
    unread: ReadSet,
    tools: Option<Vec<Tool>>,
    timeout: Duration,
    report: &mut Report,
) -> ReadSet {
    let named: Option<Vec<Named>> = tools.as_ref().map(|tools| tools.iter().map(|(name, _)| name.clone()).collect());
    if let Some(named) = &named {
        twice(named, report);
    }
    let set = unread.name.clone().unwrap_or_default();
    let of = |(_, tool): Tool| Some(DeploymentConfig { set: set.clone(), timeout, ..tool? });
    let made = tools.and_then(|tools| tools.into_iter().map(of).collect::<Option<_>>()).map(Made::Deployments);
    let kind = ToolSetKind::Deployments(named.as_deref().map(bare).unwrap_or_default());
    let set = Some(without_server(&unread, kind, fields, report));
    let tools = named.map_or(Tools::Unread, |named| Tools::Known(Known::Deployments, named));
    ReadSet { tools, set, made, ..unread }
}

fn deployment(
    fields: &Fields<'_>,
    dial: Option<&Dial>,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> Option<Tool> {
    let variables = &around.variables;
    let field = fields.require("deployment_id", report);
    let id = field.as_ref().and_then(|field| Some((dial::id(field, report, around)?, report.text(field)?)));
    let text = |key: &str, report: &mut Report| fields.get(key).map(|field| variables.text(&field, report));
    let description = text("description", report).map_or(Some(String::new()), |text| text);
    let system_prompt = text("system_prompt", report);
    let version = text("api_version", report).map_or(Some(API_VERSION.to_owned()), |text| text);
    let settings = fields.get("settings").map(|field| {
        report.free_fields(&field)?;
        variables.json(&field, report)?.as_object().cloned()
    });
    let is_set = fields.get("type").is_some();
    let named = if is_set { None } else { fields.get("name").map(|field| exact(&field, report)) };
    let (id, shown) = id?;
    let field = field?;
    let named = named.unwrap_or_else(|| Some((sanitize(&shown), field.node.place)))?;
    let (description, version) = (description?, version?);
    let (system_prompt, settings) = (flat(system_prompt)?, flat(settings)?.unwrap_or_default());
    let config = dial.map(|dial| DeploymentConfig {
        set: String::new(),
        name: named.0.clone(),
        description,
        api_base: format!("{}/openai/deployments/{id}?api-version={version}", dial.url),
        key: dial.key.clone(),
        model: shown,
        system_prompt,
        settings,
        timeout: TIMEOUT,
    });
    Some((named, config))
}

/// What is not there is nothing; what is wrong is none.
#[expect(clippy::option_option, reason = "nothing and a wrong value are two things")]
fn flat<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        Some(read) => read.map(Some),
        None => Some(None),
    }
}

/// The name of a tool that has no set's before it: it has to be one that providers take.
fn exact(field: &Field<'_>, report: &mut Report) -> Option<Named> {
    let name = report.text(field)?;
    if sanitize(&name) != name {
        let message = format!("`{name}` is no name of a function");
        let hint = "a name has letters, digits, `_` and `-`, at most 64, and begins with a letter or `_`".to_owned();
        report.error("invalid-name", field.node.place, message, hint);
        return None;
    }
    Some((name, field.node.place))
}
