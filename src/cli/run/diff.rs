//! What a hook did to one payload, readably.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::hunks::hunks;
use crate::hooks::{AnyPayload, Changed, Outcome, Point};

/// Where in the input a hook was called.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) conversation: String,
    pub(super) turn: usize,
}

/// One dispatch that did more than give its payload back.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    #[serde(flatten)]
    place: Place,
    point: Point,
    hook: String,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Kind {
    /// The fields that changed, before and after.
    Changed(Changed),
    Retry {
        feedback: String,
    },
    Reject {
        reason: String,
        response: Option<String>,
    },
    DiscardedSignal {
        signal: Value,
    },
    Failed {
        failure: String,
    },
}

impl Change {
    /// What `outcome` says of the payload `before`, or `None` where it is unchanged.
    pub(super) fn of(place: &Place, hook: String, before: &AnyPayload, outcome: Outcome<AnyPayload>) -> Option<Self> {
        let kind = match outcome {
            Outcome::Proceed { failure: Some(failure), .. } | Outcome::Failed(failure) => {
                Kind::Failed { failure: failure.cause.to_string() }
            }
            Outcome::Proceed { discarded_signal: Some(signal), .. } => Kind::DiscardedSignal { signal: json!(signal) },
            Outcome::Proceed { changed: false, .. } => return None,
            Outcome::Proceed { payload, .. } => Kind::Changed(Changed::between(before, &payload)),
            Outcome::Retry { feedback } => Kind::Retry { feedback },
            Outcome::Reject { reason, response } => Kind::Reject { reason, response },
        };
        Some(Self { place: place.clone(), point: before.point(), hook, kind })
    }
}

/// Writes changes for people. A hunk that the same hook has shown before in the conversation is not shown again: the history of
/// a conversation passes a request hook once an iteration.
pub(super) fn as_text(changes: &[Change]) -> String {
    let mut text = String::new();
    let mut shown = HashSet::new();
    for change in changes {
        let Place { line, conversation, turn } = &change.place;
        writeln!(text, "{conversation} (line {line}), turn {turn}: {} by {}", change.point, change.hook)
            .expect(TAKES_ALL);
        match &change.kind {
            Kind::Changed(Changed { before, after }) => {
                let mut repeated = 0;
                for (name, old) in before {
                    for hunk in hunks(name, old, after.get(name).unwrap_or(&Value::Null)) {
                        if shown.insert((*line, change.point, change.hook.clone(), hunk.clone())) {
                            text.push_str(&hunk);
                        } else {
                            repeated += 1;
                        }
                    }
                }
                if repeated > 0 {
                    writeln!(text, "  as before ({repeated} shown already)").expect(TAKES_ALL);
                }
            }
            Kind::Retry { feedback } => writeln!(text, "  retry: {feedback}").expect(TAKES_ALL),
            Kind::Reject { reason, response: None } => writeln!(text, "  rejected: {reason}").expect(TAKES_ALL),
            Kind::Reject { reason, response: Some(response) } => {
                writeln!(text, "  rejected: {reason}\n  the user hears: {response}").expect(TAKES_ALL);
            }
            Kind::DiscardedSignal { signal } => writeln!(text, "  signal discarded: {signal}").expect(TAKES_ALL),
            Kind::Failed { failure } => writeln!(text, "  failed: {failure}").expect(TAKES_ALL),
        }
        text.push('\n');
    }
    text
}

const TAKES_ALL: &str = "a string takes all";
