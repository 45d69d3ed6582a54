"""The engine for Python callers."""

import asyncio
import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import tenterhook
from tenterhook import Engine, HookExecutionError, PayloadError, Proceed, Reject, Retry
from tenterhook.mantle.hooks import (
    CallInfo,
    IncomingMessagePayload,
    KnowledgeResultsPayload,
    ModelRequestPayload,
    ModelResponsePayload,
    OutgoingTextPayload,
    ToolCallPayload,
    ToolResultPayload,
    TurnStartedPayload,
)

from tests.python.conftest import WriteAgent

pytestmark = pytest.mark.anyio

SAME = "@modify_outgoing_text()\nasync def same(p: OutgoingTextPayload) -> OutgoingTextPayload: return p\n"


def text(text: str = "a") -> OutgoingTextPayload:
    return OutgoingTextPayload(sender_id="s", text=text)


async def test_every_outcome_has_its_class(write_agent: WriteAgent) -> None:
    agent = write_agent("""
@modify_model_request()
async def fail(p: ModelRequestPayload) -> ModelRequestPayload:
    raise KeyError("k")

@modify_model_response()
async def retry(p: ModelResponsePayload) -> ModelResponsePayload:
    raise RetryModel("again")

hidden = globals()["RetryModel"]  # from the static check, which would refuse it

@modify_incoming_message()
async def discarded(p: IncomingMessagePayload) -> IncomingMessagePayload:
    raise hidden("again")

@modify_outgoing_text()
async def reject(p: OutgoingTextPayload) -> OutgoingTextPayload:
    raise HookRejection("no", response_message="Sorry")

@modify_tool_result()
async def change(p: ToolResultPayload) -> ToolResultPayload:
    return p.model_copy(update={"value": None}) if p.is_error else None
""")
    async with Engine.load(agent) as engine:
        response, message = ModelResponsePayload(sender_id="s"), IncomingMessagePayload(sender_id="s", text="a")
        assert await engine.modify(response) == Retry("again")
        assert await engine.modify(message) == Proceed(message, changed=False, discarded_signal="RetryModel")
        assert await engine.modify(text()) == Reject("no", "Sorry")
        result = ToolResultPayload(sender_id="s", tool_name="t", arguments={"a": [1]}, value={"b": None}, is_error=True)
        changed = result.model_copy(update={"value": None})
        assert await engine.modify(result) == Proceed(changed, changed=True)
        opened = await engine.modify(result.model_copy(update={"is_error": False}))
        assert isinstance(opened, Proceed)
        assert opened.failure is not None
        assert (opened.changed, opened.failure.cause, opened.failure.function) == (False, "invalid-result", "change")
        with pytest.raises(HookExecutionError) as raised:
            await engine.modify(ModelRequestPayload(sender_id="s", messages=[]))
        assert str(raised.value) == "`hooks:fail` at model_request (modify) failed: it raised KeyError: 'k'"
        assert (raised.value.failure.module, raised.value.failure.cause) == ("hooks", "raised")


async def test_an_unchanged_payload_comes_back_as_the_very_object(write_agent: WriteAgent) -> None:
    async with Engine.load(write_agent(SAME)) as engine:
        payload = text()
        outcome = await engine.modify(payload)
        assert isinstance(outcome, Proceed)
        assert outcome.payload is payload
        request = ModelRequestPayload(sender_id="s", messages=[])
        assert await engine.modify(request) == Proceed(request, changed=False)


async def test_many_calls_at_once_each_get_their_own_answer(write_agent: WriteAgent) -> None:
    agent = write_agent("""
import asyncio
@modify_outgoing_text()
async def slow(p: OutgoingTextPayload) -> OutgoingTextPayload:
    await asyncio.sleep(0.001 * (int(p.text) % 7))
    return p.model_copy(update={"text": p.text + "!"})
""")
    async with Engine.load(agent) as engine:
        outcomes = await asyncio.gather(*(engine.modify(text(str(number))) for number in range(500)))
        got = [outcome.payload.text for outcome in outcomes if isinstance(outcome, Proceed)]
        assert got == [f"{number}!" for number in range(500)]


