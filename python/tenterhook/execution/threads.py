"""Functions that are no coroutines, run off the loop on threads of their own.

The threads are daemons, so that one that never comes back keeps no process from ending, and none is shared with
``asyncio.to_thread``, so that none of the caller's work waits for it. A function whose time is over is interrupted at its next
step of Python.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from tenterhook import _engine

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable

__all__ = ["in_thread"]

R = TypeVar("R")

#: Seconds that a thread waits for more to do.
IDLE = 10.0

_lock = threading.Lock()
_idle: list[_Worker] = []


async def in_thread(function: Callable[[], R]) -> R:
    """Runs ``function`` on a thread, in a copy of the context. To cancel it interrupts the function."""
    loop = asyncio.get_running_loop()
    future: Future[tuple[bool, Any]] = loop.create_future()
    context = contextvars.copy_context()
    task = _Task(lambda: context.run(function), loop, future)
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        worker = _Worker()
        threading.Thread(target=worker.work, name="tenterhook-function", daemon=True).start()
    task.worker = worker
    worker.tasks.put(task)
    try:
        has_returned, outcome = await future
    except asyncio.CancelledError:
        task.interrupt()
        raise
    if has_returned:
        result: R = outcome
        return result
    error: BaseException = outcome
    raise error


class _Task:
    """One function, and who waits for it."""

    __slots__ = ("future", "has_begun", "is_over", "is_struck", "loop", "run", "worker")

    def __init__(self, run: Callable[[], Any], loop: AbstractEventLoop, future: Future[tuple[bool, Any]]) -> None:
        self.run = run
        self.loop = loop
        self.future = future
        self.worker: _Worker | None = None
        self.has_begun = self.is_over = self.is_struck = False

    def interrupt(self) -> None:
        with _lock:
            if self.is_over or self.is_struck:
                return
            self.is_struck = True
            # Under the lock: the thread is at this function, or has not begun it and then never will.
            if self.has_begun and self.worker is not None:
                _engine.interrupt_thread(self.worker.ident)

    def tell(self, outcome: tuple[bool, Any]) -> None:
        # A loop that has been closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._settle, outcome)

    def _settle(self, outcome: tuple[bool, Any]) -> None:
        if not self.future.done():
            self.future.set_result(outcome)


class _Worker:
    """A thread that runs one function after the other."""

    __slots__ = ("ident", "tasks")

    def __init__(self) -> None:
        self.ident = 0
        self.tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()

    def work(self) -> None:
        self.ident = threading.get_ident()
        # An interruption may land late: then the thread ends, and another is started for what comes.
        with contextlib.suppress(BaseException):
            while self._next():
                pass

    def _next(self) -> bool:
        """Whether there is to be a next one."""
        try:
            task = self.tasks.get(timeout=IDLE)
        except queue.Empty:
            with _lock:
                if self in _idle:
                    _idle.remove(self)
                    return False
            # It has just been taken.
            return True
        with _lock:
            task.has_begun = not task.is_struck
        outcome: tuple[bool, Any]
        try:
            outcome = (True, task.run()) if task.has_begun else (False, asyncio.CancelledError())
        except BaseException as error:  # whoever waits is to have it, SystemExit as well
            outcome = (False, error)
        with _lock:
            task.is_over = True
            goes_on = not task.is_struck
            if goes_on:
                _idle.append(self)
        task.tell(outcome)
        return goes_on
