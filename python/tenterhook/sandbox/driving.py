"""One run of code: from each of its pauses to the next, until it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic_monty import AsyncFunctionSnapshot, AsyncFutureSnapshot, AsyncNameLookupSnapshot, MontyComplete

from . import failures, values

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .failures import Failure
    from .session import Session

__all__ = ["Drive"]

#: Seconds that code may go on for after it has been stopped, or has printed too much: what catches everything is killed then.
GRACE = 1.0

#: How often code that has been stopped may come back.
COMES_BACK = 100

#: Seconds beyond the time of the code after which a worker that does not answer is killed; the sandbox does so itself after one.
WATCH = 3.0

#: The longest sleep, in seconds.
LONGEST_SLEEP = 10.0

SLEEPS = frozenset({"time.sleep", "asyncio.sleep", "system.sleep", "system.async_sleep"})

STOP: Any = {"exc_type": "SystemExit", "message": "The code has been stopped"}


class Drive:
    """One run."""

    def __init__(self, session: Session, feed: str, functions: frozenset[str]) -> None:
        self.session = session
        self.feed = feed
        self.functions = functions
        self.loop = asyncio.get_running_loop()
        #: Why the code is being ended, whatever it does.
        self.ended: Failure | None = None
        #: Calls that have given a coroutine, and sleeps, by their numbers, until the code has their results.
        self.begun: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.names: dict[int, str] = {}
        self.printed = 0
        self.came_back = 0
        self.slept = 0.0
        self.over = False
        self.timer: asyncio.TimerHandle | None = None

    async def run(self, source: str, variables: dict[str, Any]) -> Any:
        """Runs a source; gives what it gives. Raises what the sandbox raises."""
        worker = self.session.worker
        self.pid = worker.worker_pid
        paused = await self._turn(worker.feed_start(source, inputs=variables, print_callback=self._print))
        while not isinstance(paused, MontyComplete):
            if self.ended is not None:
                self.came_back += 1
                if self.came_back > COMES_BACK:
                    self._kill()
            paused = await self._turn(await self._answered(paused))
        return paused.output

    def end(self) -> None:
        """The code has ended, one way or the other."""
        self.over = True
        if self.timer is not None:
            self.timer.cancel()

    async def left(self) -> list[str]:
        """Waits for calls that the code has begun and not waited for; gives their names."""
        for sleep in [number for number in self.begun if number not in self.names]:
            self.begun.pop(sleep).cancel()
        if self.begun:
            await asyncio.wait(self.begun.values())
        for number, answer in self.begun.items():
            self.session.open.pop(number, None)
            if answer.result().get("stop"):
                self._end(failures.Failure("stopped", "Stopped", "A call has stopped the code"))
        return [self.names[number] for number in self.begun]

    async def _turn(self, going: Awaitable[Any]) -> Any:
        """Lets the code run until its next pause."""
        watch = self.loop.call_later(self.session.limits["time"] + WATCH, self._took_too_long)
        try:
            return await going
        finally:
            watch.cancel()

    async def _answered(self, paused: Any) -> Awaitable[Any]:
        """What goes on from a pause."""
        if isinstance(paused, AsyncFutureSnapshot):
            return paused.resume(await self._settled(paused.pending_call_ids))
        if self.ended is not None:
            return paused.resume() if isinstance(paused, AsyncNameLookupSnapshot) else paused.resume(STOP)
        if isinstance(paused, AsyncNameLookupSnapshot):
            name = paused.variable_name
            return paused.resume(value=_named(name)) if name in self.functions else paused.resume()
        if paused.is_os_function or paused.function_name in SLEEPS:
            return await self._answered_system(paused)
        resumed: Awaitable[Any] = paused.resume(await self._called(paused))
        return resumed

    async def _called(self, paused: AsyncFunctionSnapshot) -> Any:
        """The answer to a call of a function."""
        session, name, number = self.session, paused.function_name, paused.call_id
        if name not in self.functions:
            return failures.exception("NameError", f"name '{name}' is not defined")
        if session.calls >= session.limits["calls"]:
            most = session.limits["calls"]
            self._end(failures.limit("calls", f"The code has called functions more than {most:,} times"))
            return STOP
        try:
            positional = [await values.crossed(value, f"argument {at}") for at, value in enumerate(paused.args, 1)]
            named = [(key, await values.crossed(value, f"`{key}`")) for key, value in paused.kwargs.items()]
        except values.NotJson as refusal:
            return failures.exception("TypeError", f"{name}(): {refusal}")
        session.calls += 1
        session.open[number] = answer = self.loop.create_future()
        sites = session.sites.get(paused.position.filename)
        start, end = paused.position.start, paused.position.end
        line = 0 if sites is None else sites.line(start)
        session.post.called(session.number, number, name, positional, named, line)
        if paused.allow_eager_await or (sites is not None and sites.wants_coroutine(start, end)):
            self.begun[number], self.names[number] = answer, name
            return {"future": ...}
        told = await answer
        session.open.pop(number, None)
        return self._result(told)

    async def _answered_system(self, paused: AsyncFunctionSnapshot) -> Awaitable[Any]:
        """What goes on from something that the code asks of the machine: time passes, and there is nothing else."""
        name = paused.function_name
        if name == "import":
            return paused.resume_not_handled()
        if name not in SLEEPS:
            missing = (
                f"`{name}` is not there: the sandbox reaches no files, no environment, no network and no processes"
            )
            return paused.resume(failures.exception("PermissionError", missing))
        length = float(paused.args[0]) if paused.args else 0.0
        if not 0 <= length <= LONGEST_SLEEP:
            refused = f"a sleep may take from 0 to {LONGEST_SLEEP:g} seconds, not {length:g}"
            return paused.resume(failures.exception("ValueError", refused))
        self.slept += length
        if self.slept > self.session.limits["time"]:
            self._end(failures.limit("time", f"The code has slept for more than {self.session.limits['time']:g} s"))
            return paused.resume(STOP)
        if "async" in name or name.startswith("asyncio"):
            sleep: asyncio.Future[dict[str, Any]] = asyncio.ensure_future(asyncio.sleep(length, {"value": "null"}))
            self.begun[paused.call_id] = sleep
            return paused.resume({"future": ...})
        await asyncio.sleep(length)
        return paused.resume({"return_value": None})

    async def _settled(self, pending: list[int]) -> dict[int, Any]:
        """The results of those futures that have some, once one has."""
        waiting = {number: self.begun[number] for number in pending if number in self.begun}
        if self.ended is not None:
            # Nobody hears of the others any more.
            return dict.fromkeys(pending, STOP)
        await asyncio.wait(waiting.values(), return_when=asyncio.FIRST_COMPLETED)
        done = {number: answer.result() for number, answer in waiting.items() if answer.done()}
        for number in done:
            self.begun.pop(number, None)
            self.session.open.pop(number, None)
        return {number: self._result(told) for number, told in done.items()}

    def _result(self, told: dict[str, Any]) -> Any:
        if told.get("stop"):
            self._end(failures.Failure("stopped", "Stopped", "A call has stopped the code"))
        if self.ended is not None:
            return STOP
        if "raise" in told:
            return failures.exception(*told["raise"])
        return {"return_value": values.read(told["value"])}

    def _print(self, stream: str, text: str) -> None:
        """Hears of output, on a thread of the sandbox's."""
        if self.over or (self.ended is not None and self.ended.kind == "stopped"):
            return
        most = self.session.limits["output"]
        size = len(text.encode("utf-8", "replace"))
        if self.printed + size > most:
            text = text.encode("utf-8", "replace")[: max(most - self.printed, 0)].decode("utf-8", "ignore")
            self.printed = most
            if text:
                self.session.post.printed(self.session.number, text)
            self.loop.call_soon_threadsafe(
                self._end, failures.limit("output", f"The code has printed more than {most:,} bytes")
            )
            # The sandbox ends the code at its next pause.
            raise OverflowError("too much output")
        self.printed += size
        self.session.post.printed(self.session.number, text)

    def _end(self, why: Failure) -> None:
        """Ends the code, whatever it catches; what goes on is killed after a while."""
        if self.ended is None:
            self.ended = why
            if not self.over:
                self.timer = self.loop.call_later(GRACE, self._kill)

    def _took_too_long(self) -> None:
        self._end(failures.too_long(self.session.limits))
        self._kill()

    def _kill(self) -> None:
        """Ends the worker."""
        if not self.over and self.pid is not None:
            self.over = True
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def _named(name: str) -> Callable[[], None]:
    """A function of that name: what the sandbox is given in its place."""

    def function() -> None:
        """Never called here."""

    function.__name__ = name
    return function
