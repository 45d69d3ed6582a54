"""A session: a worker process, and what the code of one execution has defined in it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, Protocol

import pydantic_monty
from pydantic_monty import MontyComplete

from . import failures, values
from .driving import Drive
from .rewriting import assigned, without_tasks
from .sites import Sites, parse

__all__ = ["Post", "Session"]

#: Variables that are told after a run, how many values each may hold, and the characters that all may take together, as the text of JSON.
#: What is larger stays in the session: to write it might take all the memory that the code has left.
VARIABLES, VALUES, LONGEST = 500, 100_000, 4 << 20

#: Sources up to that many bytes are read on the thread of all sessions.
SHORT = 8 << 10

#: Seconds that reading the variables may take.
READING = 5.0

#: Waits of the sandbox for the host that are no calls: names that are looked up, futures that are waited for.
OTHER_PAUSES = 1_000

#: What stands for no limit where the sandbox wants one, in seconds or pieces.
BOUNDLESS = 1_000_000_000

#: What reads a variable, defined before all code, so that names which that sets do not reach it: `type = "parcel"` is an everyday line.
PRELUDE = f"""\
import json as _tenterhook_json
def _tenterhook_write(
    found, room, name, value, type=type, len=len, str=str, list=list, tuple=tuple, dict=dict, dumps=_tenterhook_json.dumps
):
    values, length, left = {VALUES}, room[0], [value]
    while left:
        part = left.pop()
        kind = type(part)
        if kind is str:
            length = length - len(part)
        elif kind is list or kind is tuple or kind is dict:
            values = values - len(part)
            if values >= 0:
                left.extend(part)
                if kind is dict:
                    left.extend(part.values())
        if values < 0 or length < 0:
            return
    text = dumps(value, allow_nan=False)
    if room[0] >= len(text):
        room[0] = room[0] - len(text)
        found[name] = text
"""

READ = f"""\
def _tenterhook_read():
    found, room = {{{{}}}}, [{LONGEST}]
{{reads}}
    return found
_tenterhook_read()
"""

READ_ONE = """\
    try:
        _tenterhook_write(found, room, {name!r}, {name})
    except Exception:
        pass
"""


class Post(Protocol):
    """What a session tells the other side: `tenterhook._engine.SandboxPost`."""

    def called(
        self, session: int, call: int, name: str, positional: list[str], named: list[tuple[str, str]], line: int
    ) -> None:
        """The code calls a function."""

    def printed(self, session: int, text: str) -> None:
        """The code has printed something."""

    def opened(self, session: int, failure: str | None) -> None:
        """It is there, or why it is not."""

    def ended(self, session: int, outcome: str) -> None:
        """Code has ended."""

    def closed(self, session: int, why: str) -> None:
        """It is over."""


class Session:
    """One session; `run` is called once at a time."""

    def __init__(self, number: int, limits: dict[str, Any], post: Post) -> None:
        self.number = number
        self.limits = limits
        self.post = post
        #: Calls that the other side has not answered yet.
        self.open: dict[int, asyncio.Future[dict[str, Any]]] = {}
        #: The sources so far, by the names that places in them have.
        self.sites: dict[str, Sites] = {}
        self.feeds = 0
        self.calls = 0
        self.worker: Any = None

    def checkout(self, pool: pydantic_monty.AsyncMonty) -> Any:
        """A worker of the pool, to be entered."""
        self.worker = pool.checkout(
            limits={
                "max_feed_duration_secs": min(self.limits["time"], BOUNDLESS),
                "max_memory": min(self.limits["memory"], 1 << 40),
                "max_recursion_depth": min(self.limits["recursion"], BOUNDLESS),
                "max_suspensions": min(self.limits["calls"] * 3 + OTHER_PAUSES, BOUNDLESS),
            },
            os_policy={"datetime": "system", "timezone": "utc", "sleep": "call_host", "process_time": "zero"},
        )
        return self.worker

    async def begin(self) -> None:
        """Makes the worker ready for code."""
        await self.worker.feed_start(PRELUDE, print_callback=_silent)
        self.feeds = 1

    def answer(self, call: int, answer: str) -> None:
        """The other side answers a call: `value`, the text of a value; or `raise`, a type and a text; or `stop`."""
        future = self.open.get(call)
        if future is not None and not future.done():
            future.set_result(json.loads(answer))

    async def run(self, source: str, functions: list[str], variables: dict[str, Any]) -> dict[str, Any]:
        """Runs code: the outcome, without what the other side knows by itself."""
        size = len(source.encode("utf-8", "replace"))
        if size > self.limits["source"]:
            message = f"The code has {size:,} bytes; at most {self.limits['source']:,} are taken"
            return {"error": failures.limit("source", message).__dict__}
        # Others are not to wait for a source that takes long to read.
        ready = await asyncio.to_thread(_Ready, source) if size > SHORT else _Ready(source)
        feed = f"<python-input-{self.feeds}>"
        self.feeds += 1
        self.sites[feed] = ready.sites
        drive = Drive(self, feed, frozenset(functions))
        outcome: dict[str, Any] = {}
        try:
            value = await drive.run(ready.text, variables)
            outcome["value"] = await values.gave(value)
        except Exception as error:
            failure, ended = failures.described(error, feed, self.limits)
            outcome["session_ended"] = ended
            outcome["error"] = failure.__dict__
        finally:
            drive.end()
        outcome["unawaited"] = await drive.left()
        if drive.ended is not None:
            # Who was stopped has not forgotten to wait.
            outcome.update(error=drive.ended.__dict__, unawaited=[])
            outcome.pop("value", None)
        if not outcome.get("session_ended"):
            # Memory that is full stays full: nothing can be run any more.
            full = drive.ended is None and outcome.get("error", {}).get("name") == "memory"
            outcome["variables"], lives = await self._variables(ready.names) if ready.names or full else ({}, True)
            outcome["session_ended"] = not lives
        return outcome

    async def _variables(self, names: list[str]) -> tuple[dict[str, Any], bool]:
        """The values of the names that are JSON, and whether the session lives."""
        reads = "".join(READ_ONE.format(name=name) for name in names)
        self.feeds += 1
        try:
            async with asyncio.timeout(READING):
                paused = await self.worker.feed_start(READ.format(reads=reads), print_callback=_silent)
                while not isinstance(paused, MontyComplete):
                    # A name that is bound to nothing: nobody else is asked here.
                    paused = await (
                        paused.resume()
                        if hasattr(paused, "variable_name")
                        else paused.resume({"exc_type": "NameError"})
                    )
            texts = paused.output
        except (pydantic_monty.MontyError, TimeoutError, RuntimeError, TypeError, AttributeError):
            return {}, False
        found = {}
        for name, text in texts.items():
            with suppress(TypeError, ValueError, RecursionError):
                found[name] = json.loads(await values.crossed(values.read(text), name))
        return found, True


class _Ready:
    """A source, ready to be run."""

    def __init__(self, source: str) -> None:
        tree = parse(source)
        self.sites = Sites(source, tree)
        self.text = without_tasks(source, tree)
        self.names = assigned(tree)[-VARIABLES:]


def _silent(stream: str, text: str) -> None:
    """What is printed while variables are read is nobody's."""
