//! What a tool set makes of a failed call: an account that the model reads, or an end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the model reads where a strategy goes on and says nothing of its own.
const CONTINUE: &str = "The tool failed and gave no result. Go on without it.";

/// A tool set's `fallback_configuration`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct FallbackConfiguration {
    /// In order; the first that fits and has something to say is taken. By default each failure is told to the model, which goes on.
    pub(crate) strategies: Vec<Strategy>,
    /// Whether the error is shown to the user where the call is shown.
    pub(crate) display_error_in_stage: bool,
}

impl Default for FallbackConfiguration {
    fn default() -> Self {
        let go_on = Strategy::Continue { trigger_on: None, instructions: None, forward_tool_error_message: false };
        Self { strategies: vec![go_on], display_error_in_stage: true }
    }
}

/// One way to deal with a failure. Without `trigger_on` it fits every error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Strategy {
    /// The turn ends; a hook is skipped.
    Stop {
        /// Which errors.
        #[serde(default)]
        trigger_on: Option<Trigger>,
    },
    /// The model is told and goes on.
    Continue {
        /// Which errors.
        #[serde(default)]
        trigger_on: Option<Trigger>,
        /// What the model is told.
        #[serde(default)]
        instructions: Option<String>,
        /// Whether it is told the tool's own words as well, below the instructions.
        #[serde(default)]
        forward_tool_error_message: bool,
    },
    /// The model is told how to call the tool better.
    Retry {
        /// Which errors.
        #[serde(default)]
        trigger_on: Option<Trigger>,
        /// What the model is told.
        instructions: String,
    },
}

/// Which errors a strategy fits, by their text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Trigger {
    /// Those that have this in their text.
    Contains {
        /// The text.
        value: String,
        /// Whether small and capital letters differ.
        #[serde(default)]
        case_sensitive: bool,
    },
    /// Those that are this text.
    Equals {
        /// The text.
        value: String,
        /// Whether small and capital letters differ.
        #[serde(default)]
        case_sensitive: bool,
    },
}

/// What becomes of a failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// The turn ends; a hook is skipped.
    Stop,
    /// This is the result of the call.
    Result(String),
    /// So is this; it asks the model to call again. Nobody else does.
    Retry {
        /// What the model reads.
        instructions: String,
    },
    /// No strategy fits: the error stays an error.
    None,
}

/// What becomes of a call that has failed with this error, by the first strategy that fits and has something to say.
pub(crate) fn resolve(strategies: &[Strategy], error: &str) -> Fallback {
    strategies.iter().find_map(|strategy| strategy.answer(error)).unwrap_or(Fallback::None)
}

impl Strategy {
    /// Whether it has nothing to say where it has to: a manifest with it should be refused.
    ///
    /// A strategy to go on that is for some errors has to say something about them; one to retry has to say how.
    pub(crate) fn is_mute(&self) -> bool {
        match self {
            Self::Stop { .. } => false,
            Self::Continue { trigger_on, instructions, forward_tool_error_message } => {
                trigger_on.is_some() && !forward_tool_error_message && said(instructions.as_deref()).is_none()
            }
            Self::Retry { instructions, .. } => said(Some(instructions)).is_none(),
        }
    }

    fn answer(&self, error: &str) -> Option<Fallback> {
        let (Self::Stop { trigger_on } | Self::Continue { trigger_on, .. } | Self::Retry { trigger_on, .. }) = self;
        if trigger_on.as_ref().is_some_and(|trigger| !trigger.fits(error)) {
            return None;
        }
        match self {
            Self::Stop { .. } => Some(Fallback::Stop),
            Self::Continue { instructions, forward_tool_error_message, .. } => {
                let forwarded = forward_tool_error_message.then_some(error);
                let parts: Vec<_> = said(instructions.as_deref()).into_iter().chain(said(forwarded)).collect();
                let general = parts.is_empty() && trigger_on.is_none();
                let text = if general { CONTINUE.to_owned() } else { parts.join("\n\n") };
                (!text.is_empty()).then_some(Fallback::Result(text))
            }
            Self::Retry { instructions, .. } => {
                said(Some(instructions)).map(|instructions| Fallback::Retry { instructions: instructions.to_owned() })
            }
        }
    }
}

impl Trigger {
    fn fits(&self, error: &str) -> bool {
        let compare: fn(&str, &str) -> bool = match self {
            Self::Contains { .. } => |error, value| error.contains(value),
            Self::Equals { .. } => |error, value| error == value,
        };
        let (Self::Contains { value, case_sensitive } | Self::Equals { value, case_sensitive }) = self;
        if *case_sensitive { compare(error, value) } else { compare(&error.to_lowercase(), &value.to_lowercase()) }
    }
}

