"""``rasa.mantle.tools.decorator``: the decorator that makes a function a tool, and what a tool is given."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenterhook.mantle.tools.events import Event

__all__ = ["MemoryWriteError", "TextStream", "ToolContext", "ToolDefinitionError", "ToolMemory", "Utterance", "tool"]

F = TypeVar("F", bound="Callable[..., Any]")

Buttons: TypeAlias = Iterable[Mapping[str, Any]] | None


def _buttons(buttons: Buttons) -> list[dict[str, Any]]:
    return [dict(button) for button in buttons or ()]


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

    def say(self, utterance: Utterance) -> None:
        """Hands a text to the user."""

    def write(self, piece: str) -> None:
        """Hands a piece of a text to the user."""

    def set_buttons(self, buttons: list[dict[str, Any]]) -> None:
        """Buttons for the next text of the turn."""

    def recall(self, entry: str) -> Any:
        """The value of an entry of memory."""

    def remember(self, entry: str, value: Any) -> None:
        """Writes an entry of memory."""

    def events(self) -> list[Event]:
        """What has happened in the conversation."""

    def model(self) -> str:
        """The name of the agent's model."""

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the tool any more."""


class Utterance(TypedDict):
    """What a tool says."""

    text: str
    buttons: list[dict[str, Any]]
    metadata: dict[str, Any]
    #: Whether its pieces have been written before.
    streamed: bool


@final
class TextStream:
    """A text that is written piece by piece: ``async with context.stream() as text: await text.write("...")``.

    What was written is said as a whole at the end, also where an exception ends it; nothing is said where nothing was written.
    """

    __slots__ = ("_buttons", "_metadata", "_pieces", "_turn")

    def __init__(self, turn: Turn, buttons: Buttons, metadata: Mapping[str, Any] | None) -> None:
        self._turn = turn
        self._pieces: list[str] = []
        self._buttons = _buttons(buttons)
        self._metadata = dict(metadata or {})

    async def write(self, text: str) -> None:
        """Shows a piece of the text at once, where no hook may still change it."""
        self._pieces.append(text)
        self._turn.write(text)
        await asyncio.sleep(0)

    def set_buttons(self, buttons: Buttons) -> None:
        """The buttons of the text."""
        self._buttons = _buttons(buttons)

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Whatever else a channel may make use of."""
        self._metadata = dict(metadata)

    async def __aenter__(self) -> TextStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        text = "".join(self._pieces)
        if text:
            self._turn.say({"text": text, "buttons": self._buttons, "metadata": self._metadata, "streamed": True})


class MemoryWriteError(ValueError):
    """A write that is refused: the entry is not declared, the value does not fit it, or it is written once a session."""


@final
class ToolMemory:
    """What the agent remembers, as ``memory.yml`` declares it."""

    __slots__ = ("_turn",)

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def get(self, entry: str, default: Any = None) -> Any:
        """The value of an entry: that of the active skill, else of the project; ``project.entry`` names the project's.

        ``default`` where it has none.
        """
        value = self._turn.recall(entry)
        return default if value is None else value

    def set(self, entry: str, value: Any) -> None:
        """Writes an entry; ``None`` clears it. Raises :class:`MemoryWriteError` where that is refused."""
        self._turn.remember(entry, value)


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

    @property
    def memory(self) -> ToolMemory:
        """What the agent remembers."""
        return ToolMemory(self._turn)

    @property
    def events(self) -> list[Event]:
        """What has happened in the conversation, the turn that runs included: a copy."""
        return self._turn.events()

    @property
    def model(self) -> str:
        """The name of the agent's model."""
        return self._turn.model()

    async def send(self, text: str, *, buttons: Buttons = None, metadata: Mapping[str, Any] | None = None) -> None:
        """Says something to the user at once; what is said stands before the model's next answer.

        ``buttons`` are mappings with ``title`` and ``payload``.
        """
        self._turn.say(
            {"text": text, "buttons": _buttons(buttons), "metadata": dict(metadata or {}), "streamed": False}
        )
        await asyncio.sleep(0)

    def stream(self, *, buttons: Buttons = None, metadata: Mapping[str, Any] | None = None) -> TextStream:
        """A text that is written piece by piece: ``async with context.stream() as text: await text.write("...")``."""
        return TextStream(self._turn, buttons, metadata)

    def set_buttons(self, buttons: Buttons) -> None:
        """Buttons for the next text that is said in the turn, the model's answer included."""
        self._turn.set_buttons(_buttons(buttons))

    def __repr__(self) -> str:
        return f"ToolContext({self._sender_id!r})"
