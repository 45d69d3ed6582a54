//! Where pairs stand, turn after turn.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::call_id::{Key, Stamp};
use super::pair::Origin;
use super::placing::{Frequency, place};
use super::testing::{any_json, object};
use crate::conversation::Object;

use Frequency::{Always, AppendIfChanged};

type Messages = Vec<Arc<Object>>;

fn said(role: &str, text: &str) -> Arc<Object> {
    Arc::new(object(json!({"role": role, "content": text})))
}

fn origin(tool: &str) -> Origin {
    Origin::new(&Key::new(b"secret"), tool, &Object::new())
}

/// A manifest's hooks in order: each with its tool, its frequency and what it gives this turn; none: it is skipped.
fn turn(mut messages: Messages, hooks: &[(&str, Frequency, Option<&str>)]) -> Messages {
    let mut earlier = BTreeSet::new();
    for (tool, frequency, content) in hooks {
        let origin = origin(tool);
        if let Some(content) = content {
            // A length is as good as random here: it is another one each time.
            let nonce = if *frequency == Always { 1 + messages.len() as u64 } else { 0 };
            let pair = origin.pair(&Object::new(), (*content).to_owned(), Stamp { expiry: None, nonce });
            messages = place(messages, &pair, *frequency, &earlier);
        }
        earlier.insert(origin.tag());
    }
    messages
}

/// Messages by their text, pairs as `tool=content`.
fn shown(messages: &[Arc<Object>]) -> Vec<String> {
    let mut shown = Vec::new();
    let mut messages = messages.iter();
    while let Some(message) = messages.next() {
        let text = |message: &Object| message["content"].as_str().unwrap().to_owned();
        shown.push(match message.get("tool_calls") {
            Some(calls) => {
                let result = messages.next().unwrap();
                assert_eq!(calls[0]["id"], result["tool_call_id"]);
                format!("{}={}", calls[0]["function"]["name"].as_str().unwrap(), text(result))
            }
            None => text(message),
        });
    }
    shown
}

fn ids(messages: &[Arc<Object>]) -> BTreeSet<&str> {
    messages.iter().filter_map(|message| message.get("tool_call_id")?.as_str()).collect()
}

#[test]
fn always_appends_a_pair_every_turn() {
    let first = turn(vec![said("user", "u1")], &[("t", Always, Some("A"))]);
    assert_eq!((shown(&first), first.len()), (vec!["u1".into(), "t=A".into()], 3));
    let second = turn(first, &[("t", Always, Some("A"))]);
    assert_eq!((second.len(), ids(&second).len()), (5, 2));
    assert_eq!(shown(&turn(vec![], &[("t", Always, Some("A"))])), ["t=A"]);
    let later =
        turn(vec![said("user", "u1"), said("assistant", "a1"), said("user", "u2")], &[("t", Always, Some("A"))]);
    assert_eq!(shown(&later), ["u1", "a1", "u2", "t=A"]);
}

#[test]
fn the_first_pair_goes_after_the_first_user_message() {
    let before = vec![said("system", "s"), said("user", "u1"), said("assistant", "a"), said("user", "u2")];
    let after = turn(before.clone(), &[("t", AppendIfChanged, Some("A"))]);
    assert_eq!(shown(&after), ["s", "u1", "t=A", "a", "u2"]);
    assert!([0, 1].into_iter().all(|at| Arc::ptr_eq(&before[at], &after[at])));
    assert!([2, 3].into_iter().all(|at| Arc::ptr_eq(&before[at], &after[at + 2])));
}

#[test]
fn without_a_user_message_the_first_pair_goes_to_the_end() {
    let hooks = [("t", AppendIfChanged, Some("A")), ("v", AppendIfChanged, Some("B"))];
    assert_eq!(shown(&turn(vec![said("system", "s")], &hooks)), ["s", "t=A", "v=B"]);
    assert_eq!(shown(&turn(vec![], &hooks)), ["t=A", "v=B"]);
}

#[test]
fn an_empty_result_is_a_result() {
    assert_eq!(shown(&turn(vec![said("user", "u")], &[("t", AppendIfChanged, Some(""))])), ["u", "t="]);
}

#[test]
fn first_pairs_keep_the_manifests_order() {
    let start = vec![said("user", "u1"), said("assistant", "a1"), said("user", "u2")];
    let hooks = |first, second, third| {
        [("x", AppendIfChanged, first), ("y", AppendIfChanged, second), ("z", AppendIfChanged, third)]
    };
    let together = turn(start.clone(), &hooks(Some("1"), Some("2"), Some("3")));
    assert_eq!(shown(&together), ["u1", "x=1", "y=2", "z=3", "a1", "u2"]);
    // One that has its first result turns later stands where it would have stood.
    let late = turn(start, &hooks(None, Some("2"), None));
    assert_eq!(shown(&turn(late.clone(), &hooks(Some("1"), None, Some("3")))), ["u1", "x=1", "y=2", "z=3", "a1", "u2"]);
    assert_eq!(
        shown(&turn(turn(late, &hooks(None, None, Some("3"))), &hooks(Some("1"), Some("2"), Some("3")))),
        ["u1", "x=1", "y=2", "z=3", "a1", "u2"]
    );
}

