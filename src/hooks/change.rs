//! What a hook has changed in a payload.

use serde::Serialize;

use super::payload::AnyPayload;
use crate::conversation::Object;

/// The fields that two payloads differ in, by their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Changed {
    /// As they entered the hook.
    pub before: Object,
    /// As it left them.
    pub after: Object,
}

impl Changed {
    /// The fields in which `after` is not what `before` was.
    pub(crate) fn between(before: &AnyPayload, after: &AnyPayload) -> Self {
        let (mut before, mut after) = (fields(before), fields(after));
        before.retain(|name, value| after.get(name) != Some(value));
        after.retain(|name, _| before.contains_key(name));
        Self { before, after }
    }
}

fn fields(payload: &AnyPayload) -> Object {
    match serde_json::to_value(payload) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => Object::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hooks::{OutgoingTextPayload, Payload as _};

    #[test]
    fn only_fields_that_differ_are_told() {
        let before = OutgoingTextPayload::new("s", "My card is 4111").into_any();
        let after = OutgoingTextPayload::new("s", "My card is ****").into_any();
        let changed = Changed::between(&before, &after);
        assert_eq!(
            json!(changed),
            json!({"before": {"text": "My card is 4111"}, "after": {"text": "My card is ****"}})
        );
        assert_eq!(Changed::between(&before, &before), Changed::default());
    }
}
