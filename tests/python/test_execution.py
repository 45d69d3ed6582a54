"""Executions from Python: tools, exits, models, and the caller's own loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tenterhook import Controller, ExecutionError, Exit, ThinkSignal, execute
from tenterhook.mantle.tools.decorator import ToolContext, tool
from tenterhook.mantle.tools.result import ToolResult

from tests.python.executions import ANSWER, played, scripted

EXIT = 'exit("answer", 1)'


class Order(BaseModel):
    id: str
    total: float


@tool(description="Finds an order")
async def find_order(id: str, context: ToolContext) -> ToolResult:
    return ToolResult(llm_response={"id": id, "total": 5})


def add(one: int, other: int = 1) -> int:
    """Adds two numbers."""
    return one + other


async def orders(ids: list[str]) -> list[Order]:
    """Looks orders up."""
    return [Order(id=id, total=1.5) for id in ids]


def test_code_calls_functions_of_every_kind_and_reaches_an_exit() -> None:
    code = (
        "import asyncio\n"
        "found, total, many = await asyncio.gather(find_order(id='a'), add(one=2), orders(ids=['b']))\n"
        'exit("answer", [found, total, many])'
    )
    result = asyncio.run(played(code, tools=[find_order, add, orders]))
    assert result.output == [{"id": "a", "total": 5}, 3, [{"id": "b", "total": 1.5}]]
    assert (result.status, result.exit, result.error) == ("success", "answer", None)
    assert result.is_success()
    assert result.is_("answer")
    assert result.is_(ANSWER)
    assert not result.is_("done")
    assert len(result.iterations) == 1
    assert result.to_dict()["output"] == result.output


def test_the_model_is_told_what_a_function_takes_and_gives() -> None:
    sent: list[Any] = []
    asyncio.run(played(EXIT, sent=sent, tools=[find_order, add, orders]))
    told = sent[0][0]["content"]
    assert "add(" in told
    assert "Adds two numbers." in told
    assert "-> int" in told
    assert "-> list[{'id': str, 'total': float}]" in told
    assert "context" not in told.split("# Tools")[1].split("# Exits")[0]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("add(one='x')", "one"),
        ("fails()", "nothing there"),
        ("sold_out()", "SoldOut: no tea"),
        ("gives()", "The result of the tool `gives` is a `object` that is not JSON"),
        ("counts()", "It gave a value that at `[1]` is an integer beyond 64 bits"),
    ],
)
def test_what_goes_wrong_in_a_tool_is_raised_in_the_code(call: str, told: str) -> None:
    def fails() -> None:
        """Fails."""
        raise LookupError("nothing there")

    def sold_out() -> None:
        """Fails in its own way."""

        class SoldOut(Exception):
            pass

        raise SoldOut("no tea")

    def gives() -> Any:
        """Gives what is no JSON."""
        return object()

    def counts() -> list[int]:
        """Gives what is too large."""
        return [1, 1 << 70]

    kind = "LookupError" if call == "fails()" else "Exception"
    code = f'try:\n    await {call}\nexcept {kind} as error:\n    exit("answer", str(error))'
    result = asyncio.run(played(code, tools=[add, fails, sold_out, gives, counts]))
    assert told in result.output


def test_a_tool_that_hangs_has_failed_when_its_time_is_over() -> None:
    async def hangs() -> None:
        """Hangs."""
        await asyncio.sleep(30)

    code = 'try:\n    await hangs()\nexcept TimeoutError as error:\n    exit("answer", str(error))'
    result = asyncio.run(played(code, tools=[hangs], tool_timeout=0.1))
    assert result.output == "`hangs` was not done after 100 ms"


def test_a_think_signal_of_a_tool_is_a_result_that_the_model_looks_at() -> None:
    def look() -> None:
        """Looks."""
        raise ThinkSignal("Choose one", ["a", "b"])

    sent: list[Any] = []
    result = asyncio.run(played("found = await look()", EXIT, sent=sent, tools=[look]))
    assert [iteration.status.type for iteration in result.iterations] == ["thinking_requested", "exit_success"]
    assert "Choose one" in str(sent[1][-1]["content"])


def test_an_exit_may_have_the_schema_of_a_type() -> None:
    @dataclass
    class Reply:
        text: str
        stars: int

    exits = [Exit("reply", "Replies", schema=Reply, aliases=("say",))]
    code = 'exit("say", {"text": "hi", "stars": "many"})'
    again = 'exit("say", {"text": "hi", "stars": 5})'
    result = asyncio.run(played(code, again, exits=exits))
    assert (result.exit, result.output, len(result.iterations)) == ("reply", {"text": "hi", "stars": 5}, 2)


def test_hooks_and_tools_see_the_callers_context() -> None:
    user = contextvars.ContextVar("user", default="nobody")
    seen: list[str] = []

    async def in_hook() -> None:
        seen.append(user.get())
        user.set("changed")

    def in_tool() -> str:
        """Tells."""
        return user.get()

    async def main() -> None:
        user.set("ada")
        result = await played('exit("answer", await in_tool())', tools=[in_tool], hooks={"on_iteration_start": in_hook})
        assert (result.output, seen, user.get()) == ("ada", ["ada"], "ada")

    asyncio.run(main())


def test_executions_run_beside_one_another_on_one_loop_and_on_several() -> None:
    both = threading.Barrier(4, timeout=20)

    def meet() -> bool:
        """Waits for the others."""
        both.wait()
        return True

    async def main() -> None:
        code = 'exit("answer", await meet())'
        results = await asyncio.gather(*(played(code, tools=[meet]) for _ in range(2)))
        assert [result.output for result in results] == [True, True]

    other = threading.Thread(target=lambda: asyncio.run(main()))
    other.start()
    asyncio.run(main())
    other.join()


def test_to_cancel_who_waits_cancels_the_tool_that_runs() -> None:
    begun, cancelled = asyncio.Event(), []

    async def wait() -> None:
        """Waits."""
        begun.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def main() -> None:
        task = asyncio.ensure_future(played("await wait()", tools=[wait]))
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cancelled == [True]
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_to_cancel_who_waits_interrupts_a_function_on_its_thread() -> None:
    begun, interrupted = threading.Event(), threading.Event()

    def spin() -> None:
        """Spins."""
        begun.set()
        try:
            while True:
                pass
        finally:
            interrupted.set()

    async def main() -> None:
        task = asyncio.ensure_future(played("await spin()", tools=[spin]))
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert interrupted.wait(5)


def test_a_controller_of_the_callers_aborts_from_any_thread() -> None:
    controller = Controller()

    async def wait() -> None:
        """Waits."""
        threading.Timer(0.05, controller.abort, ["that is enough"]).start()
        await asyncio.sleep(30)

    start = time.monotonic()
    result = asyncio.run(played("await wait()", EXIT, tools=[wait], signal=controller))
    assert time.monotonic() - start < 10
    assert result.status == "error"
    assert "that is enough" in (result.error or "")
    assert (controller.signal.aborted, controller.signal.reason) == (True, "that is enough")


def test_a_controller_that_has_aborted_already_asks_no_model() -> None:
    controller = Controller()
    controller.abort("before")
    sent: list[Any] = []
    result = asyncio.run(played(EXIT, sent=sent, signal=controller))
    assert (result.status, result.error, sent) == ("error", "before", [])


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"iterations": 0}, "Invalid iterations: 0. Expected a number between 1 and 100"),
        ({"iterations": 101}, "Invalid iterations: 101. Expected a number between 1 and 100"),
        ({"iterations": "many"}, "`iterations` is a `str`\n  hint: give a whole number"),
        ({"timeout": 0}, "`timeout` is 0\n  hint: give seconds: more than 0, and no more than a year"),
        ({"hook_timeout": float("nan")}, "`hook_timeout` is nan\n  hint: give seconds"),
        ({"tool_timeout": None}, "`tool_timeout` is a `NoneType`\n  hint: give seconds"),
        ({"repeats": 0}, "`repeats` is 0\n  hint: give a number of 1 or more"),
        ({"limits": {"memry": 1}}, "There is no limit `memry`\n  hint: did you mean `memory`?"),
        ({"form": "fence"}, "There is no form `fence`"),
        ({"variables": {"x": object()}}, "`variables` cannot be told"),
        ({"variables": {"x": float("inf")}}, "`variables` cannot be told"),
        ({"tools": [lambda: 1]}, "A tool has no name"),
        ({"tools": [Order]}, "A tool is a `Order`\n  hint: give a function, with or without `@tool`"),
        ({"exits": ["done"]}, "An exit is a `str`"),
        ({"model": 5}, "The model is a `int`"),
        ({"model": {"provider": "openai", "modl": "x"}}, "model"),
        ({"model": {"provider": "nobody", "model": "x"}}, "The provider `nobody` is not supported without `api_base`"),
        ({"signal": "stop"}, "`signal` is a `str`\n  hint: give a `tenterhook.Controller`"),
        ({"agent": 5}, "`agent` is a `int`\n  hint: give its folder, or a `TurnEngine`"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_before_anything_runs(settings: dict[str, Any], complaint: str) -> None:
    settings.setdefault("model", scripted(EXIT))
    with pytest.raises(ExecutionError) as told:
        asyncio.run(execute(instructions="Work.", **settings))
    assert complaint in str(told.value)
    assert isinstance(told.value, ValueError)


def test_a_model_that_fails_ends_the_execution() -> None:
    async def broken(messages: Any, tools: Any) -> str:
        raise ConnectionError("no route")

    result = asyncio.run(execute(instructions="Work.", model=broken))
    assert (result.status, [iteration.status.type for iteration in result.iterations]) == (
        "error",
        ["generation_error"],
    )
    assert "no route" in (result.error or "")


def test_a_model_may_answer_in_the_form_of_chat_completions() -> None:
    def model(messages: Any, tools: Any) -> dict[str, Any]:
        assert [tool["function"]["name"] for tool in tools] == ["run_python"]
        function = {"name": "run_python", "arguments": '{"code": "exit(\\"answer\\", 7)"}'}
        call = {"id": "call_1", "type": "function", "function": function}
        usage = {"prompt_tokens": 10, "completion_tokens": 2}
        return {"role": "assistant", "content": None, "tool_calls": [call], "usage": usage}

    result = asyncio.run(execute(instructions="Work.", model=model, exits=[ANSWER]))
    assert result.output == 7
    assert (result.tokens.input, result.tokens.output, result.tokens.total) == (10, 2, 12)


def test_the_caller_hears_events_as_they_happen() -> None:
    events: list[str] = []
    asyncio.run(played(EXIT, on_event=lambda event: events.append(event["event"])))
    assert events[0] == "iteration_started"
    assert events[-2:] == ["iteration_ended", "finished"]
    assert events.count("traced") == 3


def test_what_hears_events_is_awaited_and_what_it_raises_ends_the_execution() -> None:
    heard: list[str] = []

    async def hear(event: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        heard.append(event["event"])

    async def fail(event: dict[str, Any]) -> None:
        raise RuntimeError(f"no place for {event['event']}")

    asyncio.run(played(EXIT, on_event=hear))
    assert heard[-1] == "finished"
    with pytest.raises(RuntimeError, match="no place for iteration_started"):
        asyncio.run(played(EXIT, on_event=fail))


def test_the_hooks_of_an_agent_stand_around_model_and_tool_calls(tmp_path: Path) -> None:
    (tmp_path / "agent.yml").write_text("persona: You help.\n")
    (tmp_path / "integrations.yml").write_text(
        "llm:\n  model_group: m\nmodel_groups:\n  - id: m\n    models:\n      - {provider: scripted, script: s.yml}\n"
    )
    (tmp_path / "s.yml").write_text("in_order: []\n")
    (tmp_path / "hooks.py").write_text(
        "from rasa.mantle.hooks import ToolCallPayload, modify_tool_call\n"
        "@modify_tool_call()\n"
        "async def double(payload: ToolCallPayload) -> ToolCallPayload:\n"
        "    one = payload.arguments['one'] * 2 if payload.sender_id == 'c-1' else 0\n"
        "    return payload.model_copy(update={'arguments': {'one': one}})\n"
    )
    result = asyncio.run(played('exit("answer", await add(one=4))', tools=[add], agent=tmp_path, sender_id="c-1"))
    assert result.output == 9


def test_a_loop_that_is_closed_in_the_middle_leaves_nothing_that_hangs() -> None:
    begun = threading.Event()

    async def wait() -> None:
        """Waits."""
        begun.set()
        await asyncio.sleep(30)

    loop = asyncio.new_event_loop()
    task = loop.create_task(played("await wait()", tools=[wait], tool_timeout=1))
    while not begun.is_set():
        loop.run_until_complete(asyncio.sleep(0.01))
    left = [task, *asyncio.all_tasks(loop)]
    for one in left:
        one._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    del task, left, one
    # Another execution runs as if nothing had been.
    assert asyncio.run(played(EXIT)).is_success()
