//! Hooks and tools of an execution from a folder: on its lanes, through the same clock and supervision as all other hooks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook::{
    Controller, Error, ExecutionHook, ExecutionHooks as _, ExitSeen, HookEngine, HookFailure, Iteration,
    IterationChange, ToolMoment, ToolSpec, Trace, Traced,
};

use crate::agents::{builder, folder};

const TIMEOUT: Duration = Duration::from_millis(300);

/// The folder must outlive the engine.
fn loaded(files: &[(&str, &str)]) -> (HookEngine, TempDir) {
    let folder = folder(files);
    let engine = builder(&folder).for_execution(TIMEOUT, TIMEOUT).load().unwrap_or_else(|error| panic!("{error}"));
    (engine, folder)
}

fn problems(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let folder = folder(files);
    match builder(&folder).for_execution(TIMEOUT, TIMEOUT).load() {
        Err(Error::Invalid { problems, .. }) => {
            problems.into_iter().map(|problem| (problem.rule, problem.message)).collect()
        }
        other => panic!("the modules are refused, not {other:?}"),
    }
}

fn trace(message: &str) -> Trace {
    Trace { what: Traced::Log { message: message.into() }, started_at: 1, ended_at: None }
}

#[tokio::test]
async fn functions_of_a_module_are_hooks_with_the_documented_arguments_and_values() {
    let (engine, _folder) = loaded(&[(
        "hooks.py",
        "
from tenterhook import CriticalError, ThinkSignal

def on_iteration_start(iteration, controller, context):
    return {'variables': {'number': iteration.number, 'user': context['user']}}

async def on_before_execution(iteration):
    return {'code': iteration.code + '\\nmore()'}

async def on_before_tool(*, tool, input):
    return {'input': {'tool': tool.name, 'was': input}}

async def on_after_tool(output):
    if output is None:
        raise ThinkSignal('Nothing came', {'output': output})
    return {'output': None}

def on_exit(exit, result):
    raise ValueError(f'{exit.name} is not {result}')

async def on_iteration_end(iteration, controller):
    controller.abort('enough')
    raise CriticalError('stop')
",
    )]);
    let (hooks, controller) = (engine.execution_hooks(), Controller::new());
    let mut iteration = Iteration::default();
    (iteration.number, iteration.code) = (3, Some("work()".to_owned()));
    let change = hooks.on_iteration_start(&iteration, &controller, &json!({"user": "ada"})).await.unwrap();
    let Value::Object(variables) = json!({"number": 3, "user": "ada"}) else { panic!("an object") };
    assert_eq!(change, Some(IterationChange { variables: Some(variables), ..IterationChange::default() }));
    let code = hooks.on_before_execution(&iteration, &controller).await;
    assert_eq!(code, Ok(Some("work()\nmore()".to_owned())));

    let (tool, input) = (ToolSpec::new("search", "Searches."), json!({"q": "tea"}));
    let moment = ToolMoment {
        iteration: &iteration,
        tool: &tool,
        tool_call_id: "t1",
        native_call_id: None,
        input: &input,
        controller: &controller,
    };
    assert_eq!(hooks.on_before_tool(moment).await, Ok(Some(json!({"tool": "search", "was": {"q": "tea"}}))));
    assert_eq!(hooks.on_after_tool(moment, &json!(5)).await, Ok(Some(Value::Null)));
    let think = HookFailure::Think { reason: "Nothing came".into(), context: json!({"output": null}) };
    assert_eq!(hooks.on_after_tool(moment, &Value::Null).await, Err(think));

    let exit = ExitSeen { name: "done".into(), description: "The end".into() };
    let refused = hooks.on_exit(&exit, &json!(1), &controller).await;
    assert_eq!(refused, Err(HookFailure::failed("done is not 1")));
    let ended = hooks.on_iteration_end(&iteration, &controller).await;
    assert_eq!(ended, Err(HookFailure::Critical { message: "stop".into() }));
    assert_eq!(controller.reason(), Some("enough"));
    assert!(!hooks.has(ExecutionHook::OnTrace));
}

