//! The exit that generated code names, and whether what it gives there fits.

use serde_json::{Map, Value};

use super::execution::Plan;
use super::runner::HostCall;
use super::shape::Shape;
use super::signature::annotation;

/// What goes before the text of an exit that is refused.
const INVALID: &str = "Code: INVALID_EXIT_INPUT";
/// Names of what has only been put around the result.
const AROUND: [&str; 9] = ["props", "value", "data", "payload", "result", "message", "error", "output", "response"];

/// An exit that may be taken, by its place in the plan, with its result.
#[derive(Debug, PartialEq)]
pub(super) struct Reached {
    pub(super) exit: usize,
    pub(super) result: Value,
}

/// What comes of `exit(name, payload)`.
///
/// # Errors
///
/// The type and the text of what the code is to catch.
pub(super) fn reached(plan: &Plan, call: HostCall) -> Result<Reached, (&'static str, String)> {
    let (name, payload, by_name) = read(call)?;
    let Some(exit) = find(plan, &name) else {
        let names: Vec<_> = plan.exits.iter().map(|exit| exit.name.as_str()).collect();
        let text = format!("{INVALID}\nThere is no exit `{name}`. The exits are: {}", names.join(", "));
        return Err(("ValueError", text));
    };
    let (found, shape) = (&plan.exits[exit], plan.shapes.get(exit).and_then(Option::as_deref));
    let (Some(schema), Some(shape)) = (&found.schema, shape) else {
        return Ok(Reached { exit, result: if by_name { unwrapped(payload) } else { payload } });
    };
    match fitting(schema, shape, &payload) {
        Some(result) => Ok(Reached { exit, result }),
        None => {
            let complaints = shape.complaints(&payload).join("\n  ");
            let expected = annotation(schema, schema);
            let text = format!(
                "{INVALID}\nWhat was given to the exit `{}` does not fit:\n  {complaints}\nExpected: {expected}",
                found.name
            );
            Err(("ValueError", text))
        }
    }
}

/// The exit's name and payload; whether the payload was given by names.
fn read(mut call: HostCall) -> Result<(String, Value, bool), (&'static str, String)> {
    let wrong = |text: &str| Err(("TypeError", text.to_owned()));
    let mut positional = call.positional.into_iter();
    let name = positional.next().or_else(|| call.named.shift_remove("name"));
    let name = match name {
        Some(Value::String(name)) => name,
        Some(_) => return wrong("exit() takes the name of an exit first, as a text"),
        None => return wrong("exit() takes the name of an exit first"),
    };
    let payload = positional.next();
    if positional.next().is_some() {
        return wrong("exit() takes a name and one payload");
    }
    match payload {
        Some(_) if !call.named.is_empty() => wrong("exit() takes either one payload or values by name"),
        Some(payload) => Ok((name, payload, false)),
        None if call.named.is_empty() => Ok((name, Value::Null, false)),
        None => match (call.named.len(), call.named.shift_remove("payload")) {
            (1, Some(payload)) => Ok((name, payload, false)),
            (_, Some(payload)) => {
                call.named.insert("payload".into(), payload);
                Ok((name, Value::Object(call.named), true))
            }
            (_, None) => Ok((name, Value::Object(call.named), true)),
        },
    }
}

/// By its name, else by an alias; upper and lower case are the same.
fn find(plan: &Plan, name: &str) -> Option<usize> {
    let named = plan.exits.iter().position(|exit| exit.name.eq_ignore_ascii_case(name));
    let alias =
        |name: &str| plan.exits.iter().position(|exit| exit.aliases.iter().any(|a| a.eq_ignore_ascii_case(name)));
    named.or_else(|| alias(name))
}

/// A single value that was given by name is that value.
fn unwrapped(payload: Value) -> Value {
    match payload {
        Value::Object(mut object) if object.len() == 1 => {
            let key = object.keys().next().cloned().unwrap_or_default();
            if !AROUND.contains(&key.as_str()) {
                return Value::Object(object);
            }
            object.shift_remove(&key).unwrap_or_default()
        }
        other => other,
    }
}

/// The first reading of a payload that fits: as it is; what it only wraps; with the constants that tell the arms of a union apart; as the
/// value of the first key that takes it.
pub(super) fn fitting(schema: &Value, shape: &Shape, payload: &Value) -> Option<Value> {
    if shape.fits(payload) {
        return Some(payload.clone());
    }
    // An object with keys of the schema is meant as it is: what is wrong with it is told.
    let meant = arms(schema).into_iter().any(|arm| shares(arm, payload));
    let inner = inner(payload).filter(|_| !meant);
    if let Some(inner) = inner
        && shape.fits(inner)
    {
        return Some(inner.clone());
    }
    for given in std::iter::once(payload).chain(inner) {
        if let Value::Object(object) = given {
            let mut completed =
                arms(schema).into_iter().map(|arm| with_constants(arm, object)).filter(|v| shape.fits(v));
            if let (Some(only), None) = (completed.next(), completed.next()) {
                return Some(only);
            }
        }
    }
    let given = std::iter::once(payload).filter(|_| !meant).chain(inner);
    given.into_iter().find_map(|given| wrapped(schema, shape, given))
}

/// Whether an object has a key that a schema names.
fn shares(schema: &Value, payload: &Value) -> bool {
    let keys = schema.get("properties").and_then(Value::as_object);
    keys.zip(payload.as_object()).is_some_and(|(keys, object)| object.keys().any(|key| keys.contains_key(key)))
}

/// What an object only wraps.
fn inner(payload: &Value) -> Option<&Value> {
    let object = payload.as_object()?;
    if object.len() == 1 {
        return object.values().next();
    }
    ["props", "value", "data"].iter().find_map(|key| object.get(*key)).filter(|inner| inner.is_object())
}

/// The value under the first key of a schema, or of one of its arms, with which it fits.
fn wrapped(schema: &Value, shape: &Shape, payload: &Value) -> Option<Value> {
    arms(schema).into_iter().find_map(|arm| {
        let keys = arm.get("properties").and_then(Value::as_object)?;
        let free = keys.iter().filter(|(_, value)| value.get("const").is_none());
        free.map(|(key, _)| with_constants(arm, &Map::from_iter([(key.clone(), payload.clone())])))
            .find(|candidate| shape.fits(candidate))
    })
}

/// The schema's arms, where it is a union; else the schema.
fn arms(schema: &Value) -> Vec<&Value> {
    let arms = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key).and_then(Value::as_array));
    let resolved = |arm| -> &Value {
        let target = Value::as_str(Value::get(arm, "$ref").unwrap_or(&Value::Null)).and_then(|at| at.strip_prefix('#'));
        target.and_then(|pointer| schema.pointer(pointer)).unwrap_or(arm)
    };
    arms.map_or_else(|| vec![schema], |arms| arms.iter().map(resolved).collect())
}

/// An object with the constants of an arm that it lacks.
fn with_constants(arm: &Value, object: &Map<String, Value>) -> Value {
    let mut completed = Map::new();
    for (key, value) in arm.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(constant) = value.get("const") {
            completed.insert(key.clone(), constant.clone());
        }
    }
    completed.extend(object.iter().map(|(key, value)| (key.clone(), value.clone())));
    Value::Object(completed)
}
