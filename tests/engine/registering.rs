//! What may be registered, and how what may not is told (cases L1 to L9, L13; S5 at load).

use tenterhook::{ModelRequestPayload, Point, Severity, TurnFinishedPayload, TurnStartedPayload, TurnStatus};

use crate::agents::{Agent, agent, builder, folder, problems, proceeded, refusal};

/// The lines of the problems of a `hooks.py` with everything imported on line 1.
fn problems_of(hooks: &str) -> Vec<String> {
    problems(&[("hooks.py", &format!("from rasa.mantle.hooks import *\n{hooks}"))])
}

#[test]
fn l1_a_decorator_without_parentheses_says_so_with_the_line() {
    let said = refusal(&[(
        "hooks.py",
        "from rasa.mantle.hooks import *\n\n@modify_model_request\nasync def f(p: ModelRequestPayload) -> ModelRequestPayload:\n    return p\n",
    )]);
    assert_eq!(
        said,
        "The hooks in `AGENT` cannot be loaded
AGENT/hooks.py:3: error[missing-parentheses]: `@modify_model_request` is used without parentheses
  hint: write `@modify_model_request()`
1 error"
    );
}

#[test]
fn l2_a_time_limit_that_is_no_positive_whole_number_is_an_error() {
    let huge = "100000000000000000000";
    for (given, shown) in [("0", "0"), ("-5", "-5"), ("'100'", "'100'"), ("True", "True"), ("1.5", "1.5"), (huge, huge)]
    {
        let said = problems_of(&format!(
            "@on_model_request(timeout_ms={given})\nasync def f(p: ModelRequestPayload) -> None: ...\n"
        ));
        let expected = format!(
            "AGENT/hooks.py:2: error[invalid-timeout]: `@on_model_request(timeout_ms={shown})`: the time-out is no whole number from 1 to 86400000"
        );
        assert_eq!(said, [expected]);
    }
}

#[tokio::test]
async fn l3_one_function_under_two_decorators_stands_at_both_points() {
    let agent = agent(
        "
seen = []

@on_turn_started()
@on_turn_finished(timeout_ms=50)
async def watch(p: TurnStartedPayload | TurnFinishedPayload) -> None:
    seen.append(type(p).__name__)

@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={'text': ' '.join(seen)})
",
    );
    agent.engine.observe(&TurnStartedPayload::new("s"));
    agent.engine.observe(&TurnFinishedPayload::new("s", TurnStatus::Completed));
    agent.engine.drained().await;
    let (told, _) = proceeded(agent.engine.modify(tenterhook::OutgoingTextPayload::new("s", "")).await);
    assert_eq!(told.text, "TurnStartedPayload TurnFinishedPayload");
    let limits: Vec<_> = [Point::TurnStarted, Point::TurnFinished]
        .map(|point| agent.engine.registered(point)[0].timeout.as_millis())
        .into();
    assert_eq!(limits, [100, 50]);
}

#[test]
fn l4_two_modify_hooks_at_one_point_are_told_with_both_places() {
    let hook = |name: &str| {
        format!(
            "from rasa.mantle.hooks import *\n\n@modify_model_request()\nasync def {name}(p: ModelRequestPayload) -> ModelRequestPayload:\n    return p\n"
        )
    };
    let said = problems(&[("hooks.py", &hook("first")), ("hooks/second.py", &hook("second"))]);
    let expected = "AGENT/hooks/second.py:4: error[duplicate-modify]: `second` is a second modify hook at model request; the first is `first` at AGENT/hooks.py:4";
    assert_eq!(said, [expected]);
    let twice = format!("{}{}", hook("first"), hook("second").split_once('\n').unwrap().1);
    let said = problems(&[("hooks.py", &twice)]);
    let expected = "AGENT/hooks.py:8: error[duplicate-modify]: `second` is a second modify hook at model request; the first is `first` at AGENT/hooks.py:4";
    assert_eq!(said, [expected]);
}

#[test]
fn l5_a_method_cannot_be_a_hook() {
    let said = problems_of(
        "class Mine:\n    @on_model_request()\n    async def watch(self, p: ModelRequestPayload) -> None: ...\n",
    );
    assert_eq!(
        said,
        ["AGENT/hooks.py:4: error[method-handler]: `Mine.watch` is not registered: a method cannot be a hook"]
    );
}

