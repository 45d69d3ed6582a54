//! What a modify handler returns (cases R10 to R14, R16, R20).

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook::{
    KnowledgeResultsPayload, ModelRequestPayload, ModelResponsePayload, Object, Outcome, ToolCallPayload,
    ToolResultPayload,
};

use crate::agents::{Agent, agent, failure, proceeded};

fn object(value: Value) -> Object {
    serde_json::from_value(value).unwrap()
}

fn messages(value: Value) -> Vec<Arc<Object>> {
    serde_json::from_value::<Vec<Object>>(value).unwrap().into_iter().map(Arc::new).collect()
}

/// An agent whose request hook runs `body`, with `p` the payload.
fn request_hook(body: &str) -> Agent {
    let body = body.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n");
    agent(&format!(
        "import types\n@modify_model_request()\nasync def change(p: ModelRequestPayload) -> ModelRequestPayload:\n{body}"
    ))
}

fn request() -> ModelRequestPayload {
    let mut request = ModelRequestPayload::new("s", messages(json!([{"role": "user", "content": "a"}])));
    request.tool_names = vec!["look".into()];
    request.channel.metadata = object(json!({"front": {"end": [1]}}));
    request.iteration = 3;
    request
}

#[tokio::test]
async fn r10_another_thing_than_the_payload_is_said_with_what_was_expected() {
    for (body, said) in [
        ("return None", "It returned a `NoneType`; expected `ModelRequestPayload`: to leave it unchanged, return it"),
        (
            "return {'messages': []}",
            "It returned a `dict`; expected `ModelRequestPayload`: return `payload.model_copy(update={...})`",
        ),
        (
            "return OutgoingTextPayload(sender_id='s', text='')",
            "It returned a `OutgoingTextPayload`; expected `ModelRequestPayload`: return `payload.model_copy(update={...})`",
        ),
        (
            "async def inner(): return p\nmade = inner()\nasync def drop(): made.close()\nimport asyncio\nasyncio.get_running_loop().call_later(0.01, made.close)\nreturn made",
            "It returned a `coroutine`; expected `ModelRequestPayload`: await it before returning",
        ),
        (
            "return (p,)",
            "It returned a `tuple`; expected `ModelRequestPayload`: return `payload.model_copy(update={...})`",
        ),
        (
            "return RetryModel('x')",
            "It returned a `RetryModel`; expected `ModelRequestPayload`: a control signal is raised, not returned",
        ),
    ] {
        assert_eq!(failure(request_hook(body).engine.modify(request()).await), said);
    }
}

#[tokio::test]
async fn r20_a_signal_that_is_returned_fails_even_where_it_may_be_raised() {
    let agent = agent(
        "
@modify_model_response()
async def change(p: ModelResponsePayload) -> ModelResponsePayload:
    return RetryModel(feedback='x')
",
    );
    let said = failure(agent.engine.modify(ModelResponsePayload::new("s")).await);
    assert_eq!(
        said,
        "It returned a `RetryModel`; expected `ModelResponsePayload`: a control signal is raised, not returned"
    );
}

#[tokio::test]
async fn r11_a_field_of_a_wrong_type_is_named_with_both_types() {
    for (update, said) in [
        ("{'messages': 'oops'}", "`messages` is a `str`; expected `list[dict[str, Any]]`"),
        ("{'messages': [1]}", "`messages[0]` is a `int`; expected a `dict`"),
        ("{'messages': None}", "`messages` is a `NoneType`; expected `list[dict[str, Any]]`"),
        ("{'model_settings': [1]}", "`model_settings` is a `list`; expected `dict[str, Any]`"),
    ] {
        let agent = request_hook(&format!("return p.model_copy(update={update})"));
        let expected = format!("It returned a `ModelRequestPayload` in which {said}");
        assert_eq!(failure(agent.engine.modify(request()).await), expected);
    }
}