/// The text, where it is one.
fn said(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn strategies(value: Value) -> Vec<Strategy> {
        serde_json::from_value(value).unwrap()
    }

    fn result(text: &str) -> Fallback {
        Fallback::Result(text.into())
    }

    #[test]
    fn by_default_every_failure_is_told_and_shown() {
        let configuration: FallbackConfiguration = serde_json::from_value(json!({})).unwrap();
        assert_eq!(configuration, FallbackConfiguration::default());
        assert_eq!(configuration.strategies, strategies(json!([{"type": "continue"}])));
        assert!(configuration.display_error_in_stage);
        assert_eq!(resolve(&configuration.strategies, "connection refused"), result(CONTINUE));
        assert_eq!(resolve(&configuration.strategies, ""), result(CONTINUE));
    }

    #[test]
    fn unknown_fields_are_left_to_others() {
        let strategies = strategies(json!([{"type": "stop", "trigger_on": null, "new": 1}]));
        assert_eq!(strategies, [Strategy::Stop { trigger_on: None }]);
    }

    #[test]
    fn a_retry_needs_instructions_and_a_strategy_a_known_type() {
        assert!(serde_json::from_value::<Strategy>(json!({"type": "retry"})).is_err());
        assert!(serde_json::from_value::<Strategy>(json!({"type": "ignore"})).is_err());
        assert!(
            serde_json::from_value::<Strategy>(json!({"type": "stop", "trigger_on": {"type": "regex", "value": "x"}}))
                .is_err()
        );
    }

    #[test]
    fn each_strategy_has_its_answer() {
        for (strategy, expected) in [
            (json!({"type": "stop"}), Fallback::Stop),
            (json!({"type": "continue", "instructions": "Say so."}), result("Say so.")),
            (json!({"type": "continue", "forward_tool_error_message": true}), result("Not found")),
            (
                json!({"type": "continue", "instructions": "Say so.", "forward_tool_error_message": true}),
                result("Say so.\n\nNot found"),
            ),
            (json!({"type": "continue", "instructions": " "}), result(CONTINUE)),
            (
                json!({"type": "retry", "instructions": "Try a shorter name."}),
                Fallback::Retry { instructions: "Try a shorter name.".into() },
            ),
        ] {
            assert_eq!(resolve(&strategies(json!([strategy])), "Not found"), expected, "{strategy}");
        }
    }

    #[test]
    fn a_trigger_fits_by_text() {
        for (trigger, error, fits) in [
            (json!(null), "anything", true),
            (json!({"type": "contains", "value": "TIMEOUT"}), "Gateway timeout (504)", true),
            (json!({"type": "contains", "value": "TIMEOUT", "case_sensitive": true}), "Gateway timeout (504)", false),
            (json!({"type": "contains", "value": "timeout", "case_sensitive": true}), "Gateway timeout (504)", true),
            (json!({"type": "contains", "value": "504!"}), "Gateway timeout (504)", false),
            (json!({"type": "equals", "value": "not found"}), "Not Found", true),
            (json!({"type": "equals", "value": "not found"}), "Not Found.", false),
            (json!({"type": "equals", "value": "not found", "case_sensitive": true}), "Not Found", false),
            (json!({"type": "equals", "value": "ПОМИЛКА"}), "Помилка", true),
        ] {
            let strategies = strategies(json!([{"type": "stop", "trigger_on": trigger}]));
            let expected = if fits { Fallback::Stop } else { Fallback::None };
            assert_eq!(resolve(&strategies, error), expected, "{trigger} on {error}");
        }
    }

    #[test]
    fn the_first_that_fits_and_has_something_to_say_is_taken() {
        let on = |value: &str| json!({"type": "contains", "value": value});
        let strategies = strategies(json!([
            {"type": "retry", "trigger_on": on("name"), "instructions": "Shorter."},
            {"type": "continue", "trigger_on": on("quota")},
            {"type": "retry", "trigger_on": on("quota"), "instructions": "  "},
            {"type": "stop", "trigger_on": on("quota")},
            {"type": "continue", "trigger_on": on("n"), "instructions": "Go on."},
        ]));
        assert_eq!(resolve(&strategies, "bad name"), Fallback::Retry { instructions: "Shorter.".into() });
        assert_eq!(resolve(&strategies, "quota"), Fallback::Stop);
        assert_eq!(resolve(&strategies, "not now"), result("Go on."));
        assert_eq!(resolve(&strategies, "xyz"), Fallback::None);
        assert_eq!(resolve(&[], "xyz"), Fallback::None);
        assert_eq!(strategies.iter().map(Strategy::is_mute).collect::<Vec<_>>(), [false, true, true, false, false]);
    }

    #[test]
    fn an_error_without_text_is_not_forwarded() {
        let forward = json!({"type": "continue", "forward_tool_error_message": true});
        assert_eq!(resolve(&strategies(json!([forward])), " "), result(CONTINUE));
        let triggered = json!({"type": "continue", "trigger_on": {"type": "equals", "value": ""}, "forward_tool_error_message": true});
        assert_eq!(resolve(&strategies(json!([triggered, {"type": "stop"}])), ""), Fallback::Stop);
    }
}
