//! `mcp_servers` in `integrations.yml`: servers that speak the Model Context Protocol, and how they are reached.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::report::{Field, Fields, Report};
use super::sections::SERVER;
use super::variables::{Environment, Secret};
use super::yaml::Yaml;

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerConfig {
    /// Its name: what stands behind `mcp/` in `import_tools`.
    pub(crate) name: String,
    /// How it is reached.
    pub(crate) reached: Reached,
    /// How long a call may take, where the server has a limit of its own.
    pub(crate) tool_timeout: Option<Duration>,
    /// The values of variables in its address or command: no error shows them.
    pub(crate) hidden: Vec<Secret>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reached {
    /// By HTTP.
    Http {
        /// The address.
        url: String,
        /// What the server wants to see, where it wants anything.
        authorization: Option<Authorization>,
        /// Whether it speaks the transport of before 2025, with one stream of events.
        sse: bool,
    },
    /// As a program that is started: it is written to and read from.
    Program {
        /// The program, and what it is called with.
        command: Vec<String>,
        /// Variables of its environment, beside `HOME`, `PATH` and the like: keys of the engine's own are not handed on.
        env: Vec<(String, Secret)>,
        /// The folder that it runs in.
        folder: PathBuf,
    },
}

/// What a server wants to see of whoever asks it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Authorization {
    /// A bearer token.
    Bearer(Secret),
    /// A header of its own, and its value.
    Key {
        /// The header's name.
        name: String,
        /// Its value.
        key: Secret,
    },
    /// A user's name and password.
    Basic {
        /// The name.
        username: String,
        /// The password.
        password: Secret,
    },
}

/// How a file names what only servers have that are reached by HTTP, and how it says what they want to see.
pub(super) struct OfHttp {
    pub(super) keys: &'static [&'static str],
    pub(super) authorization: ReadAuthorization,
}

/// Reads what a server wants to see. The outer value is none where it is wrong.
type ReadAuthorization = fn(&Fields<'_>, &mut Report, &Environment<'_>) -> Option<Option<Authorization>>;

/// As `integrations.yml` does.
const OF_HTTP: OfHttp = OfHttp { keys: &["url", "token", "api_key"], authorization: token };

/// Keys that only servers have which are started.
const OF_PROGRAMS: [&str; 4] = ["command", "args", "env", "cwd"];

/// Reads the list. `folder` is the agent's.
pub(super) fn read(
    field: &Field<'_>,
    report: &mut Report,
    folder: &Path,
    variables: &Environment<'_>,
) -> Vec<ServerConfig> {
    let (mut seen, mut read) = (HashMap::new(), vec![]);
    for item in report.items(field, "a list of servers") {
        let Some(fields) = report.fields(&item, &SERVER) else { continue };
        let limit = fields.get("tool_timeout").and_then(|limit| report.time(&limit, ("seconds", 1.0), false));
        let reached = reached(&item, &fields, report, &OF_HTTP, folder, variables);
        let hidden = hidden(&fields, variables);
        let Some(name) = fields.require("name", report) else { continue };
        let Some(text) = report.text(&name) else { continue };
        if text.is_empty() || text.contains(|letter: char| letter == ':' || letter == '/' || letter.is_whitespace()) {
            let hint = "it stands in `mcp/<name>:<tool>`: leave out `:`, `/` and blanks".to_owned();
            report.error("invalid-name", name.node.place, format!("A server cannot have the name `{text}`"), hint);
            continue;
        }
        if let Some(first) = seen.get(&text) {
            let message = format!("The server `{text}` is there twice");
            report.error("duplicate-key", name.node.place, message, "give one of the two another `name`".to_owned());
            report.relate("it is here first", *first);
            continue;
        }
        seen.insert(text.clone(), name.node.place);
        read.extend(reached.map(|reached| ServerConfig { name: text, reached, tool_timeout: limit, hidden }));
    }
    read
}

