"""Executions: a model that answers with code, the tools that the code calls, and seven hooks around each step.

::

    result = await tenterhook.execute(instructions="…", tools=[search], hooks={"on_before_tool": log}, model={…})
"""

from __future__ import annotations

from tenterhook.execution.controlling import Controller, Signal
from tenterhook.execution.exits import Exit
from tenterhook.execution.hooks import Hooks
from tenterhook.execution.result import ExecutionResult
from tenterhook.execution.running import execute
from tenterhook.execution.signals import CriticalError, ThinkSignal
from tenterhook.execution.views import ExitInfo, Iteration, Status, Tokens, ToolInfo, Trace

__all__ = [
    "execute",
    "Hooks",
    "Exit",
    "ExecutionResult",
    "Controller",
    "Signal",
    "ThinkSignal",
    "CriticalError",
    "Iteration",
    "Status",
    "Tokens",
    "Trace",
    "ToolInfo",
    "ExitInfo",
]
