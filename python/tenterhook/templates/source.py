"""The text of an argument template: what can be read, and whether there is anything to render in it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jsone.render import operators

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "NESTING",
    "OPERATORS",
    "PLACEHOLDER",
    "TEMPLATE_SIZE",
    "TemplateError",
    "has_constructs",
    "has_template",
    "is_template",
    "parts",
    "read",
    "read_json",
]

#: Bytes of a template: json-e copies the rest of a text at each of its tokens, so work grows with the square.
TEMPLATE_SIZE = 256 * 1024

#: Lists and objects within each other: json-e recurses, and the engine's JSON reader stops at 128.
NESTING = 100

OPERATORS = frozenset(operators)

#: ``${`` begins an expression, ``$${`` stands for the text ``${``.
PLACEHOLDER = re.compile(r"\$?\$\{")

# A string that does not end goes on to the end of the text: so the search stays linear.
_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)


class TemplateError(ValueError):
    """A template cannot be read or rendered. The message has no value of the context in it."""


def read(text: str) -> Any:
    """The template that ``text`` holds, within the limits of this module."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise TemplateError("arguments are not valid Unicode") from None
    if size > TEMPLATE_SIZE:
        raise TemplateError(f"arguments have more than {TEMPLATE_SIZE // 1024} KiB")
    if _nesting(text) > NESTING:
        raise TemplateError(f"arguments are nested more than {NESTING} levels deep")
    try:
        template = read_json(text)
        json.dumps(template, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise TemplateError(f"arguments are not JSON (line {error.lineno}, column {error.colno})") from None
    except UnicodeEncodeError:
        raise TemplateError("arguments are not valid Unicode") from None
    except RecursionError:
        raise TemplateError("arguments are nested too deeply") from None
    except ValueError:
        raise TemplateError("arguments have a number that cannot be read") from None
    return template


def read_json(text: str) -> Any:
    """As :func:`json.loads`, without ``NaN`` and ``Infinity``."""
    return _DECODER.decode(text)


def has_template(arguments_json: str) -> bool:
    """Whether the arguments depend on the conversation: a placeholder or an operator is anywhere in them."""
    return any(is_template(part) for part in parts(read(arguments_json)))


def has_constructs(template: Any) -> bool:
    """Whether rendering could change anything: as :func:`has_template`, and for escapes too."""
    return any(
        is_template(part)
        or (isinstance(part, str) and "${" in part)
        or (isinstance(part, dict) and any(key.startswith("$$") or "${" in key for key in part))
        for part in parts(template)
    )


def is_template(part: Any) -> bool:
    """Whether a text, or an object apart from its values, is to be evaluated."""
    if isinstance(part, str):
        return any(found.group() == "${" for found in PLACEHOLDER.finditer(part))
    if isinstance(part, dict):
        return not OPERATORS.isdisjoint(part) or any(is_template(key) for key in part if not key.startswith("$$"))
    return False


def parts(template: Any) -> Iterator[Any]:
    """Everything in ``template``, itself included; of objects the values, not the keys."""
    waiting = [template]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _nesting(text: str) -> int:
    """How deep lists and objects lie in each other: counted before a parser that recurses sees the text."""
    depth = deepest = 0
    for mark in _MARKS.finditer(text):
        if mark.group() in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark.group() in "]}":
            depth -= 1
    return deepest


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


#: Made once: it costs as much as reading a short template does.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
