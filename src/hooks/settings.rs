//! The per-call model settings that a hook may give. Everything else is ignored (Hooks document, `modify_model_request`).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::Object;

/// What a setting's value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// A finite number; a bool is no number.
    Number,
    /// A whole number; neither a bool nor a float is one.
    Integer,
    /// A string or a list of strings.
    Stop,
}

/// Overrides for one model call: allow-listed keys only, each of its right type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Object")]
pub struct ModelSettings(Object);

impl ModelSettings {
    /// The keys that a hook may set, and what each must be.
    pub const ALLOWED: [(&'static str, SettingKind); 7] = [
        ("temperature", SettingKind::Number),
        ("top_p", SettingKind::Number),
        ("max_tokens", SettingKind::Integer),
        ("presence_penalty", SettingKind::Number),
        ("frequency_penalty", SettingKind::Number),
        ("stop", SettingKind::Stop),
        ("seed", SettingKind::Integer),
    ];

    /// Whether `value` may stand under `key`.
    pub fn admits(key: &str, value: &Value) -> bool {
        let Some((_, kind)) = Self::ALLOWED.iter().find(|(name, _)| *name == key) else {
            return false;
        };
        match (kind, value) {
            (SettingKind::Number, Value::Number(_)) | (SettingKind::Stop, Value::String(_)) => true,
            (SettingKind::Integer, Value::Number(number)) => number.is_i64() || number.is_u64(),
            (SettingKind::Stop, Value::Array(items)) => items.iter().all(Value::is_string),
            _ => false,
        }
    }

    /// Sets `key`, where the allow-list admits the value; else it stays as it was and the answer is `false`.
    pub fn set(&mut self, key: &str, value: Value) -> bool {
        let admitted = Self::admits(key, &value);
        if admitted {
            self.0.insert(key.to_owned(), value);
        }
        admitted
    }

    /// The settings as a JSON object.
    pub fn as_object(&self) -> &Object {
        &self.0
    }
}

impl From<Object> for ModelSettings {
    /// Keeps what the allow-list admits.
    fn from(object: Object) -> Self {
        Self(object.into_iter().filter(|(key, value)| Self::admits(key, value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_allow_listed_keys_of_the_right_type_stay() {
        let given = json!({
            "temperature": 0.2, "top_p": true, "max_tokens": 10.0, "presence_penalty": "1", "frequency_penalty": 1,
            "stop": ["a", 1], "seed": 7, "model": "other", "api_key": "k",
        });
        let settings: ModelSettings = serde_json::from_value(given).unwrap();
        assert_eq!(Value::from(settings.0), json!({"temperature": 0.2, "frequency_penalty": 1, "seed": 7}));
    }

    #[test]
    fn stop_is_a_string_or_a_list_of_strings() {
        assert!(ModelSettings::admits("stop", &json!("END")));
        assert!(ModelSettings::admits("stop", &json!(["END", "STOP"])));
        assert!(!ModelSettings::admits("stop", &json!({"a": "END"})));
    }
}
