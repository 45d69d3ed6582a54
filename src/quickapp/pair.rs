//! The pair of messages that a start hook leaves: a call as if the model had made it, and its result.
//!
//! Pairs come back with the conversation, from a client that may have written anything. A pair is a hook's own if it has the form (an
//! assistant's message with that one call and nothing said, the result right behind it) and its id verifies (`call_id`) for the hook's tool
//! and template and the content that stands there. Everything else is an ordinary message.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call_id::{CallId, Digest, Key, Stamp, Tag, digest_of};
use crate::conversation::Object;

/// Where a pair comes from: a tool and its unrendered arguments. Hooks with the same have the same pairs, whatever their names.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    key: Key,
    tool: String,
    digest: Digest,
    tag: Tag,
    /// What its ids begin with.
    beginning: String,
}

impl Origin {
    /// The origin of the pairs of a hook, computed once when its manifest is loaded.
    ///
    /// `tool` is the final name, `template` the arguments as the manifest has them: those that are rendered differ from turn to turn. The
    /// order of its keys does not count. The template's depth must have a limit already (a JSON reader's 128 levels).
    pub(crate) fn new(key: &Key, tool: &str, template: &Object) -> Self {
        let mut arguments = String::new();
        write_object(template, &mut arguments);
        let digest = digest_of([tool.as_bytes(), arguments.as_bytes()]);
        let tag = Tag::new(key, &digest);
        Self { key: key.clone(), tool: tool.to_owned(), digest, tag, beginning: tag.beginning() }
    }

    /// What tells this origin's pairs from most others' without a look at their content.
    pub(crate) fn tag(&self) -> Tag {
        self.tag
    }

    /// The pair that shows this result. `arguments` are the rendered ones; they are shown and belong to no identity.
    pub(crate) fn pair(&self, arguments: &Object, content: String, stamp: Stamp) -> Pair<'_> {
        let id = CallId::new(&self.key, self.tag, &self.identity(&content), stamp).to_string();
        let function = json!({"name": self.tool, "arguments": Value::Object(arguments.clone()).to_string()});
        let call = [
            ("role", json!("assistant")),
            ("content", json!("")),
            ("tool_calls", json!([{"id": id, "type": "function", "function": function}])),
        ];
        let result = [("role", json!("tool")), ("tool_call_id", json!(id)), ("content", Value::String(content))];
        Pair { origin: self, call: message(call), result: message(result) }
    }

    /// The pairs in these messages that bear this origin's names, the newest first. They may be forged: see [`Self::is_own`].
    pub(super) fn candidates<'m>(&self, messages: &'m [Arc<Object>]) -> impl Iterator<Item = Candidate<'m>> {
        let pairs = messages.windows(2).enumerate().rev();
        pairs.filter_map(|(at, two)| {
            // Most messages are told apart by this alone: a thousand hooks look at each message.
            two[1].get("tool_call_id")?.as_str()?.strip_prefix(&self.beginning)?;
            let shape = Shape::of(&two[0], &two[1]).filter(|shape| shape.tool == self.tool)?;
            Some(Candidate { at, content: shape.content, id: shape.id })
        })
    }

    /// Whether the pair is genuine: made with this key, from this origin, with this content and expiry.
    ///
    /// Costs a digest of the content, about a millisecond for a megabyte.
    pub(super) fn is_own(&self, candidate: &Candidate<'_>) -> bool {
        candidate.id.verifies(&self.key, &self.identity(candidate.content))
    }

    fn identity(&self, content: &str) -> Digest {
        digest_of([&self.digest, content.as_bytes()])
    }
}

/// A call and its result, ready to stand in a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Pair<'o> {
    /// Whose it is.
    pub(super) origin: &'o Origin,
    /// The assistant's message.
    pub(crate) call: Arc<Object>,
    /// The tool's message.
    pub(crate) result: Arc<Object>,
}

impl Pair<'_> {
    /// What the tool has given.
    pub(super) fn content(&self) -> &str {
        self.result.get("content").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Two messages with an origin's names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'m> {
    /// Where the call stands; its result is the next message.
    pub(super) at: usize,
    /// What the result says.
    pub(super) content: &'m str,
    id: CallId,
}

impl Candidate<'_> {
    /// When the result expires, in seconds since 1970; none: it does not. To be believed if the pair is genuine.
    pub(super) fn expiry(&self) -> Option<u64> {
        self.id.expiry()
    }
}

/// The tag of two messages that look like a pair of some hook; they may be forged.
pub(super) fn tag_of(call: &Object, result: &Object) -> Option<Tag> {
    Shape::of(call, result).map(|shape| shape.id.tag())
}

/// What two messages say that have the form of a pair.
struct Shape<'m> {
    tool: &'m str,
    content: &'m str,
    id: CallId,
}

impl<'m> Shape<'m> {
    fn of(call: &'m Object, result: &'m Object) -> Option<Self> {
        // What was said beside a call is no hook's, and would be lost with the pair.
        let silent = match call.get("content") {
            None | Some(Value::Null) => true,
            Some(Value::Array(parts)) if parts.is_empty() => true,
            Some(content) => text(content) == Some(""),
        };
        let [only] = call.get("tool_calls")?.as_array()?.as_slice() else { return None };
        let id = only.get("id")?.as_str()?;
        let fits = silent
            && call.get("role")? == "assistant"
            && result.get("role")? == "tool"
            && result.get("tool_call_id")?.as_str()? == id;
        let tool = only.get("function")?.get("name")?.as_str()?;
        let content = text(result.get("content")?)?;
        fits.then(|| CallId::read(id)).flatten().map(|id| Self { tool, content, id })
    }
}

/// A content that is text and nothing else; some clients write it as a list with one part.
fn text(content: &Value) -> Option<&str> {
    match content {
        Value::Array(parts) => match parts.as_slice() {
            [part] if part.get("type")? == "text" => part.get("text")?.as_str(),
            _ => None,
        },
        _ => content.as_str(),
    }
}

fn message<const N: usize>(fields: [(&str, Value); N]) -> Arc<Object> {
    Arc::new(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Writes JSON without spaces and with sorted keys, so that the same template has the same text.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Object(object) => write_object(object, text),
        _ => text.push_str(&value.to_string()),
    }
}

fn write_object(object: &Object, text: &mut String) {
    let mut entries: Vec<_> = object.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    text.push('{');
    for (at, (key, value)) in entries.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&json!(key).to_string());
        text.push(':');
        write_canonical(value, text);
    }
    text.push('}');
}
