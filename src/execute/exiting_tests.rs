//! Payloads of exits, and schemas as annotations.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::exit::Exit;
use super::exiting::fitting;
use super::shape::Shape;
use super::signature::{annotation, function};
use super::testing::{object, scene};
use crate::tools::ToolSpec;

fn fits(schema: &Value, payload: &Value) -> Option<Value> {
    fitting(schema, &Shape::compile(schema).unwrap(), payload)
}

/// The schema of the exit of an execution that is given none.
fn done() -> Value {
    let execution = scene(&[]).builder.build().unwrap();
    execution.0.exits[0].schema.clone().unwrap()
}

#[test]
fn the_default_exit_takes_a_result_in_any_form_that_is_plain() {
    for (payload, result) in [
        (json!({"success": true, "result": 5}), json!({"success": true, "result": 5})),
        (json!({"success": false, "error": "no"}), json!({"success": false, "error": "no"})),
        (json!({"result": 5}), json!({"success": true, "result": 5})),
        (json!({"error": "no"}), json!({"success": false, "error": "no"})),
        (json!({"value": {"success": true, "result": 5}}), json!({"success": true, "result": 5})),
        (json!(5), json!({"success": true, "result": 5})),
        (json!(null), json!({"success": true, "result": null})),
        (json!([1]), json!({"success": true, "result": [1]})),
        (json!({"answer": 42}), json!({"success": true, "result": {"answer": 42}})),
    ] {
        assert_eq!(fits(&done(), &payload), Some(result), "{payload}");
    }
}

#[test]
fn an_object_with_keys_of_the_schema_is_not_read_in_another_way() {
    for payload in
        [json!({"success": "maybe"}), json!({"error": 5}), json!({"success": true}), json!({"result": 1, "error": "x"})]
    {
        assert_eq!(fits(&done(), &payload), None, "{payload}");
    }
}

#[test]
fn a_payload_is_wrapped_by_the_first_key_that_takes_it() {
    let schema = json!({"type": "object", "properties": {"count": {"type": "integer"}, "text": {"type": "string"}},
                        "additionalProperties": false});
    assert_eq!(fits(&schema, &json!("x")), Some(json!({"text": "x"})));
    assert_eq!(fits(&schema, &json!(3)), Some(json!({"count": 3})));
    assert_eq!(fits(&schema, &json!({"props": {"count": 3}})), Some(json!({"count": 3})));
    assert_eq!(fits(&schema, &json!([1])), None);
}

#[test]
fn a_payload_that_fits_two_arms_of_a_union_is_none_of_them() {
    let arm = |kind: &str| json!({"type": "object", "properties": {"kind": {"const": kind}, "id": {}}, "required": ["kind", "id"]});
    let schema = json!({"oneOf": [arm("order"), arm("user")]});
    let completed = fits(&schema, &json!({"id": 1, "note": 2}));
    assert_ne!(completed, Some(json!({"kind": "user", "id": 1, "note": 2})));
    assert_eq!(fits(&schema, &json!({"kind": "user", "id": 1})), Some(json!({"kind": "user", "id": 1})));
}

#[tokio::test]
async fn a_single_value_that_is_given_by_name_is_that_value_and_any_other_object_stays() {
    for (arguments, output) in [
        (r#"{"name": "end", "value": 3}"#, json!(3)),
        (r#"{"name": "end", "payload": {"city": "Ghent"}}"#, json!({"city": "Ghent"})),
        (r#"{"name": "end", "city": "Ghent"}"#, json!({"city": "Ghent"})),
        (r#"{"name": "end", "value": 3, "unit": "kg"}"#, json!({"value": 3, "unit": "kg"})),
        (r#"["end", {"value": 3}]"#, json!({"value": 3})),
        (r#"["end"]"#, json!(null)),
    ] {
        let code = format!("call exit {arguments}");
        let done = scene(&[&code]).with(|builder| builder.exit(Exit::new("end", "x"))).run().await;
        assert_eq!((done.result.exit.as_deref(), &done.result.output), (Some("end"), &output), "{arguments}");
    }
}

#[tokio::test]
async fn an_exit_that_is_called_in_another_way_is_a_type_error() {
    for (arguments, text) in [
        ("{}", "exit() takes the name of an exit first"),
        ("[1]", "exit() takes the name of an exit first, as a text"),
        (r#"["done", 1, 2]"#, "exit() takes a name and one payload"),
    ] {
        let done = scene(&[&format!("try exit {arguments}")]).run().await;
        assert_eq!(done.result.iterations[0].variables["caught"], format!("TypeError: {text}"));
    }
}

#[test]
fn a_tool_is_the_head_of_a_function() {
    let of = |parameters: Value| {
        let spec = ToolSpec { parameters: object(parameters), ..ToolSpec::new("f", "") };
        function(&spec, Some("list[Order]"))
    };
    assert_eq!(of(json!({})), "async def f() -> list[Order]: ...");
    let late = json!({"properties": {"a": {"type": "string", "default": "x"}, "b": {"type": ["integer", "null"]}}, "required": ["b"]});
    assert_eq!(of(late), "async def f(*, b: int | None, a: str = \"x\") -> list[Order]: ...");
    let tree = json!({"properties": {"node": {"$ref": "#/$defs/Node"}}, "required": ["node"],
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}});
    assert!(of(tree).contains("Any"), "a shape that contains itself has an end");
}

#[test]
fn a_docstring_cannot_be_left_by_its_text() {
    let spec = ToolSpec::new("f", "Ends \"\"\" here.");
    assert_eq!(function(&spec, None), "async def f() -> Any:\n    \"\"\"Ends ''' here.\"\"\"");
}

/// Any JSON, small.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop::sample::select(&["", "success", "result", "x"][..]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let key = prop::sample::select(&["success", "result", "error", "value", "a"][..]).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_made_of_a_payload_fits_and_what_fits_stays_as_it_is(payload in any_json()) {
        let schema = done();
        let shape = Shape::compile(&schema).unwrap();
        let result = fitting(&schema, &shape, &payload);
        if shape.fits(&payload) {
            prop_assert_eq!(&result, &Some(payload));
        }
        if let Some(result) = result {
            prop_assert!(shape.fits(&result));
            prop_assert_eq!(fitting(&schema, &shape, &result), Some(result));
        }
    }

    #[test]
    fn any_json_as_a_schema_is_one_line_of_an_annotation(schema in any_json()) {
        let shown = annotation(&schema, &schema);
        prop_assert!(!shown.is_empty() && !shown.contains('\n'));
    }
}
