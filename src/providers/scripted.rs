//! A model whose answers stand in a file: for demonstrations, for tests, and for agents that have no model yet.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use crate::conversation::{Object, text_of};
use crate::step::{Model, ModelError, ModelReply, ModelRequest, RequestedCall, Tokens};

/// What a script file says. Answers `in_order` are given one after the other, whatever is asked; where there are none left, or none at
/// all, the first case of `by_text` that fits answers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Script {
    pub(crate) in_order: Vec<Answer>,
    pub(crate) by_text: Vec<Case>,
}

/// Answers to a text of the user's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// What the text contains, upper and lower case alike; without it every text fits.
    #[serde(default)]
    pub(crate) when: Option<String>,
    /// The first answers the text itself, the next what came of its calls, and so on; the last is given again.
    pub(crate) answers: Vec<Answer>,
}

/// One answer of the model: a text, calls, or both.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Answer {
    pub(crate) text: Option<String>,
    pub(crate) calls: Vec<ScriptedCall>,
}

/// A call that an answer asks for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptedCall {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Object,
}

/// A model that answers by a script.
#[derive(Debug)]
pub(crate) struct ScriptedModel {
    script: Script,
    given: AtomicUsize,
}

impl ScriptedModel {
    pub(crate) const fn new(script: Script) -> Self {
        Self { script, given: AtomicUsize::new(0) }
    }

    fn answer(&self, request: &ModelRequest) -> Option<&Answer> {
        let turn = self.given.fetch_add(1, Ordering::Relaxed);
        if let Some(answer) = self.script.in_order.get(turn) {
            return Some(answer);
        }
        let is = |message: &Object, role: &str| message.get("role").and_then(Value::as_str) == Some(role);
        let asked = request.messages.iter().rposition(|message| is(message, "user"));
        let text = asked.and_then(|at| text_of(&request.messages[at])).unwrap_or_default().to_lowercase();
        let fits = |case: &&Case| case.when.as_ref().is_none_or(|when| text.contains(&when.to_lowercase()));
        let answers = &self.script.by_text.iter().find(fits)?.answers;
        let after = &request.messages[asked.map_or(0, |at| at + 1)..];
        let before =
            after.iter().filter(|message| is(message, "assistant") && message.contains_key("tool_calls")).count();
        answers.get(before.min(answers.len().saturating_sub(1)))
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        tokens: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let Some(answer) = self.answer(request) else {
                return Err(ModelError::Exhausted("The script has no answer to this text".to_owned()));
            };
            if let (Some(tokens), Some(text)) = (tokens, &answer.text) {
                text.split_inclusive(' ').for_each(tokens);
            }
            let call = |call: &ScriptedCall| RequestedCall {
                id: None,
                tool_name: call.tool.clone(),
                arguments: Ok(call.arguments.clone()),
            };
            Ok(ModelReply {
                text: answer.text.clone(),
                calls: answer.calls.iter().map(call).collect(),
                usage: None,
                latency: Some(Duration::ZERO),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::hooks::ModelSettings;

    fn ask(model: &ScriptedModel, messages: Value) -> Result<ModelReply, ModelError> {
        let messages: Vec<Object> = serde_json::from_value(messages).unwrap();
        let messages = messages.into_iter().map(Arc::new).collect();
        let request = ModelRequest { messages, tools: Vec::new(), settings: ModelSettings::default() };
        futures_util::FutureExt::now_or_never(model.complete(&request, None)).expect("it answers at once")
    }

    fn model(script: Value) -> ScriptedModel {
        ScriptedModel::new(serde_json::from_value(script).unwrap())
    }

    #[test]
    fn answers_are_found_by_the_users_text_and_by_what_has_been_called_since() {
        let model = model(json!({"by_text": [
            {"when": "Balance", "answers": [{"calls": [{"tool": "look", "arguments": {"n": 1}}]}, {"text": "It is 5."}]},
            {"answers": [{"text": "Hello."}]},
        ]}));
        let user = json!({"role": "user", "content": "my BALANCE please"});
        let called = ask(&model, json!([user])).unwrap();
        assert_eq!(
            (called.calls[0].tool_name.as_str(), &called.calls[0].arguments),
            ("look", &Ok(json!({"n": 1}).as_object().unwrap().clone()))
        );
        let after = json!([user, {"role": "assistant", "tool_calls": []}, {"role": "tool", "content": "5"}]);
        assert_eq!(ask(&model, after.clone()).unwrap().text.as_deref(), Some("It is 5."));
        assert_eq!(
            ask(&model, json!([user, {"role": "user", "content": "hi"}])).unwrap().text.as_deref(),
            Some("Hello.")
        );
    }

    #[test]
    fn answers_in_order_come_first_and_a_script_may_run_out() {
        let model = model(json!({"in_order": [{"text": "one"}, {"text": "two"}]}));
        let hi = || json!([{"role": "user", "content": "hi"}]);
        assert_eq!(ask(&model, hi()).unwrap().text.as_deref(), Some("one"));
        assert_eq!(ask(&model, hi()).unwrap().text.as_deref(), Some("two"));
        assert_eq!(ask(&model, hi()), Err(ModelError::Exhausted("The script has no answer to this text".to_owned())));
    }
}
