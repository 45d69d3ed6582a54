"""The Python side of the dispatch benchmark: the plain runner, and what the bridge from Rust needs."""

from __future__ import annotations

import asyncio
import importlib.util
import platform
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from rasa.mantle.hooks import CallInfo, ChannelInfo, ModelRequestPayload

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Callable

    Handler = Callable[[ModelRequestPayload], Awaitable[ModelRequestPayload]]

#: Seconds that a call may take: the default of a modify hook.
TIMEOUT = 0.5


def keep_from_uvloop() -> None:
    """Makes `import uvloop` fail from now on, in the engine too."""
    sys.modules["uvloop"] = None  # type: ignore[assignment]


def start_loop() -> AbstractEventLoop:
    """An event loop of the kind that the engine takes, running on a thread of its own."""
    try:
        import uvloop
    except ImportError:
        loop = asyncio.new_event_loop()
    else:
        loop = uvloop.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def about(loop: AbstractEventLoop) -> tuple[str, str]:
    """The interpreter's version and the kind of the loop."""
    return platform.python_version(), type(loop).__module__.partition(".")[0]


def handler_in(file: str) -> Handler:
    """The handler of a hook module."""
    spec = importlib.util.spec_from_file_location("measured_hooks", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Handler = module.handle
    return handler


def build(messages: list[dict[str, Any]]) -> ModelRequestPayload:
    """A payload without validation. All fields are given: looking defaults up costs ``model_construct`` twenty times more."""
    return ModelRequestPayload.model_construct(
        sender_id="bench",
        call=CallInfo(),
        channel=ChannelInfo(),
        messages=messages,
        model_settings={},
        tool_names=[],
        iteration=0,
    )


class Plain:
    """Calls one handler with copies of one payload, on a given loop."""

    def __init__(self, loop: AbstractEventLoop, handler: Handler, messages: list[dict[str, Any]]) -> None:
        self.loop = loop
        self.handler = handler
        self.payload = build(messages)

    def once(self) -> list[dict[str, Any]]:
        """What the handler makes of the messages."""

        async def call() -> ModelRequestPayload:
            return await asyncio.wait_for(self.handler(self.payload.model_copy(deep=True)), TIMEOUT)

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result().messages

    def measure(self, batches: int, at_once: int) -> float:
        """Seconds that ``batches`` batches take, each of ``at_once`` calls at a time; measured on the loop's thread."""
        work = self._one_by_one(batches) if at_once == 1 else self._gathered(batches, at_once)
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def _one_by_one(self, calls: int) -> float:
        handler, payload = self.handler, self.payload
        start = time.perf_counter()
        for _ in range(calls):
            await asyncio.wait_for(handler(payload.model_copy(deep=True)), TIMEOUT)
        return time.perf_counter() - start

    async def _gathered(self, batches: int, at_once: int) -> float:
        handler, payload = self.handler, self.payload
        start = time.perf_counter()
        for _ in range(batches):
            await asyncio.gather(
                *(asyncio.wait_for(handler(payload.model_copy(deep=True)), TIMEOUT) for _ in range(at_once))
            )
        return time.perf_counter() - start
