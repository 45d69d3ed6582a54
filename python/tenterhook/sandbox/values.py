"""Values on their way over the border: as the text of JSON, within bounds."""

from __future__ import annotations

import asyncio
import datetime
import json
import re
from typing import Any

__all__ = ["NotJson", "crossed", "gave", "read", "shown", "text"]

#: How deep values may be nested. One level more than the reader of the other side takes would be refused there, in other words.
DEEPEST = 120

#: How many values one value may hold, itself and keys left out.
MOST = 1_000_000

#: Values that are taken on the thread of all sessions; that takes some milliseconds.
AT_ONCE = 5_000

#: How long the text of one value may become, in characters.
LONGEST = 16 << 20

#: The largest whole number, and the smallest, that the other side takes.
INTEGERS = range(-(1 << 63), 1 << 64)

#: How functions, classes, modules and the like come out of the sandbox: as texts.
_SHOWN = re.compile(
    r"<function '[^']*' at 0x[0-9a-f]+>|<class '[^']*'>|<module '[^']*'>|<bound method>|<gather\(\d+\)>"
    r"|<coroutine (?:object \w+|external_future\(\d+\))>|<\w+_iterator object>|<re\.Match object; .*>",
    re.DOTALL,
)


class NotJson(TypeError):
    """A value, or something in it, that JSON has no word for."""


async def crossed(value: object, where: str) -> str:
    """As `text`; what is large is taken on a thread of its own, so that other sessions go on."""
    try:
        return _write(_Taking(where, most=AT_ONCE), value)
    except _Large:
        return await asyncio.to_thread(text, value, where)


def text(value: object, where: str = "it") -> str:
    """The text of a value.

    Tuples, sets and frozen sets become lists (sets in order where they have one), dates and times their ISO text, dataclasses their fields,
    ``True``, ``None`` and numbers as keys their texts; a container within itself comes as the text ``[...]`` or ``{...}``.

    Raises:
        NotJson: It holds something else, ``NaN`` or an infinity, a whole number beyond 64 bits; or is too deep or too large.

    """
    return _write(_Taking(where), value)


def _write(taking: _Taking, value: object) -> str:
    return json.dumps(taking.take(value, 0), ensure_ascii=False, allow_nan=False)


async def gave(value: object) -> str:
    """As `shown`; what is large is taken on a thread of its own."""
    try:
        return _write(_Taking("it", lenient=True, most=AT_ONCE), value)
    except (_Large, NotJson):
        return await asyncio.to_thread(shown, value)


def shown(value: object) -> str:
    """As `text`, for what code has given at its end: what JSON has no word for is there as a text that shows it."""
    try:
        return _write(_Taking("it", lenient=True), value)
    except NotJson as refusal:
        return json.dumps(f"<a value that cannot be shown: {refusal}>")


def read(value: str) -> Any:
    """The value of a text that this module has made, or the other side."""
    return json.loads(value)


class _Large(Exception):
    """More values, or more text, than are taken at once."""


class _Taking:
    def __init__(self, where: str, *, lenient: bool = False, most: int = MOST) -> None:
        self.where = where
        self.lenient = lenient
        self.most = most
        self.values = 0
        self.length = 0
        self.deepest = 0
        #: Containers that have been taken: what they became, and how many values, characters and levels that was.
        self.known: dict[int, tuple[Any, int, int, int]] = {}

    def take(self, value: Any, depth: int) -> Any:
        self._count(1)
        if depth > DEEPEST:
            raise NotJson(f"{self.where} is nested deeper than {DEEPEST} levels")
        self.deepest = max(self.deepest, depth)
        kind = type(value)
        if kind is str:
            return self._text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if value in INTEGERS else self._refuse(value, "a whole number beyond 64 bits")
        if kind is float:
            return value if value - value == 0 else self._refuse(value, f"the number {value}")
        known = self.known.get(id(value))
        if known is not None:
            return self._again(known, depth)
        return self._container(value, depth)

    def _container(self, value: Any, depth: int) -> Any:
        values, length, outer, self.deepest = self.values, self.length, self.deepest, depth
        taken: Any
        if isinstance(value, (list, tuple)):
            taken = [self.take(part, depth + 1) for part in value]
        elif type(value) is dict:
            taken = {self._key(key): self.take(part, depth + 1) for key, part in value.items()}
        else:
            return self._other(value, depth)
        self.known[id(value)] = (taken, self.values - values, self.length - length, self.deepest - depth)
        self.deepest = max(self.deepest, outer)
        return taken

    def _again(self, known: tuple[Any, int, int, int], depth: int) -> Any:
        """What has been taken before. Who nests one list twice in each of sixty has made 2^60 values."""
        taken, values, length, height = known
        self._count(values)
        self._lengthen(length)
        if depth + height > DEEPEST:
            raise NotJson(f"{self.where} is nested deeper than {DEEPEST} levels")
        self.deepest = max(self.deepest, depth + height)
        return taken

    def _count(self, values: int) -> None:
        self.values += values
        if self.values > MOST:
            raise NotJson(f"{self.where} holds more than {MOST:,} values")
        if self.values > self.most:
            raise _Large

    def _lengthen(self, length: int) -> None:
        self.length += length
        if self.length > LONGEST:
            raise NotJson(f"{self.where} is longer than {LONGEST >> 20} MiB")

    def _other(self, value: Any, depth: int) -> Any:
        if isinstance(value, (set, frozenset)):
            try:
                parts = sorted(value)
            except TypeError:
                parts = list(value)
            return [self.take(part, depth + 1) for part in parts]
        if isinstance(value, (datetime.date, datetime.time)):
            return value.isoformat()
        if getattr(value, "is_dataclass", False) is True:
            return self.take(dict(value.attributes), depth)
        return self._refuse(value, f"a value of type `{_kind(value)}`")

    def _text(self, value: str) -> str:
        self._lengthen(len(value))
        if value.startswith("<") and not self.lenient and len(value) < 1000 and _SHOWN.fullmatch(value):
            hint = ": await it first" if value.startswith(("<coroutine", "<gather")) else ""
            what = re.sub(r" at 0x[0-9a-f]+", "", value)
            raise NotJson(f"{self.where} holds `{what}`, which is no value of JSON{hint}")
        # Half of a surrogate pair is no text for anybody else.
        return value if value.isascii() else value.encode("utf-8", "replace").decode()

    def _key(self, key: object) -> str:
        if isinstance(key, str):
            return self._text(key)
        if key is None or isinstance(key, (bool, int, float)):
            return self._text(json.dumps(key))
        if self.lenient:
            return self._text(repr(key)[:200])
        raise NotJson(f"{self.where} has a key of type `{_kind(key)}`: use a text")

    def _refuse(self, value: object, what: str) -> str:
        if self.lenient:
            try:
                return repr(value)[:200]
            except ValueError:  # a whole number of more digits than Python writes
                return f"<{what}>"
        raise NotJson(f"{self.where} holds {what}, which is no value of JSON")


def _kind(value: object) -> str:
    """The type's name as the code knows it."""
    name = getattr(value, "name", None)
    return name if type(value).__name__.startswith("Monty") and isinstance(name, str) else type(value).__name__
