"""The seven hooks, in the three forms in which they may be given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tenterhook.errors import ExecutionError
from tenterhook.execution.places import nearest

__all__ = ["HOOKS", "Hooks", "functions_of"]

Hook: TypeAlias = Callable[..., Any]

#: Their names, in the order of an iteration.
HOOKS = (
    "on_iteration_start",
    "on_before_execution",
    "on_before_tool",
    "on_after_tool",
    "on_trace",
    "on_exit",
    "on_iteration_end",
)

#: The same names as the interface that they come from writes them.
_CAMEL = {re.sub(r"_(\w)", lambda letter: letter[1].upper(), name): name for name in HOOKS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Hooks of an execution, each a function or a coroutine function, or ``None``.

    An execution waits for all but ``on_trace``. A function that is no coroutine function runs on a thread of its own.
    """

    #: ``(iteration, controller, context)``, before the model is asked: ``None``, or a dict with what changes of the iteration
    #: (``model``, ``messages``, ``variables``, ``code``).
    on_iteration_start: Hook | None = None
    #: ``(iteration, controller)``, before the code runs: ``None``, or ``{"code": …}`` in the place of the model's.
    on_before_execution: Hook | None = None
    #: ``iteration``, ``tool``, ``input``, ``controller`` by name, before a tool runs: ``None``, or ``{"input": …}``. To raise keeps the
    #: tool from running.
    on_before_tool: Hook | None = None
    #: The same and ``output``, before the code has it: ``None``, or ``{"output": …}``.
    on_after_tool: Hook | None = None
    #: ``trace``, ``iteration`` (its number), ``controller`` by name, for each trace in order. Nobody waits for what it starts.
    on_trace: Hook | None = None
    #: ``exit``, ``result``, ``controller`` by name, when the code has reached a valid exit. To raise keeps it from being reached.
    on_exit: Hook | None = None
    #: ``(iteration, controller)``, when an iteration has ended.
    on_iteration_end: Hook | None = None


def functions_of(given: object) -> dict[str, Hook]:
    """The hooks that are there, by name.

    ``given`` is a :class:`Hooks`, an object with methods of their names or its class, a mapping, or ``None``.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        found = _of_mapping(given)
    elif isinstance(given, Hooks):
        found = {name: getattr(given, name) for name in HOOKS}
    else:
        found = _of_object(given)
    hooks = {name: hook for name, hook in found.items() if hook is not None}
    for name, hook in hooks.items():
        if not callable(hook):
            raise ExecutionError(f"The hook `{name}` is a `{type(hook).__name__}`\n  hint: give a function")
    return hooks


def _of_mapping(given: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, hook in given.items():
        name = _CAMEL.get(key, key)
        if name not in HOOKS:
            raise ExecutionError(f"There is no hook `{key}`\n  hint: {nearest(str(key), (*HOOKS, *_CAMEL))}")
        if name in found:
            raise ExecutionError(f"The hook `{name}` is given twice\n  hint: leave out one of its two names")
        found[name] = hook
    return found


def _of_object(given: object) -> dict[str, Any]:
    if isinstance(given, type):
        name = given.__name__
        try:
            given = given()
        except TypeError as error:
            raise ExecutionError(
                f"The class of hooks `{name}` cannot be made without arguments: {error}\n  hint: give an object of it"
            ) from error
    found = {name: getattr(given, name) for name in HOOKS if hasattr(given, name)}
    for name in dir(given):
        if name not in HOOKS and (name in _CAMEL or re.match(r"on_[a-z]", name)) and callable(getattr(given, name)):
            raise ExecutionError(
                f"`{type(given).__name__}` has `{name}`, which is no hook\n  hint: {nearest(_CAMEL.get(name, name), HOOKS)}"
            )
    if not found:
        raise ExecutionError(
            f"`{type(given).__name__}` has no hooks\n"
            "  hint: give a `tenterhook.Hooks`, a dict, or an object with methods such as `on_before_tool`"
        )
    return found
