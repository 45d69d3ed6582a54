//! JSON schemas as Python annotations: what the model reads of tools and exits.

use serde_json::Value;

use crate::conversation::Object;
use crate::tools::ToolSpec;

/// How deep a shape is written out; what lies deeper is `Any`.
const DEPTH: usize = 6;
/// How many values of an enumeration are written out.
const VALUES: usize = 40;

/// A tool as the head of a Python function, with its docstring.
pub(super) fn function(spec: &ToolSpec, returns: Option<&str>) -> String {
    let root = Value::Object(spec.parameters.clone());
    let empty = Object::new();
    let properties = root.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let (needed, others): (Vec<_>, Vec<_>) = properties.iter().partition(|(name, _)| is_required(&root, name));
    let mut parameters: Vec<String> =
        needed.iter().map(|(name, schema)| format!("{name}: {}", annotation(schema, &root))).collect();
    // A call by position follows the schema's order: where that is not Python's, what can be left out has a name only.
    let ordered = properties.keys().take(needed.len()).all(|name| is_required(&root, name));
    if !ordered {
        parameters.insert(0, "*".to_owned());
    }
    parameters.extend(others.iter().map(|(name, schema)| {
        let default = schema.get("default").map_or_else(|| "...".to_owned(), literal);
        format!("{name}: {} = {default}", annotation(schema, &root))
    }));
    let head = format!("async def {}({}) -> {}:", spec.name, parameters.join(", "), returns.unwrap_or("Any"));
    let mut lines: Vec<String> = spec.description.trim().lines().map(|line| line.trim_end().to_owned()).collect();
    let described: Vec<String> = properties.iter().filter_map(|(name, schema)| described(name, schema)).collect();
    if !described.is_empty() {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(described);
    }
    if lines.is_empty() {
        return format!("{head} ...");
    }
    let text = lines.join("\n    ").replace("\n    \n", "\n\n").replace("\"\"\"", "'''");
    if lines.len() == 1 {
        return format!("{head}\n    \"\"\"{text}\"\"\"");
    }
    format!("{head}\n    \"\"\"{text}\n    \"\"\"")
}

fn described(name: &str, schema: &Value) -> Option<String> {
    let text = schema.get("description")?.as_str()?.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| format!("{name}: {text}"))
}

/// A schema as an annotation.
pub(super) fn annotation(schema: &Value, root: &Value) -> String {
    written(schema, root, DEPTH)
}

fn written(schema: &Value, root: &Value, depth: usize) -> String {
    let Some(object) = schema.as_object().filter(|_| depth > 0) else { return any() };
    if let Some(target) = object.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return found.map_or_else(any, |found| written(found, root, depth - 1));
    }
    if let Some(value) = object.get("const") {
        return format!("Literal[{}]", literal(value));
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array) {
        let mut shown: Vec<_> = values.iter().take(VALUES).map(literal).collect();
        if values.len() > VALUES {
            shown.push("...".to_owned());
        }
        return format!("Literal[{}]", shown.join(", "));
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(arms) = object.get(choice).and_then(Value::as_array) {
            return union(arms.iter().map(|arm| written(arm, root, depth)));
        }
    }
    if let Some([all]) = object.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        return written(all, root, depth);
    }
    match object.get("type") {
        Some(Value::String(kind)) => of_type(kind, object, root, depth),
        Some(Value::Array(kinds)) => {
            union(kinds.iter().filter_map(Value::as_str).map(|kind| of_type(kind, object, root, depth)))
        }
        _ if object.contains_key("properties") => of_type("object", object, root, depth),
        _ => any(),
    }
}

fn of_type(kind: &str, schema: &Object, root: &Value, depth: usize) -> String {
    match kind {
        "string" => "str".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "boolean" => "bool".to_owned(),
        "null" => "None".to_owned(),
        "array" => match schema.get("items") {
            Some(items) => format!("list[{}]", written(items, root, depth - 1)),
            None => "list".to_owned(),
        },
        "object" => of_object(schema, root, depth),
        _ => any(),
    }
}

fn of_object(schema: &Object, root: &Value, depth: usize) -> String {
    let properties = schema.get("properties").and_then(Value::as_object).filter(|found| !found.is_empty());
    let Some(properties) = properties else {
        return match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("dict[str, {}]", written(values, root, depth - 1)),
            _ => "dict".to_owned(),
        };
    };
    let whole = Value::Object(schema.clone());
    let entry = |(name, value): (&String, &Value)| {
        let annotation = written(value, root, depth - 1);
        let key = Value::from(name.as_str());
        if is_required(&whole, name) {
            format!("{key}: {annotation}")
        } else {
            format!("{key}: NotRequired[{annotation}]")
        }
    };
    format!("{{{}}}", properties.iter().map(entry).collect::<Vec<_>>().join(", "))
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema.get("required").and_then(Value::as_array).is_some_and(|required| required.iter().any(|key| key == name))
}

fn union(arms: impl Iterator<Item = String>) -> String {
    let mut shown: Vec<String> = Vec::new();
    for arm in arms {
        if !shown.contains(&arm) {
            shown.push(arm);
        }
    }
    if shown.is_empty() || shown.contains(&any()) { any() } else { shown.join(" | ") }
}

fn any() -> String {
    "Any".to_owned()
}

/// A JSON value as Python writes it.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(object) => {
            let entry = |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), literal(value));
            format!("{{{}}}", object.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}
