//! What hooks may do to a recorded conversation is what they may do to a live one.

use serde_json::{Value, json};

use crate::command::run;

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn line(messages: &[Value]) -> String {
    json!({"messages": messages}).to_string()
}

/// What the last request shows: the hook says it instead of `end`.
const TELL: &str = "
import json
last = []

@on_model_request()
async def keep(p: ModelRequestPayload) -> None:
    last[:] = p.messages

@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={'text': json.dumps(last)}) if p.text == 'end' else p
";

/// Plays one turn whose last answer is `end`; the report, and the messages before that answer.
fn shown(hooks: &str, answers: &[Value]) -> (Value, Vec<Value>) {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    messages.extend_from_slice(answers);
    messages.push(json!({"role": "assistant", "content": "end"}));
    let (_, report) = run(&format!("{TELL}{hooks}"), &[&line(&messages)], &["--diff"]);
    let told = report["changes"].as_array().unwrap().last().unwrap()["after"]["text"].as_str().unwrap();
    let shown = serde_json::from_str::<Vec<Value>>(told).unwrap();
    assert_eq!(shown[0], messages[0]);
    (report, shown[1..].to_vec())
}

#[test]
fn observers_alone_see_every_point_in_its_order() {
    let points = [
        ("turn_started", "TurnStarted"),
        ("incoming_message", "IncomingMessage"),
        ("model_request", "ModelRequest"),
        ("model_response", "ModelResponse"),
        ("tool_call", "ToolCall"),
        ("tool_result", "ToolResult"),
        ("knowledge_query", "KnowledgeQuery"),
        ("knowledge_results", "KnowledgeResults"),
        ("outgoing_text", "OutgoingText"),
        ("turn_finished", "TurnFinished"),
    ];
    let observer = |(point, class): (&str, &str)| {
        format!("@on_{point}()\nasync def {point}(p: {class}Payload) -> None: seen.append('{point}')\n")
    };
    let observers = points.map(observer).concat();
    let hooks = format!(
        "seen = []\n{observers}
@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload: return p.model_copy(update={{'text': ' '.join(seen)}})\n"
    );
    let passages = r#"[{"text": "a", "kept": {"as": "it is"}}]"#;
    let messages = [
        json!({"role": "user", "content": "go"}),
        json!({"role": "assistant", "content": null, "tool_calls": [call("1", "search_knowledge", "{\"query\": \"q\"}")]}),
        json!({"role": "tool", "tool_call_id": "1", "content": passages}),
        json!({"role": "assistant", "content": "done"}),
    ];
    let (code, report) = run(&hooks, &[&line(&messages)], &["--diff"]);
    let expected = "turn_started incoming_message model_request model_response tool_call knowledge_query knowledge_results \
                    tool_result model_request model_response outgoing_text";
    assert_eq!((code, &report["changes"][0]["after"]["text"]), (0, &json!(expected)));
    let dropped: u64 = report["hooks"].as_array().unwrap().iter().filter_map(|hook| hook["dropped"].as_u64()).sum();
    assert_eq!((dropped, &report["hooks"][10]["calls"]), (0, &json!(1)), "the end of the turn is seen as well");
}

#[test]
fn calls_that_are_none_leave_the_recorded_answer_as_it_was_and_made_up_ones_get_an_id() {
    let answer =
        json!({"role": "assistant", "content": "one moment", "tool_calls": [call("1", "look", "{\"n\":  1}")]});
    let result = json!({"role": "tool", "tool_call_id": "1", "content": "r"});
    let hooks = |calls: &str| {
        format!(
            "
@modify_model_response()
async def change(p: ModelResponsePayload) -> ModelResponsePayload:
    return p.model_copy(update={{'text': 'new', 'tool_calls': [*p.tool_calls, {calls}]}}) if p.tool_calls else p
"
        )
    };
    let recorded = [answer, result];
    let (report, messages) = shown(&hooks("{'tool_name': 7}"), &recorded);
    assert_eq!((&messages[..], &report["made_up_calls"]), (&recorded[..], &json!(0)));
    let (report, messages) = shown(&hooks("{'tool_name': 'find', 'tool_args': {'q': 2}}"), &recorded);
    let made_up = call("replayed_0", "find", "{\"q\":2}");
    let calls = json!([call("1", "look", "{\"n\":  1}"), made_up]);
    assert_eq!(messages[0], json!({"role": "assistant", "content": "new", "tool_calls": calls}));
    assert_eq!((&messages[1], &report["made_up_calls"]), (&recorded[1], &json!(1)));
}

