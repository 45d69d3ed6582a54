//! `responses.yml`: the fixed texts of an agent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::conditions;
use super::report::{Field, Report};
use super::sections::{BUTTON, METADATA, RESPONSES_TOP, VARIANT, comparable};
use crate::condition::Condition;
use crate::conversation::Object;
use crate::skill::References;
use crate::turn::{self, Rendered, Response};

/// The responses of an agent, and those that it has without saying so.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Responses {
    own: BTreeMap<String, Vec<Variant>>,
    /// What its conditions name.
    pub(super) references: References,
}

/// One wording of a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Variant {
    /// The text, with its placeholders.
    pub(crate) text: String,
    /// When it is said; always, where there is none.
    pub(crate) condition: Option<Condition>,
    /// Whether the model words it anew.
    pub(crate) rephrase: bool,
    /// All of its metadata.
    pub(crate) metadata: Object,
    /// What the user may tap.
    pub(crate) buttons: Vec<Button>,
}

/// Something to tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Button {
    /// What is on it.
    pub(crate) title: String,
    /// What it sends: the title where nothing else is given.
    pub(crate) payload: String,
}

/// A response, ready to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// The text.
    pub(crate) text: String,
    /// What the user may tap.
    pub(crate) buttons: Vec<Button>,
    /// Whether the model words it anew.
    pub(crate) rephrase: bool,
}

impl Responses {
    /// The response of that name, with `values` in place of `{session.ns.entry}` and `{entry}`. None: there is no such response, or
    /// none of its variants can be said.
    pub(crate) fn say(&self, name: &str, values: &Object) -> Option<Said> {
        if let Some(variant) = self.variant(name, values) {
            let button = |button: &Button| Button {
                title: fill(&button.title, values, name),
                payload: fill(&button.payload, values, name),
            };
            return Some(Said {
                text: fill(&variant.text, values, name),
                buttons: variant.buttons.iter().map(button).collect(),
                rephrase: variant.rephrase,
            });
        }
        let built_in = Response::ALL.into_iter().find(|built_in| built_in.name() == name)?;
        Some(Said { text: built_in.text().to_owned(), ..Said::default() })
    }

    /// The names of all of them.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let built_in = Response::ALL.map(|response| response.name().to_owned());
        self.own.keys().cloned().chain(built_in).collect()
    }

    /// The variant that is said: the first whose condition holds, else the first that has none.
    fn variant(&self, name: &str, values: &Object) -> Option<&Variant> {
        let variants = self.own.get(name)?;
        let read = |namespace: &str, entry: &str| values.get(&format!("session.{namespace}.{entry}")).cloned();
        let holds = |variant: &&Variant| variant.condition.as_ref().is_some_and(|condition| condition.holds(&read));
        variants.iter().find(holds).or_else(|| variants.iter().find(|variant| variant.condition.is_none()))
    }
}

impl turn::Responses for Responses {
    fn render(&self, name: &str, values: &Object) -> Option<Rendered> {
        let Said { text, buttons, rephrase } = self.say(name, values)?;
        let button = |button: Button| {
            Object::from_iter([
                ("title".to_owned(), button.title.into()),
                ("payload".to_owned(), button.payload.into()),
            ])
        };
        Some(Rendered { text, buttons: buttons.into_iter().map(button).collect(), rephrase })
    }
}

/// Reads the file's responses.
pub(super) fn read(root: &Field<'_>, report: &mut Report) -> Responses {
    let mut read = Responses::default();
    let top = report.fields(root, &RESPONSES_TOP);
    let Some(responses) = top.and_then(|top| top.get("responses")) else { return read };
    let Some(fields) = report.free_fields(&responses) else { return read };
    for (name, field) in fields.all() {
        if let Some(near) = misspelt(name) {
            let message = format!("`{name}` overrides no built-in response");
            report.warning("misspelt-response", fields.place(name), message, format!("did you mean `{near}`?"));
        }
        let variants = read_variants(&field, report);
        if !variants.is_empty() {
            read.own.insert(name.to_owned(), variants);
        }
    }
    read
}

