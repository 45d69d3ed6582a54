"""The thread that all sessions live on, with a loop and a pool of workers of its own."""

from __future__ import annotations

import asyncio
import atexit
import json
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty

    from tenterhook._engine import SandboxPost

    from .session import Session

__all__ = ["serve"]

#: Workers there may be; each is a process of a few MiB.
WORKERS = 256

#: Seconds that a session waits for a worker.
CHECKOUT = 30.0

#: Seconds that the end of the process waits for the workers' end, and then for the pool's own threads to have left the interpreter: one
#: that comes back to an interpreter that is being finalised aborts the process.
FINISH, QUIET = 2.0, 0.05

MISSING = "install it: pip install 'tenterhook[execute]'"


def serve(post: SandboxPost) -> None:
    """The life of the thread."""
    try:
        asyncio.run(_Serving(post).serve())
    except BaseException as error:  # somebody waits for the answer
        post.failed(f"{type(error).__name__}: {error}")
    else:
        post.failed("the interpreter ends")


class _Serving:
    def __init__(self, post: SandboxPost) -> None:
        self.post = post
        self.sessions: dict[int, _Living] = {}
        self.over = asyncio.Event()
        self.gone = threading.Event()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            import pydantic_monty
        except ImportError as error:
            # Nothing weaker takes its place; who installs it starts the process anew.
            self.post.missing(f"{MISSING} ({error})")
            return
        atexit.register(self._finish, loop)
        async with pydantic_monty.AsyncMonty(max_processes=WORKERS, checkout_timeout=CHECKOUT) as pool:
            loop.add_reader(self.post.fileno(), self._drain, pool)
            self._drain(pool)
            await self.over.wait()
            loop.remove_reader(self.post.fileno())
            living = [living.task for living in self.sessions.values()]
            for task in living:
                task.cancel()
            await asyncio.gather(*living, return_exceptions=True)
        self.gone.set()

    def _finish(self, loop: asyncio.AbstractEventLoop) -> None:
        """The process ends."""
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self.over.set)
        self.gone.wait(FINISH)
        time.sleep(QUIET)

    def _drain(self, pool: AsyncMonty) -> None:
        for kind, number, call, text in self.post.take():
            if kind == "open":
                self.sessions[number] = living = _Living(number, json.loads(text), self.post)
                living.task = asyncio.ensure_future(living.live(pool))
                living.task.add_done_callback(partial(self._forget, number))
            elif (session := self.sessions.get(number)) is not None:
                session.hear(kind, call, text)

    def _forget(self, number: int, _: asyncio.Task[None]) -> None:
        self.sessions.pop(number, None)


class _Living:
    """A session and its task."""

    task: asyncio.Task[None]

    def __init__(self, number: int, limits: dict[str, Any], post: SandboxPost) -> None:
        from .session import Session

        self.session: Session = Session(number, limits, post)
        self.orders: asyncio.Queue[str] = asyncio.Queue()

    def hear(self, kind: str, call: int, text: str) -> None:
        if kind == "answer":
            self.session.answer(call, text)
        elif kind == "run":
            self.orders.put_nowait(text)
        else:
            self.task.cancel()

    async def live(self, pool: AsyncMonty) -> None:
        session, post = self.session, self.session.post
        opened = False
        try:
            async with session.checkout(pool):
                await session.begin()
                opened = True
                post.opened(session.number, None)
                ended = False
                while not ended:
                    outcome = await session.run(**json.loads(await self.orders.get()))
                    ended = bool(outcome.get("session_ended"))
                    post.ended(session.number, json.dumps(outcome, ensure_ascii=False))
        except asyncio.CancelledError:
            post.closed(session.number, "The session has been closed")
        except BaseException as error:  # somebody waits for the answer
            told = f"{type(error).__name__}: {error}"
            if opened:
                post.closed(session.number, told)
            else:
                post.opened(session.number, told)
