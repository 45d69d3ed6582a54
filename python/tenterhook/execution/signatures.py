"""What a hook takes of what it may be given."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenterhook.errors import ExecutionError
from tenterhook.execution.places import nearest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Taken", "taken"]

_TOOL = ("iteration", "tool", "input", "controller", "tool_call_id", "native_call_id")

#: Hooks whose arguments are given in this order; a hook may declare fewer.
POSITIONAL = {
    "on_iteration_start": ("iteration", "controller", "context"),
    "on_before_execution": ("iteration", "controller"),
    "on_iteration_end": ("iteration", "controller"),
}

#: Hooks whose arguments are given by the names that they declare.
NAMED = {
    "on_before_tool": _TOOL,
    "on_after_tool": ("iteration", "tool", "input", "output", "controller", "tool_call_id", "native_call_id"),
    "on_trace": ("trace", "iteration", "controller"),
    "on_exit": ("exit", "result", "controller"),
}


@dataclass(frozen=True, slots=True)
class Taken:
    """What a hook takes, in order and by name."""

    positional: tuple[str, ...]
    named: tuple[str, ...]

    @property
    def all(self) -> list[str]:
        """Both."""
        return [*self.positional, *self.named]

    def arguments(self, value: Callable[[str], Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of one call; ``value`` makes each."""
        return [value(name) for name in self.positional], {name: value(name) for name in self.named}


def taken(hook: str, function: Any) -> Taken:
    """What the function takes; an error where it takes what no hook of its kind is given."""
    in_order = hook in POSITIONAL
    offered = POSITIONAL[hook] if in_order else NAMED[hook]
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # Something that is written in C and does not tell.
        return Taken(offered, ()) if in_order else Taken((), offered)
    positional: list[str] = []
    named: list[str] = []

    def left() -> list[str]:
        return [name for name in offered if name not in positional and name not in named]

    for parameter in parameters:
        is_optional = parameter.default is not parameter.empty
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(left() if in_order else ())
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.extend(left())
        elif in_order and parameter.kind is not parameter.KEYWORD_ONLY:
            # One that has a default and no name of ours is the function's own.
            if is_optional and parameter.name not in offered:
                continue
            if len(positional) == len(offered):
                raise ExecutionError(
                    f"The hook `{hook}` takes more arguments than it is given\n  hint: it is given {_shown(offered)}"
                )
            positional.append(offered[len(positional)])
        elif parameter.name in offered and parameter.kind is not parameter.POSITIONAL_ONLY:
            named.append(parameter.name)
        elif not is_optional:
            raise ExecutionError(
                f"The hook `{hook}` takes `{parameter.name}`, which it is not given\n"
                f"  hint: {nearest(parameter.name, offered)}; it is given {_shown(offered)} by name"
            )
    return Taken(tuple(positional), tuple(named))


def _shown(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