#[tokio::test]
async fn r11_every_mutable_field_of_the_other_points_is_checked() {
    let agent = agent(
        "
@modify_tool_call()
async def call(p: ToolCallPayload) -> ToolCallPayload:
    return p.model_copy(update={'headers': {'a': 1}} if p.tool_name == 'headers' else {p.tool_name: 5})

@modify_tool_result()
async def result(p: ToolResultPayload) -> ToolResultPayload:
    return p.model_copy(update={'is_error': 1})

@modify_model_response()
async def response(p: ModelResponsePayload) -> ModelResponsePayload:
    return p.model_copy(update={'text': b'x'})

@modify_knowledge_results()
async def results(p: KnowledgeResultsPayload) -> KnowledgeResultsPayload:
    return p.model_copy(update={'passages': ({},)})
",
    );
    let call = async |field: &str| failure(agent.engine.modify(ToolCallPayload::new("s", field, Object::new())).await);
    let within = |class: &str, said: &str| format!("It returned a `{class}` in which {said}");
    assert_eq!(call("tool_name").await, within("ToolCallPayload", "`tool_name` is a `int`; expected `str`"));
    assert_eq!(call("arguments").await, within("ToolCallPayload", "`arguments` is a `int`; expected `dict[str, Any]`"));
    assert_eq!(call("headers").await, within("ToolCallPayload", "`headers.a` is no `str`; expected `dict[str, str]`"));
    let result = ToolResultPayload::new("s", "t", Object::new(), "v");
    assert_eq!(
        failure(agent.engine.modify(result).await),
        within("ToolResultPayload", "`is_error` is a `int`; expected `bool`")
    );
    let response = failure(agent.engine.modify(ModelResponsePayload::new("s")).await);
    assert_eq!(response, within("ModelResponsePayload", "`text` is a `bytes`; expected `str | None`"));
    let results = failure(agent.engine.modify(KnowledgeResultsPayload::new("s", "q", vec![])).await);
    let expected = "`passages` is a `tuple`; expected `list[dict[str, Any]]`";
    assert_eq!(results, within("KnowledgeResultsPayload", expected));
}

#[tokio::test]
async fn r12_an_unknown_field_is_dropped_and_the_rest_stands() {
    let agent = request_hook("return p.model_copy(update={'bogus': 1, 'messages': []})");
    let (payload, changed) = proceeded(agent.engine.modify(request()).await);
    assert_eq!((payload.messages.len(), changed), (0, true));
    let agent = request_hook("return p.model_copy(update={'bogus': 1})");
    assert_eq!(proceeded(agent.engine.modify(request()).await), (request(), false));
}

#[tokio::test]
async fn r13_what_may_not_be_changed_comes_back_and_the_rest_of_the_change_stands() {
    let agent = request_hook(
        "p.channel.metadata['front']['end'].append(2)
p.call.metadata['x'] = 1
return p.model_copy(update={
    'sender_id': 'other', 'call': CallInfo(phone_number='1'), 'channel': None, 'tool_names': 7, 'iteration': -1,
    'messages': [],
})",
    );
    let (payload, changed) = proceeded(agent.engine.modify(request()).await);
    let expected = ModelRequestPayload { messages: vec![], ..request() };
    assert_eq!((payload, changed), (expected, true));
}

#[tokio::test]
async fn r13_a_change_of_nothing_but_read_only_fields_is_no_change() {
    let agent = agent(
        "
@modify_model_response()
async def response(p: ModelResponsePayload) -> ModelResponsePayload:
    return p.model_copy(update={'latency_ms': 1.0, 'sender_id': 'x'})

@modify_knowledge_results()
async def results(p: KnowledgeResultsPayload) -> KnowledgeResultsPayload:
    return p.model_copy(update={'query': 'other'})

@modify_tool_result()
async def result(p: ToolResultPayload) -> ToolResultPayload:
    return p.model_copy(update={'tool_name': 'other'})

@modify_incoming_message()
async def incoming(p: IncomingMessagePayload) -> IncomingMessagePayload:
    return p.model_copy(update={'message_id': 'other'})

@modify_outgoing_text()
async def outgoing(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={'is_voice': True})
",
    );
    let engine = &agent.engine;
    let mut response = ModelResponsePayload::new("s");
    response.latency_ms = Some(2.5);
    assert_eq!(proceeded(engine.modify(response.clone()).await), (response, false));
    let results = KnowledgeResultsPayload::new("s", "q", vec![]);
    assert_eq!(proceeded(engine.modify(results.clone()).await), (results, false));
    let result = ToolResultPayload::new("s", "t", Object::new(), "v");
    assert_eq!(proceeded(engine.modify(result.clone()).await), (result, false));
    let incoming = tenterhook::IncomingMessagePayload::new("s", "a");
    assert_eq!(proceeded(engine.modify(incoming.clone()).await), (incoming, false));
    let outgoing = tenterhook::OutgoingTextPayload::new("s", "a");
    assert_eq!(proceeded(engine.modify(outgoing.clone()).await), (outgoing, false));
}

