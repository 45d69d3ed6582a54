"""Quick Apps for callers in Python: apps that a manifest describes."""

from __future__ import annotations

import atexit
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from tenterhook import _engine
from tenterhook.delivery import events_of
from tenterhook.errors import Problem

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

__all__ = ["QuickApp"]


@final
class QuickApp:
    """An app, loaded: its model, its tools, and the hooks that call tools at fixed points of every request.

    >>> async with QuickApp.load("app.json") as app:                # doctest: +SKIP
    ...     async for event in app.request([{"role": "user", "content": "Hello"}]):
    ...         if event["event"] == "message":
    ...             print(event["text"])
    """

    __slots__ = ("_native", "_path")

    def __init__(self, native: _engine.QuickApp, path: Path) -> None:
        self._native = native
        self._path = path

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, key: bytes | None = None) -> QuickApp:
        """Loads the app of the manifest ``path``, JSON or YAML. Blocks while modules are imported and servers connected to.

        ``key`` seals the ids of the pairs that hooks leave in a conversation; without it the variable ``TENTERHOOK_APP_KEY`` does, or a
        key of this process's own.

        Raises :class:`tenterhook.LoadError`.
        """
        # What spans are left is sent before the process ends.
        atexit.unregister(_engine.end_export)
        atexit.register(_engine.end_export)
        manifest = Path(path).absolute()
        return cls(_engine.QuickApp.load(manifest, key=key), manifest)

    def request(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        client_tools: Sequence[dict[str, Any]] = (),
        sender_id: str | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Answers a conversation; gives events as they happen, each a dict with its kind as ``event``.

        ``messages`` have the form of Chat Completions; ``client_tools`` are those that the caller runs itself, each with ``name``,
        ``description`` and ``parameters`` (a JSON schema). Events are ``app_hook_ran``, ``hook_ran``, ``token``, ``message``,
        ``tool_called``, ``tool_returned`` and, last, ``finished`` with ``status`` (``completed``, ``rejected``, ``client_tools``,
        ``error``) and the
        ``messages`` to go on with. To stop iterating cancels the request.
        """
        given, tools = list(messages), list(client_tools)
        return events_of(lambda: self._native.request(given, client_tools=tools, sender_id=sender_id))

    def statistics(self) -> list[dict[str, Any]]:
        """What has come of the runs of each hook of the manifest, in its order.

        Each with ``name``, ``on``, ``calls``, ``ran``, ``fallbacks``, ``failures`` by cause, ``withdrawn``, ``p50_ms`` and ``p99_ms``.
        """
        return self._native.statistics()

    def warnings(self) -> list[Problem]:
        """What is unwise in the manifest, though it does not keep it from running."""
        return [Problem.of(warning) for warning in self._native.warnings()]

    def close(self) -> None:
        """Cancels whatever runs on the app's own thread, without waiting."""
        self._native.close()

    async def __aenter__(self) -> QuickApp:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"QuickApp({str(self._path)!r})"
