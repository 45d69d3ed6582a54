//! Whatever a model and the tools do, a conversation stands where its stored events say: each turn of a debug build compares the two at its
//! end, and here they are led through turns that nobody would think of.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{SkillSet, State};
use crate::condition::Condition;
use crate::conversation::{Event, Object};
use crate::skill::{
    Argument, Branch, Confirmation, Goto, MemoryEntry, MemoryKind, MemorySchema, Next, OrderedBlock, Part, Skill, Step,
    StepKind, Target, ToolConstraint,
};
use crate::step::{Model, ModelError, ModelReply, ModelRequest, RequestedCall, Tokens};
use crate::tools::{Activation, Tool, ToolContext, ToolOutput, ToolSpec, Toolbox};
use crate::turn::{ConversationStore, MemoryStore, StoreError, TurnEngineBuilder, TurnInput};

/// Gives its answers one after the other, and then a text.
struct Answers(Mutex<VecDeque<ModelReply>>);

impl Model for Answers {
    fn name(&self) -> &'static str {
        "answers"
    }

    fn complete<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: Option<Tokens<'a>>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let next = self.0.lock().unwrap().pop_front().unwrap_or_else(|| ModelReply::text("Well."));
        Box::pin(async { Ok(next) })
    }
}

/// What a tool does beside giving a result.
#[derive(Clone, Debug)]
enum Does {
    Nothing,
    Writes(&'static str, Value),
    Begins(&'static str, Option<&'static str>),
    Fails,
}

struct Doing(Arc<ToolSpec>, Does);

impl Tool for Doing {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn call(&self, _: Object, context: Arc<dyn ToolContext>) -> BoxFuture<'_, ToolOutput> {
        let done = match &self.1 {
            Does::Nothing => ToolOutput::of("done"),
            Does::Writes(entry, value) => match context.remember(entry, value.clone()) {
                Ok(()) => ToolOutput::of("written"),
                Err(why) => ToolOutput::error(why),
            },
            Does::Begins(skill, block) => {
                let next = Activation { skill_id: (*skill).into(), ordered_block: block.map(str::to_owned) };
                ToolOutput { next: vec![next], ..ToolOutput::of("begun") }
            }
            Does::Fails => ToolOutput::of(json!({"error": "no"})),
        };
        Box::pin(async { done })
    }
}

