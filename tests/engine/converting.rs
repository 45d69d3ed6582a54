//! What crosses the border, and what is refused with its path (case R17).

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Number, Value, json};
use tenterhook::{ModelRequestPayload, Object, ToolResultPayload};

use crate::agents::{agent, failure, proceeded};

#[tokio::test]
async fn r17_what_json_cannot_carry_is_refused_with_its_path() {
    let agent = agent(
        "
import json
itself = []
itself.append(itself)
deep = []
for _ in range(1000):
    deep = [deep]

@modify_model_request()
async def change(p: ModelRequestPayload) -> ModelRequestPayload:
    value = eval(p.messages[0]['content'])
    messages = [*p.messages, {'role': 'user', 'content': value}]
    return p.model_copy(update={'messages': messages})
",
    );
    let said = async |expression: &str| {
        let message: Object = serde_json::from_value(json!({"content": expression})).unwrap();
        let text = failure(agent.engine.modify(ModelRequestPayload::new("s", vec![Arc::new(message)])).await);
        text.strip_prefix("It returned a `ModelRequestPayload` in which ").unwrap().to_owned()
    };
    for (expression, refused) in [
        ("float('nan')", "`messages[1].content` is nan; JSON has only finite numbers"),
        ("-float('inf')", "`messages[1].content` is -inf; JSON has only finite numbers"),
        ("b'x'", "`messages[1].content` is a `bytes`; JSON has no bytes: decode them to a `str`"),
        ("{1}", "`messages[1].content` is a `set`; JSON has no sets: make it a sorted `list`"),
        ("{1: 2}", "`messages[1].content` has a key that is a `int`; JSON keys are `str`"),
        ("2 ** 64", "`messages[1].content` is an integer beyond 64 bits; give it as a `str`"),
        ("-2 ** 63 - 1", "`messages[1].content` is an integer beyond 64 bits; give it as a `str`"),
        (
            "{'a b': ['\\ud800']}",
            "`messages[1].content[\"a b\"][0]` holds a lone surrogate, which UTF-8 cannot carry; replace it, for example by \"\\ufffd\"",
        ),
        (
            "[1, {'x': object()}]",
            "`messages[1].content[1].x` is a `object`; only dict, list, str, int, float, bool and None can be passed on",
        ),
        ("p", "`messages[1].content` is a `ModelRequestPayload`; give its plain form, `.model_dump()`"),
    ] {
        assert_eq!(said(expression).await, refused);
    }
    for (expression, end) in [
        ("itself", "is nested deeper than 128 levels; does it contain itself?"),
        ("deep", "is nested deeper than 128 levels; does it contain itself?"),
        ("[0] * 1_000_001", "holds more than 1000000 values"),
    ] {
        let refused = said(expression).await;
        assert!(refused.starts_with("`messages[1].content") && refused.ends_with(end), "{refused}");
    }
}

#[tokio::test]
async fn subclasses_of_plain_types_and_tuples_cross_as_plain_values() {
    let agent = agent(
        "
import collections, enum

class Level(enum.IntEnum):
    HIGH = 3

class Word(str):
    pass

@modify_tool_result()
async def change(p: ToolResultPayload) -> ToolResultPayload:
    ordered = collections.OrderedDict(b=1, a=(Level.HIGH, Word('w')))
    return p.model_copy(update={'value': [ordered, 2 ** 64 - 1, -2 ** 63, 1e-7]})
",
    );
    let (payload, _) = proceeded(agent.engine.modify(ToolResultPayload::new("s", "t", Object::new(), "v")).await);
    let expected = json!([{"b": 1, "a": [3, "w"]}, u64::MAX, i64::MIN, 1e-7]);
    assert_eq!(payload.value.to_string(), expected.to_string());
}

#[tokio::test]
async fn a_payload_that_is_too_deep_fails_before_the_handler_runs() {
    let agent = agent("@modify_tool_result()\nasync def same(p: ToolResultPayload) -> ToolResultPayload: return p\n");
    let deep = (0..200).fold(Value::Null, |inner, _| json!([inner]));
    let said = failure(agent.engine.modify(ToolResultPayload::new("s", "t", Object::new(), deep)).await);
    assert_eq!(said, "it was not called: The payload is nested deeper than 128 levels");
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |float| Number::from_f64(float).map(Value::from)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Rust to Python to Rust: a handler that gives the value back leaves it unchanged; one that rebuilds it gives an equal value with
/// the keys in order; `deepcopy` shows that it was plain data.
#[test]
fn every_json_value_survives_the_way_to_python_and_back() {
    let agent = agent(
        "
import copy

@modify_tool_result()
async def rebuild(p: ToolResultPayload) -> ToolResultPayload:
    if p.tool_name == 'same':
        return p
    return p.model_copy(update={'value': [copy.deepcopy(p.value)]})
",
    );
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome = |tool: &str, value: &Value| {
        let payload = ToolResultPayload::new("s", tool, Object::new(), value.clone());
        proceeded(runtime.block_on(agent.engine.modify(payload)))
    };
    TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() })
        .run(&values(), |value| {
            let (payload, changed) = outcome("same", &value);
            prop_assert!(!changed);
            prop_assert_eq!(payload.value.to_string(), value.to_string());
            let (payload, changed) = outcome("rebuild", &value);
            prop_assert!(changed);
            prop_assert_eq!(payload.value.to_string(), json!([value]).to_string());
            Ok(())
        })
        .unwrap();
}
