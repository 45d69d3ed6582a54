"""``rasa.mantle.orchestration.turn_context``: which turn a tool runs in."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenterhook.mantle.tools.decorator import ToolContext

__all__ = ["current_turn_context"]

current: ContextVar[ToolContext] = ContextVar("tenterhook_turn_context")


def current_turn_context() -> ToolContext:
    """The context of the tool that is running; has ``sender_id`` and ``is_cancelled``.

    Raises ``LookupError`` outside of a tool.
    """
    return current.get()
