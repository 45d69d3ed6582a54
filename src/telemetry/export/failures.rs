//! What is said of an export that fails: once in a process, for a collector that is away fails each batch.

use std::fmt;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_otlp::SpanExporter as OtlpExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use reqwest::{StatusCode, Url};

use crate::telemetry::EXPORT;

/// The failures of one process.
#[derive(Debug)]
pub(super) struct Failures {
    /// Scheme, host and port: what follows can hold a key.
    address: String,
    /// Why the last attempt has failed. The SDK keeps from its errors what the network has said.
    last: Mutex<Option<String>>,
    told: AtomicBool,
}

impl Failures {
    /// None yet.
    pub(super) fn of(endpoint: &Url) -> Self {
        let address = endpoint.origin().ascii_serialization();
        Self { address, last: Mutex::default(), told: AtomicBool::default() }
    }

    /// An attempt got no answer; another may follow.
    pub(super) fn unanswered(&self, error: &dyn fmt::Display) {
        let hint = "look at `OTEL_EXPORTER_OTLP_ENDPOINT`, and whether a collector runs there";
        self.note(format!("{error}\n  hint: {hint}"));
    }

    /// The collector has said no; another attempt may follow.
    pub(super) fn refused(&self, status: StatusCode) {
        let hint = match status.as_u16() {
            401 | 403 => "\n  hint: look at `OTEL_EXPORTER_OTLP_HEADERS`: the collector asks for a key",
            404 | 405 => "\n  hint: look at `OTEL_EXPORTER_OTLP_ENDPOINT`: `/v1/traces` is added to it",
            415 => "\n  hint: it does not take `http/protobuf`",
            _ => "",
        };
        self.note(format!("it answers `{status}`{hint}"));
    }

    /// Warns, the first time.
    pub(super) fn tell(&self, reason: &str) {
        if !self.told.swap(true, Ordering::Relaxed) {
            let address = &self.address;
            if tracing::enabled!(target: EXPORT, tracing::Level::WARN) {
                tracing::warn!(target: EXPORT, "Spans could not be exported to `{address}`: {reason}");
            } else {
                // A Python program has no log of Rust's.
                let _ = writeln!(io::stderr(), "tenterhook: Spans could not be exported to `{address}`: {reason}");
            }
        }
    }

    fn note(&self, reason: String) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    fn take(&self) -> Option<String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An exporter whose failures are told.
#[derive(Debug)]
pub(super) struct Watched {
    exporter: OtlpExporter,
    failures: Arc<Failures>,
}

impl Watched {
    pub(super) fn new(exporter: OtlpExporter, failures: Arc<Failures>) -> Self {
        Self { exporter, failures }
    }
}

impl SpanExporter for Watched {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let exported = self.exporter.export(batch).await;
        // What is left of attempts before one that succeeded says nothing of the next batch.
        let reason = self.failures.take();
        if let Err(error) = &exported {
            self.failures.tell(&reason.unwrap_or_else(|| error.to_string()));
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
