//! How a session and a skill begin and end beside what the model calls: the greeting, the judge, a cancelled tool.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tenterhook::{TurnEvent, TurnInput, TurnStatus};

use crate::scene::{Scene, activate, call, results, said, scene};

const GREETING: &str = "---
name: Greeting
description: Greets.
routing: {engine_managed: true}
---

:::ordered_block id=greet
steps:
  - id: hello
    action: utter_hello
:::
";

fn greeting() -> Vec<(&'static str, &'static str)> {
    vec![
        ("skills/default_session_start/skill.md", GREETING),
        ("responses.yml", "responses: {utter_hello: [{text: Welcome!}]}"),
    ]
}

#[tokio::test]
async fn a_session_begins_with_the_skill_that_is_there_for_it() {
    let scene = scene(&greeting(), []);
    assert_eq!(scene.say("/session_start").await, ["Welcome!"]);
    assert!(scene.requests.lock().unwrap().is_empty(), "the user has said nothing that the model is to answer");
    scene.answers([said("It rains."), said("It still does.")]);
    assert_eq!(scene.say("How is the weather?").await, ["It rains."]);
    assert!(scene.offered().iter().flatten().all(|tool| tool != "activate_skill"), "nobody else can begin it");
    assert_eq!(scene.say("/session_start").await, ["Welcome!"]);
    assert_eq!(scene.say("And now?").await, ["It still does."]);
}

#[tokio::test]
async fn the_users_first_words_are_greeted_and_answered() {
    let scene = scene(&greeting(), [said("It rains.")]);
    assert_eq!(scene.say("How is the weather?").await, ["Welcome!", "It rains."]);
}

const CARD: &str = "---
name: Lock a card
description: Lock a lost card.
complete_when:
  condition: session.card.number
  criteria: [The user knows that the card is locked, 'The user has nothing more to ask']
---

Ask for the number.
";

fn card() -> Vec<(&'static str, &'static str)> {
    vec![
        ("skills/card/skill.md", CARD),
        ("skills/card/memory.yml", "schema: {public: {number: {type: text, llm_settable: true}}}"),
    ]
}

#[tokio::test]
async fn a_skill_whose_end_is_told_in_words_ends_when_a_model_finds_it_so() {
    let scene = scene(&card(), [activate("card"), said("nothing"), said("Which number?")]);
    scene.say("I lost my card").await;
    scene.answers([call("set_fields", json!({"number": "17"})), said("It is locked."), said("No.")]);
    assert_eq!(scene.say("17").await, ["It is locked."]);
    assert_eq!(scene.kept(&["skill_completed"]), Vec::<Value>::new());
    scene.answers([said("You are welcome."), said("Yes.")]);
    assert_eq!(scene.say("Thanks").await, ["You are welcome."]);
    assert_eq!(scene.kept(&["skill_completed"]), [json!({"event": "skill_completed", "skill_id": "card"})]);
    let requests = scene.requests.lock().unwrap();
    let judged = requests.last().unwrap();
    assert!(judged.tools.is_empty());
    let shown: Vec<_> = judged.messages.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert!(
        shown[0].contains("- The user knows that the card is locked\n- The user has nothing more to ask"),
        "{}",
        shown[0]
    );
    assert!(
        shown[1].ends_with("assistant: It is locked.\nuser: Thanks\nassistant: You are welcome.\n"),
        "{}",
        shown[1]
    );
}

const MOVE: &str = "---
name: Move
description: Move house.
---

Talk about it, then go through @block.address.

:::ordered_block id=address
description: asks for the new address
steps:
  - id: street
    collect: street
    utterance: utter_street
:::
";

