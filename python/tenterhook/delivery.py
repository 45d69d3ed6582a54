"""Answers of the engine on their way to futures of an asyncio loop."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tenterhook import _engine

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["mailbox_of"]

_mailboxes: WeakKeyDictionary[AbstractEventLoop, _engine.Mailbox] = WeakKeyDictionary()


def mailbox_of(loop: AbstractEventLoop) -> _engine.Mailbox:
    """Where answers for the futures of ``loop`` arrive."""
    mailbox = _mailboxes.get(loop)
    if mailbox is None:
        mailbox = _engine.Mailbox()
        loop.add_reader(mailbox.fileno(), _deliver, mailbox)
        _mailboxes[loop] = mailbox
    return mailbox


def _deliver(mailbox: _engine.Mailbox) -> None:
    for future, result, raised in mailbox.take():
        if future.done():
            continue
        if raised:
            future.set_exception(result)
        else:
            future.set_result(result)
