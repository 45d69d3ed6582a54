"""Expressions of argument templates: their syntax by json-e's parser, their names and fields by what a hook is given."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from jsone import AST, builtins
from jsone.parser import Parser
from jsone.render import tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = [
    "BRACKETS",
    "CONTEXTS",
    "DEPTH",
    "EXPRESSION_SIZE",
    "OPERATIONS",
    "TOKENS",
    "BadExpressionError",
    "Expressions",
    "Record",
    "cut",
    "extent",
    "nearest",
    "tokens_of",
]

#: Characters of one expression; nobody reads a longer one.
EXPRESSION_SIZE = 8 * 1024

#: Tokens in all expressions of a template: each costs json-e a copy of what is left of the text.
TOKENS = 10_000

#: Brackets within each other in an expression: json-e's parser takes ten frames for each, of the thousand that Python has.
BRACKETS = 50

#: Operators, calls and accesses of one expression. Each can make the tree higher, and freeing a tree of some thousands can
#: exhaust a thread's stack in Python 3.13.
OPERATIONS = 500

#: Height of an expression's syntax tree, such as terms of a sum: the interpreter takes three frames for each.
DEPTH = 100

_FLAT = frozenset([",", ":", ")", "]", "}", "number", "identifier", "string", "true", "false", "null"])
_SHOWN = 80


class BadExpressionError(Exception):
    """The syntax is wrong; the text says how."""


@dataclass(frozen=True, slots=True)
class Record:
    """An object whose fields are known."""

    name: str
    fields: Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose elements are known."""

    element: Shape


#: What a value is known to be: a scalar by its name; ``None``: anything, the walk ends there.
Shape: TypeAlias = "Record | ListOf | str | None"

_CALL = Record("HookToolCall", {"id": "string", "name": "string", "arguments": None})
_MESSAGE = Record(
    "HookMessage",
    {"role": "string", "content": "string", "tool_calls": ListOf(_CALL), "tool_call_id": "string"},
)
_BOTH: dict[str, Shape] = {
    "event": "string",
    "messages": ListOf(_MESSAGE),
    "last_user_message": _MESSAGE,
    "last_assistant_message": _MESSAGE,
}
_COUNTERS: dict[str, Shape] = {"iteration_count": "number", "total_tool_calls": "number"}

#: What a hook is given, by its event.
CONTEXTS = {
    "on_request_start": Record("RequestStartHookContext", _BOTH),
    "on_completion": Record("CompletionHookContext", {**_BOTH, **_COUNTERS}),
}

_FUNCTIONS = frozenset(builtins.build()) | {"now"}


class Expressions:
    """Checks the expressions of one template, one after another."""

    def __init__(
        self, context: Record, bound: frozenset[str] | None, complain: Callable[[str, str | None], None]
    ) -> None:
        self._context = context
        #: Names that the template binds itself, of which nothing more is known; ``None``: not even the names.
        self._bound = bound
        self._complain = complain
        self._tokens = self._depth = 0

    def check(self, source: str) -> None:
        """Complains about each unknown name and field; raises :class:`BadExpressionError` for a wrong syntax."""
        if self._tokens > TOKENS:
            return
        self._tokens += extent(source, is_placeholder=False)[1]
        if self._tokens > TOKENS:
            raise BadExpressionError(f"with it, the expressions of all arguments exceed {TOKENS} tokens")
        self._depth = 0
        self._shape(_parsed(source))

    def _shape(self, node: Any) -> Shape:
        """What the value of ``node`` is known to be."""
        self._depth += 1
        if self._depth > DEPTH:
            raise BadExpressionError(f"it is nested more than {DEPTH} levels deep")
        shape: Shape = None
        match node:
            case None:  # json-e's parser leaves a hole where an operand is missing
                raise BadExpressionError("an operand is missing")
            case AST.ContextValue():
                shape = self._root(node.token.value)
            case AST.BinOp() if node.token.kind == ".":
                shape = self._field(self._shape(node.left), node.right.token.value)
            case AST.ValueAccess():
                shape = self._element(node)
            case _:
                for inner in _operands(node):
                    self._shape(inner)
        self._depth -= 1
        return shape

    def _root(self, name: str) -> Shape:
        if self._bound is None or name in self._bound:
            return None
        if name in self._context.fields:
            return self._context.fields[name]
        if name not in _FUNCTIONS:
            self._unknown(name, self._context, (*_FUNCTIONS, *self._bound))
        return None

    def _field(self, owner: Shape, name: str) -> Shape:
        if isinstance(owner, Record):
            if name in owner.fields:
                return owner.fields[name]
            self._unknown(name, owner)
        elif owner is not None:
            hint = "take one element first, as in 'messages[0].content'" if isinstance(owner, ListOf) else None
            self._complain(f"cannot read field '{cut(name)}' of {_name(owner)}", hint)
        return None

    def _element(self, node: Any) -> Shape:
        owner = self._shape(node.arr)
        for bound in (node.left, node.right):
            if bound is not None:
                self._shape(bound)
        key = _literal(node.left)
        if owner is None:
            return None
        if owner == "number" or (node.isInterval and isinstance(owner, Record)):
            self._complain(f"cannot take {'a part' if node.isInterval else 'an element'} of {_name(owner)}", None)
        elif node.isInterval:
            return owner
        elif isinstance(key, str):
            return self._field(owner, key)
        elif isinstance(owner, ListOf) and key is not None:
            return owner.element
        elif isinstance(owner, Record) and key is not None:
            self._complain(f"cannot take an element of {_name(owner)}", "fields are read by their names")
        return None

    def _unknown(self, name: str, owner: Record, more: Iterable[str] = ()) -> None:
        if owner is self._context and name in _COUNTERS:
            hint: str | None = f"'{name}' exists on 'on_completion' only"
        else:
            hint = nearest(name, (*owner.fields, *more))
        self._complain(f"unknown field '{cut(name)}' on {owner.name}; known: {', '.join(owner.fields)}", hint)


