//! One hooked search of the references.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing::Instrument as _;
use tracing::field::Empty;

use super::hooks::{Hooked, Passed, tell};
use crate::conversation::Object;
use crate::hooks::{KnowledgeQueryPayload, KnowledgeResultsPayload};
use crate::telemetry::{TURN, fails};
use crate::tools::ToolOutput;

/// The tool by which a model searches the references.
pub(crate) const SEARCH: &str = "search_knowledge";

/// A part of a reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// Its text.
    pub text: String,
    /// What it belongs to, such as `project`.
    pub scope: String,
    /// The file that it is from.
    pub source: String,
    /// How well it fits, from 0 to 1, where the index says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// The references of an agent.
pub trait Knowledge: Send + Sync {
    /// Whether there are any: then the model is offered to search.
    fn is_there(&self) -> bool;

    /// The passages that fit a query, the best first; `None`: there is no index.
    ///
    /// # Errors
    ///
    /// Why the search failed, for the log.
    fn search<'a>(&'a self, query: &'a str) -> BoxFuture<'a, Result<Option<Vec<Passage>>, String>>;
}

/// No references.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoKnowledge;

impl Knowledge for NoKnowledge {
    fn is_there(&self) -> bool {
        false
    }

    fn search<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<Vec<Passage>>, String>> {
        Box::pin(async { Ok(None) })
    }
}

/// What the model reads where it asked for nothing.
const EMPTY_QUERY: &str = "The query is empty: ask for what the references are to be searched for.";

/// What it reads where nothing was found, or the search failed or was not made.
pub(crate) const NOTHING_FOUND: &str =
    "No passages were found. Do not answer from memory: say that the references do not tell.";

/// What it reads where there is no index.
const NO_INDEX: &str = "There are no references to search.";

/// What is to be put to the references.
#[derive(Debug)]
pub(crate) enum Query {
    /// This, as the hooks have left it.
    Put(String),
    /// The model has asked for nothing, so that no hook has run; what it reads.
    Unasked(ToolOutput),
    /// The hooks leave nothing to be searched for; what the model reads.
    Stopped(ToolOutput),
}

/// Has the query of a call pass the hooks.
pub(crate) async fn query(hooked: Hooked<'_>, arguments: &Object) -> Query {
    let query = match arguments.get("query") {
        Some(Value::String(query)) => query.clone(),
        None | Some(Value::Null) => String::new(),
        Some(_) => return Query::Unasked(ToolOutput::error("`query` is to be a text")),
    };
    if query.trim().is_empty() {
        return Query::Unasked(ToolOutput::of(EMPTY_QUERY));
    }
    match hooked.pass(KnowledgeQueryPayload::new(&hooked.identity.sender_id, query)).await {
        Passed::On { payload, .. } if payload.query.trim().is_empty() => Query::Stopped(ToolOutput::of(EMPTY_QUERY)),
        Passed::On { payload, .. } => Query::Put(payload.query),
        Passed::Failed(failure) => {
            tell(&failure);
            Query::Stopped(ToolOutput::of(NOTHING_FOUND))
        }
        Passed::Retry { .. } | Passed::Rejected { .. } => unreachable!("a query takes no signal"),
    }
}

/// Has the passages that a query has found pass the hooks; `None`: they stay as they are.
pub(crate) async fn passages(hooked: Hooked<'_>, query: String, found: &[Arc<Object>]) -> Option<Vec<Arc<Object>>> {
    let payload = KnowledgeResultsPayload::new(&hooked.identity.sender_id, query, found);
    let Passed::On { payload, changed: true } = hooked.pass(payload).await else {
        // The point is open.
        return None;
    };
    // One that it was given without a text is none of the hook's doing.
    let fits = |passage: &Arc<Object>| passage.get("text").is_some_and(Value::is_string) || found.contains(passage);
    if !payload.passages.iter().all(fits) {
        tracing::warn!(target: TURN, "The passages stay as they were: a hook has left one without a text");
        return None;
    }
    Some(payload.passages)
}

/// Searches the references; what the model is to read.
pub(crate) async fn search(hooked: Hooked<'_>, knowledge: &dyn Knowledge, arguments: &Object) -> ToolOutput {
    let query = match query(hooked, arguments).await {
        Query::Put(query) => query,
        Query::Unasked(output) | Query::Stopped(output) => return output,
    };
    let span = tracing::info_span!(
        target: TURN, "retrieval", otel.name = "retrieval references", otel.status_code = Empty, error.type = Empty,
        gen_ai.operation.name = "retrieval", gen_ai.data_source.id = "references",
    );
    let found = match knowledge.search(&query).instrument(span.clone()).await {
        Ok(Some(passages)) => passages,
        Ok(None) => return ToolOutput::of(NO_INDEX),
        Err(reason) => {
            fails(&span, "search_failed");
            tracing::warn!(target: TURN, "The references could not be searched: {reason}");
            return ToolOutput::of(NOTHING_FOUND);
        }
    };
    let found: Vec<_> = found.iter().map(|passage| Arc::new(as_object(passage))).collect();
    let left = passages(hooked, query, &found).await.unwrap_or(found);
    if left.is_empty() { ToolOutput::of(NOTHING_FOUND) } else { ToolOutput::of(json!({"passages": left})) }
}

fn as_object(passage: &Passage) -> Object {
    match json!(passage) {
        Value::Object(object) => object,
        _ => unreachable!("a passage has fields"),
    }
}
