"""What a hook or a tool of an execution raises to steer it. Any other exception is a failure, which the model may learn of."""

from __future__ import annotations

from typing import Any

__all__ = ["CriticalError", "ThinkSignal", "unwrapped"]


class ThinkSignal(Exception):
    """The model is to look at something before anything else happens.

    ``reason`` and ``context``, any JSON value, are what it reads.
    """

    def __init__(self, reason: str, context: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.context = context


class CriticalError(Exception):
    """The execution is to end: the model is not asked again. Raised in a hook."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def unwrapped(error: BaseException) -> BaseException:
    """The exception that a group of nothing else holds, or the exception itself."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
