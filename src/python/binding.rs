//! The Python classes that payloads and signals become, and what is needed of them for each call.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PySet, PyString, PyType};

use super::from_python;
use super::raw;
use super::to_python;
use crate::conversation::{CallInfo, ChannelInfo, Object};
use crate::dispatch::Answer;
use crate::hooks::{AnyPayload, FailureCause, FieldKind, POINTS, Slot};
use crate::telemetry::DISPATCH;

/// The classes of `tenterhook.mantle`, looked up once.
pub(super) struct Binding {
    classes: Vec<PayloadClass>,
    call: Model,
    channel: Model,
    control_flow: Py<PyType>,
}

struct PayloadClass {
    name: &'static str,
    model: Model,
}

/// A pydantic class, and what is needed to make objects of it without validation: the values come from the engine.
struct Model {
    class: Py<PyType>,
    new: Py<PyAny>,
    fields: Vec<Py<PyString>>,
    /// The names of all fields: what pydantic wants to know to be set.
    set: Py<PySet>,
}

impl Model {
    fn find(hooks: &Bound<'_, PyModule>, name: &str) -> PyResult<Self> {
        let py = hooks.py();
        let class = hooks.getattr(name)?.cast_into::<PyType>()?;
        let fields = class.getattr(intern!(py, "model_fields"))?.try_iter()?;
        let fields = fields.map(|field| {
            let field: String = field?.extract()?;
            Ok(PyString::intern(py, &field).unbind())
        });
        let new = py.get_type::<PyAny>().getattr(intern!(py, "__new__"))?.unbind();
        let fields = fields.collect::<PyResult<Vec<_>>>()?;
        let set = PySet::new(py, &fields)?.unbind();
        Ok(Self { new, fields, set, class: class.unbind() })
    }

    /// An object of these field values, which become its own.
    fn build<'py>(&self, py: Python<'py>, values: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let object = self.new.bind(py).call1((self.class.bind(py),))?;
        let none = py.None();
        let set = raw::copied(self.set.bind(py))?;
        raw::set_plainly(&object, intern!(py, "__dict__"), values)?;
        raw::set_plainly(&object, intern!(py, "__pydantic_fields_set__"), &set)?;
        raw::set_plainly(&object, intern!(py, "__pydantic_extra__"), none.bind(py))?;
        raw::set_plainly(&object, intern!(py, "__pydantic_private__"), none.bind(py))?;
        Ok(object)
    }
}

/// A fresh Python object of a payload.
pub(crate) fn payload_to_python<'py>(py: Python<'py>, payload: &AnyPayload) -> PyResult<Bound<'py, PyAny>> {
    Binding::get(py)?.to_python(py, payload)
}

/// The owned value of a payload object that a Python caller made, or why it cannot be taken.
pub(crate) fn read_payload(payload: &Bound<'_, PyAny>) -> Result<AnyPayload, String> {
    Binding::get(payload.py()).map_err(|error| error.to_string())?.read(payload)
}

