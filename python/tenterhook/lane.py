"""A lane: a thread with one asyncio loop, on which all handlers of an agent run.

Handlers are real tasks. Rust is called from here as a leaf that keeps the GIL and never lies below user code: a thread
that meets the interpreter's exit with a Rust frame on its stack would abort the process.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import dataclasses
import os
import sys
import time
import traceback
from asyncio import AbstractEventLoop, Task
from collections.abc import Awaitable, Callable
from contextvars import Context
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Protocol

from tenterhook._engine import LoadOrder, SandboxPost, Strike
from tenterhook.mantle.signals import HookRejection, RetryModel

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tenterhook._engine import Assistant, Job, Lane

__all__ = ["DRAIN", "Agent", "HandlerInterrupted", "Serving", "ThreadParked", "run_job", "start_assistant"]

#: Jobs that one drain starts at most; a longer one would keep the loop from its other work.
DRAIN = 64

#: Seconds that tasks have to end once a lane is told to stop.
STOP_GRACE = 1.0

#: Seconds after which it is looked again whether a thread can be parked.
PARK_AGAIN = 0.002

#: The process is a child that a handler has forked: it has the memory of an engine, and none of its threads.
_FORKED = False


class HandlerInterrupted(BaseException):
    """Raised in a handler that is past its deadline and does not give its thread back."""


class ThreadParked(BaseException):
    """Never raised to the end: a thread that makes one sleeps for ever, and no longer asks for the interpreter's lock."""

    def __init__(self) -> None:
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(3600)


@dataclasses.dataclass(frozen=True)
class Agent:
    """What all lanes of an agent share."""

    #: The context in which its modules were imported: handlers see what those set, and nothing of each other.
    context: Context
    #: Forgets the modules.
    unload: Callable[[], None]


class Serving(Protocol):
    """What runs jobs on a loop."""

    @property
    def loop(self) -> AbstractEventLoop:
        """The loop."""

    @property
    def running(self) -> dict[int, Task[Any] | None]:
        """The tasks whose job has begun, by its number."""

    @property
    def leaving(self) -> bool:
        """Whether it ends when its tasks have."""

    def leave(self) -> None:
        """Ends it where nothing is left."""


def start_assistant(assistant: Assistant) -> None:
    """Starts the thread that does what needs the interpreter: it starts lanes, and strikes those that do not answer.

    It sleeps in ``os.read`` while there is nothing to do.
    """
    current_tasks = asyncio.tasks._current_tasks  # type: ignore[attr-defined]

    def assist() -> None:
        while True:
            os.read(assistant.fileno(), 8)
            while (order := assistant.take()) is not None:
                try:
                    if isinstance(order, Strike):
                        ident = order.carry_out(current_tasks)
                        if ident is not None:
                            order.report(_stack(ident))
                        elif order.wants_more:
                            # Not there: it may hold a lock of somebody's. Other orders first, then again.
                            time.sleep(PARK_AGAIN)
                            order.again()
                    elif isinstance(order, SandboxPost):
                        from tenterhook.sandbox import serving

                        _thread.start_new_thread(serving.serve, (order,))
                    else:
                        _thread.start_new_thread(_serve, (order,))
                except BaseException as error:  # somebody waits for the answer
                    if isinstance(order, Strike):
                        order.failed()
                    else:
                        order.failed(f"{type(error).__name__}: {error}")

    os.register_at_fork(after_in_child=_forked)
    _thread.start_new_thread(assist, ())


def _forked() -> None:
    global _FORKED
    _FORKED = True


def _stack(ident: int) -> list[str]:
    """Where a thread is, the innermost frame last."""
    frame = sys._current_frames().get(ident)
    if frame is None:
        return []
    shown = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)
    lines = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in reversed(shown)]
    return [line for line in lines if not line.startswith((__file__, asyncio.__path__[0]))][-20:]


