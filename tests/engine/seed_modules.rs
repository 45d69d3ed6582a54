//! Published hook modules run unchanged: those of the folder that `TENTERHOOK_SHARED` names, and look-alikes of our own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook::{
    AnyPayload, HandlerStatistics, IncomingMessagePayload, KnowledgeQueryPayload, KnowledgeResultsPayload,
    ModelRequestPayload, ModelResponsePayload, Object, Outcome, OutgoingTextPayload, ToolCallPayload,
    ToolResultPayload, TurnFinishedPayload, TurnStartedPayload, TurnStatus,
};

use crate::agents::{Agent, agent_of, proceeded};

/// The shared material, where the environment names it.
pub(crate) fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("TENTERHOOK_SHARED").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("TENTERHOOK_SHARED is not set: the shared modules and conversations are not tested");
    }
    folder
}

/// An agent with one module as its `hooks.py`.
fn agent_with(module: &Path) -> Agent {
    agent_of(&[("hooks.py", &fs::read_to_string(module).unwrap())])
}

fn object(value: Value) -> Object {
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn every_shared_hook_module_loads_and_runs_unchanged() {
    let Some(folder) = shared().map(|shared| shared.join("cases/seed-modules")) else { return };
    let mut modules: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "py"))
        .filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with("tools_"))
        .collect();
    modules.sort();
    assert_eq!(modules.len(), 8);
    for module in modules {
        let agent = agent_with(&module);
        play_every_point(&agent).await;
        for hook in agent.engine.statistics() {
            let HandlerStatistics { calls, failures, discarded_signals, .. } = &hook;
            assert_eq!(
                (*calls, failures.len(), *discarded_signals),
                (1, 0, 0),
                "{} in {}",
                hook.handler,
                module.display()
            );
        }
    }
}

async fn play_every_point(agent: &Agent) {
    let engine = &agent.engine;
    macro_rules! both {
        ($payload:expr) => {{
            let payload = $payload;
            engine.observe(&payload);
            engine.modify(payload).await
        }};
    }
    engine.observe(&TurnStartedPayload::new("s"));
    both!(IncomingMessagePayload::new("s", "hello"));
    both!(ModelRequestPayload::new("s", vec![Arc::new(object(json!({"role": "user", "content": "hello"})))]));
    let mut response = ModelResponsePayload::new("s");
    response.text = Some("  According to the list, yes. ".into());
    both!(response);
    both!(ToolCallPayload::new("s", "place_order", object(json!({"card_id": " 7 "}))));
    both!(ToolResultPayload::new("s", "lookup_customer", object(json!({"ssn": "1", "name": "n"})), "{}"));
    both!(KnowledgeQueryPayload::new("s", " 42 "));
    both!(KnowledgeResultsPayload::new("s", "q", vec![Arc::new(object(json!({"text": "t", "score": 0.1})))]));
    both!(OutgoingTextPayload::new("s", " text "));
    engine.observe(&TurnFinishedPayload::new("s", TurnStatus::Completed));
    engine.drained().await;
}

#[tokio::test]
async fn the_shared_modules_do_what_they_say() {
    let Some(folder) = shared().map(|shared| shared.join("cases/seed-modules")) else { return };
    let engine = |name: &str| agent_with(&folder.join(name));

    let guard = engine("guard_tool_calls.py");
    let call = ToolCallPayload::new("s", "place_order", object(json!({"card_id": " 7 ", "n": 1})));
    let (call, _) = proceeded(guard.engine.modify(call).await);
    assert_eq!(Value::from(call.arguments), json!({"card_id": "7", "n": 1}));
    let call = ToolCallPayload::new("s", "place_order", Object::new());
    assert_eq!(guard.engine.modify(call).await, Outcome::Retry { feedback: "Call place_order with a card_id.".into() });

    let lower = engine("lower_temperature.py");
    let (request, changed) = proceeded(lower.engine.modify(ModelRequestPayload::new("s", vec![])).await);
    assert_eq!((json!(request.model_settings), changed), (json!({"temperature": 0.2}), true));

    let redact = engine("redact_tool_results.py");
    let result = ToolResultPayload::new("s", "lookup_customer", object(json!({"ssn": "1", "name": "n"})), "{}");
    let (result, _) = proceeded(redact.engine.modify(result).await);
    assert_eq!((Value::from(result.arguments), result.value), (json!({"name": "n"}), json!("redacted")));

    let search = engine("rewrite_knowledge_search.py");
    let (query, _) = proceeded(search.engine.modify(KnowledgeQueryPayload::new("s", " 42 ")).await);
    assert_eq!(query.query, "ticket 42");

    let spam = engine("redact_pii.py");
    let outcome = spam.engine.modify(IncomingMessagePayload::new("s", "SPAM")).await;
    assert_eq!(outcome, Outcome::Reject { reason: "spam detected".into(), response: None });
}

/// What existing modules do beyond the documents: postponed annotations, state by conversation, lazy imports, positional signals.
const LOOK_ALIKE: &str = "
from __future__ import annotations

import json
import re
from collections import defaultdict

import structlog

from rasa.mantle.hooks import (
    ModelRequestPayload,
    ModelResponsePayload,
    RetryModel,
    ToolResultPayload,
    modify_model_request,
    modify_model_response,
    modify_tool_result,
)

log = structlog.get_logger()
ENABLED = True
_facts: dict[str, set[str]] = defaultdict(set)
_asked: dict[str, int] = defaultdict(int)


def _as_dict(value: object) -> dict:
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@modify_tool_result()
async def remember(result: ToolResultPayload) -> ToolResultPayload:
    for value in _as_dict(result.value).values():
        _facts[result.sender_id].add(str(value))
    return result


@modify_model_response()
async def require_known_figures(response: ModelResponsePayload) -> ModelResponsePayload:
    if not ENABLED or not response.text:
        return response
    unknown = set(re.findall(r'\\d+', response.text)) - _facts[response.sender_id]
    if unknown and _asked[response.sender_id] < 1:
        _asked[response.sender_id] += 1
        log.warning('figures.unknown', figures=sorted(unknown))
        raise RetryModel(f'Check {sorted(unknown)}.')
    return response


@modify_model_request()
async def close_with_user(request: ModelRequestPayload) -> ModelRequestPayload:
    if request.messages and request.messages[-1].get('role') == 'assistant':
        return request.model_copy(update={'messages': [*request.messages, {'role': 'user', 'content': '(continue)'}]})
    return request
";

#[tokio::test]
async fn a_module_written_as_existing_ones_are_runs() {
    let agent = agent_of(&[("hooks.py", LOOK_ALIKE)]);
    let result = ToolResultPayload::new("s", "look", Object::new(), r#"{"price": 12}"#);
    assert_eq!(proceeded(agent.engine.modify(result.clone()).await), (result, false));
    let response = |text: &str| {
        let mut response = ModelResponsePayload::new("s");
        response.text = Some(text.into());
        response
    };
    proceeded(agent.engine.modify(response("It is 12.")).await);
    let retried = agent.engine.modify(response("It is 13.")).await;
    assert_eq!(retried, Outcome::Retry { feedback: "Check ['13'].".into() });
    proceeded(agent.engine.modify(response("It is 13.")).await);
    let request = ModelRequestPayload::new("s", vec![Arc::new(object(json!({"role": "assistant", "content": "a"})))]);
    let (request, _) = proceeded(agent.engine.modify(request).await);
    assert_eq!(json!(request.messages[1]), json!({"role": "user", "content": "(continue)"}));
    assert!(AnyPayload::fields_of(tenterhook::Point::ModelRequest).iter().any(|field| field.name == "messages"));
}
