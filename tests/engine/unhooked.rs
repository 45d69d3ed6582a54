//! Calls that the engine makes by itself pass no tool hook: each test names the tools that the hooks of both points have seen.

use std::fs;

use serde_json::json;

use crate::scene::{Scene, activate, call, results, said, scene};

const SEEING: &str = "
from pathlib import Path

from rasa.mantle.hooks import (
    ToolCallPayload, ToolResultPayload, modify_tool_call, modify_tool_result, on_tool_call, on_tool_result,
)

def see(point, name):
    with (Path(__file__).parent / 'seen.txt').open('a') as seen:
        seen.write(f'{point} {name}\\n')

@modify_tool_call()
async def called(payload: ToolCallPayload) -> ToolCallPayload:
    see('call', payload.tool_name)
    return payload

@modify_tool_result()
async def returned(payload: ToolResultPayload) -> ToolResultPayload:
    see('result', payload.tool_name)
    return payload

@on_tool_call()
async def watch_call(payload: ToolCallPayload) -> None:
    see('saw', payload.tool_name)

@on_tool_result()
async def watch_result(payload: ToolResultPayload) -> None:
    see('saw', payload.tool_name)
";

/// What the hooks have seen since this was asked last, by point; an observer that comes late is seen by the next one who asks.
fn seen(scene: &Scene) -> Vec<String> {
    let path = scene.folder.path().join("seen.txt");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(path);
    text.lines().filter(|line| !line.starts_with("saw ")).map(str::to_owned).collect()
}

