//! What is logged while something runs: for tests of what a log says, and of what it never says.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::instrument::WithSubscriber as _;
use tracing::{Event, Level, Subscriber, span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

/// What a log has heard.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// Warnings and errors: `WARN what is said name=value`.
    pub(super) lines: Vec<String>,
    /// All events of every level, and all spans with all their fields.
    pub(super) everything: String,
}

/// Runs something and hears what it logs.
pub(super) async fn heard<T>(work: impl Future<Output = T>) -> (T, Heard) {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let done = work.with_subscriber(tracing_subscriber::registry().with(Ear(Arc::clone(&heard)))).await;
    let heard = heard.lock().unwrap().clone();
    (done, heard)
}

struct Ear(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Words {
    said: String,
    fields: String,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.said = format!("{value:?}");
        } else {
            write!(self.fields, " {}={value:?}", field.name()).unwrap();
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

impl Ear {
    fn note(&self, name: &str, record: impl FnOnce(&mut Words)) -> String {
        let mut words = Words::default();
        record(&mut words);
        let line = format!("{}{}", words.said, words.fields);
        writeln!(self.0.lock().unwrap().everything, "{name} {line}").unwrap();
        line
    }
}

impl<S: Subscriber> Layer<S> for Ear {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = *event.metadata().level();
        let line = self.note(level.as_str(), |words| event.record(words));
        if level <= Level::WARN {
            self.0.lock().unwrap().lines.push(format!("{level} {line}"));
        }
    }

    fn on_new_span(&self, span: &span::Attributes<'_>, _: &span::Id, _: Context<'_, S>) {
        self.note(span.metadata().name(), |words| span.record(words));
    }

    fn on_record(&self, _: &span::Id, values: &span::Record<'_>, _: Context<'_, S>) {
        self.note("span", |words| values.record(words));
    }
}
