//! `hooks`: which tool is called when, with what.

use super::choices::choice;
use super::sections::{HOOK, REFRESH};
use super::templates::{self, CheckTemplates, Content};
use crate::agent::config::report::{Field, Fields, Report};
use crate::agent::config::yaml::{Node, Yaml};
use crate::conversation::Object;
use crate::diagnostic::Place;
use crate::quickapp::{AppHook, COMPLETION_TIMEOUT, Frequency, HookEvent, START_TIMEOUT};

/// How many hooks a manifest may have.
const MOST_HOOKS: usize = 1_000;

/// The two events, by the names that manifests and templates have for them.
#[derive(Clone, Copy, PartialEq)]
enum Event {
    Start,
    Completion,
}

const EVENTS: [(&str, Event); 2] = [("on_request_start", Event::Start), ("on_completion", Event::Completion)];
const FREQUENCIES: [(&str, Frequency); 2] =
    [("append_if_changed", Frequency::AppendIfChanged), ("always", Frequency::Always)];

/// Keys that say how often a result joins the conversation: one of a completion hook does not.
const OF_START: [&str; 2] = ["frequency", "refresh_condition"];

/// A hook, and where it names what.
pub(super) struct ReadHook {
    pub(super) hook: AppHook,
    /// Where its tool set is named, or would be.
    pub(super) toolset: Place,
    /// Where its tool is named.
    pub(super) tool: Place,
}

/// Reads the list, in its order. A hook is left out where something in it is wrong, all of which is told.
pub(super) fn read(field: &Field<'_>, report: &mut Report, templates: Option<&dyn CheckTemplates>) -> Vec<ReadHook> {
    let items = report.items(field, "a list of hooks");
    if let Some(more) = items.get(MOST_HOOKS) {
        let message = format!("There are {} hooks, more than {MOST_HOOKS}", items.len());
        report.error("invalid-value", more.node.place, message, None);
    }
    items.iter().take(MOST_HOOKS).filter_map(|item| hook(item, report, templates)).collect()
}

fn hook(item: &Field<'_>, report: &mut Report, templates: Option<&dyn CheckTemplates>) -> Option<ReadHook> {
    let fields = report.fields(item, &HOOK)?;
    if let Some(kind) = fields.require("kind", report) {
        choice(&kind, "kind of hook", &[("tool_call", ())], report);
    }
    let event = fields.require("event", report).and_then(|event| choice(&event, "event", &EVENTS, report));
    let tool = fields.require("tool_name", report).and_then(|tool| report.text(&tool));
    let toolset_name = fields.get("toolset_name").and_then(|name| report.text(&name));
    let name = fields.get("name").and_then(|name| report.text(&name)).filter(|name| !name.trim().is_empty());
    let timeout = fields.get("timeout_seconds").and_then(|limit| report.time(&limit, ("seconds", 1.0), false));
    let frequency = fields.get("frequency").and_then(|often| choice(&often, "frequency", &FREQUENCIES, report));
    let ttl_minutes = fields.get("refresh_condition").and_then(|condition| refresh(&condition, report));
    let (arguments, content) = fields.get("arguments").and_then(|field| arguments(&field, report)).unwrap_or_default();
    judge(&fields, event, content, report);
    if let (Some(templates), Some(event), Some(field)) = (templates, event, fields.get("arguments"))
        && content > Content::Literal
    {
        let named = EVENTS.iter().find(|(_, known)| *known == event).map_or("", |(name, _)| name);
        templates::check(&field, named, templates, report);
    }
    let (event, default) = match event? {
        Event::Start => {
            (HookEvent::RequestStart { frequency: frequency.unwrap_or_default(), ttl_minutes }, START_TIMEOUT)
        }
        Event::Completion => (HookEvent::Completion, COMPLETION_TIMEOUT),
    };
    let hook = AppHook {
        name,
        event,
        toolset_name,
        tool_name: tool?,
        arguments,
        is_template: content > Content::Literal,
        timeout: timeout.unwrap_or(default),
    };
    Some(ReadHook { hook, toolset: place_of(&fields, "toolset_name"), tool: place_of(&fields, "tool_name") })
}

/// What keys say that are wrong only beside others.
fn judge(fields: &Fields<'_>, event: Option<Event>, content: Content, report: &mut Report) {
    if event == Some(Event::Completion) {
        for key in OF_START.into_iter().filter(|key| fields.get(key).is_some()) {
            let message = format!("'{key}' is only supported for event 'on_request_start'");
            let hint = "take it out: the result of a completion hook is discarded".to_owned();
            report.error("misplaced-key", fields.place(key), message, hint);
        }
    } else if content == Content::Template && fields.get("refresh_condition").is_some() {
        let message = "'refresh_condition' cannot be combined with '${...}' placeholders in 'arguments'".to_owned();
        let hint = "keep one of the two: a result that is kept for a time cannot be of this request".to_owned();
        report.error("conflicting-keys", fields.place("refresh_condition"), message, hint);
        report.relate("the arguments are a template", fields.place("arguments"));
    }
}

