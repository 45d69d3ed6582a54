//! What tests of this room share.

use proptest::prelude::*;
use serde_json::Value;

use crate::conversation::Object;

/// Names that mean something in a message.
const NAMES: [&str; 12] = [
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "id",
    "function",
    "name",
    "arguments",
    "type",
    "text",
    "user",
    "assistant",
];

/// The object that this is written as.
pub(super) fn object(value: Value) -> Object {
    if let Value::Object(object) = value { object } else { panic!("{value} is no object") }
}

/// Any JSON, with the names that matter often among its keys and texts.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(&NAMES[..]).prop_map(Value::from),
        prop::sample::select(&["tool", "{", "{}", " "][..]).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 32, 4, |inner| {
        let key = prop::sample::select(&NAMES[..]).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}
