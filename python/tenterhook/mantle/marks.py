"""What a decorator leaves on a function, and how the loader finds it.

A decorated function stays a plain coroutine function. ``_hook_point``, ``_hook_lane`` and ``_hook_timeout_ms`` are the
published marks and say what the *last* decorator said; ``_tenterhook_marks`` holds all of them, since one function may
stand at several points.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HookDefinitionError", "Mark", "decorated_during", "mark", "marks_of"]

Handler = TypeVar("Handler", bound=Callable[..., Any])


class HookDefinitionError(TypeError):
    """A decorator is used in a way that cannot register a hook. ``rule`` names the check, ``hint`` the remedy."""

    def __init__(self, rule: str, message: str, hint: str) -> None:
        super().__init__(f"{message} ({hint})")
        self.rule = rule
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Mark:
    """One decorator on one function, and where it stands."""

    decorator: str
    point: str
    lane: str
    payload: type
    timeout_ms: int | None
    file: str
    line: int


# Only a load that is under way listens; everywhere else a decorator leaves its marks and nothing more.
_listening: ContextVar[list[tuple[Any, Mark]] | None] = ContextVar("tenterhook_decorated", default=None)


@contextmanager
def decorated_during() -> Iterator[list[tuple[Any, Mark]]]:
    """Collects what is decorated meanwhile, so that a load can tell what it did not find."""
    collected: list[tuple[Any, Mark]] = []
    token = _listening.set(collected)
    try:
        yield collected
    finally:
        _listening.reset(token)


def mark(handler: Handler, decorator: str, point: str, lane: str, payload: type, timeout_ms: int | None) -> Handler:
    """Leaves the marks of one decorator on ``handler`` and returns it."""
    caller = sys._getframe(2)
    made = Mark(decorator, point, lane, payload, timeout_ms, caller.f_code.co_filename, caller.f_lineno)
    target: Any = handler
    try:
        target._tenterhook_marks = (*marks_of(handler), made)
        target._hook_point = point
        target._hook_lane = lane
        target._hook_timeout_ms = timeout_ms
    except AttributeError:
        raise HookDefinitionError(
            "unregistered-decorator",
            f"`{decorator}` cannot mark a `{type(handler).__name__}`",
            "decorate an `async def` function",
        ) from None
    listening = _listening.get()
    if listening is not None:
        listening.append((handler, made))
    return handler


def marks_of(handler: object) -> tuple[Mark, ...]:
    """The marks on ``handler``, the innermost decorator's first."""
    # Through the dict of the object itself: a class that makes attributes up must not seem marked, and a proxy that has
    # nothing to stand for yet must not be asked.
    try:
        found = object.__getattribute__(handler, "__dict__").get("_tenterhook_marks", ())
    except Exception:
        return ()
    return found if isinstance(found, tuple) else ()