struct Toolbag(Vec<(&'static str, Does)>);

impl Toolbox for Toolbag {
    fn offered(&self) -> Vec<Arc<dyn Tool>> {
        let tool = |(name, does): &(&'static str, Does)| {
            Arc::new(Doing(Arc::new(ToolSpec::new(*name, "")), does.clone())) as Arc<dyn Tool>
        };
        self.0.iter().map(tool).collect()
    }
}

/// A store that the test looks into.
#[derive(Clone, Default)]
struct Shared(Arc<MemoryStore>);

impl ConversationStore for Shared {
    fn events(&self, sender_id: &str) -> Result<Vec<Event>, StoreError> {
        self.0.events(sender_id)
    }

    fn append(&self, sender_id: &str, events: &[Event]) -> Result<(), StoreError> {
        self.0.append(sender_id, events)
    }
}

fn step(id: &str, kind: StepKind, next: Goto) -> Step {
    Step { id: id.into(), kind, next: Next::Always(next) }
}

fn goto(id: &str) -> Goto {
    Goto::Step(id.into())
}

/// Two skills: `a` has instructions, a gate and a block; `b` is a block alone that calls and links.
fn skills() -> SkillSet {
    let entry = |name: &str, kind| MemoryEntry { llm_settable: name != "city", ..MemoryEntry::of(name, kind) };
    let schema = |entries| MemorySchema { entries, unread: false };
    let of_a = |block: Option<&str>| Target { skill: "a".into(), block: block.map(str::to_owned) };
    let collects = StepKind::Collect { entry: "city".into(), utterance: None };
    let runs = StepKind::ExecuteTool {
        tool: "nothing".into(),
        parameters: vec![("x".into(), Argument::Entry { namespace: "a".into(), entry: "city".into() })],
    };
    let done = Condition::parse("session.a.count > 2").unwrap();
    let asks = StepKind::Instructions { text: "Ask.".into(), complete_when: Some(done.clone()) };
    let walk = OrderedBlock {
        id: "walk".into(),
        steps: vec![step("where", collects, goto("run")), step("run", runs, goto("ask")), step("ask", asks, Goto::End)],
        ..OrderedBlock::default()
    };
    let gate = ToolConstraint { confirmation: Some(Confirmation::default()), ..ToolConstraint::default() };
    let a = Skill {
        id: "a".into(),
        body: vec![Part { condition: None, text: "Go on.".into() }],
        blocks: vec![walk],
        memory: schema(vec![entry("city", MemoryKind::Text), entry("count", MemoryKind::Int)]),
        constraints: BTreeMap::from([("gated".to_owned(), gate)]),
        complete_when: Some(crate::skill::CompleteWhen { condition: Some(done.clone()), criteria: vec![] }),
        ..Skill::default()
    };
    let writes = StepKind::SetMemory { values: Object::from_iter([("flag".to_owned(), json!(true))]) };
    let branch = Branch { condition: done, then: goto("link") };
    let choose = Step {
        id: "choose".into(),
        kind: StepKind::Noop,
        next: Next::Branches { branches: vec![branch], otherwise: goto("call") },
    };
    let main = OrderedBlock {
        id: "main".into(),
        steps: vec![
            step("write", writes, goto("choose")),
            choose,
            step("call", StepKind::Call(of_a(Some("walk"))), Goto::End),
            step("link", StepKind::Link(of_a(None)), Goto::End),
        ],
        ..OrderedBlock::default()
    };
    let b = Skill {
        id: "b".into(),
        blocks: vec![main],
        memory: schema(vec![entry("flag", MemoryKind::Bool)]),
        ..Skill::default()
    };
    SkillSet { skills: vec![a, b], project: schema(vec![MemoryEntry::of("name", MemoryKind::Text)]) }
}

fn toolbox() -> Toolbag {
    Toolbag(vec![
        ("nothing", Does::Nothing),
        ("gated", Does::Writes("count", json!(3))),
        ("write_name", Does::Writes("name", json!("Ada"))),
        ("write_wrong", Does::Writes("count", json!("many"))),
        ("begin_b", Does::Begins("b", None)),
        ("begin_walk", Does::Begins("a", Some("walk"))),
        ("begin_none", Does::Begins("c", None)),
        ("run_after_setting_city", Does::Nothing),
        ("run_after_setting_count", Does::Fails),
    ])
}

/// A call that a model might make.
fn call() -> impl Strategy<Value = RequestedCall> {
    let of = |name: &'static str, arguments: Value| Just((name, arguments));
    let calls = prop_oneof![
        of("activate_skill", json!({"skill_id": "a"})),
        of("activate_skill", json!({"skill_id": "b"})),
        of("complete_skill", json!({})),
        of("cancel_skill", json!({})),
        of("set_fields", json!({"city": "Rome"})),
        of("set_fields", json!({"city": "Oslo", "count": 4})),
        of("set_fields", json!({"city": null, "other": 1})),
        of("resolve_tool_confirmation", json!({"accepted": true})),
        of("resolve_tool_confirmation", json!({"accepted": false})),
        of("gated", json!({})),
        of("nothing", json!({})),
        of("write_name", json!({})),
        of("write_wrong", json!({})),
        of("begin_b", json!({})),
        of("begin_walk", json!({})),
        of("begin_none", json!({})),
        of("listen", json!({})),
    ];
    calls.prop_map(|(name, arguments)| RequestedCall {
        id: None,
        tool_name: name.into(),
        arguments: Ok(arguments.as_object().unwrap().clone()),
    })
}

fn reply() -> impl Strategy<Value = ModelReply> {
    prop_oneof![
        1 => Just(ModelReply::text("Well.")),
        4 => prop::collection::vec(call(), 1..4).prop_map(|calls| ModelReply { calls, ..ModelReply::default() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_conversation_stands_where_its_events_say(
        replies in prop::collection::vec(reply(), 1..24), says in prop::collection::vec(prop::sample::select(vec!["Hm.", "/session_start", "/nudge"]), 1..5),
    ) {
        let store = Shared::default();
        let engine = TurnEngineBuilder::new(Arc::new(Answers(Mutex::new(replies.into()))))
            .toolbox(toolbox())
            .skills(skills())
            .store(store.clone())
            .build();
        for (number, text) in says.iter().enumerate() {
            let turn = engine.turn(TurnInput::new("s", *text)).collect::<Vec<_>>().now_or_never();
            prop_assert!(turn.is_some(), "nothing has to be waited for");
            let events = store.events("s").unwrap();
            let ends = events.iter().filter(|event| matches!(event, Event::TurnFinished { .. })).count();
            prop_assert_eq!(ends, number + 1);
            let (mut asked, mut answered) = (Vec::new(), Vec::new());
            for event in &events {
                match event {
                    Event::ToolCalls { calls } => asked.extend(calls.iter().map(|call| call["id"].clone())),
                    Event::ToolExecuted { id, source, .. } if source != crate::conversation::CONFIRMED => {
                        answered.push(Value::from(id.clone()));
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(asked, answered, "every call has its result, in their order");
            let state = State::of(&events);
            let known = skills();
            prop_assert!(state.frames.iter().all(|frame| known.skill(&frame.skill).is_some()));
            prop_assert!(state.frames.len() < 32);
        }
    }
}
