"""Which calls of generated code want a coroutine, and which the value itself.

A tool may be called both ways: ``x = tool(1)`` and ``x = await tool(1)``. What such a call is to give is not known when it is made, so it is
read off the source: a coroutine where the call is awaited, or gathered, at once or by way of names, lists, comprehensions and functions; a value
everywhere else. Names are not told apart by scope: generated code is short, and a name that is awaited anywhere counts as one that is awaited.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator

__all__ = ["MOST_READ", "Sites", "parse"]

#: The largest source that is parsed here, in bytes; what is larger is judged by the text before a call.
MOST_READ = 1 << 20

#: How deep brackets may be nested in what is parsed here.
DEEPEST = 150

#: What takes coroutines, by the last part of the name.
TAKERS = frozenset({"gather", "create_task", "ensure_future", "wait_for", "wait", "as_completed", "shield", "run"})

#: Methods that put what they are given into what they are called on.
KEEPERS = frozenset({"append", "add", "insert", "extend", "update", "setdefault"})

#: In the place of a file's name; it tells warnings of generated code from those of the program.
NAME = "<generated code>"

_AWAITED = re.compile(rb"\bawait[\s(]*\Z")
_LINES = re.compile(rb"\r\n?|\n")


def parse(source: str) -> ast.Module | None:
    """The tree of a source, or ``None`` where this interpreter cannot read it; never raises, whatever the source is."""
    if len(source) > MOST_READ or _nested(source) > DEEPEST:
        return None
    try:
        # A dubious escape sequence is the model's affair, not something to be printed here.
        warnings.filterwarnings("ignore", module=re.escape(NAME))
        return ast.parse(source, NAME)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def _nested(source: str) -> int:
    """How deep brackets are nested, those in texts and comments included."""
    deepest = depth = 0
    for found in re.finditer(r"[(\[{]|[)\]}]", source):
        depth += 1 if found.group() in "([{" else -1
        deepest = max(deepest, depth)
    return deepest


class Sites:
    """The calls of one source."""

    def __init__(self, source: str, tree: ast.Module | None) -> None:
        self.source = source.encode("utf-8", "replace")
        self.lines = [0, *(found.end() for found in _LINES.finditer(self.source))]
        nodes = [] if tree is None else list(ast.walk(tree))
        self.wanted = self._read(nodes)

    def line(self, start: int) -> int:
        """The line of a byte, from 1."""
        return bisect_right(self.lines, start)

    def wants_coroutine(self, start: int, end: int) -> bool:
        """Whether the call at these bytes is to give a coroutine."""
        known = self.wanted.get((start, end))
        return _AWAITED.search(self.source[:start][-200:]) is not None if known is None else known

    def span(self, node: ast.expr) -> tuple[int, int]:
        """The bytes of an expression."""
        end = node.end_col_offset or 0
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[(node.end_lineno or 1) - 1] + end

    def _read(self, nodes: list[ast.AST]) -> dict[tuple[int, int], bool]:
        reading = _Reading(nodes)
        reading.follow()
        # In 3.11 what stands within an f-string has a made-up place: the text before the call is all there is.
        inside = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        calls = [node for node in nodes if isinstance(node, ast.Call) and node not in inside]
        return {self.span(call): call in reading.seen for call in calls}


class _Reading:
    """Follows what is awaited to the calls that it comes from."""

    def __init__(self, nodes: list[ast.AST]) -> None:
        #: What a name is bound to, where a coroutine may come by it: values, and what is put into it.
        self.bound: dict[str, list[ast.expr]] = {}
        #: The functions of a name.
        self.functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]] = {}
        #: Functions, and at which place, that have a parameter of that name.
        self.parameters: dict[str, list[tuple[str, int]]] = {}
        self.calls: dict[str, list[ast.Call]] = {}
        self.seen: set[ast.expr] = set()
        self.names: set[str] = set()
        self.left: list[ast.expr] = []
        for node in nodes:
            self._note(node)

    def follow(self) -> None:
        """Goes on until nothing more is found."""
        while self.left:
            node = self.left.pop()
            if node in self.seen:
                continue
            self.seen.add(node)
            if isinstance(node, ast.Name):
                self._follow_name(node.id)
            elif isinstance(node, ast.Call):
                self._follow_call(node)
            else:
                self.left.extend(_parts(node))

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Await):
            self.left.append(node.value)
        elif isinstance(node, ast.Call):
            name = _last(node.func)
            self.calls.setdefault(name, []).append(node)
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if name in TAKERS:
                self.left.extend(given)
            elif name in KEEPERS and isinstance(node.func, ast.Attribute):
                self._bind(node.func.value, *given)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            if node.value is not None:
                self._bind(node.target, node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._bind(node.target, node.iter)
            if isinstance(node, ast.AsyncFor):
                self.left.append(node.iter)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._define(node.name, node)

    def _bind(self, target: ast.expr, *values: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.bound.setdefault(target.id, []).extend(values)
            for value in values:
                if isinstance(value, ast.Lambda):
                    self._define(target.id, value)
        elif isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
            self._bind(target.value, *values)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for value in values:
                parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
                each = parts if len(parts) == len(target.elts) else [value] * len(target.elts)
                for part, own in zip(target.elts, each, strict=True):
                    self._bind(part, own)

    def _define(self, name: str, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        self.functions.setdefault(name, []).append(function)
        for at, parameter in enumerate([*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]):
            self.parameters.setdefault(parameter.arg, []).append((name, at))

    def _follow_name(self, name: str) -> None:
        if name in self.names:
            return
        self.names.add(name)
        self.left.extend(self.bound.get(name, ()))
        for function, at in self.parameters.get(name, ()):
            for call in self.calls.get(function, ()):
                self.left.extend(call.args[at : at + 1])
                self.left.extend(keyword.value for keyword in call.keywords if keyword.arg == name)

    def _follow_call(self, call: ast.Call) -> None:
        """What a call gives is awaited: what its function gives, or what its object holds."""
        if isinstance(call.func, ast.Attribute):
            # `tasks.values()`, `tasks.pop()`.
            self.left.append(call.func.value)
            return
        name = _last(call.func)
        if name in {"list", "tuple", "set", "reversed", "sorted", "zip", "enumerate", "iter", "next", "dict"}:
            self.left.extend(call.args)
        for function in self.functions.get(name, ()):
            if isinstance(function, ast.Lambda):
                self.left.append(function.body)
            elif isinstance(function, ast.FunctionDef):
                # What an `async def` returns is what awaiting it gives, and no coroutine.
                self.left.extend(_returned(function))


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a function returns, those within it left out."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            left.extend(ast.iter_child_nodes(node))


def _parts(node: ast.expr) -> list[ast.expr]:
    """The expressions of which one is what an expression gives, or holds."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.BoolOp(values=parts):
            return parts
        case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.GeneratorExp(elt=part):
            return [part]
        case ast.DictComp(value=part) | ast.Starred(value=part) | ast.NamedExpr(value=part):
            return [part]
        case ast.Subscript(value=part) | ast.Attribute(value=part):
            return [part]
        case ast.Dict(values=parts):
            return parts
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return [one, other]
        case _:
            return []


def _last(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
