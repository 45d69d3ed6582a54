"""Runs the Python hook modules of LLM agents, and never lets one hang, crash or corrupt a turn.

The names of ``__all__`` are the public interface. ``install`` alone needs neither the engine nor pydantic; the others are
imported when they are first used, so that ``import tenterhook`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tenterhook.names import install

if TYPE_CHECKING:
    from tenterhook.app import QuickApp
    from tenterhook.checking import check
    from tenterhook.engine import Engine, RegisteredHook
    from tenterhook.errors import (
        AgentError,
        EngineClosedError,
        ExecutionError,
        HookExecutionError,
        InterpreterError,
        InvalidHooksError,
        LoadError,
        PayloadError,
        Place,
        Problem,
        TenterhookError,
    )
    from tenterhook.execution import (
        Controller,
        CriticalError,
        ExecutionResult,
        Exit,
        ExitInfo,
        Hooks,
        Iteration,
        Status,
        ThinkSignal,
        ToolInfo,
        Trace,
        execute,
    )
    from tenterhook.outcome import HandlerFailure, Outcome, Proceed, Reject, Retry
    from tenterhook.turn import TurnEngine

__all__ = [
    "Engine",
    "RegisteredHook",
    "TurnEngine",
    "QuickApp",
    "execute",
    "Hooks",
    "Exit",
    "ExecutionResult",
    "Controller",
    "ThinkSignal",
    "CriticalError",
    "Iteration",
    "Status",
    "Trace",
    "ToolInfo",
    "ExitInfo",
    "Outcome",
    "Proceed",
    "Retry",
    "Reject",
    "HandlerFailure",
    "TenterhookError",
    "LoadError",
    "AgentError",
    "InvalidHooksError",
    "Problem",
    "Place",
    "InterpreterError",
    "HookExecutionError",
    "ExecutionError",
    "PayloadError",
    "EngineClosedError",
    "check",
    "install",
]

_HOMES = {
    "tenterhook.checking": ("check",),
    "tenterhook.engine": ("Engine", "RegisteredHook"),
    "tenterhook.app": ("QuickApp",),
    "tenterhook.turn": ("TurnEngine",),
    "tenterhook.execution": (
        "execute",
        "Hooks",
        "Exit",
        "ExecutionResult",
        "Controller",
        "ThinkSignal",
        "CriticalError",
        "Iteration",
        "Status",
        "Trace",
        "ToolInfo",
        "ExitInfo",
    ),
    "tenterhook.outcome": ("Outcome", "Proceed", "Retry", "Reject", "HandlerFailure"),
    "tenterhook.errors": (
        "TenterhookError",
        "LoadError",
        "AgentError",
        "InvalidHooksError",
        "Problem",
        "Place",
        "InterpreterError",
        "HookExecutionError",
        "ExecutionError",
        "PayloadError",
        "EngineClosedError",
    ),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'tenterhook' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