/// After how many minutes a result is asked for again.
fn refresh(field: &Field<'_>, report: &mut Report) -> Option<u64> {
    let fields = report.fields(field, &REFRESH)?;
    if let Some(kind) = fields.require("kind", report) {
        choice(&kind, "kind of condition", &[("ttl", ())], report);
    }
    fields.require("ttl_minutes", report).and_then(|minutes| report.whole(&minutes, 1..=u32::MAX)).map(u64::from)
}

fn arguments(field: &Field<'_>, report: &mut Report) -> Option<(Object, Content)> {
    report.free_fields(field)?;
    if let Some(place) = endless(field.node) {
        let message = format!("`{}` has a number that JSON does not have", field.name);
        report.error("invalid-value", place, message, None);
    }
    match field.node.json() {
        serde_json::Value::Object(arguments) => Some((arguments, templates::content(field.node))),
        _ => None,
    }
}

/// Where an infinite number stands, or none at all: YAML has them.
fn endless(node: &Node) -> Option<Place> {
    match &node.value {
        Yaml::Float(number) => (!number.is_finite()).then_some(node.place),
        Yaml::List(items) => items.iter().find_map(endless),
        Yaml::Map(entries) => entries.iter().find_map(|entry| endless(&entry.value)),
        _ => None,
    }
}