#[tokio::test]
async fn r14_a_change_in_place_counts() {
    let agent = request_hook("p.messages.append({'role': 'system', 'content': 'be brief'})\nreturn p");
    let (payload, changed) = proceeded(agent.engine.modify(request()).await);
    let expected = messages(json!([{"role": "user", "content": "a"}, {"role": "system", "content": "be brief"}]));
    assert_eq!((payload.messages, changed), (expected, true));
    let agent = request_hook("p.messages[0]['content'] = 'b'\nreturn p");
    let (payload, changed) = proceeded(agent.engine.modify(request()).await);
    assert_eq!((payload.messages, changed), (messages(json!([{"role": "user", "content": "b"}])), true));
}

#[tokio::test]
async fn r16_the_same_object_and_an_equal_copy_are_unchanged() {
    for body in [
        "return p",
        "return p.model_copy()",
        "return p.model_copy(deep=True)",
        "return p.model_copy(update={'messages': [dict(m) for m in p.messages], 'model_settings': {}})",
        "p.messages.append({}); p.messages.pop(); return p",
        "return ModelRequestPayload(sender_id='x', messages=[{'role': 'user', 'content': 'a'}])",
    ] {
        assert_eq!(proceeded(request_hook(body).engine.modify(request()).await), (request(), false), "{body}");
    }
}

#[tokio::test]
async fn a_bool_in_place_of_a_number_is_a_change() {
    let mut given = request();
    given.messages = messages(json!([{"n": 1, "f": 1.0, "t": true}]));
    let agent = request_hook("m = p.messages[0]\nm['n'], m['f'], m['t'] = True, 1, 1\nreturn p");
    let (payload, changed) = proceeded(agent.engine.modify(given).await);
    assert_eq!((payload.messages, changed), (messages(json!([{"n": true, "f": 1, "t": 1}])), true));
}

#[tokio::test]
async fn messages_around_an_insertion_and_a_removal_stay() {
    let given = ModelRequestPayload::new("s", messages(json!([{"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}])));
    let agent = request_hook("return p.model_copy(update={'messages': [{'new': 1}, p.messages[0], *p.messages[2:]]})");
    let (payload, _) = proceeded(agent.engine.modify(given).await);
    assert_eq!(payload.messages, messages(json!([{"new": 1}, {"n": 0}, {"n": 2}, {"n": 3}])));
}

#[tokio::test]
async fn a_field_that_has_been_deleted_is_missing() {
    let said = failure(request_hook("del p.__dict__['messages']\nreturn p").engine.modify(request()).await);
    assert_eq!(said, "It returned a `ModelRequestPayload` in which `messages` is missing");
}

#[tokio::test]
async fn model_settings_keep_what_the_allow_list_admits() {
    let agent = request_hook(
        "return p.model_copy(update={'model_settings': {
    'temperature': 0.2, 'top_p': True, 'max_tokens': 5.0, 'seed': 7, 'stop': ['a'], 'frequency_penalty': float('nan'),
    'presence_penalty': b'x', 'model': 'other', 'api_key': 'k', 3: 4,
}})",
    );
    let (payload, changed) = proceeded(agent.engine.modify(request()).await);
    let expected = json!({"temperature": 0.2, "seed": 7, "stop": ["a"]});
    assert_eq!((json!(payload.model_settings), changed), (expected, true));
    let agent = request_hook("return p.model_copy(update={'model_settings': {'model': 'other'}})");
    assert_eq!(proceeded(agent.engine.modify(request()).await), (request(), false));
}

#[tokio::test]
async fn a_subclass_of_the_payload_is_the_payload() {
    let agent = agent(
        "
class Mine(ModelRequestPayload):
    note: str = 'n'

@modify_model_request()
async def change(p: ModelRequestPayload) -> ModelRequestPayload:
    return Mine(sender_id='x', messages=[])
",
    );
    let (payload, changed) = proceeded(agent.engine.modify(request()).await);
    assert_eq!((payload, changed), (ModelRequestPayload { messages: vec![], ..request() }, true));
}

#[tokio::test]
async fn a_point_without_hooks_proceeds() {
    let agent = request_hook("return p");
    let call = ToolCallPayload::new("s", "t", Object::new());
    let expected = Outcome::Proceed { payload: call.clone(), changed: false, failure: None, discarded_signal: None };
    assert_eq!(agent.engine.modify(call).await, expected);
}