#[tokio::test]
async fn the_model_goes_through_a_block_where_the_instructions_lead_to_it() {
    let files = [
        ("skills/move/skill.md", MOVE),
        ("skills/move/memory.yml", "schema: {public: {street: {type: text}}}"),
        ("responses.yml", "responses: {utter_street: [{text: Which street?}]}"),
    ];
    let enter = |block: &str| call("activate_skill", json!({"skill_id": "move", "ordered_block": block}));
    let scene = scene(&files, [activate("move"), enter("adress"), enter("address"), said("nothing")]);
    assert_eq!(scene.say("We move").await, ["Which street?"]);
    let entered = json!({"event": "block_entered", "skill_id": "move", "block_id": "address", "step": "street"});
    assert_eq!(scene.kept(&["block_entered"]), [entered]);
    assert_eq!(results(&scene, "activate_skill")[1], "`ordered_block` names no block of the skill that is active");
    scene.answers([call("set_fields", json!({"street": "Elm"})), said("A fine street.")]);
    assert_eq!(scene.say("Elm Street").await, ["A fine street."]);
    assert_eq!(scene.offered().last().unwrap()[0], "activate_skill", "the skill itself goes on");
}

const CARELESS: &str = "
import asyncio
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Take long')
async def take_long(context: ToolContext = None) -> ToolResult:
    context.memory.set('begun', True)
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        await asyncio.sleep(0.05)
        await context.send('Nobody hears this.')
        context.memory.set('cleaned', context.is_cancelled)
        raise
    return ToolResult(llm_response='done')

@tool(description='Do not listen')
async def go_on(context: ToolContext = None) -> ToolResult:
    context.memory.set('begun', True)
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        await asyncio.sleep(3)
        context.memory.set('cleaned', True)
    return ToolResult(llm_response='done')
";

fn work() -> Vec<(&'static str, &'static str)> {
    vec![
        ("skills/work/skill.md", "---\nname: Work\ndescription: Work.\n---\nWork.\n"),
        ("skills/work/memory.yml", "schema: {public: {begun: {type: bool}, cleaned: {type: bool}}}"),
        ("skills/work/tools.py", CARELESS),
    ]
}

/// Begins a turn and cancels it when its tool has written to memory: what was heard, how it ended, and how long that took.
async fn cancelled(scene: &Scene) -> (Vec<String>, TurnStatus, Duration) {
    let mut events = scene.agent.engine.turn(TurnInput::new("s", "Work"));
    let (mut heard, mut asked) = (Vec::new(), None);
    while let Some(event) = events.next().await {
        match event {
            TurnEvent::Moved { to: tenterhook::Event::MemorySet { entry, .. } } if entry == "begun" => {
                assert!(scene.agent.engine.interrupt("s"));
                asked = Some(Instant::now());
            }
            TurnEvent::Message { text, .. } => heard.push(text),
            TurnEvent::Finished { status } => return (heard, status, asked.unwrap().elapsed()),
            _ => {}
        }
    }
    unreachable!("a turn ends")
}

#[tokio::test]
async fn a_cancelled_tool_has_a_moment_to_unwind_and_what_it_writes_then_stays() {
    let scene = scene(&work(), [activate("work"), call("take_long", json!({}))]);
    let (heard, status, took) = cancelled(&scene).await;
    assert_eq!((heard, status), (vec![], TurnStatus::Cancelled));
    assert!(took < Duration::from_millis(450), "{took:?}");
    let entries: Vec<_> = scene.kept(&["memory_set"]).iter().map(|event| event["entry"].clone()).collect();
    assert_eq!(entries, ["begun", "cleaned"]);
    assert_eq!(results(&scene, "take_long"), Vec::<Value>::new(), "the call is not recorded");
}

#[tokio::test]
async fn a_cancelled_tool_that_does_not_unwind_is_left_behind() {
    let scene = scene(&work(), [activate("work"), call("go_on", json!({}))]);
    let (_, status, took) = cancelled(&scene).await;
    assert_eq!(status, TurnStatus::Cancelled);
    assert!((Duration::from_millis(450)..Duration::from_secs(2)).contains(&took), "{took:?}");
    let entries: Vec<_> = scene.kept(&["memory_set"]).iter().map(|event| event["entry"].clone()).collect();
    assert_eq!(entries, ["begun"]);
    scene.answers([said("Here I am.")]);
    assert_eq!(scene.say("Hello?").await, ["Here I am."]);
}
