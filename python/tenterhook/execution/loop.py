"""The caller's own loop as a lane: its hooks and tools are called there, as those of an agent are on theirs."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import AbstractEventLoop, Task
from typing import TYPE_CHECKING, Any

from tenterhook import _engine
from tenterhook.lane import DRAIN, run_job

if TYPE_CHECKING:
    from contextvars import Context

__all__ = ["CallerLoop"]

#: Seconds that hooks and tools have to end once their execution is cancelled.
GRACE = 0.5


class CallerLoop:
    """Takes jobs from a lane's queue as the loop turns, and runs each in a task of its own with a copy of ``context``."""

    def __init__(self, loop: AbstractEventLoop, context: Context) -> None:
        self.native = _engine.CallerLane()
        self.loop = loop
        #: Tasks whose job has begun, by its number.
        self.running: dict[int, Task[Any] | None] = {}
        self.leaving = False
        self._lane = self.native.lane
        self._context = context
        self._tasks: set[Task[None]] = set()
        loop.add_reader(self._lane.fileno(), self._drain)

    def leave(self) -> None:
        """There is nothing to leave: the loop is the caller's."""

    def detach(self) -> set[Task[None]]:
        """Nothing is taken from now on, and what runs is cancelled; gives it."""
        if not self.leaving:
            self.leaving = True
            # A loop that has been closed watches nothing.
            with contextlib.suppress(RuntimeError):
                self.loop.remove_reader(self._lane.fileno())
            self.native.close()
            for task in self._tasks:
                task.cancel()
        return set(self._tasks)

    async def close(self) -> None:
        """As :meth:`detach`; waits a moment for what has been cancelled."""
        left = self.detach()
        if left:
            await asyncio.wait(left, timeout=GRACE)

    def _drain(self) -> None:
        cancels, stop, _ = self._lane.woken()
        for serial in cancels:
            task = self.running.get(serial)
            if task is not None:
                task.cancel()
        if stop:
            return
        try:
            for _ in range(DRAIN):
                job = self._lane.take()
                if job is None:
                    break
                # Not by the loop's factory: what the caller has it do with tasks is for the caller's own.
                task = Task(run_job(job, self), loop=self.loop, name=job.name, context=self._context.copy())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            # Behind the first steps of what has just been started.
            self.loop.call_soon(self._lane.drained)
