"""An agent's hooks without the engine: found by their marks, called as plain asyncio would call them."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import tenterhook

tenterhook.install()

from rasa.mantle.hooks import (
    HookControlFlow,
    HookPayload,
    HookRejection,
    IncomingMessagePayload,
    KnowledgeQueryPayload,
    KnowledgeResultsPayload,
    ModelRequestPayload,
    ModelResponsePayload,
    OutgoingTextPayload,
    RetryModel,
    ToolCallPayload,
    ToolResultPayload,
    TurnFinishedPayload,
    TurnStartedPayload,
)

__all__ = ["Failed", "Hook", "Hooks"]

#: Milliseconds that a handler has unless its decorator says otherwise.
TIMEOUTS_MS = {"observe": 100, "modify": 500}


class Failed(Exception):
    """A handler failed at a point where that stops the step."""


@dataclass(frozen=True)
class Point:
    """A point: its payload, what a hook may change, the signals it may raise, and whether a failure lets the step go on."""

    name: str
    payload: type[HookPayload]
    mutable: tuple[str, ...] = ()
    signals: tuple[type[HookControlFlow], ...] = ()
    open: bool = False


POINTS = {
    point.payload: point
    for point in (
        Point("turn_started", TurnStartedPayload),
        Point("incoming_message", IncomingMessagePayload, ("text",), (HookRejection,)),
        Point("model_request", ModelRequestPayload, ("messages", "model_settings")),
        Point("model_response", ModelResponsePayload, ("text", "tool_calls"), (RetryModel,), open=True),
        Point("tool_call", ToolCallPayload, ("tool_name", "arguments", "headers"), (RetryModel,)),
        Point("tool_result", ToolResultPayload, ("arguments", "value", "is_error"), open=True),
        Point("knowledge_query", KnowledgeQueryPayload, ("query",)),
        Point("knowledge_results", KnowledgeResultsPayload, ("passages",), open=True),
        Point("outgoing_text", OutgoingTextPayload, ("text",), (HookRejection,), open=True),
        Point("turn_finished", TurnFinishedPayload),
    )
}


@dataclass
class Hook:
    """A handler at its point, and what came of its calls."""

    name: str
    point: str
    lane: str
    handler: Callable[[HookPayload], Awaitable[Any]]
    timeout: float
    calls: int = 0
    changed: int = 0
    seconds: float = 0.0

    async def call(self, payload: HookPayload) -> Any:
        """Calls the handler with a copy of its own. Counted; what it takes itself is timed apart."""
        self.calls += 1
        return await asyncio.wait_for(self._timed(payload.model_copy(deep=True)), self.timeout)

    async def _timed(self, payload: HookPayload) -> Any:
        start = time.perf_counter()
        try:
            return await self.handler(payload)
        finally:
            self.seconds += time.perf_counter() - start


class Hooks:
    """The hooks of one agent."""

    def __init__(self, agent: Path) -> None:
        found = [hook for module in _modules(agent) for hook in _marked(module)]
        self.all = [hook for point in POINTS.values() for hook in found if hook.point == point.name]
        self.observers = {kind: self._at(point, "observe") for kind, point in POINTS.items()}
        self.modifiers = {kind: self._at(point, "modify") for kind, point in POINTS.items()}
        self.watching: set[asyncio.Task[None]] = set()

    def _at(self, point: Point, lane: str) -> list[Hook]:
        return [hook for hook in self.all if hook.point == point.name and hook.lane == lane]

    async def visit(self, kind: type[HookPayload], fields: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The fields as the point's modifier leaves them, and whether it changed any.

        Raises the signals that the point takes, and ``Failed``. Without a hook no payload is made.
        """
        observers, modifiers = self.observers[kind], self.modifiers[kind]
        if not observers and not modifiers:
            return fields, False
        payload = kind(**fields)
        for observer in observers:
            task = asyncio.create_task(_watch(observer, payload))
            self.watching.add(task)
            task.add_done_callback(self.watching.discard)
        if not modifiers:
            return fields, False
        point, hook = POINTS[kind], modifiers[0]
        try:
            result = await hook.call(payload)
            if not isinstance(result, kind):
                raise TypeError(f"{hook.name} returned a {type(result).__name__}")
        except HookControlFlow as signal:
            if isinstance(signal, point.signals):
                raise
            return fields, False
        except Exception as error:
            if point.open:
                return fields, False
            raise Failed(hook.name) from error
        new = {name: getattr(result, name) for name in point.mutable}
        changed = any(new[name] != getattr(payload, name) for name in point.mutable)
        hook.changed += changed
        return ({**fields, **new}, True) if changed else (fields, False)

    async def ended(self) -> None:
        """Waits for the observers that still run."""
        while self.watching:
            await asyncio.wait(set(self.watching))


async def _watch(hook: Hook, payload: HookPayload) -> None:
    try:
        await hook.call(payload)
    except Exception as error:
        print(f"{hook.name}: {type(error).__name__}: {error}", file=sys.stderr)


def _modules(agent: Path) -> Iterator[ModuleType]:
    """Imports ``hooks.py`` and what lies in ``hooks/``; the agent's folder leads the path."""
    sys.path.insert(0, str(agent.resolve()))
    single = agent / "hooks.py"
    nested = (file for file in (agent / "hooks").rglob("*.py") if file.name != "__init__.py")
    for file in [*([single] if single.exists() else []), *sorted(nested)]:
        name = ".".join(file.relative_to(agent).with_suffix("").parts)
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        yield module


def _marked(module: ModuleType) -> Iterator[Hook]:
    """The functions of a module that a decorator has marked; what it has imported belongs to another."""
    for function in vars(module).values():
        marks = getattr(function, "__dict__", {})
        if "_hook_point" not in marks or function.__module__ != module.__name__:
            continue
        lane = marks["_hook_lane"]
        timeout_ms = marks["_hook_timeout_ms"] or TIMEOUTS_MS[lane]
        name = f"{module.__name__}:{function.__qualname__}"
        yield Hook(name, marks["_hook_point"], lane, function, timeout_ms / 1e3)
