//! The arguments of a call as generated code writes it, by the names of the tool's parameters.

use serde_json::Value;

use super::runner::HostCall;
use crate::conversation::Object;
use crate::tools::ToolSpec;

/// The call's arguments by name. Whether any is missing is not looked at: a hook may still add it.
///
/// # Errors
///
/// What Python would say of such a call.
pub(super) fn bound(spec: &ToolSpec, call: HostCall) -> Result<Object, String> {
    let name = &spec.name;
    let parameters: Vec<&String> = properties(spec).map(Object::keys).into_iter().flatten().collect();
    let (given, most) = (call.positional.len(), parameters.len());
    if given > most {
        let s = if most == 1 { "" } else { "s" };
        let were = if given == 1 { "was" } else { "were" };
        return Err(format!("{name}() takes {most} positional argument{s} but {given} {were} given"));
    }
    let mut arguments: Object = parameters.iter().map(|name| (*name).clone()).zip(call.positional).collect();
    for (key, value) in call.named {
        if !parameters.contains(&&key) && !takes_others(spec) {
            return Err(format!("{name}() got an unexpected keyword argument '{key}'"));
        }
        if arguments.contains_key(&key) {
            return Err(format!("{name}() got multiple values for argument '{key}'"));
        }
        arguments.insert(key, value);
    }
    Ok(arguments)
}

/// What Python would say of arguments that are missing.
pub(super) fn missing(spec: &ToolSpec, arguments: &Object) -> Option<String> {
    let required = spec.parameters.get("required").and_then(Value::as_array);
    let missing: Vec<_> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| !arguments.contains_key(*name))
        .map(|name| format!("'{name}'"))
        .collect();
    let s = if missing.len() == 1 { "" } else { "s" };
    let count = missing.len();
    (count > 0).then(|| format!("{}() missing {count} required argument{s}: {}", spec.name, missing.join(", ")))
}

fn properties(spec: &ToolSpec) -> Option<&Object> {
    spec.parameters.get("properties").and_then(Value::as_object)
}

/// Whether a schema says that there may be more than it names. JSON schema takes silence for a yes; a Python signature does not.
fn takes_others(spec: &ToolSpec) -> bool {
    match spec.parameters.get("additionalProperties") {
        Some(Value::Bool(others)) => *others,
        Some(_) => true,
        None => properties(spec).is_none_or(Object::is_empty),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec() -> ToolSpec {
        let parameters = json!({"type": "object", "properties": {"query": {}, "limit": {}}, "required": ["query"]});
        ToolSpec { parameters: parameters.as_object().unwrap().clone(), ..ToolSpec::new("search", "") }
    }

    fn call(positional: &[Value], named: &Value) -> HostCall {
        HostCall {
            name: "search".into(),
            positional: positional.to_vec(),
            named: named.as_object().unwrap().clone(),
            line: 1,
        }
    }

    #[test]
    fn positional_arguments_have_the_names_of_the_parameters_in_their_order() {
        let arguments = bound(&spec(), call(&[json!("tea")], &json!({"limit": 3}))).unwrap();
        assert_eq!(Value::Object(arguments), json!({"query": "tea", "limit": 3}));
    }

    #[test]
    fn a_call_that_does_not_fit_is_what_python_says_of_it() {
        let says = |positional: &[Value], named: Value| bound(&spec(), call(positional, &named)).unwrap_err();
        assert_eq!(
            says(&[json!(1), json!(2), json!(3)], json!({})),
            "search() takes 2 positional arguments but 3 were given"
        );
        assert_eq!(says(&[], json!({"q": 1})), "search() got an unexpected keyword argument 'q'");
        assert_eq!(says(&[json!(1)], json!({"query": 2})), "search() got multiple values for argument 'query'");
        assert_eq!(missing(&spec(), &Object::new()).unwrap(), "search() missing 1 required argument: 'query'");
    }

    #[test]
    fn a_schema_that_takes_anything_takes_any_name() {
        let mut open = spec();
        open.parameters.insert("additionalProperties".into(), json!({"type": "integer"}));
        assert!(bound(&open, call(&[], &json!({"other": 1}))).is_ok());
        let bare = ToolSpec { parameters: Object::new(), ..spec() };
        assert!(bound(&bare, call(&[], &json!({"other": 1}))).is_ok());
    }
}
