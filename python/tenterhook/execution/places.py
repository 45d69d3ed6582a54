"""Functions as the engine is told of them: what they are called, and where they are written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from tenterhook.mantle.payloads import ToolCallPayload

__all__ = ["Call", "FoundHook", "Place", "name_of", "nearest", "place_of"]

#: What the engine calls: the arguments of the payload come, the answer goes in their place.
Call: TypeAlias = "Callable[[ToolCallPayload], Coroutine[Any, Any, ToolCallPayload]]"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a function is written."""

    module: str
    function: str
    file: Path
    line: int


@dataclass(frozen=True, slots=True)
class FoundHook:
    """A function that is called as a hook, or as a model."""

    hook: str
    #: What it looks at of what it may be given.
    wants: list[str]
    module: str
    function: str
    file: Path
    line: int
    call: Call


def place_of(function: Any) -> Place:
    """Where a function is written; of what is no function, where its class is."""
    target = function
    while isinstance(target, functools.partial):
        target = target.func
    target = inspect.unwrap(target)
    if not hasattr(target, "__code__"):
        target = getattr(target, "__func__", target)
    code = getattr(target, "__code__", None)
    described = target if hasattr(target, "__qualname__") else type(target)
    return Place(
        module=str(getattr(described, "__module__", None) or "?"),
        function=str(getattr(described, "__qualname__", "?")),
        file=Path(code.co_filename if code is not None else "?"),
        line=code.co_firstlineno if code is not None else 1,
    )


def name_of(function: Any) -> str | None:
    """The name that a function was defined under; ``None``: it has none that can be called."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) and name.isidentifier() else None


def nearest(name: str, known: tuple[str, ...]) -> str:
    """A hint for a name that is not among ``known``."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{near[0]}`?" if near else "there is " + ", ".join(f"`{other}`" for other in known)
