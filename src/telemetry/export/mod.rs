//! Spans of turns, sent to a collector by [OTLP](https://opentelemetry.io/docs/specs/otlp/) over HTTP where the environment names one.
//!
//! A span that ends goes into a bounded queue and is dropped where that is full: a turn never waits for a collector. One thread, the
//! SDK's, takes batches from the queue and sends them, on a small runtime of its own: it needs none of the process, which has none yet when
//! logs are started, and blocks none.
//!
//! Only spans of this crate go out. The requests of the export make spans too (`hyper`, `reqwest`): were they sent, each batch would make the
//! next. Events stay in the log.

mod failures;
mod sender;
mod settings;

pub(crate) use settings::SettingsError;

use std::env;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracerProvider};
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use failures::{Failures, Watched};
use sender::Sender;
use settings::Settings;

/// What the spans' targets begin with, and the name of the service where the environment gives none.
const OURS: &str = "tenterhook";

/// The variable by which content on spans is asked for.
const CAPTURE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// How long the end of a command waits for the last spans to be taken.
const GRACE: Duration = Duration::from_secs(2);

/// A layer that exports spans as the environment says, and what is to be kept until the last of them; `None`: it names no collector.
///
/// # Errors
///
/// A variable that cannot be followed. Nothing is exported then.
pub(crate) fn layer<S>() -> Result<Option<(impl Layer<S>, Guard)>, SettingsError>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let Some(settings) = Settings::read(|name| env::var(name).ok())? else { return Ok(None) };
    let failures = Arc::new(Failures::of(&settings.endpoint));
    let sender = Sender::new(&settings, Arc::clone(&failures));
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(settings.endpoint.as_str())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(settings.timeout)
        // Two, not three: a command whose collector is not there ends 0.4 s later, not 0.9 s.
        .with_retry_policy(RetryPolicy::recommended().with_max_retries(2))
        .with_http_client(sender)
        .build()
        .map_err(|error| SettingsError::Refused { reason: error.to_string() })?;
    let processor = BatchSpanProcessor::builder(Watched::new(exporter, Arc::clone(&failures))).build();
    let provider = SdkTracerProvider::builder().with_span_processor(processor).with_resource(resource()).build();
    let scope = InstrumentationScope::builder(OURS).with_version(env!("CARGO_PKG_VERSION")).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer_with_scope(scope))
        // A span's parent is the current one of `tracing`. With these two off, a poll of a future that is in a span attaches nothing, and
        // reads the clock once, when it ends.
        .with_context_activation(false)
        .with_tracked_inactivity(false)
        // Of a span there is sent what its fields say: where in the source it stands and on which thread it began helps nobody.
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_filter(FilterFn::new(is_ours).with_max_level_hint(LevelFilter::INFO));
    Ok(Some((layer, Guard { provider, failures })))
}

/// Exports spans of a process that has no subscriber of its own, such as a Python program; what is returned is to be kept until its end.
pub(crate) fn start() -> Option<Guard> {
    match layer() {
        Ok(Some((spans, guard))) => tracing_subscriber::registry().with(spans).try_init().is_ok().then_some(guard),
        Ok(None) => None,
        Err(wrong) => {
            // There is no log that could say so.
            let _ = writeln!(std::io::stderr(), "tenterhook: Spans are not exported: {wrong}");
            None
        }
    }
}

/// Sends the last spans when it is dropped, and waits for that up to 2 s.
#[must_use = "spans are exported until it is dropped"]
#[derive(Debug)]
pub(crate) struct Guard {
    provider: SdkTracerProvider,
    failures: Arc<Failures>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        // An export that has failed has been told by the thread that made it; here only the wait can end too early.
        if self.provider.shutdown_with_timeout(GRACE).is_err() {
            self.failures.tell(&format!("it has not taken the last ones within {} s", GRACE.as_secs()));
        }
    }
}

/// Whether the environment asks for content on spans, by the variable that instrumentations of models share.
pub(crate) fn captures_content() -> bool {
    let asked = env::var(CAPTURE).unwrap_or_default();
    ["true", "span_only", "span_and_event"].iter().any(|word| asked.trim().eq_ignore_ascii_case(word))
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    let of_ours = metadata.target().strip_prefix(OURS).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    of_ours && metadata.is_span() && *metadata.level() <= Level::INFO
}

/// Who sends: what the environment says of it goes before our own name.
fn resource() -> Resource {
    let service = |name| KeyValue::new("service.name", name);
    let named = env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty()).map(service);
    Resource::builder_empty()
        .with_attributes([service(OURS.to_owned())])
        .with_detectors(&[Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())])
        .with_attributes(named)
        .build()
}