/// Whether an object's own type is `class` or inherits from it. Asks no metaclass and no `__class__`: those may be a user's code.
fn is_kind(object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> bool {
    object.get_type().mro().iter().any(|kind| kind.is(class))
}

static BINDING: PyOnceLock<Binding> = PyOnceLock::new();

impl Binding {
    /// The binding of this process; imports `tenterhook.mantle.hooks` at first.
    pub(super) fn get(py: Python<'_>) -> PyResult<&'static Self> {
        BINDING.get_or_try_init(py, || {
            let hooks = py.import("tenterhook.mantle.hooks")?;
            let mut classes: Vec<Option<PayloadClass>> = POINTS.map(|_| None).into();
            for spec in &POINTS {
                let mut model = Model::find(&hooks, spec.payload)?;
                // In the catalogue's order, in which values are visited.
                model.fields = spec.fields().iter().map(|field| PyString::intern(py, field.name).unbind()).collect();
                classes[spec.point as usize] = Some(PayloadClass { name: spec.payload, model });
            }
            Ok(Self {
                classes: classes.into_iter().flatten().collect(),
                call: Model::find(&hooks, "CallInfo")?,
                channel: Model::find(&hooks, "ChannelInfo")?,
                control_flow: hooks.getattr("HookControlFlow")?.cast_into::<PyType>()?.unbind(),
            })
        })
    }

    /// A fresh Python object of the payload: nothing in it is shared with any other.
    pub(super) fn to_python<'py>(&self, py: Python<'py>, payload: &AnyPayload) -> PyResult<Bound<'py, PyAny>> {
        let class = &self.classes[payload.point() as usize];
        let values = PyDict::new(py);
        let mut names = class.model.fields.iter();
        let mut failed = None;
        payload.visit(&mut |_, slot| {
            let name = names.next().expect("as many names as fields");
            let set = self.slot(py, slot).and_then(|value| values.set_item(name.bind(py), value));
            failed = failed.take().or(set.err());
        });
        match failed {
            Some(error) => Err(error),
            None => class.model.build(py, &values),
        }
    }

    /// What a modify handler's return value means, compared with the payload that it was given.
    pub(super) fn answer(&self, given: &AnyPayload, returned: &Bound<'_, PyAny>, fields: &Bound<'_, PyAny>) -> Answer {
        let py = returned.py();
        let class = &self.classes[given.point() as usize];
        let invalid = |message| Answer::Failure(FailureCause::InvalidResult { message });
        if !is_kind(returned, class.model.class.bind(py)) {
            let (found, hint) = (from_python::type_name(returned), self.return_hint(returned));
            return invalid(format!("It returned a `{found}`; expected `{}`: {hint}", class.name));
        }
        let Ok(values) = fields.cast::<PyDict>() else {
            return invalid(format!("It returned a `{}` without fields", class.name));
        };
        let mut changes = Vec::new();
        let mut refused = None;
        let mut names = class.model.fields.iter();
        given.visit(&mut |spec, slot| {
            let name = names.next().expect("as many names as fields").bind(py);
            if !spec.mutable || refused.is_some() {
                return;
            }
            match values.get_item(name) {
                Ok(Some(value)) => match from_python::field(slot, spec, &value) {
                    Ok(None) => {}
                    Ok(Some(new)) => changes.push((spec.name, new)),
                    Err(refusal) => refused = Some(refusal.describe(spec.name)),
                },
                _ => refused = Some(format!("`{}` is missing", spec.name)),
            }
        });
        if let Some(refused) = refused {
            return invalid(format!("It returned a `{}` in which {refused}", class.name));
        }
        if values.len() > class.model.fields.len() {
            Self::tell_unknown_fields(class, values);
        }
        if changes.is_empty() {
            return Answer::Unchanged;
        }
        let mut payload = given.clone();
        for (field, value) in changes {
            let replaced = payload.replace(field, value);
            debug_assert!(replaced, "`from_python::field` gives the field's own kind");
        }
        Answer::Changed(payload)
    }

    /// Reads a payload object that a Python caller made.
    pub(super) fn read(&self, payload: &Bound<'_, PyAny>) -> Result<AnyPayload, String> {
        let py = payload.py();
        let found = POINTS.iter().find(|spec| {
            let class = self.classes[spec.point as usize].model.class.bind(py);
            payload.is_instance(class).unwrap_or(false)
        });
        let Some(spec) = found else {
            return Err(format!("A `{}` is no payload", from_python::type_name(payload)));
        };
        let class = &self.classes[spec.point as usize];
        let mut json = Object::new();
        for (name, field) in class.model.fields.iter().zip(spec.fields()) {
            let value =
                payload.getattr(name.bind(py)).map_err(|error| format!("Invalid `{}`: {error}", spec.payload))?;
            // `call` and `channel` are models themselves: their fields are their dict.
            let value = match field.kind {
                FieldKind::Call | FieldKind::Channel => value.getattr(intern!(py, "__dict__")).unwrap_or(value),
                _ => value,
            };
            let value = from_python::whole_value(&value)
                .map_err(|refusal| format!("Invalid `{}`: {}", spec.payload, refusal.describe(field.name)))?;
            json.insert(field.name.to_owned(), value);
        }
        AnyPayload::from_json(spec.point, json.into()).map_err(|error| format!("Invalid `{}`: {error}", spec.payload))
    }

    fn slot<'py>(&self, py: Python<'py>, slot: Slot<'_>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match slot {
            Slot::Text(text) => PyString::new(py, text).into_any(),
            Slot::OptionalText(text) => text.into_pyobject(py)?,
            Slot::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
            Slot::Count(count) => PyInt::new(py, count).into_any(),
            Slot::OptionalNumber(None) => py.None().into_bound(py),
            Slot::OptionalNumber(Some(number)) => PyFloat::new(py, number).into_any(),
            Slot::Names(names) => PyList::new(py, names)?.into_any(),
            Slot::TextMap(map) => {
                let dict = PyDict::new(py);
                for (name, value) in map {
                    dict.set_item(name, value)?;
                }
                dict.into_any()
            }
            Slot::Object(object) => to_python::object(py, object)?.into_any(),
            Slot::Objects(objects) => to_python::objects(py, objects)?.into_any(),
            Slot::Settings(settings) => to_python::object(py, settings.as_object())?.into_any(),
            Slot::Status(status) => PyString::intern(py, status.name()).into_any(),
            Slot::Json(value) => to_python::value(py, value)?,
            Slot::Call(call) => self.call_info(py, call)?,
            Slot::Channel(channel) => self.channel_info(py, channel)?,
        })
    }

    fn call_info<'py>(&self, py: Python<'py>, call: &CallInfo) -> PyResult<Bound<'py, PyAny>> {
        let values = PyDict::new(py);
        values.set_item(intern!(py, "phone_number"), call.phone_number.as_deref())?;
        values.set_item(intern!(py, "metadata"), to_python::object(py, &call.metadata)?)?;
        self.call.build(py, &values)
    }

    fn channel_info<'py>(&self, py: Python<'py>, channel: &ChannelInfo) -> PyResult<Bound<'py, PyAny>> {
        let values = PyDict::new(py);
        values.set_item(intern!(py, "name"), channel.name.as_deref())?;
        values.set_item(intern!(py, "metadata"), to_python::object(py, &channel.metadata)?)?;
        self.channel.build(py, &values)
    }

    fn return_hint(&self, returned: &Bound<'_, PyAny>) -> &'static str {
        let py = returned.py();
        if returned.is_none() {
            "to leave it unchanged, return it"
        } else if is_kind(returned, self.control_flow.bind(py)) {
            "a control signal is raised, not returned"
        } else if from_python::type_name(returned) == "coroutine" {
            "await it before returning"
        } else {
            "return `payload.model_copy(update={...})`"
        }
    }

    fn tell_unknown_fields(class: &PayloadClass, values: &Bound<'_, PyDict>) {
        let py = values.py();
        for (key, _) in values {
            let shown = match key.cast::<PyString>() {
                Ok(key) => key.to_string_lossy().into_owned(),
                Err(_) => from_python::type_name(&key),
            };
            if !class.model.fields.iter().any(|name| name.bind(py).to_string_lossy() == shown) {
                tracing::debug!(target: DISPATCH, field = shown, payload = class.name, "Unknown field dropped");
            }
        }
    }
}

impl std::fmt::Debug for Binding {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.classes.iter().map(|class| class.name).collect();
        out.debug_struct("Binding").field("classes", &names).finish_non_exhaustive()
    }
}