async def run_job(job: Job, server: Serving) -> None:
    """Runs one job in a task of its own. Whatever the handler raises ends here: nothing reaches the loop."""
    try:
        payload = job.begin()
        if payload is None:
            return
        # Here, and not where it is made: an exception that is raised in the thread may land there, and whose the first step is
        # must be known while it runs.
        server.running[job.serial] = asyncio.current_task(server.loop)
        result = job.function(payload)
        if type(result) is not CoroutineType and not isinstance(result, Awaitable):
            job.not_awaitable(result)
            return
        result = await result
        if _FORKED:
            _leave_child()
    except BaseException as error:  # SystemExit, KeyboardInterrupt and CancelledError among them
        if _FORKED:
            _leave_child()
        job.fail(error, *_describe(error))
    else:
        job.end(result, _fields(result))
    finally:
        server.running.pop(job.serial, None)
        if server.leaving:
            server.leave()


def _leave_child() -> None:
    """Ends a child that a handler has forked where its handler has: the queue and its answers are the parent's."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


# Code of a user's that runs when an exception or a payload is looked at (`__str__`, a property, a metaclass) runs here: in a leaf
# it would have a Rust frame above it.


def _fields(result: object) -> object:
    """The field values of what a handler returned, where it has any."""
    try:
        return object.__getattribute__(result, "__dict__")
    except BaseException:
        return None


def _describe(error: BaseException) -> tuple[str, str | None, tuple[str, object, object] | None]:
    """An exception's type and text (``None``: its ``__str__`` fails), and the control signal that it is."""
    try:
        module, name = type(error).__module__, type(error).__qualname__
        kind = name if module == "builtins" else f"{module}.{name}"
    except BaseException:
        kind = "Exception"
    try:
        signal = _signal(error)
    except BaseException:
        signal = None
    try:
        text = str(error)
    except BaseException:
        text = None
    return kind, text, signal


def _signal(error: BaseException) -> tuple[str, object, object] | None:
    """The signal that an exception is, or that it holds as a group of nothing else."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, RetryModel):
        return "retry", getattr(error, "feedback", None), None
    if isinstance(error, HookRejection):
        return "rejection", getattr(error, "reason", None), getattr(error, "response_message", None)
    return None


def _serve(order: LoadOrder | Lane) -> None:
    """The life of a lane's thread: the agent is loaded if it is the first, then jobs are run until the lane is told to end."""
    lane = order.lane() if isinstance(order, LoadOrder) else order
    if lane is None:
        return
    try:
        loop = _new_loop()
        asyncio.set_event_loop(loop)
        server = _Server(lane, loop)
        lane.serves(server, _thread.get_ident(), _thread.get_native_id())
        if isinstance(order, LoadOrder):
            loop.call_soon(server.load, order)
        loop.add_reader(lane.fileno(), server.drain)
    except BaseException as error:  # somebody waits for the answer
        order.failed(f"The event loop could not be started: {type(error).__name__}: {error}")
        return
    if not isinstance(order, LoadOrder):
        # What it was hired for waits already.
        loop.call_soon(server.drain)
    server.serve()


