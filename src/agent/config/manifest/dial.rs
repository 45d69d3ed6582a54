//! Tool sets of DIAL Core: how it is reached, and those of its tool sets that speak the Model Context Protocol.

use super::choices::choice;
use super::sections::{DIAL_APP, DIAL_MCP};
use super::tool_sets::ReadSet;
use super::{Surroundings, deployments, served};
use crate::agent::config::report::{Field, Fields, Report};
use crate::agent::config::servers::{Authorization, Reached, address};
use crate::agent::config::variables::{Secret, is_variable};
use crate::providers::encode;

/// The variables that hold the address of DIAL Core and its key, where the manifest names no others.
const URL: &str = "DIAL_URL";
const KEY: &str = "DIAL_API_KEY";

/// The header that DIAL Core reads the key from.
pub(super) const KEY_HEADER: &str = "Api-Key";

/// How an app is spoken to.
#[derive(Clone, Copy, PartialEq)]
enum Transport {
    Mcp,
    Chat,
}

const TRANSPORTS: [(&str, Transport); 3] =
    [("mcp", Transport::Mcp), ("chat", Transport::Chat), ("chat-completion", Transport::Chat)];

/// How DIAL Core is reached.
pub(super) struct Dial {
    /// Its address, without a slash at its end.
    pub(super) url: String,
    pub(super) key: Secret,
    /// What no error may show.
    pub(super) hidden: Vec<Secret>,
}

/// Reads how DIAL Core is reached: as the set says, else the manifest, else the environment. None where it is not known, which is told.
pub(super) fn read(set: &Fields<'_>, top: &Fields<'_>, report: &mut Report, around: &Surroundings<'_>) -> Option<Dial> {
    let kind = set.get("type")?;
    let given = |key: &str| set.get(key).or_else(|| top.get(key));
    let url = match given("dial_url") {
        Some(field) => address(&field, "https://dial.example.org", report, &around.variables),
        None => around.variables.value(URL, &kind, report).filter(|url| {
            let is_address = url.starts_with("https://") || url.starts_with("http://");
            if !is_address {
                let message = format!("The environment variable `{URL}` is no HTTP address");
                let hint = "set it as in `https://dial.example.org`".to_owned();
                report.error("invalid-value", kind.node.place, message, hint);
            }
            is_address
        }),
    };
    let key = match given("dial_api_key_env") {
        Some(field) => {
            let name = report.text(&field)?;
            if !is_variable(&name) {
                // It may be the key itself: it is not repeated.
                let message = format!("`{}` is no name of a variable", field.name);
                report.error("invalid-value", field.node.place, message, format!("write it as in `{KEY}`"));
                report.without_excerpt();
                return None;
            }
            around.variables.value(&name, &field, report)
        }
        None => around.variables.value(KEY, &kind, report),
    };
    let hidden = given("dial_url").map(|field| around.variables.values(field.node)).unwrap_or_default();
    Some(Dial { url: url?.trim().trim_end_matches('/').to_owned(), key: Secret::new(key?), hidden })
}

/// The path of an id, which may have several parts: what is percent-encoded stays so, everything else that needs it becomes it.
pub(super) fn id(field: &Field<'_>, report: &mut Report, around: &Surroundings<'_>) -> Option<String> {
    let text = around.variables.text(field, report)?;
    let mut path = String::new();
    for (index, part) in text.split('/').enumerate() {
        let step = matches!(&*part.to_ascii_lowercase().replace("%2e", "."), "" | "." | "..");
        if step {
            let message = format!("`{}` is no id of a deployment", field.name);
            let hint = "write it as in `gpt-4o` or `applications/public/desk`".to_owned();
            report.error("invalid-value", field.node.place, message, hint);
            return None;
        }
        if index > 0 {
            path.push('/');
        }
        let mut rest = part;
        while let Some(letter) = rest.chars().next() {
            let is_encoded =
                letter == '%' && rest.get(1..3).is_some_and(|two| two.chars().all(|digit| digit.is_ascii_hexdigit()));
            let taken = if is_encoded { 3 } else { letter.len_utf8() };
            if is_encoded {
                path.push_str(&rest[..3]);
            } else {
                encode(&rest[..taken], &mut path);
            }
            rest = &rest[taken..];
        }
    }
    Some(path)
}

/// A tool set that is registered at DIAL Core.
pub(super) fn toolset(
    item: &Field<'_>,
    unread: ReadSet,
    top: &Fields<'_>,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> Option<ReadSet> {
    let fields = report.fields(item, &DIAL_MCP)?;
    let reached = server(&fields, "toolset", top, report, around);
    Some(served::read(&fields, unread, reached, report))
}

/// An application of DIAL: a server of tools, or a model that is asked.
pub(super) fn app(
    item: &Field<'_>,
    unread: ReadSet,
    top: &Fields<'_>,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> Option<ReadSet> {
    let fields = report.fields(item, &DIAL_APP)?;
    let transport = match fields.get("transport") {
        None => Transport::Mcp,
        Some(field) => {
            if matches!(&field.node.value, crate::agent::config::yaml::Yaml::Text(text) if text == "auto") {
                let hint = "write `mcp` or `chat`: which of the two an app has is not asked for".to_owned();
                let message = "The transport `auto` is not supported".to_owned();
                report.error("invalid-value", field.node.place, message, hint);
                return Some(unread);
            }
            let Some(transport) = choice(&field, "transport", &TRANSPORTS, report) else { return Some(unread) };
            transport
        }
    };
    let (others, why) = match transport {
        Transport::Mcp => (&["description", "api_version"][..], "`mcp`, and its server describes the tools"),
        Transport::Chat => (&["allowed_tools", "hidden_from_model", "mcp_url"][..], "`chat`, which has one tool"),
    };
    for (key, field) in fields.all().filter(|(key, _)| others.contains(key)) {
        let message = format!("`{}` has no effect: the transport is {why}", field.name);
        let hint = "take it out, or give the set the other `transport`".to_owned();
        report.warning("ignored-key", fields.place(key), message, hint);
    }
    if transport == Transport::Chat {
        return Some(deployments::app(&fields, unread, top, report, around));
    }
    let reached = server(&fields, "deployments", top, report, around);
    Some(served::read(&fields, unread, reached, report))
}

/// How the server is reached that DIAL Core has for a set.
fn server(
    fields: &Fields<'_>,
    what: &str,
    top: &Fields<'_>,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> Option<(Reached, Vec<Secret>)> {
    let dial = read(fields, top, report, around);
    let id = fields.require("deployment_id", report).and_then(|field| id(&field, report, around));
    let given =
        fields.get("mcp_url").map(|field| address(&field, "https://dial.example.org/mcp", report, &around.variables));
    let mut dial = dial?;
    let url = match given {
        Some(given) => given?,
        None => format!("{}/v1/{what}/{}/mcp", dial.url, id?),
    };
    dial.hidden.extend(fields.get("mcp_url").map(|field| around.variables.values(field.node)).unwrap_or_default());
    let authorization = Some(Authorization::Key { name: KEY_HEADER.to_owned(), key: dial.key });
    Some((Reached::Http { url, authorization, sse: false }, dial.hidden))
}
