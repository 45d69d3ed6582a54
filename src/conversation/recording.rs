//! A recorded conversation in the Chat Completions shape, cut into turns, each tool message beside the call that it answers.

use std::sync::Arc;

use serde_json::Value;

use super::Object;

/// One recorded conversation.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Its `conversation_id`, where it has one.
    pub(crate) id: Option<String>,
    /// What was said before the user first spoke.
    pub(crate) opening: Vec<Arc<Object>>,
    /// The names of the tools: those that `tools` offers, else those that are called anywhere, in the order of first mention.
    pub(crate) tool_names: Vec<String>,
    /// The turns, each from a user message to the next.
    pub(crate) turns: Vec<RecordedTurn>,
    /// How many messages it has.
    pub(crate) messages: usize,
    /// How many calls have arguments that are no JSON object.
    pub(crate) broken_arguments: usize,
}

/// What followed one user message.
#[derive(Debug)]
pub(crate) struct RecordedTurn {
    /// The user message.
    pub(crate) user: Arc<Object>,
    /// What came after it.
    pub(crate) items: Vec<TurnItem>,
}

/// A part of a turn.
#[derive(Debug)]
pub(crate) enum TurnItem {
    /// An assistant message with the results of its calls.
    Completion(Completion),
    /// A message of another role: it stays in the history and drives nothing.
    Aside(Arc<Object>),
}

/// An assistant message.
#[derive(Debug)]
pub(crate) struct Completion {
    /// The message as it was recorded.
    pub(crate) message: Arc<Object>,
    /// Its text, where it has one.
    pub(crate) text: Option<String>,
    /// Its calls, in their order.
    pub(crate) calls: Vec<RecordedCall>,
}

