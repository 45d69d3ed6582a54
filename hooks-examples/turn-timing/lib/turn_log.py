"""The turns that are running, for all hook modules of the agent: they share one import of this module."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Turn:
    """What has happened in a turn so far."""

    began: float = field(default_factory=time.monotonic)
    asked: float | None = None
    model_ms: float = 0.0
    model_calls: int = 0
    tools: Counter[str] = field(default_factory=Counter)
    tool_errors: int = 0

    def ask(self) -> None:
        """The model is asked."""
        self.model_calls += 1
        self.asked = time.monotonic()

    def answer(self, latency_ms: float | None) -> None:
        """The model has answered. The provider's own measure is better than ours, where there is one."""
        if latency_ms is None and self.asked is not None:
            latency_ms = (time.monotonic() - self.asked) * 1000
        self.model_ms += latency_ms or 0.0
        self.asked = None

    def elapsed_ms(self) -> float:
        """Milliseconds since the turn began."""
        return (time.monotonic() - self.began) * 1000


_running: dict[str, Turn] = {}


def begin(sender_id: str) -> None:
    """Starts a conversation's turn; what an unfinished one left behind is forgotten."""
    _running[sender_id] = Turn()


def current(sender_id: str) -> Turn | None:
    """The conversation's running turn, if it has one."""
    return _running.get(sender_id)


def end(sender_id: str) -> Turn | None:
    """Takes the turn out: nothing is kept of conversations that nobody continues."""
    return _running.pop(sender_id, None)
