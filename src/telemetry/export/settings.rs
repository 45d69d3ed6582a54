//! What the environment says of the export of spans. What is not read here, the SDK reads itself: headers, resource, sampler, sizes of queue
//! and batch. It keeps quiet about a value that it does not understand; so the values of the more common ones are looked at here.
//!
//! The variables: <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables> and
//! <https://opentelemetry.io/docs/specs/otel/protocol/exporter>.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

/// How long a request may take where the environment does not say, as the specification has it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The one protocol of ours, and the default of the specification.
const PROTOCOL: &str = "http/protobuf";

/// The samplers that the SDK knows; for any other it takes everything.
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// Where spans go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// Where they are posted to.
    pub(super) endpoint: Url,
    /// How long a request may take, and all its attempts together.
    pub(super) timeout: Duration,
}

impl Settings {
    /// What the variables say; `None`: spans are not to be exported.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingsError> {
        // An empty variable counts as one that is not there.
        let variable = |name: &'static str| {
            let value = variable(name).map(|value| value.trim().to_owned());
            value.filter(|value| !value.is_empty()).map(|value| Variable { name, value })
        };
        // What is said of spans alone goes before what is said of all signals.
        let either = |of_spans, of_all| variable(of_spans).or_else(|| variable(of_all));
        if variable("OTEL_SDK_DISABLED").is_some_and(|disabled| disabled.value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let of_spans = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let Some(endpoint) = of_spans.as_ref().map(Variable::address).or_else(|| {
            variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| {
                let mut address = base.address()?;
                address.path_segments_mut().expect("it has a host").pop_if_empty().extend(["v1", "traces"]);
                Ok(address)
            })
        }) else {
            return Ok(None);
        };
        if let Some(exporter) = variable("OTEL_TRACES_EXPORTER") {
            match exporter.value.to_ascii_lowercase().as_str() {
                "otlp" => {}
                "none" => return Ok(None),
                _ => return Err(exporter.wrong("`otlp` or `none`")),
            }
        }
        if let Some(protocol) = either("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
            && !protocol.value.eq_ignore_ascii_case(PROTOCOL)
        {
            return Err(protocol.wrong("`http/protobuf`; collectors listen for it on port 4318"));
        }
        if let Some(headers) = either("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS") {
            headers.headers()?;
        }
        let timeout = either("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT");
        let timeout = timeout.map_or(Ok(TIMEOUT), |timeout| timeout.milliseconds())?;
        if let Some(sampler) = variable("OTEL_TRACES_SAMPLER") {
            sampler.sampler(variable("OTEL_TRACES_SAMPLER_ARG").as_ref())?;
        }
        Ok(Some(Self { endpoint: endpoint?, timeout }))
    }
}

/// A variable that is set.
struct Variable {
    name: &'static str,
    value: String,
}

impl Variable {
    fn wrong(&self, expected: &'static str) -> SettingsError {
        SettingsError::Value { name: self.name, value: self.value.clone(), expected }
    }

    fn address(&self) -> Result<Url, SettingsError> {
        let wrong = |reason| SettingsError::Address { name: self.name, reason };
        let address = Url::parse(&self.value).map_err(|error| wrong(error.to_string()))?;
        match address.scheme() {
            "http" | "https" => Ok(address),
            other => Err(wrong(format!("`{other}` is neither `http` nor `https`"))),
        }
    }

    /// The SDK leaves out a header that is none: the collector would say that a key is missing.
    fn headers(&self) -> Result<(), SettingsError> {
        let is_header = |entry: &str| {
            entry.split_once('=').is_some_and(|(name, value)| {
                HeaderName::from_bytes(name.trim().as_bytes()).is_ok() && HeaderValue::from_str(value.trim()).is_ok()
            })
        };
        let entries = self.value.split(',').map(str::trim).enumerate();
        match entries.filter(|(_, entry)| !entry.is_empty()).find(|(_, entry)| !is_header(entry)) {
            Some((index, _)) => Err(SettingsError::Header { name: self.name, number: index + 1 }),
            None => Ok(()),
        }
    }

    fn milliseconds(&self) -> Result<Duration, SettingsError> {
        let milliseconds = self.value.parse().ok().filter(|milliseconds| *milliseconds > 0);
        milliseconds.map(Duration::from_millis).ok_or_else(|| self.wrong("a number of milliseconds, such as `10000`"))
    }

    fn sampler(&self, argument: Option<&Self>) -> Result<(), SettingsError> {
        if !SAMPLERS.contains(&self.value.as_str()) {
            return Err(self.wrong(
                "`parentbased_always_on`, `parentbased_traceidratio`, `always_on`, `always_off` or `traceidratio`",
            ));
        }
        match argument {
            Some(ratio) if self.value.ends_with("ratio") => match ratio.value.parse() {
                Ok(share) if (0.0..=1.0).contains(&share) => Ok(()),
                _ => Err(ratio.wrong("a share from `0.0` to `1.0`")),
            },
            _ => Ok(()),
        }
    }
}