/// A tool call and its answer.
#[derive(Debug)]
pub(crate) struct RecordedCall {
    /// The call's id.
    pub(crate) id: String,
    /// The tool.
    pub(crate) name: String,
    /// The arguments.
    pub(crate) arguments: Arguments,
    /// The tool message, where there is one.
    pub(crate) result: Option<Arc<Object>>,
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arguments {
    /// A JSON object, as it must be.
    Parsed(Object),
    /// Something else, kept as it was recorded.
    Broken(String),
}

impl Recording {
    /// Reads one line of a file of conversations.
    ///
    /// # Errors
    ///
    /// A sentence that says why the line is no conversation.
    pub(crate) fn from_line(line: &str) -> Result<Self, String> {
        if let Some(number) = too_big(line) {
            return Err(format!("The line holds the integer {number}, which is beyond 64 bits"));
        }
        let mut line: Object =
            serde_json::from_str(line).map_err(|error| format!("The line is no JSON object: {error}"))?;
        let id = match line.remove("conversation_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id),
            Some(other) => Some(other.to_string()),
        };
        let messages = match line.remove("messages") {
            Some(Value::Array(messages)) => messages,
            Some(_) => return Err("`messages` is no list".into()),
            None => return Err("The line has no `messages`".into()),
        };
        let offered = offered_tools(&line);
        let mut cutting = Cutting::default();
        let count = messages.len();
        for (index, message) in messages.into_iter().enumerate() {
            let Value::Object(message) = message else {
                return Err(format!("`messages[{index}]` is no object"));
            };
            cutting.take(index, message)?;
        }
        Ok(Self {
            id,
            opening: cutting.opening,
            tool_names: offered.unwrap_or(cutting.mentioned),
            turns: cutting.turns,
            messages: count,
            broken_arguments: cutting.broken,
        })
    }
}

/// An integer of a JSON text that no 64 bits hold: the reader would make it a float without a word.
fn too_big(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let (mut at, mut in_text) = (0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            b'-' | b'0'..=b'9' if !in_text => {
                let part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let length = bytes[at..].iter().take_while(part).count();
                let number = &json[at..at + length];
                let whole = !number.contains(['.', 'e', 'E']);
                if whole && number.len() > 18 && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number);
                }
                at += length - 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The text of a message's content: a string, or the text parts of a list of parts.
pub(crate) fn text_of(message: &Object) -> Option<String> {
    match message.get("content")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts: Vec<_> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}

#[derive(Default)]
struct Cutting {
    opening: Vec<Arc<Object>>,
    turns: Vec<RecordedTurn>,
    mentioned: Vec<String>,
    /// Calls of the opening that wait for their answer.
    opening_calls: Vec<String>,
    broken: usize,
}

impl Cutting {
    fn take(&mut self, index: usize, message: Object) -> Result<(), String> {
        let role = match message.get("role") {
            Some(Value::String(role)) => role.clone(),
            Some(_) => return Err(format!("`messages[{index}].role` is no string")),
            None => return Err(format!("`messages[{index}]` has no role")),
        };
        let message = Arc::new(message);
        match (role.as_str(), self.turns.last_mut()) {
            ("user", _) => self.turns.push(RecordedTurn { user: message, items: Vec::new() }),
            ("assistant", turn) => {
                let completion = completion(index, &message)?;
                for call in &completion.calls {
                    if !self.mentioned.contains(&call.name) {
                        self.mentioned.push(call.name.clone());
                    }
                    self.broken += usize::from(matches!(call.arguments, Arguments::Broken(_)));
                }
                if let Some(turn) = turn {
                    turn.items.push(TurnItem::Completion(completion));
                } else {
                    self.opening_calls.extend(completion.calls.into_iter().map(|call| call.id));
                    self.opening.push(message);
                }
            }
            ("tool", _) => self.answer(index, message)?,
            (_, Some(turn)) => turn.items.push(TurnItem::Aside(message)),
            (_, None) => self.opening.push(message),
        }
        Ok(())
    }

    /// Puts a tool message beside the nearest earlier call of its id that has no answer yet: recorders use ids twice.
    fn answer(&mut self, index: usize, message: Arc<Object>) -> Result<(), String> {
        let Some(id) = message.get("tool_call_id").and_then(Value::as_str).map(str::to_owned) else {
            return Err(format!("`messages[{index}]` is a tool message without `tool_call_id`"));
        };
        let calls = self.turns.iter_mut().rev().flat_map(|turn| turn.items.iter_mut().rev());
        let open = calls
            .filter_map(|item| match item {
                TurnItem::Completion(completion) => Some(completion.calls.iter_mut()),
                TurnItem::Aside(_) => None,
            })
            .flatten()
            .find(|call| call.id == id && call.result.is_none());
        if let Some(call) = open {
            call.result = Some(message);
            return Ok(());
        }
        match self.opening_calls.iter().rposition(|call| *call == id) {
            Some(position) => {
                self.opening_calls.remove(position);
                self.opening.push(message);
                Ok(())
            }
            None => {
                Err(format!("`messages[{index}]` is a tool message that answers no call (`tool_call_id` is {id:?})"))
            }
        }
    }
}

fn completion(index: usize, message: &Arc<Object>) -> Result<Completion, String> {
    let text = text_of(message);
    let calls = match message.get("tool_calls") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(calls)) => calls
            .iter()
            .enumerate()
            .map(|(number, call)| {
                recorded_call(call).map_err(|lack| format!("`messages[{index}].tool_calls[{number}]` {lack}"))
            })
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(format!("`messages[{index}].tool_calls` is no list")),
    };
    Ok(Completion { message: Arc::clone(message), text, calls })
}

fn recorded_call(call: &Value) -> Result<RecordedCall, &'static str> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let function = call.get("function").ok_or("has no `function`")?;
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => Arguments::Parsed(Object::new()),
        Some(Value::Object(object)) => Arguments::Parsed(object.clone()),
        Some(Value::String(text)) if text.trim().is_empty() => Arguments::Parsed(Object::new()),
        Some(Value::String(text)) => {
            serde_json::from_str(text).map_or_else(|_| Arguments::Broken(text.clone()), Arguments::Parsed)
        }
        Some(other) => Arguments::Broken(other.to_string()),
    };
    Ok(RecordedCall {
        id: text(call.get("id")).ok_or("has no `id`")?,
        name: text(function.get("name")).ok_or("has no `function.name`")?,
        arguments,
        result: None,
    })
}

