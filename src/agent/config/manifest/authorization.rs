//! `authorization`: what a server wants to see of whoever asks it.

use super::choices::choice;
use super::sections::AUTHORIZATION;
use crate::agent::config::report::{Field, Fields, Report};
use crate::agent::config::servers::{Authorization, secret};
use crate::agent::config::variables::Environment;

/// The types, and the keys that each has.
const TYPES: [(&str, &[&str]); 3] =
    [("bearer", &["token"]), ("api_key", &["key", "name", "location"]), ("basic", &["username", "password"])];

/// A type that the published interface has and that is not supported: it would fetch tokens from elsewhere.
const LATER: &str = "client_id_secret";

/// Reads the key `authorization` of a mapping. The outer value is none where it is wrong, which is told.
#[expect(clippy::option_option, reason = "no authorization and a wrong one are two things")]
pub(super) fn read(
    fields: &Fields<'_>,
    report: &mut Report,
    variables: &Environment<'_>,
) -> Option<Option<Authorization>> {
    let Some(field) = fields.get("authorization") else { return Some(None) };
    of(&field, report, variables).map(Some)
}

fn of(field: &Field<'_>, report: &mut Report, variables: &Environment<'_>) -> Option<Authorization> {
    let free = report.free_fields(field)?;
    let kind = free.require("type", report)?;
    if report.text(&kind)? == LATER {
        let message = format!("The authorization `{LATER}` is not supported");
        let hint = "supported are `bearer`, `api_key` and `basic`: fetch the token elsewhere, and give it as `bearer`";
        report.error("invalid-value", kind.node.place, message, hint.to_owned());
        return None;
    }
    let fields = report.fields(field, &AUTHORIZATION)?;
    let own = choice(&kind, "authorization", &TYPES, report)?;
    for (key, other) in fields.all().filter(|(key, _)| *key != "type" && !own.contains(key)) {
        if AUTHORIZATION.keys.contains(&key) {
            let keys: Vec<_> = own.iter().map(|key| format!("`{key}`")).collect();
            let message = format!("`{}` has no effect: the authorization is of another type", other.name);
            report.warning("misplaced-key", fields.place(key), message, format!("it has {}", keys.join(", ")));
        }
    }
    let hidden = |key: &str, report: &mut Report| {
        let field = fields.require(key, report)?;
        secret(&field, report, variables)
    };
    match own[0] {
        "token" => hidden("token", report).map(Authorization::Bearer),
        "key" => {
            let key = hidden("key", report);
            let name = fields.require("name", report).and_then(|name| header(&name, report));
            if let Some(location) = fields.get("location") {
                in_header(&location, report)?;
            }
            Some(Authorization::Key { name: name?, key: key? })
        }
        _ => {
            let password = hidden("password", report);
            let username = fields.require("username", report).and_then(|name| username(&name, report, variables));
            Some(Authorization::Basic { username: username?, password: password? })
        }
    }
}

fn header(field: &Field<'_>, report: &mut Report) -> Option<String> {
    let name = report.text(field)?;
    if crate::providers::RestRequest::may_have(&name) {
        return Some(name);
    }
    let hint = "write it as in `Api-Key`".to_owned();
    report.error("invalid-name", field.node.place, format!("`{}` is no header that may be given", field.name), hint);
    None
}

fn in_header(field: &Field<'_>, report: &mut Report) -> Option<()> {
    let location = report.text(field)?;
    if location == "header" {
        return Some(());
    }
    let message = format!("A key cannot be sent in the place `{location}`");
    let hint = "only `header` is supported; the `query` and the `body` of a tool may have `${NAME}`".to_owned();
    report.error("invalid-value", field.node.place, message, hint);
    None
}

fn username(field: &Field<'_>, report: &mut Report, variables: &Environment<'_>) -> Option<String> {
    let name = variables.text(field, report)?;
    if name.contains(':') {
        let hint = "the name ends at the first `:` for whoever reads it (RFC 7617)".to_owned();
        report.error("invalid-value", field.node.place, format!("`{}` has a colon", field.name), hint);
        return None;
    }
    Some(name)
}
