"""The turn engine for Python callers: load an agent and talk to it from any asyncio loop."""

from __future__ import annotations

import atexit
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from tenterhook import _engine
from tenterhook.delivery import events_of
from tenterhook.errors import Problem
from tenterhook.mantle.payloads import CallInfo, ChannelInfo

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator
    from types import TracebackType

__all__ = ["TurnEngine"]


@final
class TurnEngine:
    """A whole agent, loaded: its model, hooks, tools and conversations.

    >>> async with TurnEngine.load("my-agent") as engine:          # doctest: +SKIP
    ...     async for event in engine.turn("conversation-1", "Where is my parcel?"):
    ...         if event["event"] == "message":
    ...             print(event["text"])
    """

    __slots__ = ("_native", "_root")

    def __init__(self, native: _engine.TurnEngine, root: Path) -> None:
        self._native = native
        self._root = root

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, store: str | os.PathLike[str] | None = None) -> TurnEngine:
        """Loads the agent in the folder ``path``. Blocks while its modules are imported.

        Conversations are kept in the file ``store`` (SQLite), or in memory as long as the engine lives.

        Raises :class:`tenterhook.LoadError`.
        """
        # What spans are left is sent before the process ends.
        atexit.unregister(_engine.end_export)
        atexit.register(_engine.end_export)
        root = Path(path).absolute()
        return cls(_engine.TurnEngine.load(root, store=None if store is None else Path(store)), root)

    def turn(
        self,
        sender_id: str,
        text: str,
        *,
        message_id: str | None = None,
        channel: str | ChannelInfo | None = None,
        call: CallInfo | None = None,
        is_voice: bool = False,
        interrupts: bool = False,
        shows_changes: bool = False,
    ) -> AsyncIterator[dict[str, Any]]:
        """Runs a turn; gives its events as they happen, each a dict with its kind as ``event``.

        ``started``, ``hook_ran``, ``model_answered``, ``retried``, ``token``, ``message``, ``tool_called``, ``tool_returned``,
        ``moved``, ``finished``. ``channel`` and ``call`` are what every payload of the turn shows. A turn of the same conversation that
        runs is waited for, or cancelled where ``interrupts`` is set. To stop iterating cancels the turn. With ``shows_changes``
        each ``hook_ran`` tells what the hook changed, also what it has taken out of a text.
        """
        if isinstance(channel, str):
            channel = ChannelInfo(name=channel)
        return events_of(
            lambda: self._native.turn(
                sender_id,
                text,
                message_id=message_id,
                channel=None if channel is None else channel.model_dump(),
                call=None if call is None else call.model_dump(),
                is_voice=is_voice,
                interrupts=interrupts,
                shows_changes=shows_changes,
            )
        )

    def lifecycle(self) -> AsyncIterator[dict[str, Any]]:
        """Tells of conversations in which the user says nothing, as it falls due by ``lifecycle`` in ``agent.yml``; ends without one.

        Each event is a dict: ``event`` (``"nudge"`` or ``"expire"``), ``sender_id``, ``idle_since_ms`` (when the last turn ended) and
        ``due_ms``, both in milliseconds since 1970 (UTC). Each comes once until the user says something again, also over a restart
        where there is a store, and to one of the engines that share it. What fell due while none ran is told first.

        To react, say something to the user, or run a turn with the text ``/nudge`` or ``/expire``: such a turn counts as none of the
        user's.

        >>> async for event in engine.lifecycle():                     # doctest: +SKIP
        ...     if event["event"] == "nudge":
        ...         await send(event["sender_id"], "Are you still there?")
        """
        return events_of(self._native.lifecycle)

    def interrupt(self, sender_id: str) -> bool:
        """Cancels the turn of a conversation that runs; the answer is whether one does."""
        return self._native.interrupt(sender_id)

    def warnings(self) -> list[Problem]:
        """What is unwise in the agent's files, though it does not keep it from running."""
        return [Problem.of(warning) for warning in self._native.warnings()]

    def close(self) -> None:
        """Cancels whatever runs on the agent's own thread, without waiting."""
        self._native.close()

    async def __aenter__(self) -> TurnEngine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TurnEngine({str(self._root)!r})"
