//! What a handler returned, beside the owned value that it was given: compared in place, and only what differs is converted,
//! strictly. No Python code runs meanwhile.

use std::fmt::Write as _;
use std::sync::Arc;

use indexmap::IndexMap;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use serde_json::{Map, Number, Value};

use super::originals;
use super::to_python::DEEPEST;
use crate::conversation::Object;
use crate::hooks::{FieldSpec, ModelSettings, Slot, SlotValue};
use crate::telemetry::DISPATCH;

/// How many values one payload may hold: more is a mistake, and converting it would hold the GIL for too long.
const MOST_VALUES: usize = 1_000_000;

/// Why a value cannot cross, and where it is.
#[derive(Debug)]
pub(super) struct Refusal {
    /// From the innermost outwards.
    path: Vec<Segment>,
    reason: String,
}

#[derive(Debug)]
enum Segment {
    Key(String),
    Index(usize),
}

impl Refusal {
    fn new(reason: String) -> Self {
        Self { path: Vec::new(), reason }
    }

    fn inside(mut self, segment: Segment) -> Self {
        self.path.push(segment);
        self
    }

    /// The whole sentence, the path from the field inwards.
    pub(super) fn describe(&self, field: &str) -> String {
        let mut text = format!("`{field}");
        for segment in self.path.iter().rev() {
            match segment {
                Segment::Key(key) if is_name(key) => write!(text, ".{key}"),
                Segment::Key(key) => write!(text, "[{key:?}]"),
                Segment::Index(index) => write!(text, "[{index}]"),
            }
            .expect("a string takes all");
        }
        text.push_str("` ");
        text.push_str(&self.reason);
        text
    }
}

fn is_name(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_')
}

type Crossing<T> = Result<T, Refusal>;

/// The field's new value, or `None` where it is what was given.
pub(super) fn field(given: Slot<'_>, spec: &FieldSpec, returned: &Bound<'_, PyAny>) -> Crossing<Option<SlotValue>> {
    let mut reader = Reader { left: MOST_VALUES };
    Ok(match given {
        Slot::Text(text) => {
            let string = returned.cast::<PyString>().map_err(|_| wrong_type(returned, spec))?;
            if is_text(string, text) { None } else { Some(SlotValue::Text(reader.text(string)?)) }
        }
        Slot::OptionalText(text) if returned.is_none() => text.map(|_| SlotValue::OptionalText(None)),
        Slot::OptionalText(text) => {
            let string = returned.cast::<PyString>().map_err(|_| wrong_type(returned, spec))?;
            if text.is_some_and(|text| is_text(string, text)) {
                None
            } else {
                Some(SlotValue::OptionalText(Some(reader.text(string)?)))
            }
        }
        Slot::Flag(flag) => {
            let new = returned.cast::<PyBool>().map_err(|_| wrong_type(returned, spec))?.is_true();
            (new != flag).then_some(SlotValue::Flag(new))
        }
        Slot::TextMap(map) => {
            let dict = returned.cast::<PyDict>().map_err(|_| wrong_type(returned, spec))?;
            let new = reader.text_map(dict)?;
            (!new.iter().eq(map.iter())).then_some(SlotValue::TextMap(new))
        }
        Slot::Object(object) => {
            let dict = returned.cast::<PyDict>().map_err(|_| wrong_type(returned, spec))?;
            if is_object(dict, object) { None } else { Some(SlotValue::Object(reader.object(dict, DEEPEST)?)) }
        }
        Slot::Objects(objects) => {
            let list = returned.cast::<PyList>().map_err(|_| wrong_type(returned, spec))?;
            reader.objects(list, objects)?.map(SlotValue::Objects)
        }
        Slot::Settings(settings) => {
            let dict = returned.cast::<PyDict>().map_err(|_| wrong_type(returned, spec))?;
            if is_object(dict, settings.as_object()) {
                None
            } else {
                let new = reader.settings(dict);
                (new != *settings).then_some(SlotValue::Settings(new))
            }
        }
        Slot::Json(value) => {
            if is_value(returned, value) {
                None
            } else {
                Some(SlotValue::Json(reader.value(returned, DEEPEST)?))
                    .filter(|new| *new != SlotValue::Json(value.clone()))
            }
        }
        Slot::Count(_)
        | Slot::OptionalNumber(_)
        | Slot::Names(_)
        | Slot::Status(_)
        | Slot::Call(_)
        | Slot::Channel(_) => None,
    })
}

/// Reads a whole JSON value.
pub(super) fn whole_value(value: &Bound<'_, PyAny>) -> Crossing<Value> {
    Reader { left: MOST_VALUES }.value(value, DEEPEST)
}

/// Reads what a caller gives that is to be JSON; an error names the value that is not, by the way to it from `what`.
pub(crate) fn read_json(what: &str, value: &Bound<'_, PyAny>) -> Result<Value, String> {
    whole_value(value).map_err(|refusal| format!("Invalid {}", refusal.describe(what)))
}

