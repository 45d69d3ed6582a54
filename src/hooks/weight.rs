//! About how much memory a payload holds: enough to bound a queue by.

use serde_json::Value;

use super::field::Slot;
use super::payload::AnyPayload;
use crate::conversation::Object;

/// What a value costs beside its text: itself, and its place in a map or a list.
const VALUE: usize = size_of::<Value>() + size_of::<usize>();

impl AnyPayload {
    /// About how many bytes the payload holds. Messages that it shares with others count in full.
    pub(crate) fn weight(&self) -> usize {
        let mut bytes = size_of::<Self>();
        self.visit(&mut |_, slot| bytes += of_slot(slot));
        bytes
    }
}

fn of_slot(slot: Slot<'_>) -> usize {
    match slot {
        Slot::Text(text) => text.len(),
        Slot::OptionalText(text) => text.map_or(0, str::len),
        Slot::Names(names) => names.iter().map(|name| VALUE + name.len()).sum(),
        Slot::TextMap(map) => map.iter().map(|(key, text)| VALUE + key.len() + text.len()).sum(),
        Slot::Object(object) => of_object(object),
        Slot::Objects(objects) => objects.iter().map(|object| of_object(object)).sum(),
        Slot::Settings(settings) => of_object(settings.as_object()),
        Slot::Json(value) => of_value(value),
        Slot::Call(call) => of_object(&call.metadata),
        Slot::Channel(channel) => of_object(&channel.metadata),
        Slot::Flag(_) | Slot::Count(_) | Slot::OptionalNumber(_) | Slot::Status(_) => 0,
    }
}

fn of_object(object: &Object) -> usize {
    object.iter().map(|(key, value)| key.len() + of_value(value)).sum()
}

fn of_value(value: &Value) -> usize {
    VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(of_value).sum(),
            Value::Object(object) => of_object(object),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
