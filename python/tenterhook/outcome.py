"""What a modify call gives: go on, ask the model again, or stop this action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from tenterhook.mantle.payloads import HookPayload

__all__ = ["HandlerFailure", "Outcome", "Proceed", "Reject", "Retry"]

P = TypeVar("P", bound="HookPayload")


@dataclass(frozen=True, slots=True)
class HandlerFailure:
    """A handler that failed at run time. ``cause`` is a word such as ``timeout``; ``message`` says it in a sentence."""

    point: str
    lane: str
    module: str
    function: str
    elapsed_ms: float
    cause: str
    message: str

    def __str__(self) -> str:
        return f"`{self.module}:{self.function}` at {self.point} ({self.lane}) failed: {self.message}"


@dataclass(frozen=True, slots=True)
class Proceed(Generic[P]):
    """Go on with ``payload``.

    ``failure`` is set when the handler failed at an open point: ``payload`` is then the last good one.
    ``discarded_signal`` names a control signal that the point does not take; it had no effect.
    """

    payload: P
    changed: bool
    failure: HandlerFailure | None = None
    discarded_signal: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Discard the model's answer, or the whole batch of calls, and ask again with ``feedback``."""

    feedback: str


@dataclass(frozen=True, slots=True)
class Reject:
    """The action is vetoed. ``response`` is what the user is to hear in place of the point's fallback."""

    reason: str
    response: str | None = None


Outcome: TypeAlias = Proceed[P] | Retry | Reject