/// Why spans are not exported though the environment asks for it. None of them shows a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SettingsError {
    /// An endpoint is no address.
    #[error(
        "`{name}` is no address: {reason}\n  hint: it begins with `http://` or `https://`, such as `http://localhost:4318`"
    )]
    Address {
        /// The variable.
        name: &'static str,
        /// Why.
        reason: String,
    },
    /// A variable has a value that cannot be followed.
    #[error("`{name}` is `{value}`, which is not supported\n  hint: set it to {expected}")]
    Value {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it can be.
        expected: &'static str,
    },
    /// A header is none.
    #[error(
        "Entry {number} of `{name}` is no header\n  hint: write `name=value`, with commas between headers and `%2C` for a comma in a value"
    )]
    Header {
        /// The variable.
        name: &'static str,
        /// Which entry, from 1.
        number: usize,
    },
    /// The SDK has something against it.
    #[error(
        "No exporter could be made: {reason}\n  hint: look at the variables whose names begin with `OTEL_EXPORTER_OTLP_`"
    )]
    Refused {
        /// What.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<(String, u128)>, String> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let settings = Settings::read(variable).map_err(|error| error.to_string())?;
        Ok(settings.map(|settings| (settings.endpoint.to_string(), settings.timeout.as_millis())))
    }

    fn read_with(name: &str, value: &str) -> Result<Option<(String, u128)>, String> {
        read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"), (name, value)])
    }

    #[test]
    fn nothing_is_exported_unless_an_endpoint_is_named() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Ok(None));
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]), Ok(None));
    }

    #[test]
    fn spans_go_below_the_base_or_to_the_address_of_their_own() {
        let to = |variables: &[_]| read(variables).unwrap().unwrap().0;
        assert_eq!(to(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")]), "http://localhost:4318/v1/traces");
        assert_eq!(to(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://a.test/otlp/")]), "https://a.test/otlp/v1/traces");
        assert_eq!(to(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://a.test/in")]), "https://a.test/in");
        let both =
            [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://b.test"), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a.test")];
        assert_eq!(to(&both), "http://a.test/");
    }

    #[test]
    fn the_environment_can_say_no() {
        assert_eq!(read_with("OTEL_SDK_DISABLED", "True"), Ok(None));
        assert_eq!(read_with("OTEL_TRACES_EXPORTER", "none"), Ok(None));
        assert!(read_with("OTEL_SDK_DISABLED", "1").unwrap().is_some());
        assert!(read_with("OTEL_TRACES_EXPORTER", "otlp").unwrap().is_some());
    }

    #[test]
    fn what_is_no_address_is_said() {
        let hint = "\n  hint: it begins with `http://` or `https://`, such as `http://localhost:4318`";
        assert_eq!(
            read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector")]),
            Err(format!("`OTEL_EXPORTER_OTLP_ENDPOINT` is no address: relative URL without a base{hint}"))
        );
        assert_eq!(
            read(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "localhost:4318")]),
            Err(format!(
                "`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is no address: `localhost` is neither `http` nor `https`{hint}"
            ))
        );
    }

    #[test]
    fn what_cannot_be_followed_is_said() {
        let unsupported = |name: &str, value: &str, expected: &str| {
            Err(format!("`{name}` is `{value}`, which is not supported\n  hint: set it to {expected}"))
        };
        let protocol = "`http/protobuf`; collectors listen for it on port 4318";
        for (name, value, expected) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", protocol),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", protocol),
            ("OTEL_TRACES_EXPORTER", "zipkin", "`otlp` or `none`"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "a number of milliseconds, such as `10000`"),
            (
                "OTEL_TRACES_SAMPLER",
                "xray",
                "`parentbased_always_on`, `parentbased_traceidratio`, `always_on`, `always_off` or `traceidratio`",
            ),
        ] {
            assert_eq!(read_with(name, value), unsupported(name, value, expected));
        }
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "10%"),
        ];
        assert_eq!(read(&variables), unsupported("OTEL_TRACES_SAMPLER_ARG", "10%", "a share from `0.0` to `1.0`"));
    }

    #[test]
    fn a_header_that_is_none_is_said_and_never_shown() {
        assert!(read_with("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret, x-team = a%2Cb,").unwrap().is_some());
        let said = read_with("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a,secret").unwrap_err();
        assert_eq!(
            said,
            "Entry 2 of `OTEL_EXPORTER_OTLP_HEADERS` is no header\n  hint: write `name=value`, with commas between headers and `%2C` for a \
             comma in a value"
        );
    }

    #[test]
    fn a_request_may_take_ten_seconds_or_what_is_said() {
        let timeout = |name, value| read_with(name, value).unwrap().unwrap().1;
        assert_eq!(timeout("OTEL_EXPORTER_OTLP_TIMEOUT", ""), 10_000);
        assert_eq!(timeout("OTEL_EXPORTER_OTLP_TIMEOUT", "250"), 250);
        assert_eq!(timeout("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "125"), 125);
    }
}
