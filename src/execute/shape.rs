//! JSON schemas, compiled: what a value has to be, and what is wrong with one that is not.

use std::fmt::Write as _;

use boon::{Compiler, ErrorKind, InstanceToken, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

/// Where a schema is compiled as if it were there.
const ADDRESS: &str = "tenterhook:///schema.json";
/// How many complaints are told of one value.
const COMPLAINTS: usize = 8;
/// How long a complaint is at most, in characters.
const COMPLAINT: usize = 300;

/// A compiled schema.
pub(super) struct Shape {
    schemas: Schemas,
    index: SchemaIndex,
}

/// A schema stands alone: nothing is read from elsewhere, no file above all.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("`{url}` is elsewhere: a schema is to stand alone").into())
    }
}

impl Shape {
    /// Compiles a schema (draft 2020-12, unless it names another).
    ///
    /// # Errors
    ///
    /// What is wrong with the schema.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(Nowhere));
        let mut schemas = Schemas::new();
        compiler.add_resource(ADDRESS, schema.clone()).map_err(|error| error.to_string())?;
        let index = compiler.compile(ADDRESS, &mut schemas).map_err(|error| format!("{error:#}"))?;
        Ok(Self { schemas, index })
    }

    /// Whether a value fits.
    pub(super) fn fits(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }

    /// What is wrong with a value, one line each; none: it fits.
    pub(super) fn complaints(&self, value: &Value) -> Vec<String> {
        let mut complaints = Vec::new();
        if let Err(error) = self.schemas.validate(value, self.index) {
            collect(&error, &mut complaints);
        }
        complaints.dedup();
        complaints.truncate(COMPLAINTS);
        complaints
    }
}

/// The innermost of what is wrong: what stands around it says nothing that these do not.
fn collect(error: &ValidationError<'_, '_>, complaints: &mut Vec<String>) {
    if !error.causes.is_empty() && !matches!(error.kind, ErrorKind::OneOf(Some(_))) {
        for cause in &error.causes {
            collect(cause, complaints);
        }
        return;
    }
    let mut path = String::new();
    for token in &error.instance_location.tokens {
        let _ = match token {
            InstanceToken::Prop(name) => write!(path, "[{}]", Value::from(name.as_ref())),
            InstanceToken::Item(index) => write!(path, "[{index}]"),
        };
    }
    let place = if path.is_empty() { "the value as a whole".to_owned() } else { format!("the value at `{path}`") };
    let complaint = format!("{place}: {}", error.kind);
    complaints.push(complaint.chars().take(COMPLAINT).collect());
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Shape").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_with_a_value_is_told_with_its_place() {
        let schema = json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "integer"}}}});
        let shape = Shape::compile(&schema).unwrap();
        assert_eq!(shape.complaints(&json!({"rows": [1, 2]})), Vec::<String>::new());
        assert_eq!(
            shape.complaints(&json!({"rows": [1, "two"]})),
            ["the value at `[\"rows\"][1]`: want integer, but got string"]
        );
        assert_eq!(shape.complaints(&json!(3)), ["the value as a whole: want object, but got number"]);
    }

    #[test]
    fn a_schema_reads_no_file_and_no_other_address() {
        for elsewhere in ["file:///etc/passwd", "http://127.0.0.1:9/schema.json", "other.json"] {
            assert!(Shape::compile(&json!({"$ref": elsewhere})).is_err(), "{elsewhere}");
        }
    }

    #[test]
    fn what_is_no_schema_does_not_compile() {
        assert!(Shape::compile(&json!({"type": "sometimes"})).is_err());
        assert!(Shape::compile(&json!({"type": "string", "pattern": "("})).is_err());
    }
}
