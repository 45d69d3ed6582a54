//! Where a server is, and how long it may take.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::providers::authorization::HttpAuthorization;
use crate::providers::wording;

/// A server that speaks the Model Context Protocol.
#[derive(Clone, PartialEq, Eq)]
pub struct McpServerConfig {
    /// Its name: that of `mcp/<name>:<tool>`, of events, errors and logs.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// How long a call of its tools may take; `None`: as the agent says. Whoever calls keeps it ([`Tool::timeout`](crate::tools::Tool)).
    pub tool_timeout: Option<Duration>,
    /// Whether all of its tools are wanted, those too that it gets later, and not only those that are named; no.
    pub all_tools: bool,
    /// How long it may take to connect to it and to list its tools, the first time and each time after: 10 s.
    pub connect_timeout: Duration,
    /// The longest message that is read of it, in bytes: 8 MB. A result that is longer is the account of a failure.
    pub longest_message: usize,
    /// What no error is to show, beside what the transport itself has that is secret: none.
    pub secrets: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// Streamable HTTP.
    Http {
        /// Its address, such as `https://tools.test/mcp`.
        url: String,
        /// What the server wants to see.
        authorization: Option<HttpAuthorization>,
    },
    /// The HTTP transport of before 2025: a stream of events that is asked for with GET, and an address that it names for messages.
    Sse {
        /// The address of its events, such as `https://tools.test/sse`.
        url: String,
        /// What the server wants to see.
        authorization: Option<HttpAuthorization>,
    },
    /// A process that is started, and that is spoken to by its standard input and output.
    ///
    /// Of our environment it has `HOME`, `PATH` and the like, never the keys of models: what more it needs stands in `env`.
    Stdio {
        /// The program, found as a shell would find it.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Further variables of its environment.
        env: Vec<(String, String)>,
        /// The folder that it is started in; `None`: ours.
        cwd: Option<PathBuf>,
    },
}

impl McpServerConfig {
    /// A server, everything else as documented.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            tool_timeout: None,
            all_tools: false,
            connect_timeout: Duration::from_secs(10),
            longest_message: 8_000_000,
            secrets: Vec::new(),
        }
    }

    /// A server at an address, with a bearer token where it wants one.
    pub fn http(name: impl Into<String>, url: impl Into<String>, token: Option<String>) -> Self {
        let authorization = token.map(HttpAuthorization::Bearer);
        Self::new(name, McpTransport::Http { url: url.into(), authorization })
    }

    /// A server that is started.
    pub fn stdio(name: impl Into<String>, command: impl Into<String>, args: Vec<String>) -> Self {
        Self::new(name, McpTransport::Stdio { command: command.into(), args, env: Vec::new(), cwd: None })
    }

    /// A text about the server without what is secret.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        let sent = self.transport.authorization().map(HttpAuthorization::secrets).unwrap_or_default();
        let env = match &self.transport {
            McpTransport::Stdio { env, .. } => env.as_slice(),
            McpTransport::Http { .. } | McpTransport::Sse { .. } => &[],
        };
        let secrets = sent.iter().chain(env.iter().map(|(_, value)| value)).chain(&self.secrets);
        wording::without(text, secrets.map(String::as_str))
    }

    /// Where the server is, for people, without what is secret.
    pub(super) fn place(&self) -> String {
        let (origin, rest) = self.transport.place();
        origin + &self.without_secrets(&rest)
    }
}

impl McpTransport {
    /// What the server wants to see.
    pub(super) fn authorization(&self) -> Option<&HttpAuthorization> {
        match self {
            Self::Http { authorization, .. } | Self::Sse { authorization, .. } => authorization.as_ref(),
            Self::Stdio { .. } => None,
        }
    }

    /// Where the server is: its host, which is no secret, and the rest. Never with a query, which may hold a key.
    fn place(&self) -> (String, String) {
        match self {
            Self::Http { url, .. } | Self::Sse { url, .. } => match reqwest::Url::parse(url.trim()) {
                Ok(url) if url.has_host() => (url.origin().ascii_serialization(), url.path().to_owned()),
                _ => (String::new(), "an address that cannot be read".to_owned()),
            },
            Self::Stdio { command, .. } => (String::new(), command.clone()),
        }
    }
}

impl fmt::Debug for McpServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerConfig")
            .field("name", &self.name)
            .field("transport", &self.transport)
            .field("tool_timeout", &self.tool_timeout)
            .field("all_tools", &self.all_tools)
            .field("connect_timeout", &self.connect_timeout)
            .field("longest_message", &self.longest_message)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { .. } | Self::Sse { .. } => {
                let (origin, path) = self.place();
                let kind = if matches!(self, Self::Sse { .. }) { "Sse" } else { "Http" };
                f.debug_struct(kind).field("url", &(origin + &path)).finish_non_exhaustive()
            }
            // A key may stand among the arguments as well.
            Self::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.iter().map(|(name, _)| name).collect::<Vec<_>>())
                .field("cwd", cwd)
                .finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let http = McpServerConfig::http("a", "https://me:key1@a.test:81/mcp?key=key2#key3", Some("key4".into()));
        let mut stdio = McpServerConfig::stdio("b", "server", vec!["--key=key5".into()]);
        let McpTransport::Stdio { env, .. } = &mut stdio.transport else { unreachable!() };
        env.push(("NAME".into(), "key6".into()));
        assert_eq!(
            [format!("{:?}", http.transport), format!("{:?}", stdio.transport)],
            [
                "Http { url: \"https://a.test:81/mcp\", .. }",
                "Stdio { command: \"server\", args: 1, env: [\"NAME\"], cwd: None }"
            ]
        );
        assert_eq!(http.without_secrets("key4 is wrong"), "[secret] is wrong");
        assert_eq!(stdio.without_secrets("NAME=key6"), "NAME=[secret]");
    }

    #[test]
    fn what_is_secret_of_an_address_or_a_command_is_not_in_its_place() {
        let mut http = McpServerConfig::http("a", "https://key1.test/key1/mcp", None);
        let mut stdio = McpServerConfig::stdio("b", "/opt/key1/server", Vec::new());
        for config in [&mut http, &mut stdio] {
            config.secrets.push("key1".into());
        }
        // A host is where a key is sent to: without it nobody could say which server is meant.
        assert_eq!([http.place(), stdio.place()], ["https://key1.test/[secret]/mcp", "/opt/[secret]/server"]);
    }
}
