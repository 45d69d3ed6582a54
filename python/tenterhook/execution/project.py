"""Hooks of an execution in the modules of a folder: functions of their names, or an object `hooks`."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tenterhook.errors import ExecutionError
from tenterhook.execution.calling import found_hook
from tenterhook.execution.hooks import HOOKS, functions_of
from tenterhook.execution.places import FoundHook, nearest, place_of
from tenterhook.execution.tools import found_tool
from tenterhook.registration import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tenterhook.tooling import FoundTool

__all__ = ["execution_tool", "find_hooks"]

#: What an object of hooks is called in a module.
OBJECT = "hooks"


def find_hooks(root: Path, modules: Sequence[tuple[Path, ModuleType]]) -> tuple[list[FoundHook], list[Problem]]:
    """The hooks that ``modules`` (file relative to ``root``, module) hold, and what is wrong with them."""
    found: dict[str, FoundHook] = {}
    problems: list[Problem] = []
    for file, module in modules:
        held, wrong = _held(root / file, module)
        problems.extend(wrong)
        for name, function in held:
            line = place_of(function).line
            if name in found:
                message = f"The hook `{name}` is there twice: also in {found[name].file}"
                problems.append(Problem("duplicate-hook", message, "leave one of them", root / file, line))
                continue
            try:
                # By the path that people know: the name of a loaded module is private.
                found[name] = replace(found_hook(name, function), module=".".join(file.with_suffix("").parts))
            except ExecutionError as error:
                problems.append(_problem("invalid-hook", error, root / file, line))
    return list(found.values()), problems


def execution_tool(file: Path, module: str, function: Any, description: str) -> FoundTool | Problem:
    """A function with the mark of ``@tool``, as generated code calls it."""
    try:
        tool = found_tool(function)
    except ExecutionError as error:
        return _problem("invalid-tool", error, file, place_of(function).line)
    return replace(tool, module=module, file=file, description=description)


def _held(file: Path, module: ModuleType) -> tuple[list[tuple[str, Any]], list[Problem]]:
    held: list[tuple[str, Any]] = []
    problems: list[Problem] = []
    for name, value in list(vars(module).items()):
        if name in HOOKS and callable(value):
            held.append((name, value))
        elif re.match(r"on_[a-z]", name) and inspect.isfunction(value) and value.__module__ == module.__name__:
            message, line = f"`{name}` is no hook: nothing calls it", place_of(value).line
            problems.append(Problem("unknown-hook", message, nearest(name, HOOKS), file, line, "warning"))
    given = vars(module).get(OBJECT)
    if given is not None and not isinstance(given, ModuleType):
        try:
            held.extend(functions_of(given).items())
        except ExecutionError as error:
            problems.append(_problem("invalid-hook", error, file, None))
    return held, problems


def _problem(rule: str, error: ExecutionError, file: Path, line: int | None) -> Problem:
    message, _, hint = str(error).partition("\n  hint: ")
    return Problem(rule, message, hint or None, file, line)
