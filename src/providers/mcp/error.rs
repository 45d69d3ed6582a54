//! Why an agent cannot have its servers.

use std::time::Duration;

use crate::check::nearest;

/// How many names of tools an error tells.
const MOST_NAMES: usize = 10;

/// How long a name is that is compared with others: the time that takes grows with the square of its length.
const COMPARABLE: usize = 64;

/// Why no servers could be connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// A tool is wanted of a server that is not configured.
    #[error("There is no MCP server `{server}`, of which the tool `{tool}` is wanted\n  hint: {hint}")]
    UnknownServer {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// How to mend it.
        hint: String,
    },
    /// Its `url` is no address.
    #[error(
        "The `url` of the MCP server `{server}` is no address: {reason}\n  hint: it begins with `http://` or `https://`"
    )]
    Address {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// What it wants to see cannot be sent.
    #[error(
        "The `{what}` of the MCP server `{server}` holds characters that a header cannot\n  hint: look for a line break in it"
    )]
    Authorization {
        /// The server.
        server: String,
        /// What of it: the token, the key, the password.
        what: &'static str,
    },
    /// The system gives no HTTP client.
    #[error(
        "No HTTP client could be made for the MCP server `{server}`: {reason}\n  hint: `https` needs the certificates of the system, such as those of the package `ca-certificates`"
    )]
    Client {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// Its program cannot be started.
    #[error(
        "The MCP server `{server}` cannot be started: `{command}`: {reason}\n  hint: `command` is the name of a program on the `PATH`, or its path"
    )]
    Start {
        /// The server.
        server: String,
        /// Its program.
        command: String,
        /// Why.
        reason: String,
    },
    /// Nobody answers.
    #[error("The MCP server `{server}` cannot be reached at `{place}`: {reason}\n  hint: {hint}")]
    Unreachable {
        /// The server.
        server: String,
        /// Where it was looked for.
        place: String,
        /// Why.
        reason: String,
        /// How to mend it.
        hint: &'static str,
    },
    /// It took too long to connect and to list its tools.
    #[error(
        "The MCP server `{server}` at `{place}` has not told its tools within {limit:?}{said}\n  hint: see whether it hangs, or give it more time"
    )]
    Timeout {
        /// The server.
        server: String,
        /// Where it is.
        place: String,
        /// The time that it had.
        limit: Duration,
        /// What it last said; empty, or with the words that join it to the sentence.
        said: String,
    },
    /// It wants another token.
    #[error("The MCP server `{server}` at `{place}` refuses {what} (HTTP {status})\n  hint: {hint}")]
    Refused {
        /// The server.
        server: String,
        /// Where it is.
        place: String,
        /// The status of its answer.
        status: u16,
        /// What it refuses: a token, or that there is none.
        what: &'static str,
        /// How to mend it.
        hint: &'static str,
    },
    /// It answers otherwise than such servers do.
    #[error("What answers for the MCP server `{server}` at `{place}` does not speak MCP: {reason}\n  hint: {hint}")]
    NotMcp {
        /// The server.
        server: String,
        /// Where it is.
        place: String,
        /// What it answered.
        reason: String,
        /// How to mend it.
        hint: &'static str,
    },
    /// It does not have a tool that is wanted.
    #[error("The MCP server `{server}` has no tool `{tool}`\n  hint: {hint}")]
    MissingTool {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// How to mend it: the nearest name, or those that are there.
        hint: String,
    },
    /// The system gives no thread for the connections.
    #[error("MCP servers need a thread of their own: {reason}\n  hint: see the limits of the process")]
    Thread {
        /// Why.
        reason: String,
    },
}

impl McpError {
    /// No such server is configured.
    pub(super) fn unknown_server<'k>(server: &str, tool: &str, known: impl Iterator<Item = &'k str> + Clone) -> Self {
        let hint =
            instead(server, known, "the servers are", "servers are entries of `mcp_servers`, each with a `name`");
        Self::UnknownServer { server: server.to_owned(), tool: tool.to_owned(), hint }
    }

    /// The server has other tools.
    pub(super) fn missing_tool<'k>(server: &str, tool: &str, known: impl Iterator<Item = &'k str> + Clone) -> Self {
        let hint = instead(tool, known, "its tools are", "it has no tools at all");
        Self::MissingTool { server: server.to_owned(), tool: tool.to_owned(), hint }
    }
}

/// What is there instead of a name that is not: the nearest, else all as far as they can be told.
fn instead<'k>(
    name: &str,
    known: impl Iterator<Item = &'k str> + Clone,
    those_are: &str,
    there_are_none: &str,
) -> String {
    let comparable = |name: &str| name.len() <= COMPARABLE;
    if let Some(near) = nearest(name, known.clone().filter(|known| comparable(name) && comparable(known))) {
        return format!("did you mean `{near}`?");
    }
    let names: Vec<_> = known.clone().take(MOST_NAMES).map(|name| format!("`{name}`")).collect();
    let more = known.count() - names.len();
    match more {
        _ if names.is_empty() => there_are_none.to_owned(),
        0 => format!("{those_are} {}", names.join(", ")),
        _ => format!("{those_are} {} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(name: &str, known: &[&str]) -> String {
        instead(name, known.iter().copied(), "its tools are", "it has none")
    }

    #[test]
    fn the_nearest_name_is_told_else_those_that_are_there() {
        assert_eq!(hint("get_balence", &["transfer", "get_balance"]), "did you mean `get_balance`?");
        assert_eq!(hint("zzz", &["transfer", "get_balance"]), "its tools are `transfer`, `get_balance`");
        assert_eq!(hint("zzz", &["a"; 12]), format!("its tools are {}`a` and 2 more", "`a`, ".repeat(9)));
        assert_eq!(hint("zzz", &[]), "it has none");
        let long = "a".repeat(65);
        assert_eq!(hint(&long, &[&long]), format!("its tools are `{long}`"));
    }
}
