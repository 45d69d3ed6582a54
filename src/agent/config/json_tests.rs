//! How JSON is read, and what is said of what is none.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::json::parse;
use super::yaml::{DEEPEST, Fault, MOST_VALUES, Yaml};
use crate::diagnostic::Place;

fn faults(text: &str) -> Vec<String> {
    let told = |fault: Fault| format!("{}:{}: {}", fault.place.line, fault.place.column, fault.message);
    parse(text).unwrap_err().into_iter().map(told).collect()
}

#[test]
fn every_key_and_value_knows_its_place() {
    let root = parse("{\n\t\"ü\": [1, {\"b\":\n  \"x\\\"\"}]\n}\n").unwrap().unwrap();
    let at = |line, column, end_line, end_column| Place { line, column, end_line, end_column };
    assert_eq!(root.place, at(1, 1, 4, 2));
    let Yaml::Map(entries) = root.value else { panic!() };
    assert_eq!((entries[0].place, entries[0].value.place), (at(2, 2, 2, 5), at(2, 7, 3, 10)));
    let Yaml::List(items) = &entries[0].value.value else { panic!() };
    let Yaml::Map(inner) = &items[1].value else { panic!() };
    assert_eq!((inner[0].place, inner[0].value.place), (at(2, 12, 2, 15), at(3, 3, 3, 8)));
}

#[test]
fn escapes_are_those_of_json() {
    let root = parse(r#"["\ud83d\ude00\u00e9\u0000", "\"\\\/\b\f\n\r\t", "😀"]"#).unwrap().unwrap();
    assert_eq!(root.json(), json!(["😀é\0", "\"\\/\u{8}\u{c}\n\r\t", "😀"]));
}

#[test]
fn a_text_without_a_value_has_none() {
    assert_eq!((parse(""), parse(" \n\t\r ")), (Ok(None), Ok(None)));
}

#[test]
fn what_is_no_json_is_told_with_its_place() {
    for (text, expected) in [
        (r#"{"a": 1 "b": 2}"#, "1:9: This is no JSON: `\"` stands where `,` or `}` is expected"),
        ("{\"a\": 1,\n}", "1:8: This is no JSON: no value follows the last `,`"),
        ("[1, , 2]", "1:5: This is no JSON: `,` stands where a value is expected"),
        ("[,]", "1:2: This is no JSON: `,` stands where a value is expected"),
        ("{\n\"a\": [1,\n", "3:1: This is no JSON: the file ends, and the `[` of line 2 is open"),
        ("{\"a\": {}", "1:9: This is no JSON: the file ends, and the `{` of line 1 is open"),
        ("{\"a\" 1}", "1:6: This is no JSON: `1` stands where `:` is expected"),
        ("{\"a\": }", "1:7: This is no JSON: `}` stands where a value is expected"),
        ("{\"a\":", "1:6: This is no JSON: the file's end stands where a value is expected"),
        ("{a: 1}", "1:2: This is no JSON: `a` stands where a key is expected"),
        ("['a']", "1:2: This is no JSON: `'` stands where a value is expected"),
        ("[tru]", "1:2: This is no JSON: `tru` is no value"),
        ("[NaN]", "1:2: This is no JSON: `NaN` is no value"),
        ("[01]", "1:2: This is no JSON: `01` is no number"),
        ("[1.]", "1:2: This is no JSON: `1.` is no number"),
        ("[-]", "1:2: This is no JSON: `-` is no number"),
        ("[1e400]", "1:2: The number `1e400` is too large to be kept as it is"),
        ("[18446744073709551616]", "1:2: The number `18446744073709551616` is too large to be kept as it is"),
        ("[\"a\nb\"]", "1:4: This is no JSON: U+000A stands in a text as it is"),
        ("[\"a", "1:2: This is no JSON: the text does not end"),
        (r#"["\x"]"#, "1:3: This is no JSON: there is no such escape"),
        (r#"["\u12é4"]"#, "1:3: This is no JSON: four hexadecimal digits follow `\\u`"),
        (r#"["\ud83d\u0041"]"#, "1:3: This is no JSON: `\\ud83d` is half a character"),
        (r#"["\ude00"]"#, "1:3: This is no JSON: `\\ude00` is half a character"),
        ("{} {}", "1:4: This is no JSON: `{` stands where the end of the file is expected"),
        ("{ // x\n}", "1:3: This is no JSON: it has no comments"),
    ] {
        assert_eq!(faults(text), [expected], "{text}");
    }
}

#[test]
fn every_repeated_key_is_told() {
    let found = parse("{\"a\": 1,\n\"a\": {\"b\": 1, \"b\": 2}, \"\\u0061\": 3}").unwrap_err();
    let told: Vec<_> = found.iter().map(|fault| (fault.place.line, fault.place.column, &*fault.message)).collect();
    let twice = |key| format!("The key `{key}` is there twice");
    let (a, b) = (twice("a"), twice("b"));
    assert_eq!(told, [(2, 15, &*b), (2, 1, &*a), (2, 24, &*a)]);
    assert_eq!(found[2].first.map(|first| (first.line, first.column)), Some((1, 2)));
}

#[test]
fn size_and_nesting_are_bounded() {
    assert_eq!(faults(&"[".repeat(100_000)), ["1:66: Values are nested deeper than 64 levels"]);
    assert_eq!(faults(&"{\"a\":".repeat(100_000)).len(), 1);
    let many = format!("[{}1]", "1,".repeat(MOST_VALUES));
    assert_eq!(faults(&many), ["1:200000: The file has more than 100000 values"]);
    let deep = format!("{}1{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST));
    assert!(parse(&deep).is_ok());
}

/// Values that JSON has and 64 bits hold.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(value in values(), pretty: bool) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        prop_assert_eq!(parse(&text).unwrap().unwrap().json(), value);
    }

    #[test]
    fn it_takes_what_serde_takes(text in "[\\[\\]{}\",:0-9eE+\\-.\\\\ua-f tn\n]{0,12}") {
        let theirs = serde_json::from_str::<Value>(&text);
        match parse(&text) {
            Ok(Some(node)) => prop_assert_eq!(node.json(), theirs.unwrap()),
            Ok(None) => prop_assert!(theirs.is_err()),
            Err(found) => {
                let ours = found.iter().any(|fault| fault.first.is_some() || fault.message.contains("too large"));
                prop_assert!(ours || theirs.is_err(), "{:?}", found);
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = parse(&text);
    }
}
