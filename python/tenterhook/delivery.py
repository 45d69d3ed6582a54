"""Answers of the engine on their way to futures of an asyncio loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tenterhook import _engine

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import AsyncGenerator, Callable

__all__ = ["events_of", "mailbox_of"]

_mailboxes: WeakKeyDictionary[AbstractEventLoop, _engine.Mailbox] = WeakKeyDictionary()


def mailbox_of(loop: AbstractEventLoop) -> _engine.Mailbox:
    """Where answers for the futures of ``loop`` arrive."""
    mailbox = _mailboxes.get(loop)
    if mailbox is None:
        mailbox = _engine.Mailbox()
        loop.add_reader(mailbox.fileno(), _deliver, mailbox)
        _mailboxes[loop] = mailbox
    return mailbox


async def events_of(begin: Callable[[], _engine.Turn | _engine.Lifecycle]) -> AsyncGenerator[dict[str, Any], None]:
    """The events of a turn, a request, an execution or a lifecycle, which begins with the first that is asked for; to stop iterating ends it."""
    loop = asyncio.get_running_loop()
    source = begin()
    try:
        while True:
            future: asyncio.Future[dict[str, Any] | None] = loop.create_future()
            source.next(mailbox_of(loop), future)
            event = await future
            if event is None:
                return
            yield event
    finally:
        source.close()


def _deliver(mailbox: _engine.Mailbox) -> None:
    for future, result, raised in mailbox.take():
        if future.done():
            continue
        if raised:
            future.set_exception(result)
        else:
            future.set_result(result)
