"""``await tenterhook.execute(...)``."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import inspect
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tenterhook import _engine
from tenterhook.delivery import events_of
from tenterhook.errors import ExecutionError
from tenterhook.execution import exits as exit_forms
from tenterhook.execution.calling import found_hook, plain, release
from tenterhook.execution.controlling import Controller
from tenterhook.execution.hooks import functions_of
from tenterhook.execution.loop import CallerLoop
from tenterhook.execution.models import given_models
from tenterhook.execution.places import nearest
from tenterhook.execution.result import ExecutionResult
from tenterhook.execution.tools import found_tool
from tenterhook.turn import TurnEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenterhook.execution.exits import Exit
    from tenterhook.execution.models import Model

__all__ = ["execute"]

#: Seconds that anything may take at most: a year.
LONGEST = 365 * 24 * 3600.0

#: What ``limits`` may say, beside the time.
LIMITS = ("memory", "recursion", "output", "source", "calls")


async def execute(
    *,
    instructions: str,
    tools: Sequence[Callable[..., Any]] = (),
    exits: Sequence[Exit] = (),
    hooks: object = None,
    model: Model | Sequence[Model] | None = None,
    iterations: int = 10,
    timeout: float = 60.0,
    hook_timeout: float = 5.0,
    tool_timeout: float = 10.0,
    tool_calls: int = 250,
    repeats: int | None = None,
    messages: Sequence[Mapping[str, Any]] = (),
    context: Any = None,
    variables: Mapping[str, Any] | None = None,
    signal: Controller | None = None,
    agent: str | os.PathLike[str] | TurnEngine | None = None,
    sender_id: str = "",
    chat: bool = False,
    form: Literal["native", "fenced"] = "native",
    limits: Mapping[str, int] | None = None,
    on_event: Callable[[dict[str, Any]], Any] | None = None,
) -> ExecutionResult:
    """Has a model write code until the code reaches an exit; gives what has come of it.

    Hooks, tools and models that are functions run on the running loop, each in a copy of the caller's context; those that are no
    coroutine functions run on threads of their own. To cancel the awaiting task cancels the execution.

    :param instructions: what the model is to do.
    :param tools: functions that the code may call.
    :param exits: the ends that it may reach; without any there is ``done``, and in a chat always ``listen``.
    :param hooks: a :class:`Hooks`, an object with methods of their names, or a dict.
    :param model: an entry such as ``{"provider": "openai", "model": "…"}``, or a function ``(messages, tools)`` that gives a text or
        an assistant's message; of several the first is asked, unless a hook names another.
    :param iterations: how often the model is asked at most, 1 to 100.
    :param timeout: seconds that the code of one iteration may compute.
    :param hook_timeout: seconds that a hook may take; one that is not done has failed.
    :param tool_timeout: seconds that a tool may take.
    :param tool_calls: how many tool calls the code may make in all.
    :param repeats: how often it may call the same tool with the same arguments; the call after that aborts the execution.
    :param messages: the conversation so far, in the form of Chat Completions.
    :param context: whatever ``on_iteration_start`` is to be given; the model does not see it.
    :param variables: variables that the code begins with.
    :param signal: who may abort the execution.
    :param agent: an agent's folder, or an agent that is loaded: its hooks stand around model and tool calls, and its model is the
        default.
    :param sender_id: the conversation, as the hooks of the agent, tools and spans see it.
    :param chat: whether the model talks to a user: its texts are messages, and there is the exit ``listen``.
    :param form: how the model gives its code: by a ``native`` tool call, or ``fenced`` in its text.
    :param limits: what the code may use: ``memory``, ``output``, ``source`` in bytes, ``recursion``, ``calls``.
    :param on_event: hears each event as a dict with its kind as ``event``; what it returns is awaited where it can be.

    Raises :class:`tenterhook.ExecutionError` where what is given does not fit, and :class:`tenterhook.LoadError` where the agent cannot
    be loaded. What goes wrong later is told by the result.
    """
    description = {
        "instructions": _text("instructions", instructions),
        "sender_id": _text("sender_id", sender_id),
        "messages": _plain("messages", [dict(message) for message in messages]),
        "variables": _plain("variables", dict(variables or {})),
        "exits": [exit_forms.described(exit) for exit in exits],
        "iterations": _whole("iterations", iterations),
        "timeout": _seconds("timeout", timeout),
        "hook_timeout": _seconds("hook_timeout", hook_timeout),
        "tool_timeout": _seconds("tool_timeout", tool_timeout),
        "tool_calls": _whole("tool_calls", tool_calls, least=0),
        "repeats": None if repeats is None else _whole("repeats", repeats, least=1),
        "limits": _limits(limits or {}),
        "is_fenced": _form(form) == "fenced",
        "is_chat": bool(chat),
    }
    functions = functions_of(hooks)
    found_hooks = [found_hook(name, function, context) for name, function in functions.items()]
    found_tools = [found_tool(tool) for tool in tools]
    models = given_models(model)
    if signal is not None and not isinstance(signal, Controller):
        raise ExecutionError(f"`signal` is a `{type(signal).__name__}`\n  hint: give a `tenterhook.Controller`")
    # What spans are left is sent before the process ends.
    atexit.unregister(_engine.end_export)
    atexit.register(_engine.end_export)

    engine, is_ours = await _loaded(agent)
    caller = CallerLoop(asyncio.get_running_loop(), contextvars.copy_context())

    def begin() -> _engine.Turn:
        return _engine.begin_execution(
            json.dumps(description, allow_nan=False),
            caller.native,
            hooks=found_hooks,
            tools=found_tools,
            models=models,
            signal=None if signal is None else signal._native,
            agent=None if engine is None else engine._native,
            listens=on_event is not None,
        )

    finished: dict[str, Any] | None = None
    try:
        async with contextlib.aclosing(events_of(begin)) as events:
            async for event in events:
                if event["event"] == "finished":
                    finished = event["result"]
                if on_event is not None:
                    heard = on_event(event)
                    if inspect.isawaitable(heard):
                        await heard
    except GeneratorExit:
        # Nobody turns this loop any more.
        caller.detach()
        raise
    except BaseException:
        await caller.close()
        raise
    else:
        await caller.close()
    finally:
        for hook in found_hooks:
            release(hook)
        if is_ours and engine is not None:
            engine.close()
    if finished is None:
        raise ExecutionError("The execution ended without a result\n  hint: the engine's log says why")
    return ExecutionResult(finished, context)


async def _loaded(agent: str | os.PathLike[str] | TurnEngine | None) -> tuple[TurnEngine | None, bool]:
    """The agent, and whether it was loaded here."""
    if agent is None or isinstance(agent, TurnEngine):
        return agent, False
    if not isinstance(agent, str | os.PathLike):
        raise ExecutionError(f"`agent` is a `{type(agent).__name__}`\n  hint: give its folder, or a `TurnEngine`")
    return await asyncio.to_thread(TurnEngine.load, agent), True


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ExecutionError(f"`{name}` is a `{type(value).__name__}`\n  hint: give a text")
    return value


def _whole(name: str, value: object, least: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ExecutionError(f"`{name}` is a `{type(value).__name__}`\n  hint: give a whole number")
    if least is not None and not least <= value < 1 << 32:
        raise ExecutionError(f"`{name}` is {value}\n  hint: give a number of {least} or more")
    return value


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExecutionError(f"`{name}` is a `{type(value).__name__}`\n  hint: give seconds")
    if not (math.isfinite(value) and 0 < value <= LONGEST):
        raise ExecutionError(f"`{name}` is {value}\n  hint: give seconds: more than 0, and no more than a year")
    return float(value)


def _plain(name: str, value: object) -> Any:
    try:
        given = plain(value, f"`{name}`")
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ExecutionError(f"`{name}` cannot be told: {error}\n  hint: give values that JSON has") from None
    return given


def _limits(limits: Mapping[str, int]) -> dict[str, int]:
    for name in limits:
        if name not in LIMITS:
            raise ExecutionError(f"There is no limit `{name}`\n  hint: {nearest(str(name), LIMITS)}")
    return {name: _whole(f"limits[{name!r}]", value, least=1) for name, value in limits.items()}


def _form(form: object) -> str:
    if form not in ("native", "fenced"):
        raise ExecutionError(
            f"There is no form `{form}`\n  hint: code comes `native`, as a tool call, or `fenced`, in the text"
        )
    return str(form)
