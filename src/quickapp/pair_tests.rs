//! What a pair looks like, and which are genuine.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::call_id::{Key, Stamp};
use super::pair::Origin;
use super::testing::object;
use crate::conversation::Object;

fn key() -> Key {
    Key::new(b"0123456789abcdef")
}

fn origin(tool: &str, template: Value) -> Origin {
    Origin::new(&key(), tool, &object(template))
}

fn messages(origin: &Origin, content: &str, stamp: Stamp) -> Vec<Arc<Object>> {
    let pair = origin.pair(&Object::new(), content.into(), stamp);
    vec![pair.call, pair.result]
}

fn id(origin: &Origin, content: &str, stamp: Stamp) -> String {
    messages(origin, content, stamp)[1]["tool_call_id"].as_str().unwrap().to_owned()
}

/// How many pairs of this origin are genuine.
fn own(origin: &Origin, messages: &[Arc<Object>]) -> usize {
    origin.candidates(messages).filter(|candidate| origin.is_own(candidate)).count()
}

#[test]
fn a_pair_is_a_call_and_its_result_as_if_the_model_had_called() {
    let origin = origin("memory_server_search", json!({"query": "${last_user_message.content}"}));
    let rendered = object(json!({"query": "Größe?", "limit": 3}));
    let pair = origin.pair(&rendered, "found".into(), Stamp::default());
    let id = id(&origin, "found", Stamp::default());
    assert_eq!(
        Value::Object((*pair.call).clone()),
        json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": id, "type": "function",
             "function": {"name": "memory_server_search", "arguments": r#"{"query":"Größe?","limit":3}"#}}]})
    );
    assert_eq!(Value::Object((*pair.result).clone()), json!({"role": "tool", "tool_call_id": id, "content": "found"}));
}

/// Computed apart, with Python's `hashlib`, `hmac` and `base64`.
#[test]
fn ids_stay_what_they_are() {
    let expiring = Stamp { expiry: Some(1_700_000_600), nonce: 0 };
    let random = Stamp { expiry: None, nonce: 0xffff_0123_4567_89ab };
    for (tool, template, content, stamp, expected) in [
        ("memory_server_get_memories", json!({}), "hello", Stamp::default(), "th_Xs02AAAAAAAAAAAAAPf4KOFxct34Vge6D5fA"),
        ("my_tool", json!({}), "content", expiring, "th_fjZCAGVT81gAAAAAAPwhqd0f08DuGxaBFldu"),
        (
            "my_tool",
            json!({"query": "${last_user_message.content}", "a": [1, {"é": null}]}),
            "",
            random,
            "th_baS2AAAAAAAjRWeJq_WRss9miZRMajmFYfjC",
        ),
    ] {
        assert_eq!(id(&origin(tool, template), content, stamp), expected);
    }
}

#[test]
fn the_same_result_has_the_same_id_whatever_the_order_of_keys_and_the_rendered_arguments() {
    let first = origin("t", json!({"a": 1, "b": {"c": 2, "d": 3}}));
    let second = origin("t", json!({"b": {"d": 3, "c": 2}, "a": 1}));
    let shown = second.pair(&object(json!({"a": 7})), "same".into(), Stamp::default());
    assert_eq!(shown.result["tool_call_id"], id(&first, "same", Stamp::default()).as_str());
}

#[test]
fn a_nonce_makes_ids_differ() {
    let origin = origin("t", json!({}));
    assert_ne!(
        id(&origin, "same", Stamp { expiry: None, nonce: 1 }),
        id(&origin, "same", Stamp { expiry: None, nonce: 2 })
    );
}

#[test]
fn a_pair_is_its_origins_alone() {
    let own_origin = origin("t", json!({"q": "${a}"}));
    let messages = messages(&own_origin, "content", Stamp { expiry: Some(9), nonce: 3 });
    assert_eq!(own(&own_origin, &messages), 1);
    assert_eq!(own(&origin("t2", json!({"q": "${a}"})), &messages), 0);
    assert_eq!(own(&origin("t", json!({"q": "${b}"})), &messages), 0);
    assert_eq!(own(&Origin::new(&Key::new(b"another key"), "t", &object(json!({"q": "${a}"}))), &messages), 0);
}

/// What is changed, of the call (0) or the result (1), and how.
type Change = (&'static str, usize, fn(&mut Object));

#[test]
fn two_messages_are_a_pair_only_in_its_form() {
    let origin = origin("t", json!({}));
    let whole = messages(&origin, "content", Stamp::default());
    let changed = |at: usize, change: fn(&mut Object)| {
        let mut messages = whole.clone();
        change(Arc::make_mut(&mut messages[at]));
        own(&origin, &messages)
    };
    let between = [Arc::clone(&whole[0]), Arc::new(object(json!({"role": "user"}))), Arc::clone(&whole[1])];
    assert_eq!(own(&origin, &between), 0, "the result follows directly");
    assert_eq!(own(&origin, &whole[..1]), 0);
    assert_eq!(own(&origin, &[Arc::clone(&whole[1]), Arc::clone(&whole[0])]), 0);
    let spoilt: [Change; 10] = [
        ("a second call", 0, |call| {
            let calls = call["tool_calls"].as_array_mut().unwrap();
            calls.push(calls[0].clone());
        }),
        ("something said beside it", 0, |call| drop(call.insert("content".into(), "Let me see.".into()))),
        ("another speaker", 0, |call| drop(call.insert("role".into(), "user".into()))),
        ("another function", 0, |call| call["tool_calls"][0]["function"]["name"] = "t2".into()),
        ("another id in the call", 0, |call| call["tool_calls"][0]["id"] = "call_1".into()),
        ("another content", 1, |result| drop(result.insert("content".into(), "Content".into()))),
        ("another part beside the text", 1, |result| {
            let parts = json!([{"type": "text", "text": "content"}, {"type": "image_url"}]);
            drop(result.insert("content".into(), parts));
        }),
        ("no text", 1, |result| drop(result.insert("content".into(), json!(5)))),
        ("no result", 1, |result| drop(result.insert("role".into(), "user".into()))),
        ("another id in the result", 1, |result| drop(result.insert("tool_call_id".into(), "call_1".into()))),
    ];
    let later = messages(&origin, "content", Stamp { expiry: Some(9), nonce: 0 });
    assert_eq!(own(&origin, &[Arc::clone(&whole[0]), Arc::clone(&later[1])]), 0, "each genuine, and not of one pair");
    for (what, at, change) in spoilt {
        assert_eq!(changed(at, change), 0, "{what}");
    }
    // What clients do to an empty text, and what they add.
    assert_eq!(changed(0, |call| drop(call.insert("content".into(), Value::Null))), 1);
    assert_eq!(changed(0, |call| drop(call.shift_remove("content"))), 1);
    assert_eq!(changed(0, |call| drop(call.insert("content".into(), json!([])))), 1);
    let part = |text| json!([{"type": "text", "text": text}]);
    let parted =
        [(0, part("")), (1, part("content"))].into_iter().fold(whole.clone(), |mut messages, (at, content)| {
            Arc::make_mut(&mut messages[at]).insert("content".into(), content);
            messages
        });
    assert_eq!(own(&origin, &parted), 1);
    assert_eq!(changed(1, |result| drop(result.insert("name".into(), "t".into()))), 1);
}

proptest! {
    #[test]
    fn an_altered_id_or_content_never_verifies(
        content in ".{0,20}", expiry in any::<Option<u32>>(), nonce: u64, at in 3_usize..39, letter in "[A-Za-z0-9_-]",
        other in ".{0,20}",
    ) {
        let origin = origin("t", json!({"q": "${a}"}));
        let whole = messages(&origin, &content, Stamp { expiry: expiry.map(u64::from), nonce });
        prop_assert_eq!(own(&origin, &whole), 1);

        let id = whole[1]["tool_call_id"].as_str().unwrap().to_owned();
        let mut forged = id.clone();
        forged.replace_range(at..=at, &letter);
        let mut altered = whole.clone();
        Arc::make_mut(&mut altered[0])["tool_calls"][0]["id"] = forged.as_str().into();
        Arc::make_mut(&mut altered[1])["tool_call_id"] = forged.as_str().into();
        prop_assert_eq!(own(&origin, &altered), usize::from(forged == id));

        let mut rewritten = whole.clone();
        Arc::make_mut(&mut rewritten[1])["content"] = other.as_str().into();
        prop_assert_eq!(own(&origin, &rewritten), usize::from(other == content));
    }

    #[test]
    fn ids_have_the_form_that_every_provider_takes(tool in any::<String>(), content in any::<String>(), expiry: u64, nonce: u64) {
        let id = id(&origin(&tool, json!({})), &content, Stamp { expiry: Some(expiry), nonce });
        prop_assert!((1..=40).contains(&id.len()));
        prop_assert!(id.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"_-".contains(&letter)));
    }
}
