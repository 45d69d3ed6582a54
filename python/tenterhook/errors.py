"""The exceptions of the package.

As a tree::

TenterhookError
├── LoadError                 an agent's hooks could not be loaded
│   ├── AgentError            the folder is missing, is a file, or has no hooks
│   ├── InvalidHooksError     the modules are not well formed; ``problems`` says where and why
│   └── InterpreterError      the interpreter, the import's time limit, the lane
├── HookExecutionError        a handler failed at a closed point; ``failure`` says which and why
├── ExecutionError            an execution cannot be run: what was given for it does not fit (also a ``ValueError``)
├── PayloadError              a payload that a caller made cannot be taken (also a ``ValueError``)
└── EngineClosedError         the engine has been shut down
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenterhook.outcome import HandlerFailure

__all__ = [
    "AgentError",
    "EngineClosedError",
    "ExecutionError",
    "HookExecutionError",
    "InterpreterError",
    "InvalidHooksError",
    "LoadError",
    "PayloadError",
    "Place",
    "Problem",
    "TenterhookError",
]


class TenterhookError(Exception):
    """Base of all exceptions that the engine raises."""


class LoadError(TenterhookError):
    """An agent's hooks could not be loaded."""


class AgentError(LoadError):
    """The agent's folder is missing, is a file, cannot be read, or has no hooks."""


@dataclass(frozen=True, slots=True)
class Place:
    """Another place that a problem concerns."""

    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that the author of a file can mend.

    ``severity`` is ``error`` or ``warning``. Lines and columns count from 1, columns in characters; the end is exclusive.
    What the import found has no column.
    """

    rule: str
    severity: str
    message: str
    hint: str | None
    file: str
    line: int | None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    related: tuple[Place, ...] = ()

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Problem:
        """A problem as the engine gives it."""
        return cls(**{**found, "related": tuple(Place(**place) for place in found.get("related", ()))})


class InvalidHooksError(LoadError):
    """The hook modules are not well formed."""

    def __init__(self, message: str, problems: Sequence[Problem]) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class InterpreterError(LoadError):
    """The interpreter could not be used, the import took too long, or the lane's thread failed."""


class HookExecutionError(TenterhookError):
    """A handler failed at a closed point: the step must not happen."""

    def __init__(self, failure: HandlerFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class PayloadError(TenterhookError, ValueError):
    """A payload that a caller made cannot be taken; the message has the path of the value."""


class ExecutionError(TenterhookError, ValueError):
    """An execution cannot be run: what was given for it does not fit; the message says what, and how to mend it."""


class EngineClosedError(TenterhookError):
    """The engine has been shut down, or was loaded before this process was forked."""
