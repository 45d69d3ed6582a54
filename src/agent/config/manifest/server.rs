//! `mcp_server_info`: how the server of a tool set is reached.

use super::Surroundings;
use super::choices::choice;
use super::sections::{AUTHORIZATION, SERVER_INFO};
use crate::agent::config::report::{Field, Fields, Report};
use crate::agent::config::servers::{OfHttp, Reached, reached, secret};
use crate::agent::config::variables::{Environment, Secret};

/// How a manifest names what servers have that are reached by HTTP.
const OF_HTTP: OfHttp = OfHttp { keys: &["url", "authorization", "protocol"], token };

/// What a server is spoken to by, and whether it is that.
const PROTOCOLS: [(&str, bool); 2] = [("streamable_http", true), ("sse", false)];

/// Reads it; none where something in it is wrong, all of which is told.
pub(super) fn read(field: &Field<'_>, report: &mut Report, around: &Surroundings<'_>) -> Option<Reached> {
    let fields = report.fields(field, &SERVER_INFO)?;
    if let Some(protocol) = fields.get("protocol")
        && choice(&protocol, "protocol", &PROTOCOLS, report) == Some(false)
    {
        let message = format!("`{}` has no effect: the address is spoken to by streamable HTTP", protocol.name);
        let hint = "most servers have an address for streamable HTTP as well, such as `/mcp` beside `/sse`".to_owned();
        report.warning("unsupported-protocol", protocol.node.place, message, hint);
    }
    reached(field, &fields, report, &OF_HTTP, around.folder, &around.variables)
}

#[expect(clippy::option_option, reason = "no token and a wrong one are two things")]
fn token(fields: &Fields<'_>, report: &mut Report, variables: &Environment<'_>) -> Option<Option<Secret>> {
    let Some(field) = fields.get("authorization") else { return Some(None) };
    let fields = report.fields(&field, &AUTHORIZATION)?;
    let kind = fields.require("type", report)?;
    let name = report.text(&kind)?;
    if name != "bearer" {
        let message = format!("The authorization `{name}` is not supported");
        report.error("invalid-value", kind.node.place, message, "supported is `bearer`, with a `token`".to_owned());
        return None;
    }
    let token = fields.require("token", report)?;
    secret(&token, report, variables).map(Some)
}
