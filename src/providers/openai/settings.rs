//! How an endpoint is reached, and what every request to it says.

use std::fmt;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::conversation::Object;

/// A model and its endpoint.
#[derive(Clone, PartialEq)]
pub struct OpenAiSettings {
    /// The name that errors and logs show.
    pub name: String,
    /// Who serves it, for spans: `openai` unless it is said.
    pub provider: String,
    /// The name that the provider knows.
    pub model: String,
    /// The address above `/chat/completions`, such as `https://api.openai.com/v1`; a slash at its end and a query are allowed.
    pub api_base: String,
    /// The key, sent as a bearer token; white space around it is cut, and an empty one is none.
    pub api_key: Option<String>,
    /// Further headers of every request, such as a gateway asks for.
    pub headers: Vec<(String, String)>,
    /// Further keys of the request's body. What a call sets wins; what the client itself writes cannot be replaced.
    pub extra: Object,
    /// How long the connection may take: 10 s.
    pub connect_timeout: Duration,
    /// How long the answer may take to begin, connection included: 60 s. An answer that is not streamed begins when it is complete.
    pub first_byte_timeout: Duration,
    /// How long a call may take in all, with its pauses: 300 s.
    pub total_timeout: Duration,
    /// How often a call is attempted again: twice.
    pub retries: u32,
    /// The first pause between two attempts, where the provider asks for none: 0.5 s. It doubles.
    pub retry_pause: Duration,
    /// The longest pause, whatever the provider asks for: 30 s.
    pub longest_pause: Duration,
    /// The longest answer that is read, in bytes: 50 MB.
    pub longest_reply: usize,
}

impl OpenAiSettings {
    /// An endpoint without a key, everything else as documented.
    pub fn new(name: impl Into<String>, model: impl Into<String>, api_base: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider: "openai".to_owned(),
            model: model.into(),
            api_base: api_base.into(),
            api_key: None,
            headers: Vec::new(),
            extra: Object::new(),
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_mins(1),
            total_timeout: Duration::from_mins(5),
            retries: 2,
            retry_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
            longest_reply: 50_000_000,
        }
    }

    /// Where requests go.
    pub(super) fn url(&self) -> Result<Url, SettingsError> {
        let wrong = |reason: String| SettingsError::Address { model: self.name.clone(), reason };
        let mut url = Url::parse(self.api_base.trim()).map_err(|error| wrong(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("`{}` is neither `http` nor `https`", url.scheme())));
        }
        let mut path = url.path_segments_mut().expect("such an address has a path");
        path.pop_if_empty().extend(["chat", "completions"]);
        drop(path);
        Ok(url)
    }

    /// The header that holds the key.
    pub(super) fn authorization(&self) -> Result<Option<HeaderValue>, SettingsError> {
        let Some(key) = self.api_key.as_deref().map(str::trim).filter(|key| !key.is_empty()) else { return Ok(None) };
        let header = HeaderValue::from_str(&format!("Bearer {key}"));
        let mut header = header.map_err(|_| SettingsError::Key { model: self.name.clone() })?;
        header.set_sensitive(true);
        Ok(Some(header))
    }
}

impl OpenAiSettings {
    /// The further headers, read.
    pub(super) fn further_headers(&self) -> Result<HeaderMap, SettingsError> {
        let read = |(name, value): &(String, String)| {
            let mut value = HeaderValue::from_str(value).ok()?;
            // It may hold a key.
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
        };
        let header = |header: &(String, String)| {
            read(header).ok_or_else(|| SettingsError::Header { model: self.name.clone(), name: header.0.clone() })
        };
        self.headers.iter().map(header).collect()
    }
}

impl fmt::Debug for OpenAiSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiSettings")
            .field("name", &self.name)
            .field("model", &self.model)
            .field("api_base", &self.api_base)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("extra", &self.extra)
            .field("connect_timeout", &self.connect_timeout)
            .field("first_byte_timeout", &self.first_byte_timeout)
            .field("total_timeout", &self.total_timeout)
            .field("retries", &self.retries)
            .field("retry_pause", &self.retry_pause)
            .field("longest_pause", &self.longest_pause)
            .field("longest_reply", &self.longest_reply)
            .finish_non_exhaustive()
    }
}

/// Why no client could be made of some settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// `api_base` is no address.
    #[error(
        "The `api_base` of the model `{model}` is no address: {reason}\n  hint: it begins with `http://` or `https://`"
    )]
    Address {
        /// The model.
        model: String,
        /// Why.
        reason: String,
    },
    /// The key cannot be sent.
    #[error(
        "The API key of the model `{model}` holds characters that a header cannot\n  hint: look for a line break in it"
    )]
    Key {
        /// The model.
        model: String,
    },
    /// A header cannot be sent.
    #[error(
        "The header `{name}` of the model `{model}` cannot be sent\n  hint: a name has letters, digits and `-`, a value no line break"
    )]
    Header {
        /// The model.
        model: String,
        /// The header's name.
        name: String,
    },
    /// The system gives no HTTP client.
    #[error(
        "No HTTP client could be made for the model `{model}`: {reason}\n  hint: `https` needs the certificates of the system, such as those of the package `ca-certificates`"
    )]
    Client {
        /// The model.
        model: String,
        /// Why.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(api_base: &str) -> String {
        OpenAiSettings::new("main", "m", api_base).url().map_or_else(|error| error.to_string(), |url| url.to_string())
    }

    #[test]
    fn requests_go_below_the_base() {
        assert_eq!(url("https://api.test/v1"), "https://api.test/v1/chat/completions");
        assert_eq!(url("https://api.test/v1/"), "https://api.test/v1/chat/completions");
        assert_eq!(url("http://127.0.0.1:8000"), "http://127.0.0.1:8000/chat/completions");
        assert_eq!(url("https://api.test/v1?version=2"), "https://api.test/v1/chat/completions?version=2");
    }

    #[test]
    fn what_is_no_address_is_said() {
        let hint = "\n  hint: it begins with `http://` or `https://`";
        assert_eq!(
            url("api.test/v1"),
            format!("The `api_base` of the model `main` is no address: relative URL without a base{hint}")
        );
        assert_eq!(
            url("localhost:8000"),
            format!(
                "The `api_base` of the model `main` is no address: `localhost` is neither `http` nor `https`{hint}"
            )
        );
    }

    #[test]
    fn the_key_is_sent_and_never_shown() {
        let mut settings = OpenAiSettings::new("main", "m", "https://api.test/v1");
        assert_eq!(settings.authorization(), Ok(None));
        settings.api_key = Some(" \n".into());
        assert_eq!(settings.authorization(), Ok(None));
        settings.api_key = Some("sk-1\nsk-2".into());
        assert_eq!(settings.authorization(), Err(SettingsError::Key { model: "main".into() }));
        settings.api_key = Some("sk-1\n".into());
        let header = settings.authorization().unwrap().unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer sk-1");
        assert!(!format!("{settings:?} {header:?}").contains("sk-1"));
    }
}
