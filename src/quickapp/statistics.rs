//! What has come of the runs of each hook of a manifest, counted as the calls of hook modules are.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;

use super::app::AppHook;
use crate::dispatch::Elapsed;

/// What has come of the runs of one hook of a manifest since the app was loaded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AppHookStatistics {
    /// Its name, or its tool's.
    pub name: String,
    /// `on_request_start` or `on_completion`.
    pub on: &'static str,
    /// Runs that have ended. A hook whose last result is still good does not run.
    pub calls: u64,
    /// Runs that have given a result.
    pub ran: u64,
    /// Those among them whose tool had failed, so that the result is what its tool set says of that.
    pub fallbacks: u64,
    /// Runs that were skipped, by cause: `timeout`, `raised`, `unrendered`, `unknown-tool`, `no-result`, `stopped`.
    pub failures: BTreeMap<&'static str, u64>,
    /// Runs that were given up with their request.
    pub withdrawn: u64,
    /// Median time of a run, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile of the same.
    pub p99_ms: f64,
}

/// Counts as runs end.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    ran: u64,
    fallbacks: u64,
    failures: BTreeMap<&'static str, u64>,
    withdrawn: u64,
    elapsed: Elapsed,
}

/// A run. One that is dropped before it has ended was withdrawn.
#[derive(Debug)]
pub(super) struct Run<'c> {
    counts: &'c Counts,
    begun: Instant,
    is_over: bool,
}

impl Counts {
    /// A run begins.
    pub(super) fn begin(&self) -> Run<'_> {
        Run { counts: self, begun: Instant::now(), is_over: false }
    }

    pub(super) fn read(&self, hook: &AppHook) -> AppHookStatistics {
        let inner = self.lock();
        AppHookStatistics {
            name: hook.label().to_owned(),
            on: hook.event.name(),
            calls: inner.elapsed.count(),
            ran: inner.ran,
            fallbacks: inner.fallbacks,
            failures: inner.failures.clone(),
            withdrawn: inner.withdrawn,
            p50_ms: inner.elapsed.millis(0.5),
            p99_ms: inner.elapsed.millis(0.99),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run<'_> {
    /// It has given a result, or what a fallback says of a failure.
    pub(super) fn gave(mut self, is_fallback: bool) {
        self.end(|inner| {
            inner.ran += 1;
            inner.fallbacks += u64::from(is_fallback);
        });
    }

    /// It was skipped, and why in a word.
    pub(super) fn failed(mut self, word: &'static str) {
        self.end(|inner| *inner.failures.entry(word).or_default() += 1);
    }

    fn end(&mut self, count: impl FnOnce(&mut Inner)) {
        self.is_over = true;
        let mut inner = self.counts.lock();
        inner.elapsed.record(self.begun.elapsed());
        count(&mut inner);
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.counts.lock().withdrawn += 1;
        }
    }
}