#[test]
fn calls_of_one_id_in_a_batch_keep_their_own_results() {
    let recorded = [
        json!({"role": "assistant", "content": null, "tool_calls": [call("1", "a", "{}"), call("1", "b", "{}")]}),
        json!({"role": "tool", "tool_call_id": "1", "content": "of a"}),
        json!({"role": "tool", "tool_call_id": "1", "content": "of b"}),
    ];
    let hooks = "
@modify_tool_result()
async def name(p: ToolResultPayload) -> ToolResultPayload:
    return p.model_copy(update={'value': f'{p.tool_name} {p.value}'})
";
    let (report, messages) = shown(hooks, &recorded);
    assert_eq!(
        (&messages[0], &report["removed_calls"], &report["made_up_calls"]),
        (&recorded[0], &json!(0), &json!(0))
    );
    assert_eq!([&messages[1]["content"], &messages[2]["content"]], ["a of a", "b of b"]);
}

#[test]
fn what_says_nothing_is_not_said_and_stays() {
    let recorded = [
        json!({"role": "assistant", "content": null, "own": 1}),
        json!({"role": "assistant", "content": " ", "tool_calls": [call("1", "look", "{}")]}),
        json!({"role": "tool", "tool_call_id": "1", "content": "r"}),
    ];
    let (report, messages) = shown("", &recorded);
    assert_eq!(messages, recorded);
    let row = |function: &str| {
        report["hooks"].as_array().unwrap().iter().find(|hook| hook["function"] == function).unwrap()["calls"].clone()
    };
    assert_eq!((row("keep"), row("tell")), (json!(3), json!(1)));
    assert_eq!(report["turns"], json!({"completed": 1, "rejected": 0, "failed": 0}));
}

#[test]
fn a_search_that_hooks_leave_without_passages_reads_as_in_a_live_turn() {
    let search = |arguments: &str| {
        [
            json!({"role": "assistant", "content": null, "tool_calls": [call("1", "search_knowledge", arguments)]}),
            json!({"role": "tool", "tool_call_id": "1", "content": "[{\"text\":  \"a\", \"more\": 1}]"}),
        ]
    };
    let query = |body: &str| {
        format!(
            "\n@modify_knowledge_query()\nasync def query(p: KnowledgeQueryPayload) -> KnowledgeQueryPayload:\n    {body}\n"
        )
    };
    let results = |body: &str| {
        format!(
            "\n@modify_knowledge_results()\nasync def results(p: KnowledgeResultsPayload) -> KnowledgeResultsPayload:\n    return p.model_copy(update={{'passages': {body}}})\n"
        )
    };
    let nothing = "No passages were found. Do not answer from memory: say that the references do not tell.";
    let empty = "The query is empty: ask for what the references are to be searched for.";
    let same = "[{\"text\":  \"a\", \"more\": 1}]";
    let asked = "{\"query\": \"q\"}";
    for (hooks, arguments, expected) in [
        (query("raise ValueError"), asked, nothing),
        (query("return p.model_copy(update={'query': ' '})"), asked, empty),
        (query("raise ValueError"), "{}", same),
        (results("[]"), asked, nothing),
        (results("[{**p.passages[0], 'text': 7}]"), asked, same),
        (results("p.passages * 2"), asked, "[{\"text\":\"a\",\"more\":1},{\"text\":\"a\",\"more\":1}]"),
    ] {
        let (_, messages) = shown(&hooks, &search(arguments));
        assert_eq!(messages[1]["content"], json!(expected), "{hooks}");
    }
}

#[test]
fn a_search_of_this_engines_own_keeps_its_form() {
    let hooks = "
@modify_knowledge_results()
async def results(p: KnowledgeResultsPayload) -> KnowledgeResultsPayload:
    return p.model_copy(update={'passages': p.passages[1:]})
";
    let found = r#"{"passages":[{"text":"a"},{"text":"b"}],"note":"two"}"#;
    let search = [
        json!({"role": "assistant", "content": null, "tool_calls": [call("1", "search_knowledge", r#"{"query": "q"}"#)]}),
        json!({"role": "tool", "tool_call_id": "1", "content": found}),
    ];
    let (_, messages) = shown(hooks, &search);
    assert_eq!(messages[1]["content"], json!(r#"{"passages":[{"text":"b"}],"note":"two"}"#));
}

#[test]
fn feedback_is_cut_as_in_a_live_turn() {
    let hooks = "
@modify_model_response()
async def retry(p: ModelResponsePayload) -> ModelResponsePayload:
    if p.text == 'bad': raise RetryModel('é' * 3000)
    return p
";
    let (report, messages) = shown(hooks, &[json!({"role": "assistant", "content": "bad"})]);
    assert_eq!(messages, [json!({"role": "system", "content": "é".repeat(2000)})]);
    assert_eq!((&report["dropped_completions"], &report["unanswered_turns"]), (&json!(1), &json!(0)));
}
