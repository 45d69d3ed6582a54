"""Who may stop an execution, and how it hears of it."""

from __future__ import annotations

from typing import final
from weakref import WeakValueDictionary

from tenterhook import _engine

__all__ = ["Controller", "Signal", "controller_of"]


@final
class Signal:
    """Whether an execution has been asked to stop."""

    __slots__ = ("_native",)

    def __init__(self, native: _engine.Controller) -> None:
        self._native = native

    @property
    def aborted(self) -> bool:
        """Whether it has."""
        return self._native.reason() is not None

    @property
    def reason(self) -> str | None:
        """Why; ``None``: it has not."""
        return self._native.reason()

    def __repr__(self) -> str:
        return f"Signal(aborted={self.aborted}, reason={self.reason!r})"


@final
class Controller:
    """Requests that an execution be cancelled; every hook is given that of its execution.

    An abort undoes nothing: it is looked at after every hook and before every tool. It takes effect at once, from whatever thread.
    A caller may make one and pass it to :func:`tenterhook.execute` as ``signal``, also to several executions.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self) -> None:
        self._native = _engine.Controller()

    def abort(self, reason: str | None = None) -> None:
        """Requests cancellation; only the first reason counts."""
        if reason is not None and not isinstance(reason, str):
            raise TypeError(f"The reason of an abort is a text, not `{type(reason).__name__}`")
        self._native.abort(reason)

    @property
    def signal(self) -> Signal:
        """Whether cancellation has been requested, and why."""
        return Signal(self._native)

    def __repr__(self) -> str:
        return f"Controller(aborted={self.signal.aborted})"


#: The controllers that hooks have been given, by their numbers: all hooks of an execution are given the same object.
_known: WeakValueDictionary[int, Controller] = WeakValueDictionary()


def controller_of(number: int) -> Controller:
    """The controller of an execution that runs."""
    known = _known.get(number)
    if known is None:
        known = Controller.__new__(Controller)
        known._native = _engine.Controller.of(number) or _engine.Controller()
        _known[number] = known
    return known