#[tokio::test]
async fn l6_what_can_be_called_asynchronously_is_registered() {
    let agent: Agent = agent(
        "
import functools

def made(word):
    @modify_outgoing_text()
    async def nested(p: OutgoingTextPayload) -> OutgoingTextPayload:
        return p.model_copy(update={'text': word})
    return nested

text = made('nested')

class Callable:
    async def __call__(self, p: ModelResponsePayload) -> ModelResponsePayload:
        return p.model_copy(update={'text': 'called'})

response = modify_model_response()(Callable())

async def with_limit(limit: int, p: IncomingMessagePayload) -> IncomingMessagePayload:
    return p.model_copy(update={'text': p.text[:limit]})

incoming = modify_incoming_message()(functools.partial(with_limit, 2))
",
    );
    let (text, _) = proceeded(agent.engine.modify(tenterhook::OutgoingTextPayload::new("s", "")).await);
    let (response, _) = proceeded(agent.engine.modify(tenterhook::ModelResponsePayload::new("s")).await);
    let (incoming, _) = proceeded(agent.engine.modify(tenterhook::IncomingMessagePayload::new("s", "abc")).await);
    assert_eq!(
        (text.text.as_str(), response.text.as_deref(), incoming.text.as_str()),
        ("nested", Some("called"), "ab")
    );
}

#[test]
fn l6_what_cannot_be_registered_is_an_error_never_silence() {
    let said = problems_of(
        "
def outer():
    @on_model_request()
    async def nested(p: ModelRequestPayload) -> None: ...
outer()
on_model_request()(lambda p: None)
late = on_model_request()(lambda p: None)
number = on_model_request()(print)
",
    );
    assert_eq!(
        said,
        [
            "AGENT/hooks.py:9: error[unregistered-decorator]: `on_model_request` cannot mark a `builtin_function_or_method`"
        ]
    );
    let said = problems_of(
        "
def outer():
    @on_model_request()
    async def nested(p: ModelRequestPayload) -> None: ...
outer()
on_model_request()(lambda p: None)
late = on_model_request()(lambda p: None)
",
    );
    assert_eq!(
        said,
        [
            "AGENT/hooks.py:8: error[sync-handler]: `<lambda>` is not async",
            "AGENT/hooks.py:5: error[unregistered-decorator]: `outer.<locals>.nested` is not registered: it is nested in a function and no module-level name holds it",
            "AGENT/hooks.py:7: error[unregistered-decorator]: `<lambda>` is not registered: no module-level name holds what was decorated",
        ]
    );
}

#[test]
fn a_decorator_above_ours_that_hides_the_function_is_an_error_and_one_that_wraps_it_is_not() {
    let hidden = "
import functools
def hides(f):
    async def inner(p: ModelRequestPayload) -> None: await f(p)
    return inner
def wraps(f):
    @functools.wraps(f)
    async def inner(p): await f(p)
    return inner
";
    let handler = "@on_model_request()\nasync def f(p: ModelRequestPayload) -> None: ...\n";
    let said = problems_of(&format!("{hidden}\n@hides\n{handler}"));
    let expected = "AGENT/hooks.py:14: error[unregistered-decorator]: `f` is not registered: no module-level name holds what was decorated";
    assert_eq!(said, [expected]);
    let agent = agent(&format!("{hidden}\n@wraps\n{handler}"));
    assert_eq!(agent.engine.registered(Point::ModelRequest).len(), 1);
}

#[test]
fn l7_generators_and_plain_functions_must_be_async() {
    let said = problems_of(
        "
@on_model_request()
async def generator(p: ModelRequestPayload) -> None:
    yield

@on_model_request()
def plain(p: ModelRequestPayload) -> None: ...
",
    );
    assert_eq!(
        said,
        [
            "AGENT/hooks.py:4: error[generator-handler]: `generator` is an async generator",
            "AGENT/hooks.py:8: error[sync-handler]: `plain` is not async",
        ]
    );
}

#[test]
fn l8_annotations_are_resolved_however_they_are_written() {
    let agent = crate::agents::agent_of(&[
        (
            "hooks/a.py",
            "
from __future__ import annotations
import typing
import rasa.mantle.hooks as h
from rasa.mantle.hooks import ModelResponsePayload as Response, modify_model_response as change

@h.modify_model_request()
async def request(p: h.ModelRequestPayload) -> h.ModelRequestPayload:
    return p

@change()
async def response(p: typing.Annotated[Response, 'the answer']) -> Response:
    return p
",
        ),
        (
            "hooks/b.py",
            "
import rasa.mantle.hooks
from rasa.mantle import hooks as h

@rasa.mantle.hooks.on_turn_started()
async def start(p: 'rasa.mantle.hooks.TurnStartedPayload') -> 'None':
    return None

@h.on_outgoing_message()
async def text(p: h.OutgoingMessagePayload) -> None: ...

@h.on_tool_call()
async def any_payload(p: h.HookPayload) -> None: ...
",
        ),
    ]);
    let registered: Vec<_> = agent.engine.statistics().iter().map(|hook| hook.handler.to_string()).collect();
    assert_eq!(
        registered,
        ["hooks.b:start", "hooks.a:request", "hooks.a:response", "hooks.b:any_payload", "hooks.b:text"]
    );
}

