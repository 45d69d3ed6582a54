//! Whether a condition holds.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::Condition;
use super::tree::{Comparison, Node, Operand};
use crate::telemetry::TURN;

/// One look at a condition.
pub(super) struct Evaluation<'a> {
    /// The whole of it, for the log.
    pub(super) condition: &'a Condition,
    pub(super) read: &'a dyn Fn(&str, &str) -> Option<Value>,
}

impl Evaluation<'_> {
    /// Whether a part of the condition is true; none where values clash and it hangs on them.
    pub(super) fn truth(&self, node: &Node) -> Option<bool> {
        match node {
            Node::Any(nodes) => decided(nodes.iter().map(|node| self.truth(node)), true),
            Node::All(nodes) => decided(nodes.iter().map(|node| self.truth(node)), false),
            Node::Not(node) => self.truth(node).map(|truth| !truth),
            Node::Chain(first, rest) => {
                let mut left = (first, self.value(first));
                let links = rest.iter().map(|(comparison, operand)| {
                    let right = (operand, self.value(operand));
                    let truth = self.compare(&left, *comparison, &right);
                    left = right;
                    truth
                });
                decided(links, false)
            }
            Node::Truth(operand) => Some(is_true(&self.value(operand))),
        }
    }

    fn value<'n>(&self, operand: &'n Operand) -> Cow<'n, Value> {
        match operand {
            Operand::Entry(name) => Cow::Owned((self.read)(&name.namespace, &name.entry).unwrap_or_default()),
            Operand::Constant(value) => Cow::Borrowed(value),
        }
    }

    fn compare(
        &self,
        left: &(&Operand, Cow<'_, Value>),
        comparison: Comparison,
        right: &(&Operand, Cow<'_, Value>),
    ) -> Option<bool> {
        let truth = compared(&left.1, comparison, &right.1);
        if truth.is_none() {
            let clash = format_args!("{} {} {}", left.0, comparison.sign(), right.0);
            let (condition, kinds) = (self.condition, [kind(&left.1), kind(&right.1)]);
            // No values: memory holds what users say. That an entry is not set yet is no fault; a text for a number is.
            if kinds.contains(&"None") {
                tracing::debug!(target: TURN, %condition, %clash, ?kinds, "A condition compares `None`");
            } else {
                tracing::warn!(target: TURN, %condition, %clash, ?kinds, "A condition compares values without an order");
            }
        }
        truth
    }
}

/// The first truth that is `decisive`, else a clash if there is one. What comes after it is not looked at.
fn decided(truths: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut answer = Some(!decisive);
    for truth in truths {
        match truth {
            Some(truth) if truth == decisive => return Some(decisive),
            Some(_) => {}
            None => answer = None,
        }
    }
    answer
}

/// Python's `bool`.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
    }
}

fn compared(left: &Value, comparison: Comparison, right: &Value) -> Option<bool> {
    match comparison {
        Comparison::Equal => Some(equal(left, right)),
        Comparison::Unequal => Some(!equal(left, right)),
        Comparison::Less => order(left, right).map(Ordering::is_lt),
        Comparison::AtMost => order(left, right).map(Ordering::is_le),
        Comparison::More => order(left, right).map(Ordering::is_gt),
        Comparison::AtLeast => order(left, right).map(Ordering::is_ge),
        // To its right is `None`, `True` or `False`, each of which is only itself: `1 is True` is false.
        Comparison::Is => Some(left == right),
        Comparison::IsNot => Some(left != right),
    }
}

/// Python's `==`, also within lists and mappings: `[True] == [1.0]`.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same = |(key, value)| right.get(key).is_some_and(|other| equal(value, other));
            left.len() == right.len() && left.iter().all(same)
        }
        _ => order(left, right).map_or_else(|| left == right, Ordering::is_eq),
    }
}

/// The order of two numbers, of which bools are some, or of two texts; all else has none.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    if let (Value::String(left), Value::String(right)) = (left, right) {
        // Of bytes, which is the one of characters in UTF-8 and so Python's.
        return Some(left.cmp(right));
    }
    match (number(left)?, number(right)?) {
        (Real::Whole(left), Real::Whole(right)) => Some(left.cmp(&right)),
        (Real::Whole(left), Real::Float(right)) => Some(against_float(left, right)),
        (Real::Float(left), Real::Whole(right)) => Some(against_float(right, left).reverse()),
        (Real::Float(left), Real::Float(right)) => left.partial_cmp(&right),
    }
}

#[derive(Clone, Copy, Debug)]
enum Real {
    Whole(i128),
    Float(f64),
}

fn number(value: &Value) -> Option<Real> {
    match value {
        Value::Bool(value) => Some(Real::Whole(i128::from(*value))),
        Value::Number(number) => {
            let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
            whole.map(Real::Whole).or_else(|| number.as_f64().map(Real::Float))
        }
        _ => None,
    }
}

/// Exact, as in Python: `9007199254740993` is no `9007199254740992.0`, though it would be rounded to it.
fn against_float(whole: i128, float: f64) -> Ordering {
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit becomes the least or the greatest")]
    let floor = float.floor() as i128;
    // Of two that are equal so far, the one with a fraction is greater.
    whole.cmp(&floor).then(if float.fract() == 0.0 { Ordering::Equal } else { Ordering::Less })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "None",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "mapping",
    }
}