/// Reads how a server is reached. `folder` is that of the file.
pub(super) fn reached(
    item: &Field<'_>,
    fields: &Fields<'_>,
    report: &mut Report,
    of_http: &OfHttp,
    folder: &Path,
    variables: &Environment<'_>,
) -> Option<Reached> {
    let (others, of) = match (fields.get("url"), fields.get("command")) {
        (None, None) => {
            let message = format!("`{}` says not how the server is reached", item.name);
            let hint = "add the `url` of a server, or the `command` that starts one".to_owned();
            report.error("missing-key", item.node.place, message, hint);
            return None;
        }
        (Some(_), _) => (&OF_PROGRAMS[..], "url"),
        (None, Some(_)) => (of_http.keys, "command"),
    };
    for (key, field) in fields.all().filter(|(key, _)| others.contains(key)) {
        let message = format!("`{}` stands beside `{of}`", field.name);
        let hint = "a server is reached by its `url` or started by its `command`: keep one of the two".to_owned();
        report.error("conflicting-keys", fields.place(key), message, hint);
    }
    match fields.get("url") {
        Some(url) => http(&url, fields, report, of_http, variables),
        None => program(fields, report, folder, variables),
    }
}

fn http(
    url: &Field<'_>,
    fields: &Fields<'_>,
    report: &mut Report,
    of_http: &OfHttp,
    variables: &Environment<'_>,
) -> Option<Reached> {
    let authorization = (of_http.authorization)(fields, report, variables)?;
    let url = address(url, "http://localhost:8000/mcp/", report, variables)?;
    Some(Reached::Http { url, authorization, sse: false })
}

/// An HTTP address, as in `example`.
pub(super) fn address(
    field: &Field<'_>,
    example: &str,
    report: &mut Report,
    variables: &Environment<'_>,
) -> Option<String> {
    let address = variables.text(field, report)?;
    let host = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
    if host.is_some_and(|host| host.starts_with(|letter: char| letter.is_alphanumeric() || letter == '[')) {
        return Some(address);
    }
    let message = format!("`{}` is no HTTP address", field.name);
    report.error("invalid-value", field.node.place, message, format!("write it as in `{example}`"));
    None
}

/// What no error may show of how a server is reached: keys stand in addresses and among arguments as well.
pub(super) fn hidden(fields: &Fields<'_>, variables: &Environment<'_>) -> Vec<Secret> {
    let keys = ["url", "command", "args", "cwd"];
    keys.into_iter().filter_map(|key| fields.get(key)).flat_map(|field| variables.values(field.node)).collect()
}

#[expect(clippy::option_option, reason = "no token and a wrong one are two things")]
fn token(fields: &Fields<'_>, report: &mut Report, variables: &Environment<'_>) -> Option<Option<Authorization>> {
    match (fields.get("token"), fields.get("api_key")) {
        (Some(_), Some(key)) => {
            let message = format!("`{}` stands beside `token`", key.name);
            report.error("conflicting-keys", fields.place("api_key"), message, "keep one of the two".to_owned());
            None
        }
        (Some(token), None) | (None, Some(token)) => {
            secret(&token, report, variables).map(Authorization::Bearer).map(Some)
        }
        (None, None) => Some(None),
    }
}

/// A text that should come from the environment.
pub(super) fn secret(field: &Field<'_>, report: &mut Report, variables: &Environment<'_>) -> Option<Secret> {
    if !report.text(field)?.contains("${") {
        let message = format!("`{}` is written into the file", field.name);
        let hint = "keep it in the environment: `${NAME}`".to_owned();
        report.warning("literal-secret", field.node.place, message, hint);
        report.without_excerpt();
    }
    Some(Secret::new(variables.text(field, report)?))
}

fn program(fields: &Fields<'_>, report: &mut Report, folder: &Path, variables: &Environment<'_>) -> Option<Reached> {
    let field = fields.require("command", report)?;
    let mut command = match field.node.value {
        Yaml::List(_) => texts(&field, report, variables)?,
        _ => vec![variables.text(&field, report)?],
    };
    if command.first().is_none_or(String::is_empty) {
        report.error("invalid-value", field.node.place, format!("`{}` names no program", field.name), None);
        return None;
    }
    if let Some(args) = fields.get("args") {
        command.extend(texts(&args, report, variables)?);
    }
    let mut env = vec![];
    if let Some(field) = fields.get("env") {
        for (name, value) in report.free_fields(&field)?.all() {
            env.push((name.to_owned(), Secret::new(variables.text(&value, report)?)));
        }
    }
    let folder = match fields.get("cwd") {
        Some(within) => folder.join(variables.text(&within, report)?),
        None => folder.to_owned(),
    };
    // A program that is named by its path is one of the agent's; one that is not is searched for where programs are.
    if command[0].contains('/') {
        command[0] = folder.join(&command[0]).to_string_lossy().into_owned();
    }
    Some(Reached::Program { command, env, folder })
}

