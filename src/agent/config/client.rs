//! Keys of a model's entry that say how it is asked, and are nothing for the request's body (`LiteLLM` names them).

use std::fmt;
use std::time::Duration;

use super::report::{Fields, Report};
use super::variables::Environment;

/// How a model is asked.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct ClientConfig {
    /// How long a call may take in all.
    pub(crate) timeout: Option<Duration>,
    /// How often a call is attempted again.
    pub(crate) retries: Option<u32>,
    /// Headers of every request. They can hold keys.
    pub(crate) headers: Vec<(String, String)>,
}

/// The keys that are read here, and those that nothing here can do anything with.
const READ: [&str; 6] = ["timeout", "num_retries", "max_retries", "headers", "extra_headers", "organization"];
const WITHOUT_EFFECT: [&str; 4] = ["api_version", "api_type", "deployment", "use_chat_completions_endpoint"];

/// Whether a key is none of the request's body.
pub(super) fn is_of_client(key: &str) -> bool {
    READ.contains(&key) || WITHOUT_EFFECT.contains(&key)
}

/// Reads the keys of an entry; none where one is wrong.
pub(super) fn read(entry: &Fields<'_>, variables: &Environment<'_>, report: &mut Report) -> Option<ClientConfig> {
    let mut client = ClientConfig::default();
    let mut wrong = false;
    for key in WITHOUT_EFFECT.into_iter().filter(|key| entry.get(key).is_some()) {
        let message = format!("`{key}` has no effect: the endpoint is asked as OpenAI's own is");
        let hint = "name the whole address in `api_base`".to_owned();
        report.warning("unsupported-key", entry.place(key), message, hint);
    }
    if let Some(field) = entry.get("timeout") {
        client.timeout = report.time(&field, ("seconds", 1.0), false);
        wrong |= client.timeout.is_none();
    }
    for key in ["num_retries", "max_retries"] {
        let Some(field) = entry.get(key) else { continue };
        client.retries = report.whole(&field, 0..=20);
        wrong |= client.retries.is_none();
    }
    if let Some(field) = entry.get("organization") {
        let name = variables.text(&field, report);
        wrong |= name.is_none();
        client.headers.extend(name.map(|name| ("OpenAI-Organization".to_owned(), name)));
    }
    for key in ["headers", "extra_headers"] {
        let Some(field) = entry.get(key) else { continue };
        let Some(headers) = report.free_fields(&field) else {
            wrong = true;
            continue;
        };
        for (name, value) in headers.all() {
            let value = variables.text(&value, report);
            wrong |= value.is_none();
            client.headers.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    (!wrong).then_some(client)
}

/// Shows of the headers only the names.
impl fmt::Debug for ClientConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientConfig")
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish()
    }
}
