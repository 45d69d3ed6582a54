//! Tools that misbehave, and models that call them badly: an error result for the model, never a dead turn.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenterhook::{ModelReply, RequestedCall};

use crate::scene::{Scene, activate, call, said, scene};

const TOOLS: &str = "
import os
import sys
import time
from enum import Enum
from typing import Literal, Optional

from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult


class Seat(Enum):
    WINDOW = 'window'
    AISLE = 'aisle'


@tool(description='Take everything')
async def take(
    text: str, whole: int, part: float, flag: bool, items: list[int], rest: dict[str, int], seat: Seat,
    kind: Literal['a', 'b'] = 'a', maybe: Optional[str] = None,
) -> ToolResult:
    return ToolResult(llm_response=[len(text), whole, part, flag, items, rest, seat.value, kind, maybe])


@tool(description='Blocks')
async def block() -> ToolResult:
    time.sleep(30)
    return ToolResult(llm_response='never')


@tool(description='Prints')
async def shout() -> ToolResult:
    print('x' * 100_000)
    sys.stderr.write('y\\udcff\\n')
    return ToolResult(llm_response='printed')


@tool(description='Exits')
async def leave() -> ToolResult:
    sys.exit(3)


@tool(description='Raises what is no Exception')
async def interrupt() -> ToolResult:
    raise KeyboardInterrupt


@tool(description='Gives no JSON')
async def no_json() -> ToolResult:
    return ToolResult(llm_response={'when': object()})


@tool(description='Gives a number that JSON does not have')
async def not_a_number() -> ToolResult:
    return ToolResult(llm_response=float('nan'))


@tool(description='Gives half a letter')
async def half_a_letter() -> ToolResult:
    return ToolResult(llm_response='\\udc80')


@tool(description='Gives something endless')
async def endless() -> ToolResult:
    nested = []
    nested.append(nested)
    return ToolResult(llm_response=nested)


@tool(description='Gives no result')
async def nothing() -> ToolResult:
    return None


@tool(description='Has an own name')
async def größe_π(größe: str) -> ToolResult:
    return ToolResult(llm_response=größe[::-1])


@tool(description='Gives much')
async def much() -> ToolResult:
    return ToolResult(llm_response='é' * 1_000_000)


@tool(description='Says what cannot be said')
async def say_badly(context: ToolContext = None) -> ToolResult:
    await context.send(17)
    return ToolResult(llm_response='said')
";

fn hostile(replies: impl IntoIterator<Item = ModelReply>) -> Scene {
    let skill = "---\nname: Hostile\ndescription: Everything.\n---\nGo on.\n";
    let files = [
        ("agent.yml", "agent: {persona: You.}\ntool_timeout: 0.4\n"),
        ("skills/hostile/skill.md", skill),
        ("skills/hostile/tools.py", TOOLS),
    ];
    scene(&files, [activate("hostile")].into_iter().chain(replies).chain([said("Here I am.")]))
}

/// What came of one call: the text that the model reads, and whether it is an error. The turn ends as if nothing had been.
async fn outcome(reply: ModelReply) -> (String, bool) {
    let scene = hostile([reply]);
    assert_eq!(scene.say("Go").await, ["Here I am."]);
    let results = scene.kept(&["tool_executed"]);
    let last = results.last().unwrap();
    (last["value"].as_str().unwrap().to_owned(), last["is_error"] == true)
}

async fn of(tool: &str, arguments: Value) -> (String, bool) {
    outcome(call(tool, arguments)).await
}

#[tokio::test]
async fn arguments_of_every_kind_arrive_as_they_are_declared() {
    let arguments = json!({
        "text": "ü", "whole": "3", "part": 2, "flag": true, "items": [1], "rest": {"a": 1}, "seat": "aisle", "kind": "b",
    });
    let expected = r#"[1,3,2.0,true,[1],{"a":1},"aisle","b",null]"#;
    assert_eq!(of("take", arguments).await, (expected.to_owned(), false));
}

#[tokio::test]
async fn arguments_of_wrong_types_are_told_each_by_its_name() {
    let arguments = json!({
        "text": 3, "whole": "x", "part": null, "flag": "perhaps", "items": [1, "a"], "rest": {"a": []}, "seat": "roof", "kind": "c",
        "maybe": 1, "more": 1,
    });
    let (told, is_error) = of("take", arguments).await;
    assert!(is_error);
    for name in ["text", "whole", "part", "flag", "items[1]", "rest.a", "seat", "kind", "maybe", "more"] {
        assert!(told.contains(&format!("`{name}`: ")), "{name}: {told}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_go_back_to_the_model() {
    let broken = RequestedCall { id: None, tool_name: "take".into(), arguments: Err("{\"text\": ".into()) };
    let (told, is_error) = outcome(ModelReply { calls: vec![broken], ..ModelReply::default() }).await;
    assert_eq!((told.as_str(), is_error), ("The arguments are no JSON object: {\"text\": ", true));
}

#[tokio::test]
async fn texts_of_a_megabyte_go_in_and_out() {
    let arguments = json!({
        "text": "x".repeat(1 << 20), "whole": 1, "part": 1, "flag": true, "items": [], "rest": {}, "seat": "aisle",
    });
    assert_eq!(of("take", arguments).await, (r#"[1048576,1,1.0,true,[],{},"aisle","a",null]"#.to_owned(), false));
    assert_eq!(of("much", json!({})).await, ("é".repeat(1_000_000), false));
}

#[tokio::test]
async fn names_may_be_of_any_script() {
    assert_eq!(of("größe_π", json!({"größe": "äb"})).await, ("bä".to_owned(), false));
}

#[tokio::test]
async fn a_tool_may_print_what_it_likes() {
    assert_eq!(of("shout", json!({})).await, ("printed".to_owned(), false));
}

#[tokio::test]
async fn a_tool_that_exits_raises_or_gives_no_json_fails_alone() {
    for tool in ["leave", "interrupt", "no_json", "not_a_number", "half_a_letter", "endless", "nothing", "say_badly"] {
        assert_eq!(of(tool, json!({})).await, (format!("`{tool}` failed"), true));
    }
}

#[tokio::test]
async fn a_tool_that_blocks_costs_its_own_call_and_nothing_else() {
    let reply = crate::scene::batch([("block", json!({})), ("shout", json!({}))]);
    let scene = hostile([reply]);
    let start = Instant::now();
    assert_eq!(scene.say("Go").await, ["Here I am."]);
    assert!(start.elapsed() < Duration::from_secs(5));
    let results = scene.kept(&["tool_executed"]);
    let shown: Vec<_> = results[1..].iter().map(|event| (event["value"].clone(), event["is_error"] == true)).collect();
    assert_eq!(shown, [(json!("`block` was not done after 400 ms"), true), (json!("printed"), false)]);
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_told_with_those_that_are() {
    let (told, is_error) = of("tak\u{e9}\n", json!({})).await;
    assert!(is_error && told.starts_with("There is no tool `tak\u{e9}\n`; the tools are take, block, "), "{told}");
}
