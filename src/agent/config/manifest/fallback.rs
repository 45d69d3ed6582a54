//! `fallback_configuration`: what becomes of failed calls of a tool set.

use super::choices::choice;
use super::sections::{FALLBACK, STRATEGY, TRIGGER_ON};
use crate::agent::config::report::{Field, Fields, Report};
use crate::quickapp::{FallbackConfiguration, Strategy, Trigger};

/// What a strategy does.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Stop,
    Continue,
    Retry,
}

const STRATEGIES: [(&str, Does); 3] = [("stop", Does::Stop), ("continue", Does::Continue), ("retry", Does::Retry)];

/// How a trigger compares.
#[derive(Clone, Copy)]
enum Compares {
    Contains,
    Equals,
}

const TRIGGERS: [(&str, Compares); 2] = [("contains", Compares::Contains), ("equals", Compares::Equals)];

/// Reads it; none where something in it is wrong, all of which is told.
pub(super) fn read(field: &Field<'_>, report: &mut Report) -> Option<FallbackConfiguration> {
    let fields = report.fields(field, &FALLBACK)?;
    let mut configuration = FallbackConfiguration::default();
    let mut wrong = false;
    if let Some(shown) = fields.get("display_error_in_stage") {
        let shown = report.flag(&shown);
        wrong |= shown.is_none();
        configuration.display_error_in_stage = shown.unwrap_or_default();
    }
    if let Some(list) = fields.get("strategies") {
        let items = report.items(&list, "a list of strategies");
        let read: Vec<_> = items.iter().map(|item| strategy(item, report)).collect();
        let read: Option<Vec<_>> = read.into_iter().collect();
        wrong |= read.is_none();
        configuration.strategies = read.unwrap_or_default();
    }
    (!wrong).then_some(configuration)
}

fn strategy(item: &Field<'_>, report: &mut Report) -> Option<Strategy> {
    let fields = report.fields(item, &STRATEGY)?;
    let does = fields.require("type", report).and_then(|kind| choice(&kind, "type of strategy", &STRATEGIES, report));
    let trigger_on = optional(&fields, "trigger_on", report, trigger);
    let instructions = optional(&fields, "instructions", report, |field, report| report.text(field));
    let forward = optional(&fields, "forward_tool_error_message", report, |field, report| report.flag(field));
    let (does, trigger_on, instructions, forward) = (does?, trigger_on?, instructions?, forward?);
    let unused: &[&str] = match does {
        Does::Stop => &["instructions", "forward_tool_error_message"],
        Does::Retry => &["forward_tool_error_message"],
        Does::Continue => &[],
    };
    for (key, field) in fields.all().filter(|(key, _)| unused.contains(key)) {
        let name = STRATEGIES.iter().find(|(_, known)| *known == does).map_or("", |(name, _)| name);
        let message = format!("`{}` has no effect: the strategy is `{name}`", field.name);
        report.warning("misplaced-key", fields.place(key), message, None);
    }
    let strategy = match does {
        Does::Stop => Strategy::Stop { trigger_on },
        Does::Continue => {
            let forward_tool_error_message = forward.unwrap_or_default();
            Strategy::Continue { trigger_on, instructions, forward_tool_error_message }
        }
        Does::Retry => {
            fields.require("instructions", report)?;
            Strategy::Retry { trigger_on, instructions: instructions.unwrap_or_default() }
        }
    };
    if strategy.is_mute() {
        let hint = match does {
            Does::Retry => "say in `instructions` how the tool is to be called",
            _ => "add `instructions`, or `forward_tool_error_message`",
        };
        let message = format!("`{}` has nothing to say of the errors that it is for", item.name);
        report.error("mute-strategy", item.node.place, message, hint.to_owned());
        return None;
    }
    Some(strategy)
}

fn trigger(field: &Field<'_>, report: &mut Report) -> Option<Trigger> {
    let fields = report.fields(field, &TRIGGER_ON)?;
    let compares = fields.require("type", report).and_then(|kind| choice(&kind, "type of trigger", &TRIGGERS, report));
    let value = fields.require("value", report).and_then(|value| report.text(&value));
    let case_sensitive = optional(&fields, "case_sensitive", report, |field, report| report.flag(field))?;
    let (value, case_sensitive) = (value?, case_sensitive.unwrap_or_default());
    Some(match compares? {
        Compares::Contains => Trigger::Contains { value, case_sensitive },
        Compares::Equals => Trigger::Equals { value, case_sensitive },
    })
}

