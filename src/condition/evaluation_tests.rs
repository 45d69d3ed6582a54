//! What holds and what does not.

use serde_json::{Value, json};

use super::*;

/// Whether a condition holds where the project's memory is `memory`.
fn holds(text: &str, memory: &Value) -> bool {
    let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    condition.holds(&|namespace, entry| if namespace == "project" { memory.get(entry).cloned() } else { None })
}

/// `tests/conditions/vectors.py` wrote the file.
#[test]
fn cpython_agrees() {
    let file: Value = serde_json::from_str(include_str!("python.json")).unwrap();
    for vector in file["vectors"].as_array().unwrap() {
        let condition = Condition::parse(vector[0].as_str().unwrap()).unwrap();
        let read = |namespace: &str, entry: &str| file["memory"][namespace].get(entry).cloned();
        assert_eq!(vector[1], condition.holds(&read), "{condition}");
    }
}

#[test]
fn an_entry_that_is_unset_reads_as_none() {
    assert!(holds("session.project.x is None", &json!({})));
    assert!(holds("session.project.x == null", &json!({"x": null})));
    assert!(!holds("session.project.x", &json!({})));
    assert!(!holds("session.project.x == False", &json!({})));
}

#[test]
fn an_entry_alone_holds_where_python_finds_it_true() {
    for empty in [json!(null), json!(false), json!(0), json!(0.0), json!(-0.0), json!(""), json!([]), json!({})] {
        assert!(!holds("session.project.x", &json!({"x": empty})), "{empty}");
    }
    for full in [json!(true), json!(-1), json!(0.1), json!("False"), json!([null]), json!({"": 0})] {
        assert!(holds("session.project.x", &json!({"x": full})), "{full}");
    }
}

#[test]
fn a_clash_of_types_is_neither_true_nor_false() {
    let memory = json!({"text": "3", "list": [1], "on": true});
    for clash in ["session.project.x < 3", "session.project.text >= 3", "session.project.list < session.project.list"] {
        for shut in ["{}", "not {}", "not not {}", "{} and session.project.on", "not ({} or False)", "0 < 1 and {}"] {
            assert!(!holds(&shut.replace("{}", clash), &memory), "{shut}: {clash}");
        }
        for open in ["{} or session.project.on", "session.project.on or {}", "not ({} and False)"] {
            assert!(holds(&open.replace("{}", clash), &memory), "{open}: {clash}");
        }
    }
    assert!(!holds("not 0 < session.project.x < 10", &memory));
    assert!(holds("not 1 < 0 < session.project.x", &memory));
}

#[test]
fn what_decides_ends_the_reading() {
    let reads = |text: &str| {
        let read = std::cell::RefCell::new(vec![]);
        Condition::parse(text).unwrap().holds(&|_, entry| {
            read.borrow_mut().push(entry.to_owned());
            Some(json!(entry.len()))
        });
        read.into_inner().join(" ")
    };
    assert_eq!(reads("session.a.x or session.a.y"), "x");
    assert_eq!(reads("not session.a.x and session.a.y"), "x");
    assert_eq!(reads("session.a.x and session.a.y"), "x y");
    assert_eq!(reads("session.a.xx < session.a.y < session.a.z"), "xx y");
    assert_eq!(reads("session.a.x < session.a.yy < session.a.zzz"), "x yy zzz");
}

#[test]
fn numbers_are_compared_exactly() {
    let memory = json!({"whole": 9_007_199_254_740_993_u64, "most": u64::MAX, "least": i64::MIN});
    assert!(holds("9007199254740992.0 < session.project.whole < 9007199254740994.0", &memory));
    assert!(holds("session.project.whole != 9007199254740992.0", &memory));
    assert!(holds("-1e300 < session.project.least < -9223372036854775807 < 0.5 < 1", &memory));
    assert!(holds("18446744073709551614 < session.project.most < 18446744073709551616.0", &memory));
    assert!(holds("-1 < -0.5 < -0.0 == 0 < 0.5 < 1 == 1.0 == True", &json!({})));
}

#[test]
fn lists_and_mappings_are_equal_by_what_they_hold() {
    let memory = json!({"a": {"x": [1, null], "y": 2}, "b": {"y": 2.0, "x": [true, null]}, "c": {"x": [1, null]}});
    assert!(holds("session.project.a == session.project.b", &memory));
    assert!(holds("session.project.a != session.project.c != session.project.b", &memory));
    assert!(!holds("session.project.a == session.project.d", &memory));
}

#[test]
fn identity_is_of_none_true_and_false() {
    let memory = json!({"one": 1, "on": true, "off": false});
    assert!(holds("session.project.on is True and session.project.one is not True", &memory));
    assert!(holds("session.project.off is not None and session.project.off is false", &memory));
    assert!(holds("session.project.unset is null", &memory));
}