fn offered_tools(line: &Object) -> Option<Vec<String>> {
    let tools = line.get("tools")?.as_array()?;
    Some(tools.iter().filter_map(|tool| tool.get("function")?.get("name")?.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(messages: &Value) -> Result<Recording, String> {
        Recording::from_line(&json!({"conversation_id": "c", "messages": messages}).to_string())
    }

    fn call(id: &str, arguments: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}})
    }

    #[test]
    fn a_tool_message_belongs_to_the_nearest_earlier_call_without_an_answer() {
        let recording = read(&json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": null, "tool_calls": [call("1", "{}")]},
            {"role": "tool", "tool_call_id": "1", "content": "first"},
            {"role": "assistant", "content": null, "tool_calls": [call("1", "{}")]},
            {"role": "tool", "tool_call_id": "1", "content": "second"},
        ]))
        .unwrap();
        let answers: Vec<_> = recording.turns[0]
            .items
            .iter()
            .map(|item| match item {
                TurnItem::Completion(completion) => text_of(completion.calls[0].result.as_ref().unwrap()).unwrap(),
                TurnItem::Aside(_) => unreachable!(),
            })
            .collect();
        assert_eq!(answers, ["first", "second"]);
    }

    #[test]
    fn arguments_that_are_no_object_are_kept_as_text() {
        let recording = read(&json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "tool_calls": [call("1", "{\"a\":"), call("2", ""), call("3", "[1]"), call("4", "{\"b\":2,\"a\":1}")]},
        ]))
        .unwrap();
        let TurnItem::Completion(completion) = &recording.turns[0].items[0] else { unreachable!() };
        let arguments: Vec<_> = completion.calls.iter().map(|call| call.arguments.clone()).collect();
        let parsed = |value: Value| Arguments::Parsed(value.as_object().unwrap().clone());
        let expected = [
            Arguments::Broken("{\"a\":".into()),
            parsed(json!({})),
            Arguments::Broken("[1]".into()),
            parsed(json!({"b": 2, "a": 1})),
        ];
        assert_eq!(arguments, expected);
        assert_eq!(recording.broken_arguments, 2);
    }

    #[test]
    fn an_integer_beyond_64_bits_is_refused_and_not_made_a_float() {
        let numbers = [
            ("18446744073709551615", true),
            ("-9223372036854775808", true),
            ("18446744073709551616", false),
            ("1e300", true),
        ];
        for (number, fits) in numbers {
            let content = r#""\"123456789012345678901234\"""#;
            let line = format!(r#"{{"messages": [{{"role": "user", "content": {content}, "n": {number}}}]}}"#);
            let read = Recording::from_line(&line);
            assert_eq!(read.is_ok(), fits, "{number}");
            if let Err(said) = read {
                assert_eq!(said, format!("The line holds the integer {number}, which is beyond 64 bits"));
            }
        }
    }

    #[test]
    fn a_line_that_is_no_conversation_says_what_is_wrong_and_where() {
        let said = |line: &str| Recording::from_line(line).unwrap_err();
        assert!(said("{").starts_with("The line is no JSON object: EOF"));
        assert!(said("[1]").starts_with("The line is no JSON object: invalid type"));
        assert_eq!(said("{}"), "The line has no `messages`");
        assert_eq!(said(r#"{"messages": 1}"#), "`messages` is no list");
        assert_eq!(said(r#"{"messages": [1]}"#), "`messages[0]` is no object");
        assert_eq!(said(r#"{"messages": [{"content": "x"}]}"#), "`messages[0]` has no role");
        assert_eq!(
            said(r#"{"messages": [{"role": "tool", "tool_call_id": "9"}]}"#),
            r#"`messages[0]` is a tool message that answers no call (`tool_call_id` is "9")"#
        );
        assert_eq!(
            said(r#"{"messages": [{"role": "user"}, {"role": "assistant", "tool_calls": [{"id": "1"}]}]}"#),
            "`messages[1].tool_calls[0]` has no `function`"
        );
    }
}
