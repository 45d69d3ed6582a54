//! Agents with skills: memory, gates, confirmations, ordered blocks, hand-offs. The model's part is a list of answers.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tenterhook::{HookEngine, TurnEngine, TurnInput};

use crate::agents::{environment, folder};
use crate::scene::{Answers, activate, batch, call, results, said, scene};
use crate::seed_modules::shared;

const BALANCE: &str = "---
name: Balance
description: Tell the balance of an account.
---

Ask for the account number, then call check_balance.
";

const BALANCE_MEMORY: &str = "schema:
  public:
    account_number: {type: text, llm_settable: true, description: the number of the account}
    balance: {type: float}
";

const BALANCE_TOOLS: &str = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Look up a balance')
async def check_balance(context: ToolContext = None) -> ToolResult:
    context.memory.set('balance', 12.5)
    return ToolResult(llm_response={'account': context.memory.get('account_number'), 'balance': context.memory.get('balance')})
";

fn balance(skill: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![
        ("skills/balance/skill.md", skill),
        ("skills/balance/memory.yml", BALANCE_MEMORY),
        ("skills/balance/tools.py", BALANCE_TOOLS),
    ]
}

#[tokio::test]
async fn a_skill_is_activated_has_its_tools_and_memory_and_is_completed() {
    let scene = scene(
        &balance(BALANCE),
        [
            activate("balance"),
            said("nothing"),
            call("set_fields", json!({"account_number": "4711"})),
            call("check_balance", json!({})),
            said("12.50 euros."),
        ],
    );
    assert_eq!(scene.say("What is on my account 4711?").await, ["12.50 euros."]);
    assert_eq!(
        scene.offered(),
        [
            vec!["activate_skill", "cannot_help", "listen"],
            vec!["set_fields"],
            vec!["check_balance", "complete_skill", "cancel_skill", "set_fields", "cannot_help", "listen"],
            vec!["check_balance", "complete_skill", "cancel_skill", "set_fields", "cannot_help", "listen"],
            vec!["check_balance", "complete_skill", "cancel_skill", "set_fields", "cannot_help", "listen"],
        ]
    );
    let prompt = scene.prompt();
    assert!(prompt.contains("Ask for the account number, then call check_balance."), "{prompt}");
    assert!(prompt.contains("- balance.account_number: 4711"), "{prompt}");
    let results = scene.kept(&["tool_executed"]);
    assert_eq!(results[2]["value"], r#"{"account":"4711","balance":12.5}"#);
    scene.answers([call("complete_skill", json!({})), said("Anything else?")]);
    scene.say("Thanks").await;
    assert_eq!(scene.offered().last().unwrap(), &["activate_skill", "cannot_help", "listen"]);
    assert_eq!(
        scene.kept(&["skill_activated", "memory_set", "skill_completed"]),
        [
            json!({"event": "skill_activated", "skill_id": "balance"}),
            json!({"event": "memory_set", "namespace": "balance", "entry": "account_number", "value": "4711"}),
            json!({"event": "memory_set", "namespace": "balance", "entry": "balance", "value": 12.5}),
            json!({"event": "skill_completed", "skill_id": "balance"}),
        ]
    );
}

#[tokio::test]
async fn a_closed_gate_hides_its_tool_and_keeps_it_from_running() {
    let gated = "---
name: Balance
description: Tell the balance of an account.
tool_constraints:
  - check_balance:
      requires: session.balance.account_number
---
Help.
";
    let scene = scene(
        &balance(gated),
        [
            activate("balance"),
            said("nothing"),
            call("check_balance", json!({})),
            call("set_fields", json!({"account_number": "4711"})),
            call("check_balance", json!({})),
            said("Done."),
        ],
    );
    assert_eq!(scene.say("hello").await, ["Done."]);
    let offered = scene.offered();
    assert!(!offered[2].contains(&"check_balance".to_owned()) && offered[4].contains(&"check_balance".to_owned()));
    let results = scene.kept(&["tool_executed"]);
    assert_eq!(
        (&results[1]["tool_name"], &results[1]["is_error"], results[3].get("is_error")),
        (&json!("check_balance"), &json!(true), None)
    );
}

#[tokio::test]
async fn fields_that_do_not_fit_or_that_the_skill_refuses_are_told_and_the_others_kept() {
    let memory = "schema:
  public:
    amount: {type: int, llm_settable: true}
    name: {type: text, llm_settable: true}
    other: {type: text, llm_settable: true}
    secret: {type: text}
";
    let tools = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Checks the name')
async def run_after_setting_name(context: ToolContext = None) -> ToolResult:
    wrong = 'too short' if len(context.memory.get('name')) < 3 else None
    return ToolResult(llm_response={'error': wrong})
";
    let skill = "---\nname: Order\ndescription: Take an order.\n---\nTake it.\n";
    let files =
        [("skills/order/skill.md", skill), ("skills/order/memory.yml", memory), ("skills/order/tools.py", tools)];
    let given = json!({"amount": "many", "name": "X", "other": "fine", "secret": "s"});
    let scene = scene(&files, [activate("order"), said("nothing"), call("set_fields", given), said("Hm.")]);
    scene.say("hello").await;
    let results = scene.kept(&["tool_executed"]);
    let result: Value = serde_json::from_str(results[1]["value"].as_str().unwrap()).unwrap();
    let expected = json!({"set": ["other"], "refused": {
        "amount": "`amount` takes a whole number, not the text `many`",
        "name": "too short",
        "secret": "`secret` is no field that can be set now",
    }});
    assert_eq!(result, expected);
    assert!(scene.offered().iter().flatten().all(|tool| !tool.starts_with("run_after_setting")));
    let prompt = scene.prompt();
    assert!(prompt.contains("- order.other: fine") && !prompt.contains("order.name"), "{prompt}");
}

const TRANSFER: &str = "---
name: Transfer
description: Send money.
tool_constraints:
  - send_money:
      requires_confirmation: {enabled: true, utter_for_confirmation: utter_sure, utter_on_user_denial: utter_not_sent}
      on_success: utter_sent
---
Send it.
";

const TRANSFER_TOOLS: &str = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Send money')
async def send_money(amount: int) -> ToolResult:
    return ToolResult(llm_response={'receipt': f'R-{amount}'})
";

const TRANSFER_RESPONSES: &str = "responses:
  utter_sure: [{text: Shall I send it?}]
  utter_sent: [{text: It is sent.}]
  utter_not_sent: [{text: I have not sent it.}]
";

const COUNTING: &str = "
from rasa.mantle.hooks import ToolCallPayload, ToolResultPayload, modify_tool_call, modify_tool_result

@modify_tool_call()
async def double(payload: ToolCallPayload) -> ToolCallPayload:
    if payload.tool_name == 'send_money':
        return payload.model_copy(update={'arguments': {'amount': payload.arguments['amount'] * 2}})
    return payload

@modify_tool_result()
async def redact(payload: ToolResultPayload) -> ToolResultPayload:
    if payload.tool_name == 'resolve_tool_confirmation':
        return payload.model_copy(update={'value': payload.value.replace('R-', 'receipt ')})
    return payload
";

fn transfer() -> Vec<(&'static str, &'static str)> {
    vec![
        ("skills/transfer/skill.md", TRANSFER),
        ("skills/transfer/tools.py", TRANSFER_TOOLS),
        ("responses.yml", TRANSFER_RESPONSES),
        ("hooks.py", COUNTING),
    ]
}

#[tokio::test]
async fn a_confirmed_call_runs_with_its_hooked_arguments_and_a_redaction_reaches_its_own_event() {
    let scene = scene(&transfer(), [activate("transfer"), call("send_money", json!({"amount": 5}))]);
    assert_eq!(scene.say("Send 5").await, ["Shall I send it?"]);
    scene.answers([call("resolve_tool_confirmation", json!({"accepted": true})), said("There you go.")]);
    assert_eq!(scene.say("Yes").await, ["It is sent.", "There you go."]);
    assert_eq!(scene.offered()[2], ["resolve_tool_confirmation", "cancel_skill", "listen"]);
    let results = scene.kept(&["tool_executed"]);
    let shown: Vec<_> =
        results.iter().map(|event| json!([event["tool_name"], event["source"], event["value"]])).collect();
    assert_eq!(
        shown,
        [
            json!(["activate_skill", "engine", r#"{"activated":"transfer"}"#]),
            json!(["send_money", "local", r#"{"status":"awaiting_confirmation"}"#]),
            json!(["send_money", "tool_confirmation", r#"{"receipt":"receipt 10"}"#]),
            json!(["resolve_tool_confirmation", "engine", r#"{"receipt":"receipt 10"}"#]),
        ]
    );
    assert_eq!(results[2]["arguments"], json!({"amount": 10}));
    let last = scene.requests.lock().unwrap().last().unwrap().messages.clone();
    let tools = last.iter().filter(|message| message["role"] == "tool").count();
    assert_eq!(tools, 3, "the model sees the answer to each of its calls, and nothing else");
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_its_words_end_the_turn() {
    let scene = scene(&transfer(), [activate("transfer"), call("send_money", json!({"amount": 5}))]);
    scene.say("Send 5").await;
    scene.answers([call("resolve_tool_confirmation", json!({"accepted": false}))]);
    assert_eq!(scene.say("No").await, ["I have not sent it."]);
    assert_eq!(
        scene.kept(&["confirmation_answered"]),
        [json!({"event": "confirmation_answered", "tool_name": "send_money", "accepted": false})]
    );
    assert!(scene.kept(&["tool_executed"]).iter().all(|event| event["source"] != "tool_confirmation"));
}

#[tokio::test]
async fn an_ordered_block_is_gone_through_by_the_engine_and_the_model_is_asked_where_it_must_be() {
    let skill = "---
name: Lock card
description: Lock a card.
---

:::ordered_block id=lock
steps:
  - id: ask
    collect: card_number
    utterance: utter_which_card
  - id: mark
    set_memory: {state: locking}
  - id: lock
    execute_tool: lock_card
    parameters: {number: session.lock_card.card_number}
  - id: tell
    action: utter_locked
:::
";
    let memory = "schema:
  public:
    card_number: {type: text}
    state: {type: text}
";
    let tools = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Lock it')
async def lock_card(number: str, context: ToolContext = None) -> ToolResult:
    return ToolResult(llm_response={'locked': number, 'was': context.memory.get('state')})
";
    let responses = "responses:
  utter_which_card: [{text: Which card?}]
  utter_locked: [{text: 'Card {card_number} is locked.'}]
";
    let counting = "
import json
from rasa.mantle.hooks import ToolCallPayload, ToolResultPayload, on_tool_call, on_tool_result
seen = []

@on_tool_call()
async def call(payload: ToolCallPayload) -> None:
    assert payload.tool_name != 'lock_card'
";
    let files = [
        ("skills/lock_card/skill.md", skill),
        ("skills/lock_card/memory.yml", memory),
        ("skills/lock_card/tools.py", tools),
        ("responses.yml", responses),
        ("hooks.py", counting),
    ];
    let scene = scene(&files, [activate("lock_card"), said("nothing")]);
    assert_eq!(scene.say("Lock my card").await, ["Which card?"]);
    scene.answers([call("set_fields", json!({"card_number": "42"})), said("Anything else?")]);
    assert_eq!(scene.say("42").await, ["Card 42 is locked.", "Anything else?"]);
    let results = scene.kept(&["tool_executed"]);
    let locked = results.iter().find(|event| event["tool_name"] == "lock_card").unwrap();
    assert_eq!(locked["value"], r#"{"locked":"42","was":"locking"}"#);
    assert_eq!(scene.kept(&["skill_completed"]).len(), 1, "it is nothing but this block");
    assert_eq!(scene.offered().last().unwrap(), &["activate_skill", "cannot_help", "listen"]);
    let hooks = scene.agent.hooks.as_ref().unwrap().statistics();
    assert!(hooks.iter().all(|hook| hook.failures.is_empty()), "no hook sees the calls that the engine makes");
}

#[tokio::test]
async fn a_tool_hands_over_to_another_skill_whose_end_brings_its_own_back() {
    let verify = "---\nname: Verify\ndescription: Verify the caller.\n---\nAsk for the pin.\n";
    let overview = "---
name: Overview
description: Show the accounts.
complete_when: {condition: session.overview.shown}
---
Show the accounts.
";
    let verify_tools = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ActivateSkill, ToolResult

@tool(description='Verify the caller')
async def verify_identity(pin: str) -> ToolResult:
    return ToolResult(llm_response={'verified': True}, next=[ActivateSkill(skill_id='overview')])
";
    let overview_tools = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Show the accounts')
async def show(context: ToolContext = None) -> ToolResult:
    context.memory.set('shown', True)
    return ToolResult(llm_response={'accounts': 2})
";
    let files = [
        ("skills/verify/skill.md", verify),
        ("skills/verify/tools.py", verify_tools),
        ("skills/overview/skill.md", overview),
        ("skills/overview/memory.yml", "schema: {public: {shown: {type: bool}}}\n"),
        ("skills/overview/tools.py", overview_tools),
    ];
    let scene = scene(
        &files,
        [
            activate("verify"),
            call("verify_identity", json!({"pin": "1"})),
            call("show", json!({})),
            said("Two accounts."),
        ],
    );
    assert_eq!(scene.say("Show my accounts").await, ["Two accounts."]);
    let own = |tools: &[String]| -> Vec<String> {
        tools.iter().filter(|tool| ["verify_identity", "show"].contains(&tool.as_str())).cloned().collect()
    };
    let offered: Vec<_> = scene.offered().iter().map(|tools| own(tools)).collect();
    assert_eq!(offered, [vec![], vec!["verify_identity"], vec!["show"], vec!["verify_identity"]]);
}

#[tokio::test]
async fn nobody_but_the_user_can_say_yes() {
    let skill = "---
name: Transfer
description: Send money.
tool_constraints:
  - send_money:
      requires_confirmation: {enabled: true}
---
Send it.
";
    let files = [("skills/transfer/skill.md", skill), ("skills/transfer/tools.py", TRANSFER_TOOLS)];
    let yes = || call("resolve_tool_confirmation", json!({"accepted": true}));
    let scene =
        scene(&files, [activate("transfer"), call("send_money", json!({"amount": 5})), yes(), said("Shall I?")]);
    assert_eq!(scene.say("Send 5").await, ["Shall I?"]);
    assert!(!scene.offered()[2].contains(&"resolve_tool_confirmation".to_owned()));
    assert!(results(&scene, "send_money").iter().all(|value| value == r#"{"status":"awaiting_confirmation"}"#));
    scene.answers([yes(), said("Sent.")]);
    assert_eq!(scene.say("Yes").await, ["Sent."]);
    assert_eq!(results(&scene, "send_money")[1], r#"{"receipt":"R-5"}"#);
}

#[tokio::test]
async fn a_question_that_cannot_be_asked_lets_nothing_run() {
    let mut files = transfer();
    files[2].1 = "responses:\n  utter_sure: [{text: '{nothing}'}]\n  utter_sent: [{text: Sent.}]\n  utter_not_sent: [{text: No.}]\n";
    let scene = scene(&files, [activate("transfer"), call("send_money", json!({"amount": 5})), said("I cannot.")]);
    assert_eq!(scene.say("Send 5").await, ["I cannot."]);
    assert_eq!(scene.kept(&["confirmation_answered"]).len(), 1);
    scene.answers([call("resolve_tool_confirmation", json!({"accepted": true})), said("No.")]);
    scene.say("Yes").await;
    assert!(scene.kept(&["tool_executed"]).iter().all(|event| event["source"] != "tool_confirmation"));
}

#[tokio::test]
async fn a_gate_is_that_of_the_skill_for_which_its_tool_was_offered() {
    for first in ["complete_skill", "cancel_skill"] {
        let calls = batch([(first, json!({})), ("send_money", json!({"amount": 5}))]);
        let scene = scene(&transfer(), [activate("transfer"), calls, said("Done.")]);
        scene.say("Send 5").await;
        assert_eq!(
            results(&scene, "send_money"),
            ["`send_money` was not called: its skill is not active any more"],
            "{first}"
        );
    }
    let calls = batch([("complete_skill", json!({})), ("complete_skill", json!({}))]);
    let scene = scene(&transfer(), [activate("transfer"), calls, said("Done.")]);
    scene.say("hello").await;
    assert_eq!(scene.kept(&["skill_completed"]).len(), 1);
}

#[tokio::test]
async fn only_eligible_skills_are_activated_and_a_disabled_one_is_left() {
    let vip = "---\nname: Vip\ndescription: For some.\nrequires: session.project.vip\n---\nHelp.\n";
    let mut files = transfer();
    files.extend([("skills/vip/skill.md", vip), ("memory.yml", "vip: {type: bool}\n")]);
    let scene = scene(&files, [activate("vip"), activate("transfer"), said("Done.")]);
    scene.say("hello").await;
    assert_eq!(results(&scene, "activate_skill")[0], "`skill_id` names no skill that can be activated now");
    let skill = scene.folder.path().join("skills/transfer/skill.md");
    std::fs::write(&skill, TRANSFER.replace("description: Send money.", "description: Send money.\ndisabled: true"))
        .unwrap();
    let model = Answers { left: Arc::new(Mutex::new([said("Hm.")].into())), requests: Arc::clone(&scene.requests) };
    let hooks = HookEngine::builder(scene.folder.path()).python(environment());
    let loader = TurnEngine::loader(scene.folder.path()).hooks(hooks).model(model);
    let agent = loader.store(scene.folder.path().join("talks.db")).load().unwrap();
    let _: Vec<_> = agent.engine.turn(TurnInput::new("s", "again")).collect().await;
    assert_eq!(scene.offered().last().unwrap(), &["cannot_help", "listen"]);
    assert_eq!(scene.kept(&["skill_cancelled"]), [json!({"event": "skill_cancelled", "skill_id": "transfer"})]);
}

#[tokio::test]
async fn a_branch_is_chosen_by_what_its_step_has_left_and_called_blocks_come_back() {
    let skill = "---
name: Apply
description: Apply for a card.
---
:::ordered_block id=apply
steps:
  - id: look
    execute_tool: look
    next:
      - if: session.apply.eligible
        then: fine
      - else: sorry
  - id: fine
    call: \"@block.details\"
    next: done
  - id: sorry
    action: utter_sorry
    next: END
  - id: done
    action: utter_done
:::

:::ordered_block id=details
steps:
  - id: say
    action: utter_details
:::

Apply.
";
    let tools = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ActivateSkill, ToolResult

@tool(description='Look')
async def look(context: ToolContext = None) -> ToolResult:
    context.memory.set('eligible', True)
    return ToolResult(llm_response='ok')

@tool(description='Begin')
async def begin() -> ToolResult:
    return ToolResult(llm_response='ok', next=[ActivateSkill(skill_id='apply', ordered_block='apply')])
";
    let responses = "responses:
  utter_sorry: [{text: Sorry.}]
  utter_details: [{text: Details.}]
  utter_done: [{text: Done.}]
";
    let files = [
        ("skills/apply/skill.md", skill),
        ("skills/apply/memory.yml", "schema: {public: {eligible: {type: bool}}}\n"),
        ("skills/apply/tools.py", tools),
        ("responses.yml", responses),
    ];
    let scene = scene(&files, [activate("apply"), call("begin", json!({})), said("Bye.")]);
    assert_eq!(scene.say("A card").await, ["Details.", "Done.", "Bye."]);
    let last = scene.requests.lock().unwrap().last().unwrap().messages.last().unwrap().clone();
    assert_eq!(last["role"], "system", "no request ends with the agent's own words");
}

#[tokio::test]
async fn skills_that_call_each_other_without_an_end_fail_the_turn() {
    let block = |other: &str| {
        format!(
            "---\nname: A\ndescription: B\n---\n:::ordered_block id=go\nsteps:\n  - id: one\n    call: \"@skill.{other}\"\n:::\n"
        )
    };
    let (one, two) = (block("two"), block("one"));
    let files = [("skills/one/skill.md", one.as_str()), ("skills/two/skill.md", two.as_str())];
    let scene = scene(&files, [activate("one")]);
    assert_eq!(scene.say("hello").await, ["I'm sorry, but something went wrong. Please try again."]);
    scene.answers([said("Fine.")]);
    assert_eq!(scene.say("again").await, ["Fine."], "nothing is active any more");
}

#[tokio::test]
async fn a_tool_cannot_have_a_name_of_the_engines() {
    let tools = "
from rasa.mantle.tools.decorator import tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Listen')
async def listen() -> ToolResult:
    return ToolResult()
";
    let folder = folder(&[("tools.py", tools)]);
    let model = Answers { left: Arc::default(), requests: Arc::default() };
    let hooks = HookEngine::builder(folder.path()).python(environment());
    let error = TurnEngine::loader(folder.path()).hooks(hooks).model(model).load().unwrap_err();
    assert!(error.to_string().contains("`listen` is a tool of the engine's own"), "{error}");
}

#[test]
fn a_skill_has_its_own_tools_and_of_the_shared_ones_those_that_it_imports() {
    let tool = |name: &str, description: &str| {
        format!(
            "from rasa.mantle.tools.decorator import tool\nfrom rasa.mantle.tools.result import ToolResult\n\n\
             @tool(description='{description}')\nasync def {name}() -> ToolResult:\n    return ToolResult()\n"
        )
    };
    let skill = |imports: &str| format!("---\nname: A\ndescription: B\nimport_tools: [{imports}]\n---\nHelp.\n");
    let (one, two) = (skill("info, look"), skill(""));
    let common = [tool("info", "shared"), tool("look", "shared"), tool("other", "shared")];
    let own = [tool("look", "of tools.py"), tool("look", "of tools/")];
    let files = [
        ("tools/info.py", common[0].as_str()),
        ("tools/look.py", common[1].as_str()),
        ("tools/other.py", common[2].as_str()),
        ("skills/one/skill.md", one.as_str()),
        ("skills/one/tools.py", own[0].as_str()),
        ("skills/one/tools/look.py", own[1].as_str()),
        ("skills/two/skill.md", two.as_str()),
    ];
    let scene = scene(&files, []);
    let tools: Vec<_> = scene
        .agent
        .engine
        .tools()
        .into_iter()
        .map(|(skill, specs)| {
            let shown = |spec: &std::sync::Arc<tenterhook::ToolSpec>| format!("{}: {}", spec.name, spec.description);
            (skill.unwrap(), specs.iter().map(shown).collect::<Vec<_>>())
        })
        .collect();
    let expected = [
        ("one".to_owned(), vec!["look: of tools/".to_owned(), "info: shared".to_owned()]),
        ("two".to_owned(), Vec::new()),
    ];
    assert_eq!(tools, expected);
}

#[tokio::test]
async fn the_tool_modules_of_the_document_run_as_they_are() {
    let Some(modules) = shared().map(|shared| shared.join("cases/seed-modules")) else { return };
    let module = |name: &str| std::fs::read_to_string(modules.join(name)).unwrap();
    let balance = module("tools_check_balance.py") + "\n\nasync def call_api(number):\n    return 12.5\n";
    let verify = "from rasa.mantle.tools.decorator import ToolContext, tool\n".to_owned()
        + &module("tools_verify_identity.py")
        + "\n\nasync def check_pin(pin):\n    assert pin == '1'\n";
    let skill = |name: &str| format!("---\nname: {name}\ndescription: {name}\n---\nHelp.\n");
    let skills = [skill("Check"), skill("Verify"), skill("Overview")];
    let files = [
        ("skills/check_balance/skill.md", skills[0].as_str()),
        ("skills/check_balance/tools.py", balance.as_str()),
        ("skills/verify/skill.md", skills[1].as_str()),
        ("skills/verify/tools.py", verify.as_str()),
        ("skills/account_overview/skill.md", skills[2].as_str()),
    ];
    let scene = scene(
        &files,
        [
            activate("check_balance"),
            call("check_balance", json!({"account_number": "4711"})),
            activate("verify"),
            call("verify_identity", json!({"pin": "1"})),
            said("Done."),
        ],
    );
    assert_eq!(scene.say("hello").await, ["Done."]);
    assert_eq!(results(&scene, "check_balance"), [r#"{"balance":12.5,"currency":"USD"}"#]);
    assert_eq!(results(&scene, "verify_identity"), [r#"{"verified":true}"#]);
    let activated: Vec<_> = scene.kept(&["skill_activated"]).iter().map(|event| event["skill_id"].clone()).collect();
    assert_eq!(activated, ["check_balance", "verify", "account_overview"]);
}

#[tokio::test]
async fn what_a_tool_writes_that_is_not_declared_is_refused() {
    let tools = "
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult

@tool(description='Write')
async def write(context: ToolContext = None) -> ToolResult:
    try:
        context.memory.set('nothing', 1)
    except ValueError as error:
        return ToolResult(llm_response={'refused': str(error), 'default': context.memory.get('nothing', 7)})
";
    let skill = "---\nname: A\ndescription: B\n---\nHelp.\n";
    let scene = scene(
        &[("skills/a/skill.md", skill), ("skills/a/tools.py", tools)],
        [activate("a"), call("write", json!({})), said("Done.")],
    );
    scene.say("hello").await;
    let refused = "`nothing` is declared in no `memory.yml` of `skills/a` or of the project";
    assert_eq!(results(&scene, "write"), [json!({"refused": refused, "default": 7}).to_string()]);
}

#[tokio::test]
async fn a_question_that_was_not_asked_since_the_turn_failed_is_not_answered_by_the_next_message() {
    let skill = TRANSFER.replace(", utter_for_confirmation: utter_sure", "");
    let mut files = transfer();
    files[0].1 = Box::leak(skill.into_boxed_str());
    // The model has no answer after the call, so that the turn fails before anybody is asked.
    let scene = scene(&files, [activate("transfer"), call("send_money", json!({"amount": 5}))]);
    assert_eq!(scene.say("Send 5").await, ["I'm sorry, but something went wrong. Please try again."]);
    scene.answers([call("resolve_tool_confirmation", json!({"accepted": true})), said("Hm.")]);
    scene.say("Yes, try again").await;
    assert!(scene.kept(&["tool_executed"]).iter().all(|event| event["source"] != "tool_confirmation"));
}