/// The value of a key that need not be there. The outer value is none where it is wrong.
#[expect(clippy::option_option, reason = "no value and a wrong one are two things")]
fn optional<T>(
    fields: &Fields<'_>,
    key: &str,
    report: &mut Report,
    read: impl FnOnce(&Field<'_>, &mut Report) -> Option<T>,
) -> Option<Option<T>> {
    match fields.get(key) {
        Some(field) => read(&field, report).map(Some),
        None => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{manifest, mcp};
    use super::*;

    fn with(configuration: Value) -> (Option<FallbackConfiguration>, Vec<String>) {
        let mut set = mcp("m");
        set["fallback_configuration"] = configuration;
        let (read, found) = manifest(&json!({"tool_sets": [set]}).to_string());
        (read.map(|read| read.app.tool_sets[0].fallback.clone()), found)
    }

    /// What is said, without the place: all stands on one line.
    fn told(configuration: Value) -> Vec<String> {
        with(configuration).1.iter().map(|told| told.split_once(": ").unwrap().1.to_owned()).collect()
    }

    #[test]
    fn strategies_are_read_as_they_are_written() {
        let contains = |value: &str, case_sensitive| Trigger::Contains { value: value.into(), case_sensitive };
        let (read, found) = with(json!({
            "strategies": [
                {"type": "stop", "trigger_on": {"type": "contains", "value": "quota"}},
                {"type": "retry", "trigger_on": {"type": "contains", "value": "Name", "case_sensitive": true}, "instructions": "Shorter."},
                {"type": "continue", "trigger_on": {"type": "equals", "value": "gone"}, "forward_tool_error_message": true},
                {"type": "continue", "trigger_on": null, "instructions": "Go on."},
            ],
            "display_error_in_stage": false,
        }));
        assert_eq!(found, Vec::<String>::new());
        let strategies = vec![
            Strategy::Stop { trigger_on: Some(contains("quota", false)) },
            Strategy::Retry { trigger_on: Some(contains("Name", true)), instructions: "Shorter.".into() },
            Strategy::Continue {
                trigger_on: Some(Trigger::Equals { value: "gone".into(), case_sensitive: false }),
                instructions: None,
                forward_tool_error_message: true,
            },
            Strategy::Continue {
                trigger_on: None,
                instructions: Some("Go on.".into()),
                forward_tool_error_message: false,
            },
        ];
        assert_eq!(read, Some(FallbackConfiguration { strategies, display_error_in_stage: false }));
    }

    #[test]
    fn what_is_not_said_has_the_defaults() {
        assert_eq!(with(json!({})), (Some(FallbackConfiguration::default()), vec![]));
        assert_eq!(with(Value::Null), (Some(FallbackConfiguration::default()), vec![]));
        let none = FallbackConfiguration { strategies: vec![], display_error_in_stage: true };
        assert_eq!(with(json!({"strategies": []})), (Some(none), vec![]));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let at = "tool_sets[0].fallback_configuration.strategies[0]";
        for (strategy, expected) in [
            (json!({}), format!("error[missing-key]: `{at}.type` is missing")),
            (
                json!({"type": "contine"}),
                "error[invalid-value]: There is no type of strategy `contine`\n  hint: did you mean `continue`?"
                    .to_owned(),
            ),
            (json!({"type": "retry"}), format!("error[missing-key]: `{at}.instructions` is missing")),
            (
                json!({"type": "retry", "instructions": " "}),
                format!(
                    "error[mute-strategy]: `{at}` has nothing to say of the errors that it is for\n  hint: say in `instructions` how the tool is to be called"
                ),
            ),
            (
                json!({"type": "continue", "trigger_on": {"type": "equals", "value": "x"}}),
                format!(
                    "error[mute-strategy]: `{at}` has nothing to say of the errors that it is for\n  hint: add `instructions`, or `forward_tool_error_message`"
                ),
            ),
            (
                json!({"type": "stop", "instructions": "x"}),
                format!("warning[misplaced-key]: `{at}.instructions` has no effect: the strategy is `stop`"),
            ),
            (
                json!({"type": "stop", "trigger_on": {"type": "regex", "value": "x"}}),
                "error[invalid-value]: There is no type of trigger `regex`\n  hint: there are `contains`, `equals`"
                    .to_owned(),
            ),
            (
                json!({"type": "stop", "trigger_on": {"type": "equals"}}),
                format!("error[missing-key]: `{at}.trigger_on.value` is missing"),
            ),
        ] {
            assert_eq!(told(json!({"strategies": [strategy]})), [expected], "{strategy}");
        }
    }
}
