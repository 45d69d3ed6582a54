"""The eighteen decorators. Each is called, leaves marks on an ``async def`` function and returns that function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from tenterhook.mantle.marks import HookDefinitionError, mark
from tenterhook.mantle.payloads import (
    HookPayload,
    IncomingMessagePayload,
    KnowledgeQueryPayload,
    KnowledgeResultsPayload,
    ModelRequestPayload,
    ModelResponsePayload,
    OutgoingTextPayload,
    ToolCallPayload,
    ToolResultPayload,
    TurnFinishedPayload,
    TurnStartedPayload,
)

__all__ = [
    "on_turn_started",
    "on_turn_finished",
    "on_incoming_message",
    "modify_incoming_message",
    "on_model_request",
    "modify_model_request",
    "on_model_response",
    "modify_model_response",
    "on_tool_call",
    "modify_tool_call",
    "on_tool_result",
    "modify_tool_result",
    "on_knowledge_query",
    "modify_knowledge_query",
    "on_knowledge_results",
    "modify_knowledge_results",
    "on_outgoing_text",
    "modify_outgoing_text",
    "on_outgoing_message",
    "modify_outgoing_message",
]

#: A day: more is a mistake in the unit.
LONGEST_TIMEOUT_MS = 86_400_000

P = TypeVar("P", bound=HookPayload)
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class Decorator(Protocol[P, R]):
    """What a decorator looks like: called with at most ``timeout_ms``, then applied to a handler."""

    def __call__(
        self, *, timeout_ms: int | None = None
    ) -> Callable[[Callable[[P], Coroutine[Any, Any, R]]], Callable[[P], Coroutine[Any, Any, R]]]:
        """Registers a handler that may take ``timeout_ms`` milliseconds a call; ``None``: the lane's default."""
        ...


def _decorator(lane: str, point: str, payload: type[HookPayload]) -> Any:
    name = f"{'on' if lane == 'observe' else 'modify'}_{point}"

    def decorator(*misplaced: object, timeout_ms: int | None = None) -> Callable[[F], F]:
        if misplaced:
            raise HookDefinitionError(
                "missing-parentheses", f"`@{name}` is used without parentheses", f"write `@{name}()`"
            )
        if timeout_ms is not None and (type(timeout_ms) is not int or not 0 < timeout_ms <= LONGEST_TIMEOUT_MS):
            raise HookDefinitionError(
                "invalid-timeout",
                f"`@{name}(timeout_ms={timeout_ms!r:.50})`: the time-out is no whole number from 1 to {LONGEST_TIMEOUT_MS}",
                "give milliseconds as an `int`; a turn waits for them",
            )

        def register(handler: F) -> F:
            return mark(handler, name, point, lane, payload, timeout_ms)

        return register

    decorator.__name__ = decorator.__qualname__ = name
    decorator.__doc__ = f"Registers {'an observer' if lane == 'observe' else 'the modifier'} at the point {point}."
    timeout = inspect.Parameter("timeout_ms", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="int | None")
    decorator.__signature__ = inspect.Signature([timeout])  # type: ignore[attr-defined]
    return decorator


def _observe(point: str, payload: type[P]) -> Decorator[P, None]:
    made: Decorator[P, None] = _decorator("observe", point, payload)
    return made


def _modify(point: str, payload: type[P]) -> Decorator[P, P]:
    made: Decorator[P, P] = _decorator("modify", point, payload)
    return made


on_turn_started = _observe("turn_started", TurnStartedPayload)
on_turn_finished = _observe("turn_finished", TurnFinishedPayload)
on_incoming_message = _observe("incoming_message", IncomingMessagePayload)
modify_incoming_message = _modify("incoming_message", IncomingMessagePayload)
on_model_request = _observe("model_request", ModelRequestPayload)
modify_model_request = _modify("model_request", ModelRequestPayload)
on_model_response = _observe("model_response", ModelResponsePayload)
modify_model_response = _modify("model_response", ModelResponsePayload)
on_tool_call = _observe("tool_call", ToolCallPayload)
modify_tool_call = _modify("tool_call", ToolCallPayload)
on_tool_result = _observe("tool_result", ToolResultPayload)
modify_tool_result = _modify("tool_result", ToolResultPayload)
on_knowledge_query = _observe("knowledge_query", KnowledgeQueryPayload)
modify_knowledge_query = _modify("knowledge_query", KnowledgeQueryPayload)
on_knowledge_results = _observe("knowledge_results", KnowledgeResultsPayload)
modify_knowledge_results = _modify("knowledge_results", KnowledgeResultsPayload)
on_outgoing_text = _observe("outgoing_text", OutgoingTextPayload)
modify_outgoing_text = _modify("outgoing_text", OutgoingTextPayload)

on_outgoing_message = on_outgoing_text
modify_outgoing_message = modify_outgoing_text
