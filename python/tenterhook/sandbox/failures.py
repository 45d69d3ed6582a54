"""How code ended that did not come to its end, as the other side tells it."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import pydantic_monty

__all__ = ["Failure", "Kind", "described", "exception", "limit", "too_long"]

Kind = Literal["syntax", "raised", "limit", "stopped", "crashed"]

#: Frames of a failure that are told, from its two ends: what recurses has a thousand.
FRAMES = 20

#: How long the text of an exception may be, in characters.
TEXT = 8_000

_UNSUPPORTED = "The monty syntax parser does not yet support "

#: The exceptions that the sandbox's Python has.
_KNOWN = frozenset(get_args(pydantic_monty.ExcType))


@dataclass
class Failure:
    """A failure. The fields are those of the other side's `CodeError`."""

    kind: Kind
    name: str
    message: str
    frames: list[dict[str, Any]] = field(default_factory=list)


def limit(name: str, message: str) -> Failure:
    """A limit has fired."""
    return Failure("limit", name, message)


def described(error: BaseException, feed: str, limits: dict[str, Any]) -> tuple[Failure, bool]:
    """What an error of the sandbox says, and whether the session is over; places are those in the source that was fed as `feed`."""
    if isinstance(error, pydantic_monty.MontyCrashedError):
        if error.timed_out:
            return too_long(limits), True
        return Failure("crashed", "SandboxCrashed", f"The sandbox has ended: {error}"), True
    if isinstance(error, pydantic_monty.MontySyntaxError):
        return Failure("syntax", "SyntaxError", _message(error), _frames(error, feed)), False
    if not isinstance(error, pydantic_monty.MontyRuntimeError):
        return Failure("crashed", "SandboxCrashed", f"The sandbox has failed: {error}"[:TEXT]), True
    name, _, _ = error.display("type-msg").partition(":")
    message, frames = _message(error), _frames(error, feed)
    if name == "TimeoutError" and message.startswith("feed time limit exceeded") and not frames:
        return too_long(limits), True
    if name == "MemoryError" and message.startswith("memory limit exceeded"):
        return Failure("limit", "memory", _too_much(limits), frames), False
    if name == "MemoryError" and message.startswith("the worker exceeded its memory limit"):
        return Failure("limit", "memory", _too_much(limits), frames), True
    if name == "RecursionError":
        deepest = f"Calls went deeper than {limits['recursion']:,} levels"
        return Failure("limit", "recursion", deepest, frames), False
    if name == "RuntimeError" and message.startswith("suspension limit"):
        return limit("calls", "The code has left the sandbox too often"), False
    if name == "NotImplementedError" and message.startswith(_UNSUPPORTED):
        missing = message.removeprefix(_UNSUPPORTED)
        return Failure("syntax", "SyntaxError", f"The Python of this sandbox does not know {missing}", frames), False
    return Failure("raised", name, message, frames), False


def exception(kind: str, message: str) -> Any:
    """An exception for the code: of that type, or of the nearest that the sandbox's Python has."""
    known = getattr(builtins, kind, None)
    if kind not in _KNOWN and isinstance(known, type) and issubclass(known, BaseException):
        kind = next((base.__name__ for base in known.__mro__ if base.__name__ in _KNOWN), "RuntimeError")
    if kind not in _KNOWN:
        kind, message = "RuntimeError", f"{kind}: {message}"
    return {"exc_type": kind, "message": message}


def too_long(limits: dict[str, Any]) -> Failure:
    """The limit on time has fired."""
    return limit("time", f"The code has computed for more than {limits['time']:g} s")


def _too_much(limits: dict[str, Any]) -> str:
    return f"The values of the code took more than {limits['memory'] / (1 << 20):g} MiB"


def _message(error: pydantic_monty.MontyRuntimeError | pydantic_monty.MontySyntaxError) -> str:
    return error.display("msg")[:TEXT]


def _frames(
    error: pydantic_monty.MontyRuntimeError | pydantic_monty.MontySyntaxError, feed: str
) -> list[dict[str, Any]]:
    frames = [frame for frame in error.traceback() if frame.filename == feed]
    if len(frames) > FRAMES:
        frames = frames[: FRAMES // 2] + frames[-FRAMES // 2 :]
    return [
        {
            "line": frame.line,
            "column": frame.column,
            "end_column": frame.end_column if frame.end_line == frame.line else frame.column,
            "function": None if frame.function_name in {None, "<module>"} else frame.function_name,
        }
        for frame in frames
    ]
