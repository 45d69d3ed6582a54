"""Bounds of a rendering: what json-e itself would let grow as far as memory and time go.

What remains unbounded is loops in Python, which the caller interrupts at its time limit; no single step in C takes long or
takes much memory.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from jsone import AST, builtins, shared
from jsone.interpreter import Interpreter

from tenterhook.templates.expressions import DEPTH, BadExpressionError, tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "BUILTINS",
    "INTEGER_BITS",
    "METER",
    "RANGE",
    "RESULT_SIZE",
    "VALUE_NESTING",
    "VALUE_SIZE",
    "WORK",
    "BoundedInterpreter",
    "BoundedTokenizer",
    "Meter",
    "Refusal",
    "refuse_function",
]

#: Bytes of the rendered arguments as JSON: no tool takes more from a model either.
RESULT_SIZE = 1024 * 1024

#: Elements of a ``range``: more than the messages of any conversation.
RANGE = 10_000

#: Least length as JSON of a value on the way, beyond that of the context: comparing, sorting and joining are single steps.
VALUE_SIZE = RESULT_SIZE

#: Lists and objects within each other in a value: the engine's JSON reader stops at 128.
VALUE_NESTING = 120

#: Characters of all texts that one rendering makes, an element of a list or an object counting as eight: what it may hold in
#: memory, a few bytes for each.
WORK = 32 * 1024 * 1024

#: Python writes integers of up to 4,300 digits; squaring in a loop would soon take minutes for a single step.
INTEGER_BITS = 14_000


class Refusal(shared.JSONTemplateError):  # type: ignore[misc]
    """An error of ours: the text holds no value, and json-e adds the location."""


class Meter:
    """Sizes of values, and how much one rendering has made so far.

    Values do not change once they are made, so each is measured once: values that share their parts, as a loop can make
    them, cost no more than what is in memory, however large they are as JSON.
    """

    __slots__ = ("_kept", "_known", "_left", "_limit", "_text")

    def __init__(self, given: int) -> None:
        """``given`` is the length of the context as JSON: its values are measured where they are used, most never are."""
        self._known: dict[int, tuple[int, int]] = {}
        #: What has been measured stays: an address in ``_known`` is not used again.
        self._kept: list[Any] = []
        self._text = 0
        self._limit = given + VALUE_SIZE
        self._left = WORK

    def size(self, value: Any) -> int:
        """The least length of ``value`` as JSON."""
        if isinstance(value, (list, dict)):
            return self._measure(value)[0]
        return _scalar_size(value)

    def _measure(self, value: list[Any] | dict[str, Any]) -> tuple[int, int]:
        """The size, and how many lists and objects lie in each other."""
        known = self._known.get(id(value))
        if known is None:
            self._spend(8 * len(value))
            size, depth = 1 + len(value), 0
            if isinstance(value, dict):
                size += sum(len(key) + 3 for key in value)
            for element in value.values() if isinstance(value, dict) else value:
                if isinstance(element, (list, dict)):
                    inner = self._measure(element)
                    size, depth = size + inner[0], max(depth, inner[1])
                else:
                    size += _scalar_size(element)
            if size > self._limit:
                raise Refusal("a value is too large")
            if depth >= VALUE_NESTING:
                raise Refusal(f"a value is nested more than {VALUE_NESTING} levels deep")
            known = self._known[id(value)] = size, depth + 1
            self._kept.append(value)
        return known

    def make_text(self, length: int) -> None:
        """A text of this length is about to be made."""
        if length > self._limit:
            raise Refusal("a text is too long")
        self._spend(length)

    def begin_text(self) -> None:
        """A text is about to be put together from parts."""
        self._text = 0

    def add_text(self, length: int) -> None:
        """A part of this length is about to be added to it."""
        self._text += length
        if self._text > self._limit:
            raise Refusal("a text is too long")
        self._spend(length)

    def _spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise Refusal("it makes too many values")


METER: ContextVar[Meter] = ContextVar("METER")


def _scalar_size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, int):
        if value.bit_length() > INTEGER_BITS:
            raise Refusal("a number is too large")
    elif isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        raise Refusal("the result is not a finite number")
    return 1


def refuse_function(_: Any) -> None:
    """Stands where only values of JSON may."""
    raise Refusal("a function is not a value")


class BoundedTokenizer:
    """Stops before the parser gets too deep; ``check`` does so too, but rendering does not rely on it."""

    def generate_tokens(self, source: str) -> Iterator[Any]:
        """The tokens of json-e's tokenizer, as the parser asks for them."""
        try:
            yield from tokens_of(source)
        except BadExpressionError as error:
            raise Refusal(str(error)) from None


