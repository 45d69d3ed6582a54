"""What handlers can do wrong, by name. `KINDS` is read by the test that plays them."""

import asyncio
import contextlib
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

#: A handler that gives this gives nothing; one that gives nothing gives its payload.
NOTHING = object()


class Hostile(Exception):
    def __str__(self) -> str:
        raise ValueError


def spin() -> None:
    while True:
        pass


async def do_sleep(payload):
    time.sleep(0.15)


async def do_sleep_long(payload):
    time.sleep(0.6)


async def do_spin(payload):
    spin()


async def do_spin_later(payload):
    await asyncio.sleep(0.002)
    spin()


async def do_spin_in_a_task(payload):
    async def child() -> None:
        spin()

    await asyncio.create_task(child())


async def do_swallow_once(payload):
    with contextlib.suppress(BaseException):
        spin()


async def do_swallow_the_cancellation(payload):
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        await asyncio.sleep(0.1)


async def do_await_too_long(payload):
    await asyncio.sleep(1)


async def do_exit(payload):
    sys.exit(1)


async def do_interrupt(payload):
    raise KeyboardInterrupt


async def do_cancel_itself(payload):
    raise asyncio.CancelledError


async def do_stop_the_loop(payload):
    asyncio.get_running_loop().stop()


async def do_exit_in_a_callback(payload):
    asyncio.get_running_loop().call_soon(sys.exit)


async def do_exit_in_a_thread(payload):
    threading.Thread(target=sys.exit).start()


async def do_raise(payload):
    raise LookupError("bad")


async def do_raise_hostile(payload):
    raise Hostile


async def do_give_nothing(payload):
    return NOTHING


async def do_give_a_cycle(payload):
    loop: list = []
    loop.append(loop)
    return payload.model_copy(update={"arguments": {"loop": loop}})


async def do_hold_the_lock_in_c(payload):
    sum(range(2_000_000))


async def do_block_an_executor(payload):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 0.15).result()


KINDS = {name[3:]: function for name, function in list(globals().items()) if name.startswith("do_")}
