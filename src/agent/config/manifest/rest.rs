//! Tool sets of the type `rest-api`: each tool is one request over HTTP.

use std::collections::BTreeSet;
use std::time::Duration;

use super::choices::meant;
use super::sections::{REST, REST_TOOL};
use super::served::time;
use super::tool_sets::{Known, Made, Named, ReadSet, Tools, bare, without_server};
use super::{Surroundings, authorization};
use crate::agent::config::report::{Field, Fields, Report};
use crate::agent::config::servers::Authorization;
use crate::agent::config::variables::Secret;
use crate::agent::config::yaml::Yaml;
use crate::conversation::Object;
use crate::providers::{Address, METHODS, RestRequest, Shape, Template};
use crate::quickapp::ToolSetKind;
use crate::tools::ToolSpec;

/// How many tools a set may have.
const MOST_TOOLS: usize = 1_000;

/// How braces are written.
const BRACES: &str = "an argument is written `{name}`, a brace twice, and a variable of the environment `${NAME}`";

/// The tools of a set that are requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RestConfig {
    /// The set's name.
    pub(crate) name: String,
    /// What the server wants to see.
    pub(crate) authorization: Option<Authorization>,
    /// How long a call may take, where the set has a limit of its own.
    pub(crate) tool_timeout: Option<Duration>,
    /// The values of variables in the requests: no error shows them.
    pub(crate) hidden: Vec<Secret>,
    /// The tools, by their own names.
    pub(crate) tools: Vec<(ToolSpec, RestRequest)>,
}