async def test_cancelling_the_caller_cancels_the_handler(write_agent: WriteAgent) -> None:
    agent = write_agent("""
import asyncio
seen = []
@modify_model_request(timeout_ms=10_000)
async def slow(p: ModelRequestPayload) -> ModelRequestPayload:
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise
    return p

@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={"text": str(seen)})
""")
    async with Engine.load(agent) as engine:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.modify(ModelRequestPayload(sender_id="s", messages=[])), 0.05)
        for _ in range(100):
            told = await engine.modify(text())
            assert isinstance(told, Proceed)
            if told.payload.text != "[]":
                break
            await asyncio.sleep(0.01)
        assert isinstance(told, Proceed)
        assert told.payload.text == "['cancelled']"


def test_it_works_from_several_loops_in_several_threads(write_agent: WriteAgent) -> None:
    engine = Engine.load(write_agent(SAME))
    answers: list[bool] = []

    async def call() -> None:
        for _ in range(50):
            outcome = await engine.modify(text())
            answers.append(isinstance(outcome, Proceed))

    threads = [threading.Thread(target=lambda: asyncio.run(call())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(call())
    assert answers == [True] * 250
    engine.close()


async def test_observers_hear_and_the_statistics_count(write_agent: WriteAgent) -> None:
    agent = write_agent("@on_turn_started()\nasync def hear(p: TurnStartedPayload) -> None: ...\n")
    engine = Engine.load(agent)
    for _ in range(3):
        engine.observe(TurnStartedPayload(sender_id="s"))
    assert await engine.shutdown(grace=2) is True
    with pytest.raises(tenterhook.EngineClosedError):
        engine.observe(TurnStartedPayload(sender_id="s"))
    with pytest.raises(tenterhook.EngineClosedError):
        engine.statistics()


async def test_what_is_registered_is_told(write_agent: WriteAgent) -> None:
    agent = write_agent(SAME)
    async with Engine.load(agent, modify_timeout_ms=70) as engine:
        [hook] = engine.registered()
        assert hook == tenterhook.RegisteredHook("outgoing_text", "modify", "hooks", "same", agent / "hooks.py", 3, 70)
        assert engine.registered("outgoing_text") == [hook]
        assert engine.registered("tool_call") == []
        with pytest.raises(ValueError, match="No point `tool`; the points are turn_started, "):
            engine.registered("tool")
        await engine.modify(text())
        [counted] = engine.statistics()
        assert (counted["calls"], counted["unchanged"], counted["failures"]) == (1, 1, {})
        assert engine.warnings() == []
        assert repr(engine) == f"Engine({str(agent)!r})"


async def test_a_payload_that_json_cannot_carry_is_refused_with_its_path(write_agent: WriteAgent) -> None:
    async with Engine.load(write_agent(SAME)) as engine:
        call = ToolCallPayload(sender_id="s", tool_name="t", arguments={"a": [{1}]})
        with pytest.raises(PayloadError, match=r"Invalid `ToolCallPayload`: `arguments.a\[0\]` is a `set`"):
            await engine.modify(call)
        with pytest.raises(PayloadError, match="has no modify lane"):
            await engine.modify(TurnStartedPayload(sender_id="s"))
        with pytest.raises(PayloadError, match="A `str` is no payload"):
            engine.observe("text")  # type: ignore[arg-type]
        loose = OutgoingTextPayload.model_construct(sender_id="s", text=5)
        with pytest.raises(PayloadError, match=r"Invalid `OutgoingTextPayload`: `text`: invalid type: integer `5`"):
            await engine.modify(loose)


async def test_identity_and_nested_values_cross_unchanged(write_agent: WriteAgent) -> None:
    agent = write_agent("""
@modify_knowledge_results()
async def check(p: KnowledgeResultsPayload) -> KnowledgeResultsPayload:
    assert p == KnowledgeResultsPayload(
        sender_id="s", call=CallInfo(phone_number="1", metadata={"a": [None]}), query="q", passages=[{"score": 0.5}]
    ), p
    assert type(p) is KnowledgeResultsPayload and type(p.call) is CallInfo and p.model_fields_set
    assert p.model_dump_json() and p.model_copy(deep=True) == p
    return p
""")
    async with Engine.load(agent) as engine:
        call = CallInfo(phone_number="1", metadata={"a": [None]})
        payload = KnowledgeResultsPayload(sender_id="s", call=call, query="q", passages=[{"score": 0.5}])
        assert await engine.modify(payload) == Proceed(payload, changed=False)


def test_a_load_that_fails_raises_what_the_tree_says(write_agent: WriteAgent, tmp_path: Path) -> None:
    with pytest.raises(tenterhook.AgentError, match="does not exist"):
        Engine.load(tmp_path / "none")
    with pytest.raises(tenterhook.InvalidHooksError) as raised:
        Engine.load(write_agent("@modify_tool_call()\ndef f(p: ToolCallPayload) -> ToolCallPayload: ...\n"))
    assert raised.value.problems == (
        tenterhook.Problem(
            "sync-handler",
            "error",
            "`f` is not async",
            "write `async def` below `@modify_tool_call()`",
            str(tmp_path / "hooks.py"),
            3,
            5,
            3,
            6,
        ),
    )
    with pytest.raises(tenterhook.InterpreterError, match="were not imported within 200ms"):
        Engine.load(write_agent("import time; time.sleep(1)\n"), load_timeout_ms=200)
    assert issubclass(tenterhook.InvalidHooksError, tenterhook.LoadError)
    assert issubclass(tenterhook.HookExecutionError, tenterhook.TenterhookError)


def test_closed_engines_leave_no_threads_or_descriptors(write_agent: WriteAgent) -> None:
    agent = write_agent(SAME)

    async def use() -> None:
        async with Engine.load(agent) as engine:
            await engine.modify(text())

    def count() -> tuple[int, int]:
        gc.collect()
        return len(list(Path("/proc/self/task").iterdir())), len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(3):
        asyncio.run(use())
    before = count()
    for _ in range(10):
        asyncio.run(use())
    for _ in range(100):
        if count() <= before:
            break
        threading.Event().wait(0.02)
    assert count() <= before


def test_the_process_ends_in_order_with_handlers_in_flight(write_agent: WriteAgent, tmp_path: Path) -> None:
    agent = write_agent("""
import asyncio
@modify_outgoing_text(timeout_ms=60_000)
async def slow(p: OutgoingTextPayload) -> OutgoingTextPayload:
    await asyncio.sleep(60)
    return p
""")
    code = f"""
import asyncio, tenterhook
from tenterhook.mantle.hooks import OutgoingTextPayload
async def main():
    engine = tenterhook.Engine.load({str(agent)!r})
    asyncio.ensure_future(engine.modify(OutgoingTextPayload(sender_id="s", text="a")))
    await asyncio.sleep(0.05)
    print("out")
asyncio.run(main())
"""
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "")


def test_a_forked_child_is_told_that_the_engine_is_not_its_own(write_agent: WriteAgent) -> None:
    agent = write_agent(SAME)
    code = f"""
import asyncio, os, tenterhook
from tenterhook.mantle.hooks import OutgoingTextPayload
engine = tenterhook.Engine.load({str(agent)!r})
child = os.fork()
if child == 0:
    for use in (lambda: engine.observe(OutgoingTextPayload(sender_id="s", text="a")),
                lambda: tenterhook.Engine.load({str(agent)!r})):
        try:
            use()
        except tenterhook.TenterhookError as error:
            print(type(error).__name__, "fork" in str(error), flush=True)
    engine.close()
    os._exit(0)
os.waitpid(child, 0)
engine.close()
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "EngineClosedError True\nInterpreterError True\n"), done.stderr


async def test_a_second_shutdown_waits_as_the_first_does(write_agent: WriteAgent) -> None:
    agent = write_agent("""
import asyncio
@modify_outgoing_text()
async def slow(p: OutgoingTextPayload) -> OutgoingTextPayload:
    await asyncio.sleep(0.2)
    return p
""")
    engine = Engine.load(agent)
    call = asyncio.ensure_future(engine.modify(text()))
    await asyncio.sleep(0.05)
    assert [*await asyncio.gather(engine.shutdown(grace=1e19), engine.shutdown())] == [True, True]
    assert isinstance(await call, Proceed)


def test_the_process_ends_in_order_while_an_exceptions_text_is_made(write_agent: WriteAgent) -> None:
    agent = write_agent("""
import time
class Slow(Exception):
    def __str__(self) -> str:
        time.sleep(0.3)
        return "slow"

@modify_outgoing_text()
async def fail(p: OutgoingTextPayload) -> OutgoingTextPayload:
    raise Slow
""")
    code = f"""
import asyncio, time, tenterhook
from tenterhook.mantle.hooks import OutgoingTextPayload
class Late:
    def __del__(self): time.sleep(0.8)
async def main():
    engine = tenterhook.Engine.load({str(agent)!r})
    asyncio.ensure_future(engine.modify(OutgoingTextPayload(sender_id="s", text="a")))
    await asyncio.sleep(0.05)
late = Late()
asyncio.run(main())
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