def tokens_of(source: str) -> Iterator[Any]:
    """The tokens of ``source``, until they would take a parser or an interpreter too deep."""
    brackets = operations = 0
    for token in tokenizer.generate_tokens(source):
        brackets += (token.kind in "([{") - (token.kind in ")]}")
        if brackets > BRACKETS:
            raise BadExpressionError(f"brackets are nested more than {BRACKETS} levels deep")
        operations += token.kind not in _FLAT
        if operations > OPERATIONS:
            raise BadExpressionError(f"there are more than {OPERATIONS} operations")
        yield token


def extent(source: str, *, is_placeholder: bool) -> tuple[int, int]:
    """The length of the expression that ``source`` begins with, and its tokens.

    A placeholder's ends before its ``}``, any other with the text. What would take a parser too deep is found here.
    """
    braces = count = end = 0
    try:
        for token in tokens_of(source[: EXPRESSION_SIZE + 1]):
            if is_placeholder and token.kind == "}" and not braces:
                return int(token.start), count
            braces += (token.kind == "{") - (token.kind == "}")
            count, end = count + 1, token.end
    except BadExpressionError:
        raise
    except Exception as error:  # the tokenizer's own; it is no part of json-e's interface
        unread = source[end : EXPRESSION_SIZE + 1].lstrip()
        # A text or an operator that the cut has divided is no error of its own.
        if len(source) <= EXPRESSION_SIZE or (unread[:1] not in "'\"" and len(unread) > 1):
            raise BadExpressionError(f"unexpected '{unread[:1]}'") from error
    if len(source) > EXPRESSION_SIZE:
        raise BadExpressionError(f"it has more than {EXPRESSION_SIZE} characters")
    if is_placeholder:
        raise BadExpressionError("it has no closing '}'")
    return len(source), count


def _parsed(source: str) -> Any:
    """The syntax tree of an expression."""
    if not source.strip():
        raise BadExpressionError("it is empty")
    parser = Parser(source, tokenizer)
    try:
        tree = parser.parse()
    except RecursionError:
        raise BadExpressionError("it is nested too deeply") from None
    except Exception as error:  # also `AttributeError`, where the text ends too early
        raise BadExpressionError(_unexpected(parser)) from error
    if parser.current_token is not None:
        raise BadExpressionError(_unexpected(parser))
    return tree


def _unexpected(parser: Any) -> str:
    token = parser.current_token
    return "unexpected end" if token is None else f"unexpected '{cut(token.value)}'"


def _operands(node: Any) -> list[Any]:
    match node:
        case AST.BinOp():
            return [node.left, node.right]
        case AST.UnaryOp():
            return [node.expr]
        case AST.FunctionCall():
            return [node.name, *node.args]
        case AST.List():
            return [] if node.list == [None] else list(node.list)
        case AST.Object():
            return list(node.obj.values())
    return []


def _literal(node: Any) -> int | str | None:
    """An index that is written out, any integer as 0; ``None``: it is known at run time only."""
    if isinstance(node, AST.UnaryOp) and node.token.kind in "+-":
        node = node.expr
    kind = getattr(getattr(node, "token", None), "kind", None)
    if kind == "string":
        return str(node.token.value[1:-1])
    return 0 if kind == "number" and "." not in node.token.value else None


def _name(shape: Shape) -> str:
    return shape.name if isinstance(shape, Record) else "list" if isinstance(shape, ListOf) else str(shape)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A hint at the known name that ``name`` was probably meant to be."""
    near = difflib.get_close_matches(name[:_SHOWN], sorted(known), n=1)
    return f"did you mean '{near[0]}'?" if near else None


def cut(text: str) -> str:
    """As much of a text as a message shows."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