#[test]
fn l9_every_wrong_signature_has_a_message_of_its_own() {
    let said = problems_of(
        "
from typing import Optional

@on_model_request()
async def bare(p) -> None: ...

@on_model_request()
async def nothing() -> None: ...

@on_model_request()
async def optional(p: Optional[ModelRequestPayload]) -> None: ...

@on_model_request()
async def second(p: ModelRequestPayload, q: int = 1) -> None: ...

@on_model_request()
async def keyword(*, p: ModelRequestPayload) -> None: ...

@on_model_request()
async def star(*args: ModelRequestPayload) -> None: ...

@on_model_request()
async def other(p: ModelResponsePayload) -> None: ...

@on_model_request()
async def gives(p: ModelRequestPayload) -> ModelRequestPayload: return p

@modify_model_response()
async def silent(p: ModelResponsePayload): return p

@modify_tool_call()
async def wrong(p: ToolCallPayload) -> dict: return {}

@modify_tool_result()
async def signal(p: ToolResultPayload) -> RetryModel: ...

@on_model_request()
async def unknown(p: 'Missing') -> None: ...
",
    );
    let line = |number: u32, rule: &str, text: &str| format!("AGENT/hooks.py:{number}: error[{rule}]: {text}");
    assert_eq!(
        said,
        [
            line(6, "missing-annotation", "`bare` does not annotate `p`"),
            line(9, "extra-parameter", "`nothing` takes no parameter"),
            line(12, "wrong-payload", "`optional` takes `typing.Optional[ModelRequestPayload]` at model request"),
            line(15, "extra-parameter", "`second` takes a second parameter, `q`"),
            line(18, "extra-parameter", "`keyword` takes `p` by keyword only"),
            line(21, "extra-parameter", "`star` takes `*args`"),
            line(24, "wrong-payload", "`other` takes `ModelResponsePayload` at model request"),
            line(27, "wrong-return", "`gives` is an observer and returns `ModelRequestPayload`"),
            line(30, "missing-annotation", "`silent` does not annotate what it returns"),
            line(33, "wrong-return", "`wrong` returns `dict`"),
            line(36, "wrong-return", "`signal` returns `RetryModel`"),
            line(
                39,
                "unresolved-annotation",
                "`unknown` has an annotation that cannot be resolved: NameError: name 'Missing' is not defined"
            ),
        ]
    );
}

#[test]
fn s5_an_unknown_point_is_told_with_the_nearest_name() {
    for (import, line) in [
        ("from rasa.mantle.hooks import on_mesage", 1),
        ("import rasa.mantle.hooks as h\nh.on_mesage", 2),
        ("def late():\n    from rasa.mantle.hooks import on_mesage\nlate()", 2),
    ] {
        let said = refusal(&[("hooks.py", import)]);
        let expected = format!(
            "AGENT/hooks.py:{line}: error[unknown-point]: `rasa.mantle.hooks` has no `on_mesage`\n  hint: did you mean `"
        );
        assert!(said.contains(&expected), "{said}");
    }
    let said = refusal(&[("hooks.py", "from rasa.mantle.hooks import modify_turn_started")]);
    assert!(said.contains("has no `modify_turn_started`\n  hint: did you mean `on_turn_started`?"), "{said}");
    let said = refusal(&[("hooks.py", "from rasa.mantle.hooks import on_incoming_audio")]);
    assert!(said.contains("hint: there are no hooks for audio"), "{said}");
}

#[test]
fn l13_hooks_in_the_packages_init_are_a_warning() {
    let hook = "from rasa.mantle.hooks import *\n@on_turn_started()\nasync def f(p: TurnStartedPayload) -> None: ...\n";
    let folder = folder(&[("hooks/__init__.py", hook), ("hooks/a.py", hook)]);
    let engine = builder(&folder).load().unwrap();
    assert_eq!(engine.registered(Point::TurnStarted).len(), 1);
    let [warning]: [_; 1] = engine.warnings().try_into().expect("one warning");
    assert_eq!((warning.rule.as_str(), warning.severity), ("unused-hook-module", Severity::Warning));
    assert_eq!(warning.message, "`f` is not registered: `hooks/__init__.py` is no hook module");
    assert_eq!((warning.file.clone(), warning.line), (folder.path().join("hooks/__init__.py"), Some(3)));
}