/// A Python string's text; lone surrogates have none.
pub(super) fn whole_text(string: &Bound<'_, PyString>) -> Crossing<String> {
    Reader { left: 1 }.text(string)
}

/// The name of a value's type, as messages write it.
pub(super) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

fn wrong_type(returned: &Bound<'_, PyAny>, spec: &FieldSpec) -> Refusal {
    Refusal::new(format!("is a `{}`; expected `{}`", type_name(returned), spec.kind.annotation()))
}

// --- comparing: nothing is built, and whatever is in doubt counts as different

fn is_text(string: &Bound<'_, PyString>, text: &str) -> bool {
    string.to_str().is_ok_and(|new| new == text)
}

fn is_object(dict: &Bound<'_, PyDict>, object: &Object) -> bool {
    dict.len() == object.len()
        && dict.iter().zip(object).all(|((key, new), (name, value))| {
            key.cast::<PyString>().is_ok_and(|key| is_text(key, name)) && is_value(&new, value)
        })
}

fn is_value(new: &Bound<'_, PyAny>, value: &Value) -> bool {
    match value {
        Value::Null => new.is_none(),
        Value::Bool(flag) => new.cast::<PyBool>().is_ok_and(|new| new.is_true() == *flag),
        Value::Number(number) => is_number(new, number),
        Value::String(text) => new.cast::<PyString>().is_ok_and(|new| is_text(new, text)),
        Value::Array(items) => new.cast::<PyList>().is_ok_and(|list| {
            list.len() == items.len() && list.iter().zip(items).all(|(new, item)| is_value(&new, item))
        }),
        Value::Object(object) => new.cast::<PyDict>().is_ok_and(|dict| is_object(dict, object)),
    }
}

fn is_number(new: &Bound<'_, PyAny>, number: &Number) -> bool {
    if number.is_f64() {
        let float = new.cast::<PyFloat>().map(|float| float.value().to_bits());
        return float.is_ok_and(|bits| number.as_f64().is_some_and(|old| old.to_bits() == bits));
    }
    if !new.is_instance_of::<PyInt>() || new.is_instance_of::<PyBool>() {
        return false;
    }
    match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => new.extract::<i64>().is_ok_and(|new| new == whole),
        (None, Some(whole)) => new.extract::<u64>().is_ok_and(|new| new == whole),
        (None, None) => false,
    }
}

// --- converting: strict, bounded, with the path of what is refused

struct Reader {
    left: usize,
}

