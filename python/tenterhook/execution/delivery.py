"""Traces for ``on_trace``: each once, in order, one after the other. Nobody waits for what the hook starts."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
from typing import TYPE_CHECKING, Any

from tenterhook.execution.controlling import controller_of
from tenterhook.execution.threads import in_thread
from tenterhook.execution.views import Trace
from tenterhook.lane import HandlerInterrupted

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Awaitable, Callable

    from tenterhook.execution.signatures import Taken
    from tenterhook.mantle.payloads import ToolCallPayload

__all__ = ["Delivery"]

logger = logging.getLogger("tenterhook.execution")

#: What hooks have started; asyncio alone would let it be collected.
_started: set[Task[None]] = set()


class Delivery:
    """The way of traces to one hook. What one call has is heard before the next, also where the first is late."""

    def __init__(self, function: Callable[..., Any], takes: Taken) -> None:
        from tenterhook.execution.calling import is_async

        self._function = function
        self._takes = takes
        self._is_async = is_async(function)
        self._last: Task[None] | None = None
        self._tasks: set[Task[None]] = set()

    async def deliver(self, payload: ToolCallPayload) -> ToolCallPayload:
        """Tells the hook the traces of one call, and ends when it has heard them."""
        task = asyncio.ensure_future(self._after(self._last, payload))
        self._last = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A call whose time is over is cancelled; its traces are heard nevertheless.
        await asyncio.shield(task)
        return payload

    def stop(self) -> None:
        """Gives up what has not been heard: the execution has ended, and has waited for it."""
        for task in self._tasks:
            task.cancel()

    async def _after(self, before: Task[None] | None, payload: ToolCallPayload) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
        loop = asyncio.get_running_loop()
        controller = controller_of(int(payload.headers["controller"]))

        def tell() -> None:
            for number, text in payload.arguments["traces"]:
                given = {"trace": Trace(json.loads(text)), "iteration": number, "controller": controller}
                self._tell(loop, given)

        if self._is_async:
            tell()
        else:
            await in_thread(tell)
        # What it has started gets to its first step.
        await asyncio.sleep(0)

    def _tell(self, loop: AbstractEventLoop, given: dict[str, Any]) -> None:
        try:
            positional, named = self._takes.arguments(given.__getitem__)
            returned = self._function(*positional, **named)
        except BaseException as error:  # whatever it raises is its own affair
            if isinstance(error, HandlerInterrupted):
                raise
            _log(error)
            return
        if inspect.isawaitable(returned):
            if self._is_async:
                _start(returned)
            else:
                with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                    loop.call_soon_threadsafe(_start, returned)


def _start(work: Awaitable[Any]) -> None:
    task = asyncio.ensure_future(_ended(work))
    _started.add(task)
    task.add_done_callback(_started.discard)


async def _ended(work: Awaitable[Any]) -> None:
    try:
        await work
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # nothing of it reaches the loop
        _log(error)


def _log(error: BaseException) -> None:
    logger.warning("`on_trace` raised `%s`", type(error).__name__, exc_info=error)
