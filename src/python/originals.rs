//! Messages that have become Python objects before. A conversation sends the same messages again and again, to each hook and at each
//! request of a turn: a copy of their dict costs a third of what building it does.
//!
//! Only messages are kept whose values are texts, numbers, flags and nothing, which no handler can change in a copy, and only such as
//! somebody beside the payload holds as well. An original is never given away.

use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::conversation::Object;

/// How many messages are kept.
const MOST: usize = 4_096;

/// About how many bytes their texts may have together.
const MOST_BYTES: usize = 4 << 20;

struct Original {
    /// As long as it is here no other message has its address.
    message: Weak<Object>,
    dict: Py<PyDict>,
}

#[derive(Default)]
struct Originals {
    by_address: FxHashMap<usize, Original>,
    bytes: usize,
}

/// Under its lock nothing of Python is made or let go: either may run other people's code, which may need the lock.
static ORIGINALS: LazyLock<Mutex<Originals>> = LazyLock::new(Mutex::default);

/// The originals of messages, where they are known.
pub(super) fn of<'py>(py: Python<'py>, messages: &[Arc<Object>]) -> Vec<Option<Bound<'py, PyDict>>> {
    let originals = ORIGINALS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = |message| originals.by_address.get(&address(message));
    messages.iter().map(|message| known(message).map(|original| original.dict.bind(py).clone())).collect()
}

/// Keeps a dict that has just been made of a message, where that is worth it; the answer is whether it is.
pub(super) fn keep(message: &Arc<Object>, dict: &Bound<'_, PyDict>) -> bool {
    if Arc::strong_count(message) < 2 || !message.values().all(is_plain) {
        return false;
    }
    let bytes = weight(message);
    if bytes > MOST_BYTES / 64 {
        return false;
    }
    let original = Original { message: Arc::downgrade(message), dict: dict.clone().unbind() };
    let mut originals = ORIGINALS.lock().unwrap_or_else(PoisonError::into_inner);
    let full = originals.by_address.len() >= MOST || originals.bytes + bytes > MOST_BYTES;
    let mut gone = Vec::new();
    if full {
        let (dead, live): (Vec<_>, Vec<_>) =
            originals.by_address.drain().partition(|(_, original)| original.message.strong_count() == 0);
        gone.extend(dead);
        // Where most are in use there is no telling which are wanted again.
        if live.len() > MOST / 2 || gone.is_empty() {
            gone.extend(live);
        } else {
            originals.by_address.extend(live);
        }
        let live = originals.by_address.values().filter_map(|original| original.message.upgrade());
        originals.bytes = live.map(|message| weight(&message)).sum();
    }
    originals.bytes += bytes;
    gone.extend(originals.by_address.insert(address(message), original).map(|old| (0, old)));
    drop(originals);
    true
}

/// Whether a dict is a copy of an original in which nothing was changed: it holds the very same objects.
pub(super) fn is_copy(dict: &Bound<'_, PyDict>, original: &Bound<'_, PyDict>) -> bool {
    let same = |((key, value), (old_key, old_value)): ((Bound<'_, PyAny>, _), (_, _))| {
        key.is(&old_key) && Bound::is(&value, &old_value)
    };
    dict.len() == original.len() && dict.iter().zip(original).all(same)
}

fn address(message: &Arc<Object>) -> usize {
    Arc::as_ptr(message).addr()
}

fn weight(message: &Object) -> usize {
    message.values().map(|value| value.as_str().map_or(0, str::len)).sum()
}

fn is_plain(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}