fn read_variants(response: &Field<'_>, report: &mut Report) -> Vec<Variant> {
    let before = report.len();
    let mut variants = vec![];
    let mut default = None;
    let items = report.items(response, "a list of variants");
    for item in &items {
        let Some(variant) = read_variant(item, report) else { continue };
        if variant.condition.is_none() {
            if let Some(first) = default {
                let message = format!("`{}` is never said: an earlier variant has no condition", item.name);
                report.warning("unreachable-variant", item.node.place, message, None);
                report.relate("this one is said", first);
            }
            default = default.or(Some(item.node.place));
        }
        variants.push(variant);
    }
    if items.is_empty() && report.len() == before {
        let hint = "give it a variant such as `- text: Hello`".to_owned();
        report.error("invalid-value", response.node.place, format!("`{}` has no variants", response.name), hint);
    }
    variants
}

fn read_variant(item: &Field<'_>, report: &mut Report) -> Option<Variant> {
    let fields = report.fields(item, &VARIANT)?;
    let mut variant = Variant::default();
    if let Some(condition) = fields.get("condition") {
        // A condition that is none must not make the variant one that is always said.
        variant.condition = Some(conditions::read(&condition, report)?);
    }
    if let Some(metadata) = fields.get("metadata")
        && let Some(keys) = report.fields(&metadata, &METADATA)
    {
        variant.rephrase = keys.get("rephrase").and_then(|rephrase| report.flag(&rephrase)).unwrap_or_default();
        variant.metadata = keys.all().map(|(key, field)| (key.to_owned(), field.node.json())).collect();
    }
    if let Some(buttons) = fields.get("buttons") {
        let items = report.items(&buttons, "a list of buttons");
        variant.buttons = items.iter().filter_map(|button| read_button(button, report)).collect();
    }
    variant.text = fields.require("text", report).and_then(|text| report.text(&text))?;
    Some(variant)
}

fn read_button(item: &Field<'_>, report: &mut Report) -> Option<Button> {
    let fields = report.fields(item, &BUTTON)?;
    let payload = fields.get("payload").and_then(|payload| report.text(&payload));
    let title = fields.require("title", report).and_then(|title| report.text(&title))?;
    Some(Button { payload: payload.unwrap_or_else(|| title.clone()), title })
}

/// The built-in response that a name differs from by a letter or two. All of them share so much that a looser measure would take other
/// names for misspelt ones.
fn misspelt(name: &str) -> Option<&'static str> {
    let built_in = || Response::ALL.into_iter().map(Response::name);
    let near = |known: &&str| similar::TextDiff::from_chars(name, *known).ratio() > 0.93;
    if !comparable(name) || built_in().any(|known| known == name) { None } else { built_in().find(near) }
}

/// Puts values in place of placeholders, once: what a value says is no placeholder. Braces around anything but a name stay.
fn fill(text: &str, values: &Object, response: &str) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        match after.split_once('}') {
            Some((name, after)) if is_name(name) => {
                match values.get(name) {
                    Some(Value::String(value)) => filled.push_str(value),
                    Some(Value::Null) => {}
                    Some(value) => filled.push_str(&value.to_string()),
                    None => tracing::debug!(response, placeholder = name, "A placeholder has no value and is left out"),
                }
                rest = after;
            }
            _ => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled + rest
}

