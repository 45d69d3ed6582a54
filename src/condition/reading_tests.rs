//! What is a condition, what is none, and how one is written back.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Number;

use super::tree::{Comparison, Node, Operand};
use super::*;

/// The condition as it is written back.
fn written(text: &str) -> String {
    Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

/// What is wrong with a text: the stretch it is about, the message and the hint.
fn told(text: &str) -> String {
    let ConditionError { message, hint, range } = Condition::parse(text).expect_err(text);
    let stretch: String = text.chars().skip(range.start).take(range.len()).collect();
    let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{stretch} | {message}{hint}")
}

#[test]
fn a_condition_is_written_back_with_the_brackets_that_it_needs() {
    for (text, expected) in [
        (" ( session.a.x )\n", "session.a.x"),
        ("null==true!=false", "None == True != False"),
        ("not(not 1<2)", "not not 1 < 2"),
        ("not (1 and 2) or (3 and (4 or 5))", "not (1 and 2) or 3 and (4 or 5)"),
        ("(1 or 2) or 3", "(1 or 2) or 3"),
        ("(not 1) and (2 < 3)", "not 1 and 2 < 3"),
        ("('a') < (\"b\") is  not\tNone", r#""a" < "b" is not None"#),
        (r#"'"\'\\\n\x41\u00e9\U0001F600\x07'"#, r#""\"'\\\nAé😀\x07""#),
        ("-0 or 1E+2 or 0.50", "-0.0 or 100.0 or 0.5"),
    ] {
        assert_eq!(written(text), expected);
    }
}

#[test]
fn names_have_a_namespace_an_entry_and_a_place() {
    let text = "'é' == session.card-replace.last_4 or session.project.naïve and session.2fa.__on__ and session.card-replace.last_4";
    let condition = Condition::parse(text).unwrap();
    let names: Vec<_> =
        condition.names().map(|name| (name.namespace.as_str(), name.entry.as_str(), name.range.clone())).collect();
    assert_eq!(
        names,
        [
            ("card-replace", "last_4", 7..34),
            ("project", "naïve", 38..59),
            ("2fa", "__on__", 64..82),
            ("card-replace", "last_4", 87..114),
        ]
    );
}

#[test]
fn what_is_no_name_is_told() {
    for (text, expected) in [
        (
            "x == gold",
            "x | Unknown name `x` in condition expression (write `session.project.x` for an entry of the project, or `\"x\"` for a \
             text)",
        ),
        (
            "project.x",
            "project.x | Unknown name `project.x` in condition expression (did you mean `session.project.x`?)",
        ),
        (
            "slots.a.b",
            "slots.a.b | Unknown name `slots.a.b` in condition expression (write `session.project.<entry>` or `session.<skill \
             id>.<entry>`)",
        ),
        ("TRUE", "TRUE | Unknown name `TRUE` in condition expression (did you mean `True`?)"),
        (
            "1 < session.x",
            "session.x | `session.x` has 2 parts, expected 3 (write `session.project.x` or `session.<skill id>.x`)",
        ),
        (
            "session.a.b.c",
            "session.a.b.c | `session.a.b.c` has 4 parts, expected 3 (only the whole value of an entry can be looked at)",
        ),
        (
            "session..x",
            "session..x | `session..x` is no name of a memory entry (write `session.project.<entry>` or `session.<skill \
             id>.<entry>`)",
        ),
    ] {
        assert_eq!(told(text), expected);
    }
}

#[test]
fn there_is_no_set_to_be_in() {
    assert_eq!(
        told("session.a.x in ['b', 'c']"),
        "in | `in` is not supported in a condition (write it as a disjunction: `session.a.x == \"a\" or session.a.x == \"b\"`)"
    );
    assert_eq!(
        told("1 or session.a.x not in session.a.y"),
        "not in | `not in` is not supported in a condition (write it as a conjunction: `session.a.x != \"a\" and session.a.x != \
         \"b\"`)"
    );
    assert_eq!(
        told("'b' in session.a.x"),
        "in | `in` is not supported in a condition (write it as a disjunction: `session.project.x == \"a\" or session.project.x \
         == \"b\"`)"
    );
}

#[test]
fn what_other_languages_write_is_told() {
    let arithmetic = "there is no arithmetic in a condition: let a tool write the result to memory";
    for (sign, hint) in [
        ("=", "write `==`"),
        ("===", "write `==`"),
        ("!==", "write `!=`"),
        ("<>", "write `!=`"),
        ("=>", "write `>=`"),
        ("&&", "write `and`"),
        ("||", "write `or`"),
        ("+", arithmetic),
        ("%", arithmetic),
        ("-", arithmetic),
    ] {
        assert_eq!(
            told(&format!("session.a.x {sign} 3")),
            format!("{sign} | `{sign}` means nothing in a condition ({hint})")
        );
    }
    assert_eq!(
        told("@memory.project.x"),
        "@ | `@` means nothing in a condition (write `session.<skill id | project>.<entry>`, without `@`)"
    );
    assert_eq!(told("!session.a.x"), "! | `!` means nothing in a condition (write `not`)");
    assert_eq!(told("session.a.x == “b”"), "“ | `“` means nothing in a condition (put texts in straight quotes)");
    assert_eq!(told("session.a.x; 3"), "; | `;` means nothing in a condition");
    assert_eq!(
        told("session.a.x AND 3"),
        "AND | Expected `and`, `or`, a comparison or the end, found `AND` (did you mean `and`?)"
    );
    let call = "A condition calls no functions (let a tool write the result to memory, and look at that)";
    assert_eq!(told("len(session.a.x) > 3"), format!("len | {call}"));
    assert_eq!(told("session.a.x.startswith('b')"), format!("session.a.x.startswith | {call}"));
}

#[test]
fn only_names_and_values_are_compared() {
    let only = "Only names and values can be compared";
    assert_eq!(
        told("session.a.x == ('b' or 'c')"),
        format!("('b' or 'c') | {only} (compare each value by itself, and join the comparisons with `or`)")
    );
    assert_eq!(
        told("(session.a.x and session.a.y) == 3"),
        format!(
            "(session.a.x and session.a.y) | {only} (compare each value by itself, and join the comparisons with `and`)"
        )
    );
    assert_eq!(
        told("(1 < 2) == True"),
        format!("(1 < 2) | {only} (join whole comparisons with `and`, `or` and `not`)")
    );
}

#[test]
fn what_is_not_complete_is_told() {
    let empty = " | The condition is empty (leave it out, or name a memory entry such as `session.project.verified`)";
    assert_eq!(told(""), empty);
    assert_eq!(told(" \n"), empty);
    assert_eq!(told("session.a.x and "), " | Expected a name or a value, found the end");
    assert_eq!(told("not"), " | Expected a name or a value, found the end");
    assert_eq!(told("< 3"), "< | Expected a name or a value, found `<`");
    assert_eq!(told("1 == not 2"), "not | Expected a name or a value, found `not`");
    assert_eq!(told("()"), ") | Expected a name or a value, found `)`");
    assert_eq!(told("1 and ((2) or 3"), "( | `(` is not closed");
    assert_eq!(told("(1 and 2))"), ") | `)` closes nothing");
    assert_eq!(told("(1 2)"), "2 | Expected `and`, `or`, a comparison or `)`, found `2`");
    assert_eq!(told("1 not 2"), "not | Expected `and`, `or` or a comparison, found `not`");
    assert_eq!(told("'a' 'b'"), "'b' | Expected `and`, `or`, a comparison or the end, found a text");
    assert_eq!(
        told("1 and\n2"),
        "\n | A condition is one line (begin it with `>` in YAML, which makes one line of many)"
    );
}

#[test]
fn texts_and_numbers_that_are_none_are_told() {
    for text in ["'a", "'a\"", "'a\\'", "'a\\", "'a\n'"] {
        assert_eq!(told(text), "' | A text is not closed (end the text with `'`)", "{text}");
    }
    for escape in [r"\d", r"\x4g", r"\ud800", r"\U00110000", r"\u41"] {
        let stretch = if escape == r"\x4g" { r"\x4" } else { escape };
        let expected = format!("{stretch} | `{stretch}` is no escape (write a backslash as `\\\\`)");
        assert_eq!(told(&format!("'a{escape}'")), expected);
    }
    for number in ["007", "1_000", "0x10", "1.", "1e999", "2026-01-31", "3-2", "1st", "-01"] {
        let expected =
            format!("{number} | `{number}` is no number (put a text in quotes; there is no arithmetic in a condition)");
        assert_eq!(told(number), expected);
    }
}

#[test]
fn length_and_depth_have_limits() {
    let long = format!("{}1234567890", "session.a.x or ".repeat(666));
    assert_eq!(long.len(), 10_000);
    assert_eq!(Condition::parse(&long).unwrap().names().count(), 666);
    let error = Condition::parse(&format!("{long}1")).unwrap_err();
    assert_eq!(error.to_string(), "The condition has 10001 characters, expected at most 10000");
    assert_eq!(error.range, 10_000..10_001);

    let nested = |depth: usize| format!("{}1{}", "not (".repeat(depth / 2), ")".repeat(depth / 2));
    assert_eq!(written(&nested(100)), format!("{}1", "not ".repeat(50)));
    assert_eq!(told(&nested(102)), "not | The condition is nested more than 100 levels deep");
    assert_eq!(told(&"(".repeat(9_000)), "( | The condition is nested more than 100 levels deep");
}

#[test]
fn the_deepest_condition_needs_no_more_than_half_of_a_stack() {
    let deepest = format!("{}session.a.x < 3{}", "(not ".repeat(50), " or 1 and 2)".repeat(50));
    let looks = move || {
        let condition = Condition::parse(&deepest).unwrap();
        assert_eq!(Condition::parse(&condition.to_string()), Ok(condition.clone()));
        (condition.holds(&|_, _| Some(Value::from(2))), condition.names().count())
    };
    // A thread has 2 MiB; unoptimised, reading needs between 512 and 768 KiB, all else less than 128.
    let thread = std::thread::Builder::new().stack_size(1024 * 1024).spawn(looks).unwrap();
    assert_eq!(thread.join().unwrap(), (true, 1));
}

#[test]
fn a_message_repeats_a_long_text_in_part_only() {
    let error = Condition::parse(&"x".repeat(9_000)).unwrap_err();
    assert_eq!(error.to_string(), format!("Unknown name `{}…` in condition expression", "x".repeat(60)));
    assert_eq!(error.range, 0..9_000);
}

/// Operands of every kind.
fn operands() -> impl Strategy<Value = Operand> {
    let name = ("[a-z_][a-z0-9_]{0,3}(-[a-z0-9]{1,2})?", "[a-zé_][a-z0-9_]{0,3}")
        .prop_map(|(namespace, entry)| Operand::Entry(Name { namespace, entry, range: 0..0 }));
    let text = vec(any::<char>(), 0..6).prop_map(|letters| Value::String(letters.into_iter().collect()));
    let float = any::<f64>().prop_filter_map("JSON has finite numbers only", Number::from_f64).prop_map(Value::Number);
    let whole = prop_oneof![any::<i64>().prop_map(Value::from), any::<u64>().prop_map(Value::from)];
    let constant = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::Bool), text, float, whole];
    prop_oneof![name, constant.prop_map(Operand::Constant)]
}

/// Trees as the parser makes them.
fn trees() -> impl Strategy<Value = Node> {
    use Comparison::{AtLeast, AtMost, Equal, Is, IsNot, Less, More, Unequal};
    let ordinary = (prop::sample::select(&[Equal, Unequal, Less, AtMost, More, AtLeast]), operands());
    let singleton =
        prop::sample::select(&[Value::Null, Value::Bool(true), Value::Bool(false)]).prop_map(Operand::Constant);
    let link = prop_oneof![4 => ordinary, 1 => (prop::sample::select(&[Is, IsNot]), singleton)];
    let chain = (operands(), vec(link, 1..4)).prop_map(|(first, rest)| Node::Chain(first, rest));
    let leaf = prop_oneof![chain, operands().prop_map(Node::Truth)];
    leaf.prop_recursive(5, 24, 3, |node| {
        prop_oneof![
            vec(node.clone(), 2..4).prop_map(Node::Any),
            vec(node.clone(), 2..4).prop_map(Node::All),
            node.prop_map(|node| Node::Not(Box::new(node))),
        ]
    })
}

/// Texts that come close to conditions.
fn texts() -> impl Strategy<Value = String> {
    let pieces = [
        "session.a.x",
        "session.",
        "and",
        "or",
        "not",
        "is",
        "in",
        "(",
        ")",
        "==",
        "<",
        "=",
        "!",
        "-",
        "1",
        "2.5e3",
        "'",
        "\"",
        "\\",
        "\\x",
        "None",
        "true",
        " ",
        "\n",
        "é",
        "\u{2028}",
        "x",
        "[",
        "1e",
        "+",
    ];
    let close = vec(prop::sample::select(pieces.to_vec()), 0..24).prop_map(|pieces| pieces.concat());
    prop_oneof![close, any::<String>()]
}

proptest! {
    #[test]
    fn what_is_written_back_is_read_as_the_same(root in trees()) {
        let condition = Condition { root };
        prop_assert_eq!(Condition::parse(&condition.to_string()), Ok(condition));
    }

    #[test]
    fn any_text_is_a_condition_or_an_error_within_it(text in texts()) {
        match Condition::parse(&text) {
            Ok(condition) => prop_assert_eq!(written(&condition.to_string()), condition.to_string()),
            Err(error) => {
                prop_assert!(error.range.start <= error.range.end && error.range.end <= text.chars().count());
                prop_assert!(!error.message.ends_with('.') && !error.message.contains('\n'));
            }
        }
    }

    /// They stand with clashes as well: a condition and its opposite may both be false, but never both hold.
    #[test]
    fn the_laws_of_logic_stand(left in trees(), right in trees(), value in operands()) {
        let value = if let Operand::Constant(value) = value { value } else { Value::Null };
        let holds = |root: Node| Condition { root }.holds(&|_, _| Some(value.clone()));
        let not = |node: &Node| Node::Not(Box::new(node.clone()));
        let both = Node::All(vec![left.clone(), right.clone()]);
        prop_assert_eq!(holds(both.clone()), holds(left.clone()) && holds(right.clone()));
        prop_assert_eq!(holds(not(&both)), holds(Node::Any(vec![not(&left), not(&right)])));
        prop_assert_eq!(holds(not(&not(&left))), holds(left.clone()));
        prop_assert!(!(holds(left.clone()) && holds(not(&left))));
    }
}