class _Known:
    """A part of an expression that has been evaluated already."""

    def __init__(self, value: Any) -> None:
        self.value = value


class BoundedInterpreter(Interpreter):  # type: ignore[misc]
    """Looks at the operands of what can grow, before it does.

    There is one for each expression, and none is used again after an error.
    """

    _depth = 0

    def visit(self, node: Any) -> Any:
        """The value of ``node``; a host may have lifted Python's own limit of depth."""
        self._depth += 1
        if self._depth > DEPTH:
            raise Refusal(f"an expression is nested more than {DEPTH} levels deep")
        value = getattr(self, f"visit_{type(node).__name__}")(node)
        self._depth -= 1
        return value

    def visit__Known(self, node: _Known) -> Any:  # noqa: N802
        """A part that is not to be evaluated again."""
        return node.value

    def visit_BinOp(self, node: Any) -> Any:  # noqa: N802
        """Texts that are added, integers that are multiplied or raised to a power."""
        kind = node.token.kind
        if kind not in ("+", "*", "**"):
            return super().visit_BinOp(node)
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(left, str) and isinstance(right, str):
            METER.get().make_text(len(left) + len(right))
        elif isinstance(left, int) and isinstance(right, int):
            # The tree of a power has its base on the right.
            bits = left * right.bit_length() if kind == "**" else left.bit_length() + right.bit_length()
            if bits > INTEGER_BITS and not (kind == "**" and abs(right) <= 1):
                raise Refusal("a number is too large")
        result = super().visit_BinOp(AST.BinOp(node.token, _Known(left), _Known(right)))
        _scalar_size(result)
        return result

    def visit_UnaryOp(self, node: Any) -> Any:  # noqa: N802
        """json-e evaluates the operand of ``!`` twice, that of ``!!!!`` sixteen times."""
        return not self.visit(node.expr) if node.token.kind == "!" else super().visit_UnaryOp(node)

    def visit_List(self, node: Any) -> Any:  # noqa: N802
        """A list that is written out."""
        return _made(super().visit_List(node))

    def visit_Object(self, node: Any) -> Any:  # noqa: N802
        """An object that is written out."""
        return _made(super().visit_Object(node))

    def visit_ValueAccess(self, node: Any) -> Any:  # noqa: N802
        """A part of a list or a text is a copy."""
        value = super().visit_ValueAccess(node)
        return _made(value) if node.isInterval else value

    def visit_FunctionCall(self, node: Any) -> Any:  # noqa: N802
        """A call of a built-in; json-e's message would show what else is called."""
        function = self.visit(node.name)
        if not callable(function):
            raise Refusal("what is called is not a function")
        return function(self.context, *(self.visit(argument) for argument in node.args))


def _made(value: Any) -> Any:
    if isinstance(value, str):
        METER.get().make_text(len(value))
    else:
        METER.get().size(value)
    return value


def _before_range(start: Any, stop: Any, step: Any = 1) -> None:
    if all(isinstance(number, int) for number in (start, stop, step)) and step and -((start - stop) // step) > RANGE:
        raise Refusal(f"'range' of more than {RANGE} elements")


def _before_split(text: Any, separator: Any = "") -> None:
    if isinstance(text, str) and isinstance(separator, (str, int, float)):
        # A part takes some fifty bytes.
        METER.get().make_text(8 * (text.count(shared.to_str(separator)) if separator else len(text)))


def _before_join(elements: Any, separator: Any) -> None:
    if isinstance(elements, list) and isinstance(separator, (str, int, float)):
        METER.get().make_text(METER.get().size(elements) + len(elements) * len(str(separator)))


_BEFORE: dict[str, Callable[..., None]] = {"join": _before_join, "range": _before_range, "split": _before_split}


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    before = _BEFORE.get(name)

    def call(context: Any, *arguments: Any) -> Any:
        if before is not None:
            before(*arguments)
        return _made(function(context, *arguments))

    return call


BUILTINS = {name: _bounded(name, function) for name, function in builtins.build().items()}