#[tokio::test]
async fn an_object_hooks_has_them_as_well_and_traces_come_in_order() {
    let (engine, _folder) = loaded(&[(
        "hooks.py",
        "
class Watch:
    def __init__(self):
        self.heard = []

    def on_trace(self, trace, iteration):
        self.heard.append(f'{iteration} {trace.message}')

    async def on_before_execution(self):
        return {'code': ', '.join(self.heard)}

hooks = Watch()
",
    )]);
    let (hooks, controller) = (engine.execution_hooks(), Controller::new());
    for number in 0..50 {
        hooks.on_trace(&trace(&number.to_string()), 1, &controller);
    }
    hooks.traces_heard().await;
    let expected: Vec<_> = (0..50).map(|number| format!("1 {number}")).collect();
    let heard = hooks.on_before_execution(&Iteration::default(), &controller).await;
    assert_eq!(heard, Ok(Some(expected.join(", "))));
}

#[tokio::test]
async fn a_hook_that_blocks_its_lane_has_failed_on_time_and_the_next_is_called() {
    let (engine, _folder) = loaded(&[(
        "hooks.py",
        "
async def on_before_execution():
    while True:
        pass

async def on_iteration_start():
    return {'code': 'next'}
",
    )]);
    let (hooks, controller, iteration) = (engine.execution_hooks(), Controller::new(), Iteration::default());
    let start = Instant::now();
    let failed = hooks.on_before_execution(&iteration, &controller).await;
    assert_eq!(failed, Err(HookFailure::TimedOut { limit_ms: 300 }));
    assert!(start.elapsed() < Duration::from_millis(600), "{:?}", start.elapsed());
    let next = hooks.on_iteration_start(&iteration, &controller, &Value::Null).await;
    assert_eq!(next, Ok(Some(IterationChange { code: Some("next".into()), ..IterationChange::default() })));
}

#[test]
fn tools_of_the_folder_are_such_as_generated_code_calls() {
    let (engine, _folder) = loaded(&[(
        "tools.py",
        "
from rasa.mantle.tools.decorator import tool

@tool(description='Adds')
def add(one: int, other: int = 1) -> int:
    return one + other
",
    )]);
    let tools = engine.execution_tools();
    let shown: Vec<_> = tools
        .iter()
        .map(|found| (found.tool.spec().name.clone(), found.tool.spec().description.clone(), found.returns.clone()))
        .collect();
    assert_eq!(shown, [("add".to_owned(), "Adds".to_owned(), Some("int".to_owned()))]);
    assert_eq!(
        Value::Object(tools[0].tool.spec().parameters.clone()),
        json!({
            "additionalProperties": false,
            "properties": {"one": {"type": "integer"}, "other": {"default": 1, "type": "integer"}},
            "required": ["one"],
            "type": "object",
        })
    );
}

#[test]
fn what_is_wrong_with_hooks_of_a_folder_is_told_by_the_load() {
    let twice = "
async def on_exit(): ...
hooks = {'onExit': on_exit}
";
    let (rule, message) = problems(&[("hooks.py", twice)]).remove(0);
    assert_eq!(rule, "duplicate-hook");
    assert!(message.starts_with("The hook `on_exit` is there twice"), "{message}");
    let unknown = "hooks = {'on_exits': print}";
    assert_eq!(
        problems(&[("hooks.py", unknown)]),
        [("invalid-hook".to_owned(), "There is no hook `on_exits`".to_owned())]
    );
    let takes = "async def on_exit(results): ...";
    assert_eq!(
        problems(&[("hooks.py", takes)]),
        [("invalid-hook".to_owned(), "The hook `on_exit` takes `results`, which it is not given".to_owned())]
    );
}