/// Reads a set.
pub(super) fn read(
    item: &Field<'_>,
    unread: ReadSet,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> Option<ReadSet> {
    let fields = report.fields(item, &REST)?;
    if let Some(description) = fields.get("description") {
        report.text(&description);
    }
    let authorization = authorization::read(&fields, report, &around.variables);
    let tool_timeout = time(&fields, report);
    let tools = fields.require("tools", report).and_then(|field| {
        let items = report.items(&field, "a list of tools");
        if items.is_empty() || items.len() > MOST_TOOLS {
            if matches!(field.node.value, Yaml::List(_)) {
                let message = format!("`{}` has {} tools, not from 1 to {MOST_TOOLS}", field.name, items.len());
                report.error("invalid-value", field.node.place, message, None);
            }
            return None;
        }
        let read: Vec<_> = items.iter().map(|item| tool(item, report, around)).collect();
        read.into_iter().collect::<Option<Vec<_>>>()
    });
    let named: Option<Vec<Named>> = tools.as_ref().map(|tools| tools.iter().map(|(name, ..)| name.clone()).collect());
    if let Some(named) = &named {
        twice(named, report);
    }
    let kind = ToolSetKind::Rest(named.as_deref().map(bare).unwrap_or_default());
    let set = Some(without_server(&unread, kind, &fields, report));
    let hidden = fields.get("tools").map(|tools| around.variables.values(tools.node)).unwrap_or_default();
    let name = unread.name.clone().unwrap_or_default();
    let made = tools.zip(authorization).map(|(tools, authorization)| {
        let tools = tools.into_iter().map(|(_, spec, request)| (spec, request)).collect();
        Made::Rest(RestConfig { name, authorization, tool_timeout, hidden, tools })
    });
    let tools = named.map_or(Tools::Unread, |named| Tools::Known(Known::Rest, named));
    Some(ReadSet { tools, set, made, ..unread })
}

/// Tells of tools that have one name within a set.
pub(super) fn twice(named: &[Named], report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (name, place) in named.iter().filter(|(name, _)| !seen.insert(name)) {
        let hint = "give one of the two another `name`".to_owned();
        report.error("duplicate-key", *place, format!("The tool `{name}` is there twice"), hint);
    }
}

fn tool(item: &Field<'_>, report: &mut Report, around: &Surroundings<'_>) -> Option<(Named, ToolSpec, RestRequest)> {
    let fields = report.fields(item, &REST_TOOL)?;
    let named = fields.require("name", report).and_then(|field| {
        let name = report.text(&field)?;
        if name.trim().is_empty() {
            let hint = "the model and hooks know it by that".to_owned();
            report.error("invalid-name", field.node.place, format!("`{}` is empty", field.name), hint);
            return None;
        }
        Some((name, field.node.place))
    });
    let description = fields.get("description").and_then(|field| report.text(&field)).unwrap_or_default();
    let parameters = fields
        .get("parameters")
        .map_or_else(|| Some(ToolSpec::new("", "").parameters), |field| parameters(&field, report));
    let method = fields.get("method").map_or(Some(METHODS[0]), |field| method(&field, report));
    let declared = Declared::of(parameters.as_ref());
    let reader = Reader { around, declared: &declared };
    let address = fields.require("url", report).and_then(|field| reader.address(&field, report));
    let query = fields.get("query").map_or_else(|| Some(vec![]), |field| reader.query(&field, report));
    let headers = fields.get("headers").map_or_else(|| Some(vec![]), |field| reader.headers(&field, report));
    let body = fields.get("body").map(|field| {
        report.free_fields(&field)?;
        reader.shape(&field, report)
    });
    let (name, place) = named?;
    let request = RestRequest {
        method: method?,
        address: address?,
        query: query?,
        headers: headers?,
        body: match body {
            Some(body) => Some(body?),
            None => None,
        },
    };
    unsent(&request, &declared, &fields, report);
    Some(((name.clone(), place), ToolSpec { name, description, parameters: parameters? }, request))
}

/// Tells of arguments that the model is asked for and that go nowhere.
fn unsent(request: &RestRequest, declared: &Declared, fields: &Fields<'_>, report: &mut Report) {
    let sent: BTreeSet<_> = request.arguments().collect();
    for name in declared.names.iter().flatten().filter(|name| !sent.contains(name.as_str())) {
        let message = format!("The argument `{name}` is not sent");
        let hint = format!("name it as `{{{name}}}` in the `url`, the `query`, the `headers` or the `body`");
        report.warning("unused-argument", fields.place("parameters"), message, hint);
    }
}

/// The JSON schema of a tool's arguments.
fn parameters(field: &Field<'_>, report: &mut Report) -> Option<Object> {
    let fields = report.free_fields(field)?;
    let kind = fields.get("type").map(|kind| report.text(&kind));
    let serde_json::Value::Object(schema) = field.node.json() else { return None };
    if kind.flatten().as_deref() != Some("object") {
        let hint = "write it as in `{\"type\": \"object\", \"properties\": {}}`".to_owned();
        let message = format!("`{}` is no schema of an object", field.name);
        report.error("invalid-value", fields.place("type"), message, hint);
        return None;
    }
    if let Some(properties) = fields.get("properties") {
        report.free_fields(&properties)?;
    }
    Some(schema)
}

fn method(field: &Field<'_>, report: &mut Report) -> Option<&'static str> {
    let name = report.text(field)?;
    let known = METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(&name));
    if known.is_none() {
        let hint = format!("there are `{}`", METHODS.join("`, `"));
        report.error("invalid-value", field.node.place, format!("There is no method `{name}`"), hint);
    }
    known
}

/// The arguments that a tool's schema has.
struct Declared {
    /// None where that is not known.
    names: Option<BTreeSet<String>>,
}

impl Declared {
    fn of(parameters: Option<&Object>) -> Self {
        let properties =
            |schema: &Object| schema.get("properties").and_then(|properties| properties.as_object().cloned());
        let names =
            |schema: &Object| properties(schema).unwrap_or_default().into_iter().map(|(name, _)| name).collect();
        Self { names: parameters.map(names) }
    }
}

/// Reads texts with arguments in them.
struct Reader<'a> {
    around: &'a Surroundings<'a>,
    declared: &'a Declared,
}

