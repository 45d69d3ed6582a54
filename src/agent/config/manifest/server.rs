//! `mcp_server_info`: how the server of a tool set is reached.

use super::choices::choice;
use super::sections::SERVER_INFO;
use super::{Surroundings, authorization};
use crate::agent::config::report::{Field, Report};
use crate::agent::config::servers::{OfHttp, Reached, hidden, reached};
use crate::agent::config::variables::Secret;

/// How a manifest names what servers have that are reached by HTTP.
const OF_HTTP: OfHttp = OfHttp { keys: &["url", "authorization", "protocol"], authorization: authorization::read };

/// What a server is spoken to by, and whether that is the transport of before 2025.
const PROTOCOLS: [(&str, bool); 2] = [("streamable_http", false), ("sse", true)];

/// Reads it, with what no error may show of it; none where something in it is wrong, all of which is told.
pub(super) fn read(
    field: &Field<'_>,
    report: &mut Report,
    around: &Surroundings<'_>,
) -> Option<(Reached, Vec<Secret>)> {
    let fields = report.fields(field, &SERVER_INFO)?;
    let protocol = fields.get("protocol").map(|protocol| choice(&protocol, "protocol", &PROTOCOLS, report));
    let mut reached = reached(field, &fields, report, &OF_HTTP, around.folder, &around.variables)?;
    if let Reached::Http { sse, .. } = &mut reached {
        *sse = protocol.unwrap_or(Some(false))?;
    }
    Some((reached, hidden(&fields, &around.variables)))
}