fn texts(field: &Field<'_>, report: &mut Report, variables: &Environment<'_>) -> Option<Vec<String>> {
    report.items(field, "a list of texts").iter().map(|item| variables.text(item, report)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{config, told};
    use super::*;

    #[test]
    fn servers_are_read_by_address_and_by_command() {
        let (read, found) = config(
            "integrations.yml",
            "mcp_servers:\n  - {name: bank, url: 'http://${HOST}/mcp/', token: '${KEY}', tool_timeout: 2.5}\n  - {name: open, url: \
             'https://a/mcp'}\n  - {name: own, command: python, args: [-m, desk], env: {TOKEN: 'x${KEY}'}, cwd: servers}\n  - {name: \
             near, command: [./serve, --fast]}\n",
        );
        assert_eq!(found, Vec::<String>::new());
        let secret = |text: &str| Secret::new(text.to_owned());
        let of = |name: &str, reached, limit: Option<u64>, hidden: &[&str]| ServerConfig {
            name: name.to_owned(),
            reached,
            tool_timeout: limit.map(Duration::from_millis),
            hidden: hidden.iter().map(|value| secret(value)).collect(),
        };
        let http = |url: &str, token: Option<Secret>| Reached::Http {
            url: url.to_owned(),
            authorization: token.map(Authorization::Bearer),
            sse: false,
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let own = Reached::Program {
            command: texts(&["python", "-m", "desk"]),
            env: vec![("TOKEN".to_owned(), secret("xk-123"))],
            folder: "servers".into(),
        };
        let near = Reached::Program { command: texts(&["./serve", "--fast"]), env: vec![], folder: "".into() };
        assert_eq!(
            read.servers,
            [
                of("bank", http("http://models.local/mcp/", Some(secret("k-123"))), Some(2500), &["models.local"]),
                of("open", http("https://a/mcp", None), None, &[]),
                of("own", own, None, &[]),
                of("near", near, None, &[]),
            ]
        );
    }

    #[test]
    fn what_is_wrong_with_a_server_is_told() {
        assert_eq!(
            told(
                "integrations.yml",
                "mcp_servers:\n  - {name: a}\n  - {name: 'b:c', url: 'http://a'}\n  - {name: d, url: a/mcp, command: x}\n  - {url: \
                 'http://a', token: abc}\n  - {name: e, url: 'http://a', token: '${KEY}', api_key: x}\n  - {name: f, command: []}\n  - \
                 {name: g, url: 'http://a', oauth: {}}\n  - {name: g, url: 'http://a', tool_timeout: 0}\n  - {name: h, command: x, \
                 token: y}\n",
            ),
            [
                "integrations.yml:2:5: error[missing-key]: `mcp_servers[0]` says not how the server is reached\n  hint: add the `url` \
                 of a server, or the `command` that starts one",
                "integrations.yml:3:12: error[invalid-name]: A server cannot have the name `b:c`\n  hint: it stands in \
                 `mcp/<name>:<tool>`: leave out `:`, `/` and blanks",
                "integrations.yml:4:20: error[invalid-value]: `mcp_servers[2].url` is no HTTP address\n  hint: write it as in \
                 `http://localhost:8000/mcp/`",
                "integrations.yml:4:27: error[conflicting-keys]: `mcp_servers[2].command` stands beside `url`\n  hint: a server is \
                 reached by its `url` or started by its `command`: keep one of the two",
                "integrations.yml:5: warning[literal-secret]: `mcp_servers[3].token` is written into the file\n  hint: keep it in \
                 the environment: `${NAME}`",
                "integrations.yml:5:5: error[missing-key]: `mcp_servers[3].name` is missing",
                "integrations.yml:6:49: error[conflicting-keys]: `mcp_servers[4].api_key` stands beside `token`\n  hint: keep one of \
                 the two",
                "integrations.yml:7:24: error[invalid-value]: `mcp_servers[5].command` names no program",
                "integrations.yml:8:32: warning[unsupported-key]: `mcp_servers[6].oauth` has no effect: it is not supported yet",
                "integrations.yml:9:12: error[duplicate-key]: The server `g` is there twice\n  hint: give one of the two another \
                 `name`",
                "integrations.yml:9:46: error[invalid-value]: `mcp_servers[7].tool_timeout` is 0, not more than 0 seconds, and at \
                 most a year",
                "integrations.yml:10:27: error[conflicting-keys]: `mcp_servers[8].token` stands beside `command`\n  hint: a server is \
                 reached by its `url` or started by its `command`: keep one of the two",
            ]
        );
    }
}
