"""``rasa.mantle.tools.decorator``: the decorator that makes a function a tool, and what a tool is given."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ToolContext", "ToolDefinitionError", "tool"]

F = TypeVar("F", bound="Callable[..., Any]")


class ToolDefinitionError(TypeError):
    """A tool that is not well formed."""


def tool(*bare: Any, description: str = "") -> Callable[[F], F]:
    """Makes an ``async def`` function a tool: ``@tool(description="...")``.

    The model reads the function's name, the description, and the parameters with their type hints. A parameter named
    ``context`` is given the :class:`ToolContext` and hidden from the model.
    """
    if bare or not isinstance(description, str) or not description.strip():
        raise ToolDefinitionError('A tool needs a description: write `@tool(description="...")`')

    def mark(function: F) -> F:
        function._tool_description = description  # type: ignore[attr-defined]
        return function

    return mark


class Turn(Protocol):
    """The turn that a tool is called in."""

    def say(self, text: str) -> None:
        """Hands a text to the user."""

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the tool any more."""


@final
class ToolContext:
    """What a tool may do beside giving a result."""

    __slots__ = ("_sender_id", "_turn")

    def __init__(self, sender_id: str, turn: Turn) -> None:
        self._sender_id = sender_id
        self._turn = turn

    @property
    def sender_id(self) -> str:
        """The conversation."""
        return self._sender_id

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn has been cancelled: look before what cannot be undone."""
        return self._turn.is_cancelled()

    async def send(self, text: str, *, buttons: Any = None, metadata: Any = None) -> None:
        """Says something to the user at once; what is said stands before the model's next answer."""
        self._turn.say(text)
        await asyncio.sleep(0)

    def __repr__(self) -> str:
        return f"ToolContext({self._sender_id!r})"
