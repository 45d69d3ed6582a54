"""Values on their way over the border: as the text of JSON, within bounds."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

__all__ = ["NotJson", "read", "shown", "text"]

#: How deep values may be nested. One level more than the reader of the other side takes would be refused there, in other words.
DEEPEST = 120

#: How many values one value may hold, itself and keys left out.
MOST = 1_000_000

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


def text(value: object, where: str = "it") -> str:
    """The text of a value.

    Tuples, sets and frozen sets become lists (sets in order where they have one), dates and times their ISO text, dataclasses their fields,
    ``True``, ``None`` and numbers as keys their texts; a container within itself comes as the text ``[...]`` or ``{...}``.

    Raises:
        NotJson: It holds something else, ``NaN`` or an infinity, a whole number beyond 64 bits; or is too deep or too large.

    """
    return json.dumps(_Taking(where, lenient=False).take(value, 0), ensure_ascii=False, allow_nan=False)


def shown(value: object) -> str:
    """As `text`, for what code has given at its end: what JSON has no word for is there as a text that shows it."""
    try:
        taken = _Taking("it", lenient=True).take(value, 0)
        return json.dumps(taken, ensure_ascii=False, allow_nan=False)
    except NotJson as refusal:
        return json.dumps(f"<a value that cannot be shown: {refusal}>")


def read(value: str) -> Any:
    """The value of a text that this module has made, or the other side."""
    return json.loads(value)


class _Taking:
    def __init__(self, where: str, *, lenient: bool) -> None:
        self.where = where
        self.lenient = lenient
        self.values = 0
        self.length = 0

    def take(self, value: Any, depth: int) -> Any:
        self.values += 1
        if self.values > MOST:
            raise NotJson(f"{self.where} holds more than {MOST:,} values")
        if depth > DEEPEST:
            raise NotJson(f"{self.where} is nested deeper than {DEEPEST} levels")
        kind = type(value)
        if kind is str:
            return self._text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if value in INTEGERS else self._refuse(value, "a whole number beyond 64 bits")
        if kind is float:
            return value if value - value == 0 else self._refuse(value, f"the number {value}")
        if isinstance(value, (list, tuple)):
            return [self.take(part, depth + 1) for part in value]
        if kind is dict:
            return {self._key(key): self.take(part, depth + 1) for key, part in value.items()}
        return self._other(value, depth)

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
        self.length += len(value)
        if self.length > LONGEST:
            raise NotJson(f"{self.where} is longer than {LONGEST >> 20} MiB")
        if value.startswith("<") and not self.lenient and len(value) < 1000 and _SHOWN.fullmatch(value):
            hint = ": await it first" if value.startswith(("<coroutine", "<gather")) else ""
            raise NotJson(f"{self.where} holds `{value}`, which is no value of JSON{hint}")
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