/// The place of a key's value.
fn place_of(fields: &Fields<'_>, key: &str) -> Place {
    fields.get(key).map_or_else(|| fields.place(key), |field| field.node.place)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{manifest, yaml};
    use super::*;

    /// A manifest with a hook of the one internal tool, with some keys set.
    fn with(event: &str, keys: &Value) -> (Option<AppHook>, Vec<String>) {
        let mut hook = json!({"kind": "tool_call", "event": event, "tool_name": "t"});
        for (key, value) in keys.as_object().unwrap() {
            hook[key] = value.clone();
        }
        let set = json!({"type": "internal", "name": "own", "tools": ["t"]});
        let (read, found) = manifest(&json!({"tool_sets": [set], "hooks": [hook]}).to_string());
        let bare = found.iter().map(|told| told.split_once(": ").unwrap().1.to_owned());
        (read.map(|mut read| read.app.hooks.remove(0)), bare.collect())
    }

    #[test]
    fn the_rows_of_the_table_hold() {
        let event = |read: (Option<AppHook>, Vec<String>)| read.0.unwrap().event;
        let start = |frequency, ttl_minutes| HookEvent::RequestStart { frequency, ttl_minutes };
        let (hook, found) = with("on_request_start", &json!({}));
        let hook = hook.unwrap();
        assert_eq!(found, Vec::<String>::new());
        assert_eq!((hook.timeout, hook.event), (START_TIMEOUT, start(Frequency::AppendIfChanged, None)));
        assert_eq!((hook.label(), hook.arguments.len(), hook.is_template), ("t", 0, false));
        let (hook, _) = with("on_completion", &json!({"name": " ", "timeout_seconds": 2.5}));
        let hook = hook.unwrap();
        assert_eq!((hook.timeout.as_secs_f64(), hook.event, hook.name), (2.5, HookEvent::Completion, None));
        assert_eq!(with("on_completion", &json!({})).0.unwrap().timeout, COMPLETION_TIMEOUT);
        let ttl = json!({"kind": "ttl", "ttl_minutes": 10});
        let always = json!({"frequency": "always", "refresh_condition": ttl});
        assert_eq!(event(with("on_request_start", &always)), start(Frequency::Always, Some(10)));
        let literal = json!({"refresh_condition": ttl, "arguments": {"a": ["$${x}", 7, {"$$eval": "b"}]}});
        let hook = with("on_request_start", &literal).0.unwrap();
        assert_eq!((hook.event, hook.is_template), (start(Frequency::AppendIfChanged, Some(10)), true));
        // A key without a value is as none.
        assert_eq!(event(with("on_completion", &json!({"frequency": null}))), HookEvent::Completion);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let never = "take it out: the result of a completion hook is discarded";
        let ttl = json!({"kind": "ttl", "ttl_minutes": 10});
        for (event, keys, expected) in [
            ("on_request_start", json!({"kind": null}), "error[missing-key]: `hooks[0].kind` is missing"),
            (
                "on_request_start",
                json!({"kind": "http"}),
                "error[invalid-value]: There is no kind of hook `http`\n  hint: there is only `tool_call`",
            ),
            (
                "on_requst_start",
                json!({}),
                "error[invalid-value]: There is no event `on_requst_start`\n  hint: did you mean `on_request_start`?",
            ),
            ("on_request_start", json!({"event": null}), "error[missing-key]: `hooks[0].event` is missing"),
            ("on_completion", json!({"tool_name": null}), "error[missing-key]: `hooks[0].tool_name` is missing"),
            (
                "on_completion",
                json!({"frequency": "append_if_changed"}),
                &format!(
                    "error[misplaced-key]: 'frequency' is only supported for event 'on_request_start'\n  hint: {never}"
                ),
            ),
            (
                "on_completion",
                json!({"refresh_condition": ttl}),
                &format!(
                    "error[misplaced-key]: 'refresh_condition' is only supported for event 'on_request_start'\n  hint: {never}"
                ),
            ),
            (
                "on_request_start",
                json!({"refresh_condition": ttl, "arguments": {"a": [{"k${x}": 1}]}}),
                "error[conflicting-keys]: 'refresh_condition' cannot be combined with '${...}' placeholders in 'arguments'\n  hint: keep \
                 one of the two: a result that is kept for a time cannot be of this request",
            ),
            (
                "on_request_start",
                json!({"frequency": "once"}),
                "error[invalid-value]: There is no frequency `once`\n  hint: there are `append_if_changed`, `always`",
            ),
            (
                "on_request_start",
                json!({"refresh_condition": {"kind": "cron", "ttl_minutes": 1}}),
                "error[invalid-value]: There is no kind of condition `cron`\n  hint: there is only `ttl`",
            ),
            (
                "on_request_start",
                json!({"refresh_condition": {"kind": "ttl", "ttl_minutes": 0}}),
                "error[invalid-value]: `hooks[0].refresh_condition.ttl_minutes` is 0, not at least 1",
            ),
            (
                "on_request_start",
                json!({"refresh_condition": {"kind": "ttl", "ttl_minutes": 1.5}}),
                "error[wrong-type]: `hooks[0].refresh_condition.ttl_minutes` is a number, expected a whole number",
            ),
            (
                "on_request_start",
                json!({"refresh_condition": {}}),
                "error[missing-key]: `hooks[0].refresh_condition.kind` is missing|error[missing-key]: \
                 `hooks[0].refresh_condition.ttl_minutes` is missing",
            ),
            (
                "on_completion",
                json!({"timeout_seconds": 0}),
                "error[invalid-value]: `hooks[0].timeout_seconds` is 0, not more than 0 seconds, and at most a year",
            ),
            (
                "on_completion",
                json!({"timeout_seconds": -0.5}),
                "error[invalid-value]: `hooks[0].timeout_seconds` is -0.5, not more than 0 seconds, and at most a year",
            ),
            (
                "on_completion",
                json!({"arguments": [1]}),
                "error[wrong-type]: `hooks[0].arguments` is a list, expected a mapping",
            ),
            (
                "on_completion",
                json!({"argument": {}}),
                "warning[unknown-key]: `hooks[0].argument` has no effect: there is no such key\n  hint: did you mean `arguments`?",
            ),
            (
                "on_completion",
                json!({"allowed_tools": []}),
                "warning[misplaced-key]: `hooks[0].allowed_tools` has no effect: `allowed_tools` belongs elsewhere\n  hint: move it to \
                 `tool_sets[type=mcp]`",
            ),
        ] {
            let (read, found) = with(event, &keys);
            assert_eq!(found.join("|"), expected, "{keys}");
            assert_eq!(read.is_some(), expected.starts_with("warning"), "{keys}");
        }
    }

    #[test]
    fn a_time_is_more_than_none() {
        for (seconds, expected) in [(json!(0), "0"), (json!(-1), "-1"), (json!(-0.5), "-0.5")] {
            let (read, found) = with("on_request_start", &json!({"timeout_seconds": seconds}));
            assert_eq!(
                (read, found),
                (
                    None,
                    vec![format!(
                        "error[invalid-value]: `hooks[0].timeout_seconds` is {expected}, not more than 0 seconds, and at most a year"
                    )]
                )
            );
        }
        let read = with("on_request_start", &json!({"timeout_seconds": 2.5})).0.unwrap();
        assert_eq!(read.timeout, std::time::Duration::from_millis(2_500));
    }

    #[test]
    fn there_are_two_events_and_no_other() {
        let other = ["on_pre_llm", "on_pre_tool_use", "on_post_tool_use", "on_iteration_end", "ON_COMPLETION", ""];
        for event in other {
            let (read, found) = with(event, &json!({}));
            let told = format!("error[invalid-value]: There is no event `{event}`\n  hint: ");
            assert!(read.is_none() && found.len() == 1 && found[0].starts_with(&told), "{found:?}");
        }
    }

    #[test]
    fn numbers_that_json_does_not_have_are_told() {
        let text = "hooks:\n  - kind: tool_call\n    event: on_completion\n    tool_name: x_y\n    arguments: {a: [{b: -.inf}]}\n";
        let set = "tool_sets: [{type: mcp, name: x, mcp_server_info: {command: serve}}]\n";
        assert_eq!(
            yaml(&format!("{text}{set}")).1,
            ["app.yml:5:25: error[invalid-value]: `hooks[0].arguments` has a number that JSON does not have"]
        );
    }
}
