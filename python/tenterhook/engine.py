"""The engine for Python callers: load an agent's hooks and call them from any asyncio loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, final

from tenterhook import _engine
from tenterhook.delivery import mailbox_of
from tenterhook.errors import Problem
from tenterhook.mantle.decorators import LONGEST_TIMEOUT_MS

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from tenterhook.mantle.payloads import HookPayload
    from tenterhook.outcome import Outcome

__all__ = ["Engine", "RegisteredHook"]

P = TypeVar("P", bound="HookPayload")


@dataclass(frozen=True, slots=True)
class RegisteredHook:
    """A hook that an engine has registered; ``line`` counts from 1."""

    point: str
    lane: str
    module: str
    function: str
    file: Path
    line: int
    timeout_ms: int


@final
class Engine:
    """An agent's hooks, loaded and ready to be called.

    >>> async with Engine.load("my-agent") as engine:          # doctest: +SKIP
    ...     engine.observe(payload)
    ...     outcome = await engine.modify(payload)
    """

    __slots__ = ("_native", "_root")

    def __init__(self, native: _engine.Engine, root: Path) -> None:
        self._native = native
        self._root = root

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        observe_timeout_ms: int | None = None,
        modify_timeout_ms: int | None = None,
        load_timeout_ms: int | None = None,
        observer_queue: int | None = None,
        isolation: Literal["thread", "process"] | None = None,
    ) -> Engine:
        """Loads the hooks of the agent in the folder ``path``. Blocks while its modules are imported.

        The time-outs (milliseconds) change the defaults of 100 (observe), 500 (modify) and 10,000 (the whole import); a
        decorator's ``timeout_ms`` wins. ``observer_queue`` is how many observations may wait (4,096). ``isolation`` is where the
        hooks run: on threads of this process, or in a process of their own, which is killed and started again where nothing
        else helps; without it the agent's settings decide.

        Raises :class:`tenterhook.LoadError`, and ``ValueError`` for a time-out that is none.
        """
        for name, value in (
            ("observe_timeout_ms", observe_timeout_ms),
            ("modify_timeout_ms", modify_timeout_ms),
            ("load_timeout_ms", load_timeout_ms),
        ):
            if value is not None and (type(value) is not int or not 0 < value <= LONGEST_TIMEOUT_MS):
                raise ValueError(f"`{name}` is {value!r}; expected a whole number from 1 to {LONGEST_TIMEOUT_MS}")
        root = Path(path).absolute()
        native = _engine.Engine.load(
            root,
            observe_timeout_ms=observe_timeout_ms,
            modify_timeout_ms=modify_timeout_ms,
            load_timeout_ms=load_timeout_ms,
            observer_queue=observer_queue,
            isolation=isolation,
        )
        return cls(native, root)

    @property
    def root(self) -> Path:
        """The agent's folder."""
        return self._root

    async def modify(self, payload: P) -> Outcome[P]:
        """Calls the modify hook of the payload's point; works from any running loop.

        Gives :class:`~tenterhook.Proceed`, :class:`~tenterhook.Retry` or :class:`~tenterhook.Reject`. An unchanged payload
        comes back as the very object. Cancelling the caller cancels the handler.

        Raises :class:`tenterhook.HookExecutionError` when the handler fails at a closed point,
        :class:`tenterhook.PayloadError` when the payload holds what JSON cannot carry, and
        :class:`tenterhook.EngineClosedError` after a shutdown and in a forked child.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome[P]] = loop.create_future()
        call = self._native.modify(payload, mailbox_of(loop), future)
        try:
            return await future
        except asyncio.CancelledError:
            if call is not None:
                call.withdraw()
            raise

    def observe(self, payload: HookPayload) -> None:
        """Hands the payload to the observe hooks of its point. Never waits; call it before :meth:`modify`.

        Raises :class:`tenterhook.PayloadError` and :class:`tenterhook.EngineClosedError`.
        """
        self._native.observe(payload)

    def registered(self, point: str | None = None) -> list[RegisteredHook]:
        """The hooks at a point, such as ``"model_request"``, or all; observers first.

        Raises ``ValueError`` for a point that does not exist.
        """
        return [RegisteredHook(**{**hook, "file": Path(hook["file"])}) for hook in self._native.registered(point)]

    def statistics(self) -> list[dict[str, Any]]:
        """What has come of each hook's calls: counts, and times in milliseconds."""
        return self._native.statistics()

    def health(self) -> dict[str, Any]:
        """How the engine's threads are.

        How many serve, are stuck or have been given up (with the handler and its Python stack),
        how often calls were moved or lost on a blocked loop, and which handlers are quarantined.
        """
        return self._native.health()

    async def reload(self) -> None:
        """Loads the agent again, with the settings of the first load: checks and imports beside what runs, then swaps.

        Calls in flight end on the modules that they were made on; statistics, health and quarantine begin anew.

        Raises :class:`tenterhook.LoadError`; what was loaded then goes on.
        """
        await asyncio.to_thread(self._native.reload)

    def warnings(self) -> list[Problem]:
        """What is unwise in the modules, though it does not keep them from running."""
        return [Problem.of(warning) for warning in self._native.warnings()]

    async def shutdown(self, grace: float = 2.0) -> bool:
        """Refuses new calls, waits at most ``grace`` seconds for the others, and cancels the rest.

        The answer is whether all ended by themselves.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._native.shutdown(grace, mailbox_of(loop), future)
        return await future

    def close(self) -> None:
        """Cancels whatever runs, without waiting."""
        self._native.close()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    def __repr__(self) -> str:
        return f"Engine({str(self._root)!r})"
