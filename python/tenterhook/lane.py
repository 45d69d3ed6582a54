"""A lane: a thread with one asyncio loop, on which all handlers of an agent run.

Handlers are real tasks. Rust is called from here as a leaf that keeps the GIL and never lies below user code: a thread
that meets the interpreter's exit with a Rust frame on its stack would abort the process.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import os
import sys
from asyncio import AbstractEventLoop, Task
from collections.abc import Awaitable
from contextvars import Context
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from tenterhook.mantle.signals import HookRejection, RetryModel

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pydantic import BaseModel

    from tenterhook._engine import Assistant, Job, Lane, LoadOrder

__all__ = ["payload_builder", "start_assistant"]

#: Jobs that one drain starts at most; a longer one would keep the loop from its other work.
DRAIN = 64

#: Seconds that tasks have to end once a lane is told to stop.
STOP_GRACE = 1.0


def start_assistant(assistant: Assistant) -> None:
    """Starts the thread that starts lanes. It sleeps in ``os.read`` while there is nothing to do."""

    def assist() -> None:
        while True:
            os.read(assistant.fileno(), 8)
            while (order := assistant.take()) is not None:
                try:
                    _thread.start_new_thread(_serve, (order,))
                except BaseException as error:  # whatever it is, somebody waits for the answer
                    order.failed(f"No thread could be started: {error}")

    _thread.start_new_thread(assist, ())


def payload_builder(model: type[BaseModel]) -> Callable[[dict[str, Any]], BaseModel]:
    """A function that makes a ``model`` of field values without validating them: they come from the engine.

    The dict becomes the object's own.
    """
    new, put = model.__new__, object.__setattr__
    names = frozenset(model.model_fields)

    def build(values: dict[str, Any]) -> BaseModel:
        payload = new(model)
        put(payload, "__dict__", values)
        put(payload, "__pydantic_fields_set__", set(names))
        put(payload, "__pydantic_extra__", None)
        put(payload, "__pydantic_private__", None)
        return payload

    return build


async def _run(job: Job) -> None:
    """Runs one job in a task of its own. Whatever the handler raises ends here: nothing reaches the loop."""
    try:
        payload = job.begin()
        if payload is None:
            return
        result = job.function(payload)
        if type(result) is not CoroutineType and not isinstance(result, Awaitable):
            job.not_awaitable(result)
            return
        result = await result
    except BaseException as error:  # SystemExit, KeyboardInterrupt and CancelledError among them
        job.fail(error, *_describe(error))
    else:
        job.end(result, _fields(result))


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


def _serve(order: LoadOrder) -> None:
    """The life of a lane's thread: the agent is loaded, then its jobs are run until the lane is told to stop."""
    lane = order.lane()
    if lane is None:
        return
    try:
        loop = _new_loop()
        asyncio.set_event_loop(loop)
        context = Context()
        server = _Server(lane, loop, context)
        loop.call_soon(server.load, order)
        loop.add_reader(lane.fileno(), server.drain)
    except BaseException as error:  # somebody waits for the answer
        order.failed(f"The event loop could not be started: {type(error).__name__}: {error}")
        return
    server.serve()


class _Server:
    """Takes jobs from a lane's queue and keeps their tasks."""

    def __init__(self, lane: Lane, loop: AbstractEventLoop, context: Context) -> None:
        self.lane = lane
        self.loop = loop
        #: Handlers see what the modules set while they were imported, and nothing of each other.
        self.context = context
        self.running: dict[int, Task[None]] = {}
        #: What handlers start themselves; asyncio alone would let it be collected.
        self.background: set[Task[Any]] = set()
        self.stopping = False
        self.unload: Callable[[], None] = lambda: None
        loop.set_task_factory(self._background_task)  # type: ignore[arg-type]
        self.start = self._start_eagerly if sys.version_info >= (3, 12) else self._start

    def load(self, order: LoadOrder) -> None:
        """Imports the agent's modules here, on the thread and the loop of their handlers."""
        try:
            from tenterhook import loader

            found, self.unload = self.context.run(loader.load, order.root, order.files)
            order.done(found.handlers, found.problems)
        except BaseException as error:  # somebody waits for the answer
            order.failed(f"{type(error).__name__}: {error!r}")

    def serve(self) -> None:
        while not self.stopping:
            try:
                self.loop.run_forever()
            except BaseException as error:  # what ends the loop restarts it
                self._tell(error)
        try:
            self.loop.run_until_complete(self._wind_up())
        except BaseException as error:
            self._tell(error)
        finally:
            with contextlib.suppress(Exception):  # whatever a user has put in its place
                self.loop.close()
                self.unload()
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            self.lane.end()

    def drain(self) -> None:
        cancels, stop = self.lane.woken()
        for serial in cancels:
            task = self.running.get(serial)
            if task is not None:
                task.cancel()
        for _ in range(DRAIN):
            job = self.lane.take()
            if job is None:
                break
            self.start(job)
        else:
            self.lane.rearm()
        if stop:
            self.stopping = True
            self.loop.stop()

    def _start_eagerly(self, job: Job) -> None:
        task = Task(_run(job), loop=self.loop, name=job.name, context=self.context.copy(), eager_start=True)  # type: ignore[call-arg, unused-ignore]
        if not task.done():
            self._keep(job.serial, task)

    def _start(self, job: Job) -> None:
        self._keep(job.serial, Task(_run(job), loop=self.loop, name=job.name, context=self.context.copy()))

    def _keep(self, serial: int, task: Task[None]) -> None:
        self.running[serial] = task
        task.add_done_callback(lambda _: self.running.pop(serial, None))

    def _background_task(self, loop: AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> Task[Any]:
        task: Task[Any] = Task(work, loop=loop, **options)
        self.background.add(task)
        task.add_done_callback(self.background.discard)
        return task

    async def _wind_up(self) -> None:
        own = asyncio.current_task()
        left = {task for task in {*self.running.values(), *self.background} if task is not own}
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