impl Reader {
    /// The new list, or `None` where it is what was given. Messages that did not change are shared with `given`.
    fn objects(&mut self, list: &Bound<'_, PyList>, given: &[Arc<Object>]) -> Crossing<Option<Vec<Arc<Object>>>> {
        let originals = originals::of(list.py(), given);
        let is_same = |dict: &Bound<'_, PyDict>, at: usize| {
            originals.get(at).is_some_and(|one| one.as_ref().is_some_and(|one| originals::is_copy(dict, one)))
                || given.get(at).is_some_and(|old| is_object(dict, old))
        };
        let unchanged =
            list.iter().enumerate().take_while(|(at, item)| item.cast().is_ok_and(|dict| is_same(dict, *at)));
        let mut at = unchanged.count();
        let mut changed = list.len() != given.len();
        if at == list.len() && !changed {
            return Ok(None);
        }
        let inserted = list.len() > given.len();
        let mut new = Vec::with_capacity(list.len());
        new.extend(given[..at].iter().cloned());
        for (index, item) in list.iter().enumerate().skip(at) {
            let dict = item.cast::<PyDict>().map_err(|_| {
                Refusal::new(format!("is a `{}`; expected a `dict`", type_name(&item))).inside(Segment::Index(index))
            })?;
            if is_same(dict, at) {
                new.push(Arc::clone(&given[at]));
                at += 1;
            } else if is_same(dict, at + 1) {
                new.push(Arc::clone(&given[at + 1]));
                at += 2;
                changed = true;
            } else {
                let object = self.object(dict, DEEPEST).map_err(|refusal| refusal.inside(Segment::Index(index)))?;
                changed |= given.get(index).is_none_or(|old| **old != object);
                new.push(Arc::new(object));
                at += usize::from(!inserted);
            }
        }
        Ok(changed.then_some(new))
    }

    fn object(&mut self, dict: &Bound<'_, PyDict>, depth: usize) -> Crossing<Object> {
        let depth = self.deeper(depth, dict.len())?;
        let mut object = Map::with_capacity(dict.len());
        for (key, item) in dict {
            let key = key
                .cast::<PyString>()
                .map_err(|_| Refusal::new(format!("has a key that is a `{}`; JSON keys are `str`", type_name(&key))))?;
            let name = self.text(key).map_err(|refusal| Refusal {
                path: refusal.path,
                reason: format!("has a key that {}", refusal.reason),
            })?;
            match self.value(&item, depth) {
                Ok(value) => object.insert(name, value),
                Err(refusal) => return Err(refusal.inside(Segment::Key(name))),
            };
        }
        Ok(object)
    }

    fn value(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> Crossing<Value> {
        if value.is_none() {
            return Ok(Value::Null);
        }
        if let Ok(text) = value.cast::<PyString>() {
            return self.text(text).map(Value::String);
        }
        if let Ok(flag) = value.cast::<PyBool>() {
            return Ok(Value::Bool(flag.is_true()));
        }
        if value.is_instance_of::<PyInt>() {
            return value
                .extract::<i64>()
                .map(Value::from)
                .or_else(|_| value.extract::<u64>().map(Value::from))
                .map_err(|_| Refusal::new("is an integer beyond 64 bits; give it as a `str`".to_owned()));
        }
        if let Ok(float) = value.cast::<PyFloat>() {
            return Number::from_f64(float.value()).map(Value::Number).ok_or_else(|| {
                Refusal::new(format!("is {}; JSON has only finite numbers", float.value().to_string().to_lowercase()))
            });
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            return self.object(dict, depth).map(Value::Object);
        }
        if let Ok(list) = value.cast::<PyList>() {
            return self.array(list.iter(), list.len(), depth);
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return self.array(tuple.iter(), tuple.len(), depth);
        }
        Err(Refusal::new(format!("is a `{}`; {}", type_name(value), plain_form(value))))
    }

    fn array<'py>(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        count: usize,
        depth: usize,
    ) -> Crossing<Value> {
        let depth = self.deeper(depth, count)?;
        items
            .enumerate()
            .map(|(index, item)| self.value(&item, depth).map_err(|refusal| refusal.inside(Segment::Index(index))))
            .collect::<Crossing<Vec<_>>>()
            .map(Value::Array)
    }

    #[expect(clippy::unused_self, reason = "read like its brothers")]
    fn text(&mut self, string: &Bound<'_, PyString>) -> Crossing<String> {
        string.to_str().map(str::to_owned).map_err(|_| {
            Refusal::new(
                "holds a lone surrogate, which UTF-8 cannot carry; replace it, for example by \"\\ufffd\"".to_owned(),
            )
        })
    }

    fn text_map(&mut self, dict: &Bound<'_, PyDict>) -> Crossing<IndexMap<String, String>> {
        let mut map = IndexMap::with_capacity(dict.len());
        for (name, value) in self.object(dict, DEEPEST)? {
            let Value::String(value) = value else {
                return Err(
                    Refusal::new("is no `str`; expected `dict[str, str]`".to_owned()).inside(Segment::Key(name))
                );
            };
            map.insert(name, value);
        }
        Ok(map)
    }

    /// Keeps what the allow-list admits; the rest is ignored, values that are no JSON among it.
    fn settings(&mut self, dict: &Bound<'_, PyDict>) -> ModelSettings {
        let mut settings = ModelSettings::default();
        for (key, value) in dict {
            let Ok(name) = key.cast::<PyString>().map(|key| key.to_string_lossy().into_owned()) else {
                tracing::debug!(target: DISPATCH, "Model setting ignored: its key is a `{}`", type_name(&key));
                continue;
            };
            if !self.value(&value, DEEPEST).is_ok_and(|value| settings.set(&name, value)) {
                tracing::debug!(target: DISPATCH, key = name, "Model setting ignored: not allowed, or of a wrong type");
            }
        }
        settings
    }

    fn deeper(&mut self, depth: usize, values: usize) -> Crossing<usize> {
        self.left = self
            .left
            .checked_sub(values)
            .ok_or_else(|| Refusal::new(format!("holds more than {MOST_VALUES} values")))?;
        depth
            .checked_sub(1)
            .ok_or_else(|| Refusal::new(format!("is nested deeper than {DEEPEST} levels; does it contain itself?")))
    }
}

fn type_of(kind: &Bound<'_, PyAny>) -> String {
    kind.cast::<PyType>().ok().and_then(|kind| kind.name().ok()).map(|name| name.to_string()).unwrap_or_default()
}

/// What to do about a value that JSON has no form for.
fn plain_form(value: &Bound<'_, PyAny>) -> &'static str {
    match type_name(value).as_str() {
        "bytes" | "bytearray" | "memoryview" => "JSON has no bytes: decode them to a `str`",
        "set" | "frozenset" => "JSON has no sets: make it a sorted `list`",
        "Decimal" | "datetime" | "date" | "UUID" | "PosixPath" => "JSON has no such value: make it a `str`",
        _ if value.get_type().mro().iter().any(|kind| type_of(&kind) == "BaseModel") => {
            "give its plain form, `.model_dump()`"
        }
        _ => "only dict, list, str, int, float, bool and None can be passed on",
    }
}
