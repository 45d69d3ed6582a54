"""What generated code says otherwise than the sandbox's Python understands, and which names it sets."""

from __future__ import annotations

import ast

from .sites import Sites

__all__ = ["assigned", "without_tasks"]

#: What wraps a coroutine into a task; a call that has begun runs without that.
WRAPPERS = frozenset({"create_task", "ensure_future"})


def without_tasks(source: str, tree: ast.Module | None) -> str:
    """The source with ``asyncio.create_task(call)`` as ``(call)``: the sandbox has no tasks, and a call of a tool runs from its start.

    Every line and column stays where it is.
    """
    if tree is None or not any(name in source for name in WRAPPERS):
        return source
    text, sites = bytearray(source.encode("utf-8", "replace")), Sites(source, None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _wraps(node.func) and len(node.args) == 1:
            if isinstance(node.args[0], ast.Starred):
                continue
            (start, end), (first, last) = sites.span(node), sites.span(node.args[0])
            if text[start : start + 1].isalpha():
                _blank(text, start, first)
                _blank(text, last, end)
                text[start], text[end - 1] = ord("("), ord(")")
        elif isinstance(node, ast.ImportFrom) and node.module == "asyncio":
            for alias in node.names:
                if alias.name in WRAPPERS:
                    start = sites.lines[alias.lineno - 1] + alias.col_offset
                    _blank(text, start, start + len(alias.name))
                    text[start : start + 5] = b"sleep"
    return text.decode("utf-8", "replace")


def _wraps(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in WRAPPERS and isinstance(function.value, ast.Name) and function.value.id == "asyncio"
    return isinstance(function, ast.Name) and function.id in WRAPPERS


def _blank(text: bytearray, start: int, end: int) -> None:
    for at in range(start, end):
        if text[at] not in b"\r\n":
            text[at] = ord(" ")


def assigned(tree: ast.Module | None) -> list[str]:
    """The names that code sets at its top level, in the order of the source."""
    found: dict[str, None] = {}
    left: list[ast.AST] = [] if tree is None else list(reversed(tree.body))
    while left:
        node = left.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        elif isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
            found[node.target.id] = None
        elif isinstance(node, ast.ExceptHandler):
            # Its name is gone behind it.
            left.extend(reversed(node.body))
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            inner = [part for part in ast.walk(node) if isinstance(part, ast.Global)]
            found.update((name, None) for part in inner for name in part.names)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            walrus = [part.target for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]
            found.update((target.id, None) for target in walrus)
        else:
            left.extend(reversed(list(ast.iter_child_nodes(node))))
    return list(found)