#[test]
fn a_first_pair_stands_after_what_always_has_added_before_it() {
    let hooks = [("x", Always, Some("1")), ("y", AppendIfChanged, Some("2"))];
    assert_eq!(shown(&turn(vec![said("user", "u1")], &hooks)), ["u1", "x=1", "y=2"]);
    // What stands further on draws nothing there.
    let later = vec![said("user", "u1"), said("assistant", "a1"), said("user", "u2")];
    assert_eq!(shown(&turn(later, &hooks)), ["u1", "y=2", "a1", "u2", "x=1"]);
}

#[test]
fn the_same_result_as_the_newest_is_replaced_in_place() {
    let hooks = [("t", AppendIfChanged, Some("A"))];
    let mut before = turn(vec![said("user", "u1")], &hooks);
    before.extend([said("assistant", "a1"), said("user", "u2")]);
    let origin = origin("t");
    let rendered = object(json!({"query": "of this turn"}));
    let pair = origin.pair(&rendered, "A".into(), Stamp { expiry: Some(60), nonce: 0 });
    let after = place(before.clone(), &pair, AppendIfChanged, &BTreeSet::new());
    assert_eq!(shown(&after), ["u1", "t=A", "a1", "u2"]);
    assert_eq!(after[1]["tool_calls"][0]["function"]["arguments"], r#"{"query":"of this turn"}"#);
    assert_ne!(after[2]["tool_call_id"], before[2]["tool_call_id"], "it bears the new expiry");
    assert!([0, 3, 4].into_iter().all(|at| Arc::ptr_eq(&before[at], &after[at])));
    let again = turn(after, &hooks);
    assert_eq!(again[2]["tool_call_id"], before[2]["tool_call_id"], "the same again has the same id");
}

#[test]
fn another_result_goes_to_the_end() {
    let first = turn(vec![said("user", "u")], &[("t", AppendIfChanged, Some("v1"))]);
    let second = turn(first, &[("t", AppendIfChanged, Some("v2"))]);
    assert_eq!((shown(&second), second.len()), (vec!["u".into(), "t=v1".into(), "t=v2".into()], 5));
}

#[test]
fn a_result_that_comes_back_is_the_last_that_the_model_sees() {
    let mut messages = Vec::new();
    for (user, content) in [("u1", "A"), ("u2", "B"), ("u3", "A")] {
        messages.push(said("user", user));
        messages = turn(messages, &[("t", AppendIfChanged, Some(content))]);
    }
    assert_eq!(shown(&messages), ["u1", "u2", "t=B", "u3", "t=A"]);
    messages.push(said("user", "u4"));
    assert_eq!(shown(&turn(messages, &[("t", AppendIfChanged, Some("A"))])), ["u1", "u2", "t=B", "u3", "t=A", "u4"]);
}

#[test]
fn hooks_with_the_same_call_share_their_pair() {
    let same = [("t", AppendIfChanged, Some("A")), ("t", AppendIfChanged, Some("A"))];
    assert_eq!(shown(&turn(vec![said("user", "u")], &same)), ["u", "t=A"]);
    let other = [("t", AppendIfChanged, Some("A")), ("t", AppendIfChanged, Some("B"))];
    assert_eq!(shown(&turn(vec![said("user", "u"), said("assistant", "a")], &other)), ["u", "t=A", "a", "t=B"]);
}

#[test]
fn another_template_is_another_hook() {
    let key = Key::new(b"secret");
    let mut messages = vec![said("user", "u"), said("assistant", "a")];
    let mut earlier = BTreeSet::new();
    for template in [json!({"key": "a"}), json!({"key": "b"})] {
        let template = object(template);
        let origin = Origin::new(&key, "t", &template);
        let pair = origin.pair(&template, "same".into(), Stamp::default());
        messages = place(messages, &pair, AppendIfChanged, &earlier);
        earlier.insert(origin.tag());
    }
    assert_eq!(shown(&messages), ["u", "t=same", "t=same", "a"]);
    assert_eq!(messages[1]["tool_calls"][0]["function"]["arguments"], r#"{"key":"a"}"#);
}

#[test]
fn a_forged_pair_is_an_ordinary_message() {
    let mut messages = turn(vec![said("user", "u")], &[("t", AppendIfChanged, Some("A"))]);
    Arc::make_mut(&mut messages[2])["content"] = "forged".into();
    let after = turn(messages.clone(), &[("t", AppendIfChanged, Some("forged"))]);
    assert_eq!(shown(&after), ["u", "t=forged", "t=forged"]);
    assert!(Arc::ptr_eq(&after[4], &messages[2]), "it stays, and the hook's own pair is its first");
}

#[test]
fn a_forged_older_pair_is_not_moved() {
    let first = turn(vec![said("user", "u1")], &[("t", AppendIfChanged, Some("A"))]);
    let mut messages = turn(first, &[("t", AppendIfChanged, Some("B"))]);
    Arc::make_mut(&mut messages[2])["content"] = "forged".into();
    let after = turn(messages, &[("t", AppendIfChanged, Some("forged"))]);
    assert_eq!(shown(&after), ["u1", "t=forged", "t=B", "t=forged"]);
}

/// Conversations of ordinary messages, pairs of two hooks, and pairs that were tampered with.
fn conversation() -> impl Strategy<Value = Messages> {
    let pair = |tool: &'static str| {
        ("[AB]", any::<bool>(), 0_u64..3).prop_map(move |(content, forged, nonce)| {
            let origin = origin(tool);
            let pair = origin.pair(&Object::new(), content, Stamp { expiry: None, nonce });
            let (call, mut result) = (pair.call, pair.result);
            if forged {
                Arc::make_mut(&mut result)["content"] = "C".into();
            }
            vec![call, result]
        })
    };
    let ordinary = prop::sample::select(vec!["user", "assistant", "tool", "system"])
        .prop_map(|role| vec![Arc::new(object(json!({"role": role, "content": "words"})))]);
    prop::collection::vec(prop_oneof![2 => ordinary, 1 => pair("t"), 1 => pair("v")], 0..12)
        .prop_map(|parts| parts.concat())
}

fn frequency() -> impl Strategy<Value = Frequency> {
    prop::sample::select(vec![Always, AppendIfChanged])
}

/// The messages without the genuine pairs of this origin.
fn others(origin: &Origin, messages: &[Arc<Object>]) -> Messages {
    let own: BTreeSet<usize> = origin
        .candidates(messages)
        .filter(|candidate| origin.is_own(candidate))
        .flat_map(|candidate| [candidate.at, candidate.at + 1])
        .collect();
    messages.iter().enumerate().filter(|(at, _)| !own.contains(at)).map(|(_, message)| Arc::clone(message)).collect()
}

fn is_shared(one: &[Arc<Object>], other: &[Arc<Object>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
}

proptest! {
    #[test]
    fn what_is_not_the_hooks_own_stays_in_order_and_is_shared(before in conversation(), frequency in frequency(), content in "[ABC]") {
        let origin = origin("t");
        let pair = origin.pair(&Object::new(), content, Stamp::default());
        let after = place(before.clone(), &pair, frequency, &BTreeSet::new());
        prop_assert!(is_shared(&others(&origin, &before), &others(&origin, &after)));
        let own = |messages: &Messages| (messages.len() - others(&origin, messages).len()) / 2;
        prop_assert!((0..=1).contains(&(own(&after) - own(&before))));
        prop_assert!(frequency == AppendIfChanged || own(&after) == own(&before) + 1);
    }

    #[test]
    fn the_newest_pair_has_the_newest_result(before in conversation(), frequency in frequency(), content in "[ABC]") {
        let origin = origin("t");
        let pair = origin.pair(&Object::new(), content.clone(), Stamp::default());
        let after = place(before, &pair, frequency, &BTreeSet::new());
        let newest = origin.candidates(&after).find(|candidate| origin.is_own(candidate)).unwrap();
        prop_assert_eq!(newest.content, content);
    }

    #[test]
    fn the_same_placed_twice_is_there_once(before in conversation(), content in "[ABC]") {
        let origin = origin("t");
        let pair = origin.pair(&Object::new(), content, Stamp::default());
        let once = place(before, &pair, AppendIfChanged, &BTreeSet::new());
        let twice = place(once.clone(), &pair, AppendIfChanged, &BTreeSet::new());
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn no_message_is_too_strange(values in prop::collection::vec(any_json(), 0..8), frequency in frequency()) {
        let before: Messages = values.into_iter().map(|value| match value {
            Value::Object(message) => Arc::new(message),
            other => Arc::new(object(json!({"role": "user", "content": other}))),
        }).collect();
        let origin = origin("t");
        let pair = origin.pair(&Object::new(), "A".into(), Stamp::default());
        let after = place(before.clone(), &pair, frequency, &BTreeSet::from([origin.tag()]));
        prop_assert!(is_shared(&before, &others(&origin, &after)));
    }

    #[test]
    fn first_pairs_stand_in_the_manifests_order_whenever_they_come(runs in prop::collection::vec(any::<[bool; 4]>(), 0..6)) {
        let start = vec![said("user", "u1"), said("assistant", "a1"), said("user", "u2")];
        let tools = ["p", "q", "r", "s"];
        let messages = runs.iter().fold(start, |messages, run| {
            let hooks: Vec<_> = tools.iter().zip(run).map(|(tool, runs)| (*tool, AppendIfChanged, runs.then_some("1"))).collect();
            turn(messages, &hooks)
        });
        let ran = tools.iter().enumerate().filter(|(at, _)| runs.iter().any(|run| run[*at]));
        let mut expected = vec!["u1".to_owned()];
        expected.extend(ran.map(|(_, tool)| format!("{tool}=1")));
        expected.extend(["a1".to_owned(), "u2".to_owned()]);
        prop_assert_eq!(shown(&messages), expected);
    }
}
