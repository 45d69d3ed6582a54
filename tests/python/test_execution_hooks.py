"""The seven hooks of an execution, as Python sees them."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tenterhook import (
    Controller,
    CriticalError,
    ExecutionError,
    ExitInfo,
    Hooks,
    Iteration,
    Status,
    ThinkSignal,
    ToolInfo,
    Trace,
)

from tests.python.executions import played

EXIT = 'exit("answer", 1)'
CALLS = 'exit("answer", await search(query="tea"))'


async def search(query: str) -> str:
    """Searches."""
    return f"found {query}"


def raising(error: BaseException) -> Callable[..., Any]:
    def hook(*_: Any, **__: Any) -> None:
        raise error

    return hook


def test_each_hook_is_given_what_its_row_of_the_table_says() -> None:
    seen: list[tuple[str, Any]] = []
    context = object()

    class Watch:
        def on_iteration_start(self, iteration: Iteration, controller: Controller, context: Any) -> None:
            seen.append(("start", (iteration.number, iteration.status, controller.signal.aborted, context)))

        async def on_before_execution(self, iteration: Iteration, controller: Controller) -> None:
            seen.append(("before", iteration.code))

        async def on_before_tool(
            self, *, iteration: Iteration, tool: ToolInfo, input: Any, controller: Controller
        ) -> None:
            seen.append(("before_tool", (iteration.number, tool.name, tool.description, input)))

        async def on_after_tool(self, tool: ToolInfo, input: Any, output: Any, tool_call_id: str) -> None:
            seen.append(("after_tool", (tool.name, input, output, tool_call_id.startswith("tcall_"))))

        def on_exit(self, exit: ExitInfo, result: Any) -> None:
            seen.append(("exit", (exit, result)))

        async def on_iteration_end(self, iteration: Iteration) -> None:
            seen.append(("end", (iteration.status, [trace.type for trace in iteration.traces])))

    result = asyncio.run(played(CALLS, tools=[search], hooks=Watch(), context=context))
    assert seen == [
        ("start", (1, Status("pending"), False, context)),
        ("before", CALLS),
        ("before_tool", (1, "search", "Searches.", {"query": "tea"})),
        ("after_tool", ("search", {"query": "tea"}, "found tea", True)),
        ("exit", (ExitInfo("answer", "What was asked for"), "found tea")),
        (
            "end",
            (
                Status("exit_success", exit_name="answer", return_value="found tea"),
                ["llm_call_started", "llm_call_success", "tool_call", "code_execution"],
            ),
        ),
    ]
    assert result.context is context


@pytest.mark.parametrize(
    ("hooks", "output"),
    [
        ({"on_before_tool": lambda: {"input": {"query": "coffee"}}}, "found coffee"),
        ({"onBeforeTool": lambda input: {"input": {"query": input["query"].upper()}}}, "found TEA"),
        ({"on_before_tool": lambda **given: {"input": {"query": " ".join(sorted(given))}}},
         "found controller input iteration native_call_id tool tool_call_id"),
        ({"on_after_tool": lambda output: {"output": [output]}}, ["found tea"]),
        ({"on_after_tool": lambda: {"output": None}}, None),
        ({"on_after_tool": lambda: {}}, "found tea"),
        ({"on_before_execution": lambda: {"code": 'exit("answer", "other")'}}, "other"),
        ({"on_iteration_start": lambda: {"variables": {"query": "milk"}},
          "on_before_execution": lambda: {"code": 'exit("answer", query)'}}, "milk"),
        (Hooks(on_exit=lambda: "ignored", on_iteration_end=lambda: "ignored"), "found tea"),
    ],
)  # fmt: skip
def test_what_a_hook_returns_takes_the_place_of_what_it_was_given(hooks: object, output: Any) -> None:
    result = asyncio.run(played(CALLS, tools=[search], hooks=hooks))
    assert (result.status, result.output) == ("success", output)


@pytest.mark.parametrize(
    ("hook", "returned", "complaint"),
    [
        ("on_before_tool", "tea", "`on_before_tool` returned a `str`; expected `None` or `{\"input\": …}`"),
        ("on_before_tool", {"output": 1}, "`on_before_tool` returned `output`; expected `None` or `{\"input\": …}`"),
        ("on_after_tool", {"output": object()}, "`output` of `on_after_tool` is a `object` that is not JSON"),
        ("on_before_execution", {"code": 5}, "`on_before_execution` returned `code` that is a `int`; expected a text"),
        ("on_iteration_start", ["model"],
         "`on_iteration_start` returned a `list`; expected `None` or a dict with what changes of the iteration"),
        ("on_iteration_start", {"tools": []}, "`tools` of an iteration cannot be changed"),
    ],
)  # fmt: skip
def test_what_no_hook_may_return_is_a_failure_of_the_hook(hook: str, returned: Any, complaint: str) -> None:
    result = asyncio.run(played(CALLS, tools=[search], hooks={hook: lambda: returned}, iterations=1))
    assert result.iteration is not None
    assert result.iteration.status.type == "execution_error"
    assert complaint in (result.iteration.error or "")


@pytest.mark.parametrize("hook", ["on_iteration_start", "on_before_execution", "on_before_tool", "on_after_tool"])
@pytest.mark.parametrize(
    "error", [ValueError("not today"), asyncio.CancelledError("not today"), SystemExit("not today")]
)
def test_whatever_a_hook_raises_is_its_failure_with_its_text(hook: str, error: BaseException) -> None:
    result = asyncio.run(played(CALLS, tools=[search], hooks={hook: raising(error)}, iterations=1))
    assert result.iteration is not None
    assert result.iteration.status.type == "execution_error"
    assert "not today" in (result.iteration.error or "")


@pytest.mark.parametrize(
    ("hooks", "complaint"),
    [
        ({"on_before_tol": print}, "There is no hook `on_before_tol`\n  hint: did you mean `on_before_tool`?"),
        ({"onBeforeTol": print}, "There is no hook `onBeforeTol`\n  hint: did you mean `onBeforeTool`?"),
        ({"on_exit": print, "onExit": print}, "The hook `on_exit` is given twice\n  hint: leave out one of its two names"),
        ({"on_exit": 5}, "The hook `on_exit` is a `int`\n  hint: give a function"),
        ({"on_before_tool": lambda tol: None},
         "The hook `on_before_tool` takes `tol`, which it is not given\n  hint: did you mean `tool`?; it is given "
         "`iteration`, `tool`, `input`, `controller`, `tool_call_id`, `native_call_id` by name"),
        ({"on_iteration_end": lambda a, b, c: None},
         "The hook `on_iteration_end` takes more arguments than it is given\n  hint: it is given `iteration`, `controller`"),
        (5, "`int` has no hooks\n  hint: give a `tenterhook.Hooks`, a dict, or an object with methods such as `on_before_tool`"),
    ],
)  # fmt: skip
def test_hooks_that_do_not_fit_are_told_before_anything_runs(hooks: object, complaint: str) -> None:
    with pytest.raises(ExecutionError) as told:
        asyncio.run(played(EXIT, hooks=hooks))
    assert str(told.value) == complaint


def test_an_object_with_a_method_that_is_almost_a_hook_is_told() -> None:
    class Almost:
        def on_exit(self) -> None: ...

        def on_traces(self) -> None: ...

    with pytest.raises(
        ExecutionError, match=r"`Almost` has `on_traces`, which is no hook\n  hint: did you mean `on_trace`?"
    ):
        asyncio.run(played(EXIT, hooks=Almost))


def test_an_iteration_cannot_be_changed_in_place() -> None:
    def change(iteration: Iteration) -> None:
        iteration.code = "pass"  # type: ignore[misc]

    result = asyncio.run(played(EXIT, hooks={"on_before_execution": change}, iterations=1))
    assert result.iteration is not None
    assert "`code` of an iteration cannot be set in a hook: return the change, such as `return {'code': …}`" in (
        result.iteration.error or ""
    )


def test_a_think_signal_has_the_model_look_before_the_code_runs() -> None:
    sent: list[Any] = []

    def think(iteration: Iteration) -> None:
        if iteration.number == 1:
            raise ThinkSignal("Look at this", {"stock": 3})

    result = asyncio.run(played(EXIT, EXIT, sent=sent, hooks={"on_before_execution": think}))
    assert [iteration.status.type for iteration in result.iterations] == ["thinking_requested", "exit_success"]
    told = str(sent[1][-1]["content"])
    assert "Look at this" in told
    assert "stock" in told


@pytest.mark.parametrize("hook", ["on_iteration_start", "on_before_execution", "on_before_tool", "on_iteration_end"])
def test_a_critical_error_ends_the_execution_without_another_model_call(hook: str) -> None:
    sent: list[Any] = []
    hooks = {hook: raising(CriticalError("the budget is spent"))}
    result = asyncio.run(played("await search(query='a')", EXIT, sent=sent, tools=[search], hooks=hooks))
    assert result.status == "error"
    assert "the budget is spent" in (result.error or "")
    assert len(sent) == (0 if hook == "on_iteration_start" else 1)


def test_an_async_hook_that_hangs_has_failed_when_its_time_is_over() -> None:
    cancelled = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            cancelled.set()

    start = time.monotonic()
    result = asyncio.run(played(EXIT, hooks={"on_before_execution": hang}, hook_timeout=0.1, iterations=1))
    assert time.monotonic() - start < 5
    assert result.iteration is not None
    assert result.iteration.error == (
        "CodeExecutionError: Error in on_before_execution hook: it was not done after 100 ms"
    )
    assert cancelled.is_set()


def test_a_hook_that_hangs_before_a_tool_keeps_the_tool_from_running() -> None:
    ran: list[str] = []

    async def write() -> None:
        """Writes."""
        ran.append("write")

    async def hang() -> None:
        await asyncio.sleep(30)

    code = 'try:\n    await write()\nexcept Exception as error:\n    exit("answer", str(error))'
    result = asyncio.run(played(code, tools=[write], hooks={"on_before_tool": hang}, hook_timeout=0.1))
    assert (result.output, ran) == ("on_before_tool: it was not done after 100 ms", [])


def test_a_function_that_spins_is_interrupted_when_its_time_is_over() -> None:
    interrupted = threading.Event()

    def spin() -> None:
        try:
            while True:
                pass
        finally:
            interrupted.set()

    result = asyncio.run(played(EXIT, hooks={"on_before_execution": spin}, hook_timeout=0.1, iterations=1))
    assert result.iteration is not None
    assert "it was not done after 100 ms" in (result.iteration.error or "")
    assert interrupted.wait(5)


def test_a_hook_that_blocks_the_loop_is_judged_on_time_and_nothing_is_lost() -> None:
    after = []

    async def block() -> None:
        time.sleep(0.4)

    async def end(iteration: Iteration) -> None:
        after.append(iteration.to_dict()["errors"])

    hooks = {"on_before_execution": block, "on_iteration_end": end}
    result = asyncio.run(played(EXIT, hooks=hooks, hook_timeout=0.1, iterations=1))
    assert result.iteration is not None
    ended, started = result.iteration.ended_ts, result.iteration.started_ts
    assert ended is not None
    assert ended - started < 390, "the verdict does not wait for the loop"
    assert "it was not done after 100 ms" in (result.iteration.error or "")


def test_sync_hooks_run_off_the_loop_and_async_ones_on_it() -> None:
    threads: dict[str, str] = {}

    async def on_loop() -> None:
        threads["async"] = threading.current_thread().name

    def off_loop() -> None:
        threads["sync"] = threading.current_thread().name

    asyncio.run(played(EXIT, hooks={"on_iteration_start": on_loop, "on_iteration_end": off_loop}))
    assert threads == {"async": "MainThread", "sync": "tenterhook-function"}


@pytest.mark.parametrize("is_async", [False, True])
def test_every_trace_is_heard_once_in_order_with_its_iteration(is_async: bool) -> None:
    heard: list[tuple[int, str]] = []

    async def on_trace_async(trace: Trace, iteration: int) -> None:
        heard.append((iteration, trace.type))

    def on_trace(trace: Trace, iteration: int) -> None:
        heard.append((iteration, trace.type))

    hook = on_trace_async if is_async else on_trace
    codes = ["for n in range(20):\n    print(await search(query=str(n)))", EXIT]
    result = asyncio.run(played(*codes, tools=[search], hooks={"on_trace": hook}))
    made = [(iteration.number, trace.type) for iteration in result.iterations for trace in iteration.traces]
    assert heard == made
    assert len(heard) > 40


def test_an_abort_in_on_trace_stops_the_next_tool() -> None:
    called = []

    async def write(text: str) -> None:
        """Writes."""
        called.append(text)

    def on_trace(trace: Trace, controller: Controller) -> None:
        if trace.type == "log":
            controller.abort(f"saw {trace.message.strip()}")

    result = asyncio.run(played("print('secret')\nawait write(text='a')", tools=[write], hooks={"on_trace": on_trace}))
    assert (result.status, called) == ("error", [])
    assert "saw secret" in (result.error or "")


def test_what_on_trace_raises_or_starts_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def later(trace: Trace) -> None:
        await asyncio.sleep(0)
        raise KeyError(trace.type)

    with caplog.at_level(logging.WARNING, logger="tenterhook.execution"):
        first = asyncio.run(played(EXIT, hooks={"on_trace": raising(ValueError("boom"))}))
        second = asyncio.run(played(EXIT, hooks={"on_trace": later}))
    assert (first.status, second.status) == ("success", "success")
    said = {record.getMessage() for record in caplog.records if record.name == "tenterhook.execution"}
    assert said == {"`on_trace` raised `ValueError`", "`on_trace` raised `KeyError`"}


def test_nobody_waits_for_what_on_trace_starts() -> None:
    async def slow() -> None:
        await asyncio.sleep(20)

    start = time.monotonic()
    assert asyncio.run(played(EXIT, hooks={"on_trace": slow})).is_success()
    assert time.monotonic() - start < 5


def test_all_hooks_are_given_one_controller_whose_abort_counts_at_once() -> None:
    seen: list[Controller] = []

    def remember(controller: Controller) -> None:
        seen.append(controller)

    def stop(iteration: Iteration, controller: Controller) -> None:
        seen.append(controller)
        controller.abort()
        controller.abort("too late")
        assert controller.signal.aborted

    result = asyncio.run(played("1", EXIT, hooks={"on_trace": remember, "on_iteration_end": stop}))
    assert len(set(map(id, seen))) == 1
    assert (seen[0].signal.aborted, seen[0].signal.reason) == (True, "The operation was aborted")
    assert (result.status, result.error, len(result.iterations)) == ("error", "The operation was aborted", 1)