#[test]
fn l13_hooks_in_the_init_are_told_of_in_every_layout() {
    let hook = |name: &str| {
        format!(
            "from rasa.mantle.hooks import *\n@on_turn_started()\nasync def {name}(p: TurnStartedPayload) -> None: ...\n"
        )
    };
    let folder = folder(&[("hooks.py", &hook("used")), ("hooks/__init__.py", &hook("unused"))]);
    let engine = builder(&folder).load().unwrap();
    assert_eq!(engine.registered(Point::TurnStarted).len(), 1);
    assert_eq!(
        engine.warnings().iter().map(|warning| warning.rule.as_str()).collect::<Vec<_>>(),
        ["unused-hook-module"]
    );
    let said = refusal(&[("hooks/__init__.py", &hook("unused"))]);
    assert_eq!(
        said,
        "Agent folder `AGENT` has no hook modules: `hooks/__init__.py` is none\n  hint: move its hooks to `hooks.py`, or to a module of their own in `hooks/`"
    );
}

#[test]
fn an_exception_that_no_utf8_can_carry_is_told_all_the_same() {
    let said = problems(&[("hooks.py", "raise ValueError('\\ud800')\n")]);
    assert_eq!(said, ["AGENT/hooks.py:1: error[import-failed]: The import failed: ValueError: \\ud800"]);
}

#[test]
fn problems_of_all_modules_are_told_at_once() {
    let said = problems(&[
        ("hooks/a.py", "def broken(:\n"),
        ("hooks/b.py", "import nowhere_to_be_found"),
        ("hooks/c.py", "import lib.x"),
        ("hooks/d.py", "raise SystemExit(3)"),
        (
            "hooks/e.py",
            "from rasa.mantle.hooks import *\n@modify_tool_call()\ndef f(p: ToolCallPayload) -> ToolCallPayload: ...",
        ),
        ("lib/x.py", "\n\n1 / 0\n"),
    ]);
    assert_eq!(
        said,
        [
            "AGENT/hooks/a.py:1: error[syntax-error]: invalid syntax",
            "AGENT/hooks/b.py:1: error[import-failed]: The import failed: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
            "AGENT/lib/x.py:3: error[import-failed]: The import failed: ZeroDivisionError: division by zero",
            "AGENT/hooks/d.py:1: error[import-failed]: The import failed: SystemExit: 3",
            "AGENT/hooks/e.py:3: error[sync-handler]: `f` is not async",
        ]
    );
}

#[tokio::test]
async fn a_modules_own_name_for_a_hook_decorator_counts() {
    let agent = crate::agents::agent_of(&[
        (
            "lib/engine.py",
            "from rasa.mantle.hooks import modify_model_request, ModelRequestPayload\nchange = modify_model_request\n",
        ),
        (
            "hooks.py",
            "from lib.engine import ModelRequestPayload, change\n@change()\nasync def f(p: ModelRequestPayload) -> ModelRequestPayload: return p\n",
        ),
    ]);
    proceeded(agent.engine.modify(ModelRequestPayload::new("s", vec![])).await);
    assert_eq!(agent.engine.statistics()[0].unchanged, 1);
}

#[test]
fn a_load_refuses_what_the_static_check_finds_before_anything_is_imported() {
    let folder = folder(&[(
        "hooks.py",
        "from rasa.mantle.hooks import *\nopen('imported', 'w')\n@modify_tool_call()\ndef f(p: ToolCallPayload) -> ToolCallPayload: return p\n",
    )]);
    let said = builder(&folder).load().unwrap_err().to_string().replace(folder.path().to_str().unwrap(), "AGENT");
    assert_eq!(
        said,
        "The hooks in `AGENT` cannot be loaded
AGENT/hooks.py:4:5: error[sync-handler]: `f` is not async
  hint: write `async def` below `@modify_tool_call()`
1 error"
    );
    assert!(!std::path::Path::new("imported").exists());
}

#[test]
fn what_the_static_check_warns_of_is_among_the_warnings() {
    let hook = "import time\nfrom rasa.mantle.hooks import *\n@on_tool_call()\nasync def f(p: ToolCallPayload) -> None: time.sleep(0)\n";
    let folder = folder(&[("hooks.py", hook)]);
    let rules =
        |engine: &tenterhook::HookEngine| engine.warnings().iter().map(|found| found.rule.clone()).collect::<Vec<_>>();
    assert_eq!(rules(&builder(&folder).load().unwrap()), ["blocking-call"]);
    assert_eq!(
        rules(&builder(&folder).static_check(tenterhook::StaticCheck::Off).load().unwrap()),
        Vec::<String>::new()
    );
}