impl Reader<'_> {
    /// A text with its variables in place, which are no templates; none where it is wrong.
    fn text<T>(
        &self,
        field: &Field<'_>,
        report: &mut Report,
        parse: fn(&str) -> Result<T, &'static str>,
        arguments: fn(&T) -> Vec<&str>,
    ) -> Option<T> {
        let written = report.text(field)?;
        let text = self.around.variables.text_with(field, report, Template::escaped)?;
        let parsed = match parse(&text) {
            Ok(parsed) => parsed,
            Err(why) => {
                let hint = match why {
                    why if why.contains('{') || why.contains('}') => BRACES,
                    why if why.contains("behind its path") => "what has arguments in the query stands in `query`",
                    why if why.contains("user's name") => "what the server wants to see stands in `authorization`",
                    _ => "write it as in `https://api.test/cities/{city}`",
                };
                report.error("invalid-value", field.node.place, format!("`{}` {why}", field.name), hint.to_owned());
                if written.contains("${") {
                    report.without_excerpt();
                }
                return None;
            }
        };
        let Some(declared) = &self.declared.names else { return Some(parsed) };
        let mut all_known = true;
        for name in arguments(&parsed).into_iter().filter(|name| !declared.contains(*name)) {
            let hint = meant(name, declared.iter().map(String::as_str), report)
                .unwrap_or_else(|| format!("add `{name}` to the `properties` of its `parameters`"));
            let message = format!("`{}` names the argument `{name}`, which the tool does not have", field.name);
            report.error("unknown-argument", field.node.place, message, hint);
            all_known = false;
        }
        all_known.then_some(parsed)
    }

    fn template(&self, field: &Field<'_>, report: &mut Report) -> Option<Template> {
        self.text(field, report, Template::parse, |template| template.arguments().collect())
    }

    fn address(&self, field: &Field<'_>, report: &mut Report) -> Option<Address> {
        self.text(field, report, Address::parse, |address| address.arguments().collect())
    }

    /// The entries of the query, each a text, another simple value, or a list of such.
    fn query(&self, field: &Field<'_>, report: &mut Report) -> Option<Vec<(String, Shape)>> {
        let entries = report.free_fields(field)?;
        let read: Vec<_> = entries
            .all()
            .map(|(key, value)| {
                if matches!(value.node.value, Yaml::Map(_)) {
                    report.wrong_type(&value, "a text, a number or a list", None);
                    return None;
                }
                Some((key.to_owned(), self.shape(&value, report)?))
            })
            .collect();
        read.into_iter().collect()
    }

    fn headers(&self, field: &Field<'_>, report: &mut Report) -> Option<Vec<(String, Template)>> {
        let entries = report.free_fields(field)?;
        let read: Vec<_> = entries
            .all()
            .map(|(name, value)| {
                if !RestRequest::may_have(name) {
                    let message = format!("`{}` is no header that may be given", value.name);
                    let hint =
                        "a name has letters, digits and `-`; where a request goes and ends is the client's to say";
                    report.error("invalid-name", entries.place(name), message, hint.to_owned());
                    return None;
                }
                Some((name.to_owned(), self.template(&value, report)?))
            })
            .collect();
        read.into_iter().collect()
    }

    /// A value whose texts have arguments in them.
    fn shape(&self, field: &Field<'_>, report: &mut Report) -> Option<Shape> {
        match &field.node.value {
            Yaml::Text(_) => self.template(field, report).map(Shape::Text),
            Yaml::List(_) => {
                let items = report.items(field, "a list");
                let read: Vec<_> = items.iter().map(|item| self.shape(item, report)).collect();
                read.into_iter().collect::<Option<_>>().map(Shape::List)
            }
            Yaml::Map(entries) => {
                let of = |key: &str| format!("{}.{key}", field.name);
                let inner = entries.iter().map(|entry| {
                    let value = Field { name: of(&entry.key), node: &entry.value };
                    Some((entry.key.clone(), self.shape(&value, report)?))
                });
                inner.collect::<Vec<_>>().into_iter().collect::<Option<_>>().map(Shape::Map)
            }
            _ => self.around.variables.json(field, report).map(Shape::Other),
        }
    }
}