class _Server:
    """Takes jobs from a lane's queue and keeps their tasks."""

    def __init__(self, lane: Lane, loop: AbstractEventLoop) -> None:
        self.lane = lane
        self.loop = loop
        agent = lane.agent
        self.context = Context() if agent is None else agent.context
        self.running: dict[int, Task[Any] | None] = {}
        #: Which job has started a task.
        self.owners: dict[Task[Any], int] = {}
        #: What handlers start themselves; asyncio alone would let it be collected.
        self.background: set[Task[Any]] = set()
        self.stopping = False
        self.leaving = False
        self.lingering = False
        loop.set_task_factory(self._background_task)  # type: ignore[arg-type]
        self.eager = sys.version_info >= (3, 12)
        self.start = self._start_eagerly if self.eager else self._start

    def load(self, order: LoadOrder) -> None:
        """Imports the agent's modules here, on the thread and the loop of their handlers."""
        try:
            from tenterhook import loader

            loaded = self.context.run(loader.load, order.root, order.files, order.tool_files, execution=order.execution)
            self.lane.loaded(Agent(self.context, loaded.unload))
            order.done(loaded.found.handlers, loaded.tools, loaded.execution_hooks, loaded.found.problems)
        except BaseException as error:  # somebody waits for the answer
            order.failed(f"{type(error).__name__}: {error!r}")

    def serve(self) -> None:
        try:
            self._serve_until_stopped()
        finally:
            with contextlib.suppress(BaseException):  # whatever a user has put in its place
                self.loop.close()
                if self.lane.is_last() and (agent := self.lane.agent) is not None:
                    agent.unload()
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(BaseException):
                    stream.flush()
            # It is held by what it holds: the lane's file descriptor is not to wait for a collection.
            del self.start
            self.lane.end()

    def _run_once(self) -> None:
        try:
            self.loop.run_forever()
        except BaseException as error:  # what ends the loop restarts it
            self._tell(error)

    def _serve_until_stopped(self) -> None:
        # Once it is closed nothing can be run on a loop any more: a fresh lane goes on.
        while not self.stopping and not self.loop.is_closed():
            # What is raised in the thread for what has just ended may land anywhere here.
            with contextlib.suppress(BaseException):
                self._run_once()
            if _FORKED:
                _leave_child()
        try:
            if not self.loop.is_closed():
                self.loop.run_until_complete(self._wind_up())
        except BaseException as error:
            self._tell(error)

    def drain(self) -> None:
        cancels, stop, self.leaving = self.lane.woken()
        for serial in cancels:
            task = self.running.get(serial)
            if task is not None:
                task.cancel()
        try:
            for _ in range(DRAIN):
                job = self.lane.take()
                if job is None:
                    break
                self.start(job)
        finally:
            if self.eager:
                self._drained()
            else:
                # Behind the first steps of what has just been started.
                self.loop.call_soon(self._drained)
        if stop:
            self._stop()
        elif self.leaving:
            self.leave()

    def _drained(self) -> None:
        if self.lane.drained() and not self.lingering:
            self.lingering = True
            self.loop.call_soon(self._linger)

    def _linger(self) -> None:
        """Looks for work for a while: to be woken costs more than a short call does."""
        found = self.lane.linger()
        if found is False:
            self.loop.call_soon(self._linger)
            return
        self.lingering = False
        if found:
            self.drain()

    def _stop(self) -> None:
        if not self.stopping:
            self.stopping = True
            self.loop.stop()

    def leave(self) -> None:
        """Ends the lane when nothing is left on its loop."""
        if not self.running and not self.background:
            self._stop()

    def _start_eagerly(self, job: Job) -> None:
        Task(run_job(job, self), loop=self.loop, name=job.name, context=self.context.copy(), eager_start=True)  # type: ignore[call-arg, unused-ignore]

    def _start(self, job: Job) -> None:
        Task(run_job(job, self), loop=self.loop, name=job.name, context=self.context.copy())

    def _background_task(self, loop: AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> Task[Any]:
        owner = self._owner(asyncio.current_task(self.loop))
        task: Task[Any] = Task(work, loop=loop, **options)
        self.background.add(task)
        if owner:
            self.owners[task] = owner
        task.add_done_callback(self._forget_background)
        return task

    def _owner(self, task: Task[Any] | None) -> int:
        """The job that a task works for; 0: none."""
        if task in self.owners:
            return self.owners[task]
        return next((serial for serial, own in self.running.items() if own is task), 0)

    def _forget_background(self, task: Task[Any]) -> None:
        self.background.discard(task)
        self.owners.pop(task, None)
        if self.leaving:
            self.leave()

    async def _wind_up(self) -> None:
        own = asyncio.current_task()
        left = {task for task in (*self.running.values(), *self.background) if task is not None and task is not own}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=STOP_GRACE)
        await self.loop.shutdown_asyncgens()

    def _tell(self, error: BaseException) -> None:
        self.loop.call_exception_handler({"message": "Something ended the hooks' event loop", "exception": error})


def _new_loop() -> AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: AbstractEventLoop = uvloop.new_event_loop()
    return loop