/// All names that hooks have seen, observers' too, when every one of them is done.
async fn all_seen(scene: &Scene) -> Vec<String> {
    scene.agent.hooks.as_ref().unwrap().drained().await;
    let text = fs::read_to_string(scene.folder.path().join("seen.txt")).unwrap_or_default();
    let mut names: Vec<_> = text.lines().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

const ORDER: &str = "---
name: Order
description: Order something.
tool_constraints:
  - send_order:
      requires_confirmation: {enabled: true, utter_for_confirmation: utter_sure}
---
Ask what they want, then call send_order.
";

const ORDER_TOOLS: &str = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Send the order')
async def send_order() -> ToolResult:
    return ToolResult(llm_response={'sent': True})

@tool(description='Look at what was set')
async def run_after_setting_what(context: ToolContext = None) -> ToolResult:
    return ToolResult(llm_response={'error': None if context.memory.get('what') != 'war' else 'not that'})
";

fn order() -> Vec<(&'static str, &'static str)> {
    vec![
        ("skills/order/skill.md", ORDER),
        ("skills/order/tools.py", ORDER_TOOLS),
        ("skills/order/memory.yml", "schema: {public: {what: {type: text, llm_settable: true}}}"),
        ("responses.yml", "responses: {utter_sure: [{text: Shall I?}]}"),
        ("hooks.py", SEEING),
    ]
}

#[tokio::test]
async fn a_call_that_the_users_yes_lets_run_passes_no_hook_again() {
    let scene = scene(&order(), [activate("order"), said("nothing"), call("send_order", json!({}))]);
    scene.say("Send it").await;
    assert_eq!(seen(&scene), ["call activate_skill", "result activate_skill", "call send_order", "result send_order"]);
    scene.answers([call("resolve_tool_confirmation", json!({"accepted": true})), said("Done.")]);
    assert_eq!(scene.say("Yes").await, ["Done."]);
    assert_eq!(seen(&scene), ["call resolve_tool_confirmation", "result resolve_tool_confirmation"]);
    assert_eq!(results(&scene, "send_order").last().unwrap(), r#"{"sent":true}"#, "it has run");
}

#[tokio::test]
async fn fields_that_are_filled_after_an_activation_pass_no_tool_hook() {
    let fill = call("set_fields", json!({"what": "tea"}));
    let scene = scene(&order(), [activate("order"), fill, said("Tea it is.")]);
    assert_eq!(scene.say("I want tea").await, ["Tea it is."]);
    assert_eq!(all_seen(&scene).await, ["activate_skill"]);
    assert_eq!(scene.kept(&["memory_set"])[0]["value"], "tea");
}

#[tokio::test]
async fn the_tool_that_looks_at_a_field_passes_no_hook() {
    let fields = |what: &str| call("set_fields", json!({"what": what}));
    let scene = scene(&order(), [activate("order"), said("nothing"), fields("war"), fields("tea"), said("Tea it is.")]);
    assert_eq!(scene.say("War. No, tea").await, ["Tea it is."]);
    assert_eq!(results(&scene, "set_fields"), [r#"{"set":[],"refused":{"what":"not that"}}"#, r#"{"set":["what"]}"#]);
    assert_eq!(all_seen(&scene).await, ["activate_skill", "set_fields"]);
}

const TRIP: &str = "---
name: Trip
description: Plan a trip.
---

:::ordered_block id=plan
steps:
  - id: where
    collect: city
    utterance: utter_where
  - id: price
    execute_tool: find_price
    parameters: {city: session.trip.city}
  - id: tell
    action: utter_price
  - id: ask
    instructions: Ask whether that is fine.
    complete_when: session.trip.fine
:::
";

const TRIP_TOOLS: &str = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Find the price')
async def find_price(city: str, context: ToolContext = None) -> ToolResult:
    context.memory.set('price', len(city))
    return ToolResult(llm_response={'price': len(city)})
";

fn trip() -> Vec<(&'static str, &'static str)> {
    let memory = "schema: {public: {city: {type: text}, price: {type: int}, fine: {type: bool, llm_settable: true}}}";
    let responses = "responses: {utter_where: [{text: Where to?}], utter_price: [{text: 'It costs {price}.'}]}";
    vec![
        ("skills/trip/skill.md", TRIP),
        ("skills/trip/tools.py", TRIP_TOOLS),
        ("skills/trip/memory.yml", memory),
        ("responses.yml", responses),
        ("hooks.py", SEEING),
    ]
}

#[tokio::test]
async fn steps_that_call_a_tool_or_say_a_response_pass_no_tool_hook() {
    let scene = scene(&trip(), [activate("trip"), said("nothing")]);
    assert_eq!(scene.say("A trip").await, ["Where to?"]);
    scene.answers([call("set_fields", json!({"city": "Rome"})), said("Is that fine?")]);
    assert_eq!(scene.say("Rome").await, ["It costs 4.", "Is that fine?"]);
    assert_eq!(all_seen(&scene).await, ["activate_skill", "set_fields"]);
    assert_eq!(results(&scene, "find_price"), [r#"{"price":4}"#]);
}

#[tokio::test]
async fn a_corrected_field_takes_its_block_back_and_what_is_done_again_passes_no_tool_hook() {
    let scene = scene(&trip(), [activate("trip"), said("nothing")]);
    scene.say("A trip").await;
    scene.answers([call("set_fields", json!({"city": "Rome"})), said("Is that fine?")]);
    scene.say("Rome").await;
    scene.answers([call("set_fields", json!({"city": "Rome"})), said("Is that fine?")]);
    assert_eq!(scene.say("Rome, as I said").await, ["Is that fine?"], "nothing has changed");
    scene.answers([call("set_fields", json!({"city": "Vienna"})), said("Is that fine?")]);
    assert_eq!(scene.say("Vienna, I mean").await, ["It costs 6.", "Is that fine?"]);
    assert_eq!(results(&scene, "find_price"), [r#"{"price":4}"#, r#"{"price":6}"#]);
    assert_eq!(all_seen(&scene).await, ["activate_skill", "set_fields"]);
    scene.answers([call("set_fields", json!({"fine": true})), said("Have a good trip.")]);
    assert_eq!(scene.say("Yes").await, ["Have a good trip."]);
    assert_eq!(scene.kept(&["skill_completed"]), [json!({"event": "skill_completed", "skill_id": "trip"})]);
}

const PAYMENT: &str = "---
name: Pay
description: Pay something.
---

:::ordered_block id=pay
steps:
  - id: how_much
    collect: amount
  - id: pay
    execute_tool: pay
  - id: rate
    collect: rating
:::
";

const PAYMENT_TOOLS: &str = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Pay')
async def pay() -> ToolResult:
    return ToolResult(llm_response='paid')
";

#[tokio::test]
async fn a_field_that_is_told_again_is_no_correction() {
    let memory = "schema: {public: {amount: {type: float}, rating: {type: int}}}";
    let files =
        [("skills/pay/skill.md", PAYMENT), ("skills/pay/tools.py", PAYMENT_TOOLS), ("skills/pay/memory.yml", memory)];
    let scene = scene(&files, [activate("pay"), said("nothing"), said("How much?")]);
    scene.say("Pay").await;
    scene.answers([call("set_fields", json!({"amount": 50})), said("How was it?")]);
    scene.say("50").await;
    scene.answers([call("set_fields", json!({"amount": 50.0, "rating": 5})), said("Thanks.")]);
    assert_eq!(scene.say("5").await, ["Thanks."]);
    assert_eq!(results(&scene, "pay"), ["paid"], "it is paid once");
}