/// Whether a placeholder's text is `entry`, or such names with full stops between.
fn is_name(text: &str) -> bool {
    let of_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    text.split('.').all(|part| !part.is_empty() && part.chars().all(of_name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{config, told};
    use super::*;

    fn object(value: Value) -> Object {
        let Value::Object(object) = value else { panic!("{value} is no object") };
        object
    }

    fn say(text: &str, name: &str, values: Value) -> Option<Said> {
        config("responses.yml", text).0.responses.say(name, &object(values))
    }

    #[test]
    fn a_response_is_said_with_its_values_and_buttons() {
        let said = say(
            "responses:\n  utter_x:\n    - text: 'Hi {name}, {session.order.count} of {left}: {\"a\": {b}} {'\n      metadata: \
             {rephrase: true}\n      buttons:\n        - {title: 'Yes, {name}', payload: /yes}\n        - title: No\n",
            "utter_x",
            json!({"name": "{left}", "session.order.count": 2, "left": null}),
        );
        let button = |title: &str, payload: &str| Button { title: title.to_owned(), payload: payload.to_owned() };
        let expected = Said {
            text: "Hi {left}, 2 of : {\"a\": } {".to_owned(),
            buttons: vec![button("Yes, {left}", "/yes"), button("No", "No")],
            rephrase: true,
        };
        assert_eq!(said, Some(expected));
    }

    #[test]
    fn a_built_in_response_is_overridden_by_its_name() {
        let text = |said: Option<Said>| said.map(|said| said.text);
        let file = "responses:\n  utter_generic_failure:\n    - text: Oops.\n";
        assert_eq!(text(say(file, "utter_generic_failure", json!({}))).as_deref(), Some("Oops."));
        for (name, built_in) in Response::ALL.map(|response| (response.name(), response.text())) {
            assert_eq!(text(say("", name, json!({}))).as_deref(), Some(built_in));
        }
        assert_eq!(say(file, "utter_other", json!({})), None);
    }

    #[test]
    fn the_first_variant_whose_condition_holds_is_said_else_the_one_without() {
        let file = "responses:\n  utter_x:\n    - text: b\n    - {text: a, condition: session.project.x == \"a\"}\n    - {text: d, condition: \
                    session.project.x}\n    - text: c\n";
        for (values, expected) in [
            (json!({}), "b"),
            (json!({"session.project.x": "a"}), "a"),
            (json!({"session.project.x": 1}), "d"),
            (json!({"session.other.x": "a"}), "b"),
        ] {
            assert_eq!(say(file, "utter_x", values).unwrap().text, expected);
        }
        assert_eq!(
            told("responses.yml", file),
            [
                "responses.yml:6:7: warning[unreachable-variant]: `responses.utter_x[3]` is never said: an earlier variant has no condition"
            ]
        );
    }

    #[test]
    fn a_built_in_response_whose_variants_all_have_conditions_keeps_its_text() {
        let file = "responses:\n  utter_max_iterations:\n    - {text: a, condition: session.project.x}\n";
        assert_eq!(say(file, "utter_max_iterations", json!({})).unwrap().text, Response::MaxIterations.text());
    }

    #[test]
    fn what_is_wrong_in_a_response_is_told() {
        assert_eq!(
            told(
                "responses.yml",
                "responses:\n  utter_a: Hello\n  utter_b: []\n  utter_c:\n    - txt: Hello\n  utter_d:\n    - text: x\n      \
                 rephrase: true\n      buttons: [{titel: y}]\n  utter_max_iteration: [{text: x}]\nutter_e: []\n"
            ),
            [
                "responses.yml:2:12: error[wrong-type]: `responses.utter_a` is a text, expected a list of variants\n  hint: \
                 begin each with `- `",
                "responses.yml:3:12: error[invalid-value]: `responses.utter_b` has no variants\n  hint: give it a variant such \
                 as `- text: Hello`",
                "responses.yml:5:7: warning[unknown-key]: `responses.utter_c[0].txt` has no effect: there is no such key\n  \
                 hint: did you mean `text`?",
                "responses.yml:5:7: error[missing-key]: `responses.utter_c[0].text` is missing",
                "responses.yml:8:7: warning[misplaced-key]: `responses.utter_d[0].rephrase` has no effect: `rephrase` belongs \
                 elsewhere\n  hint: move it to `responses.<name>[].metadata` in `responses.yml`",
                "responses.yml:9:17: error[missing-key]: `responses.utter_d[0].buttons[0].title` is missing",
                "responses.yml:9:18: warning[unknown-key]: `responses.utter_d[0].buttons[0].titel` has no effect: there is no \
                 such key\n  hint: did you mean `title`?",
                "responses.yml:10:3: warning[misspelt-response]: `utter_max_iteration` overrides no built-in response\n  hint: \
                 did you mean `utter_max_iterations`?",
                "responses.yml:11:1: warning[misplaced-key]: `utter_e` has no effect: `utter_e` belongs elsewhere\n  hint: move \
                 it to `responses` in `responses.yml`",
            ]
        );
    }

    proptest! {
        #[test]
        fn a_text_without_placeholders_stays(text in "[^{]*", braces in "\\{[ \"{]*") {
            prop_assert_eq!(fill(&text, &Object::new(), "utter_x"), text.as_str());
            prop_assert_eq!(fill(&braces, &Object::new(), "utter_x"), braces.as_str());
        }
    }
}
