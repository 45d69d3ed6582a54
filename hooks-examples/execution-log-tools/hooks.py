"""Logs every tool that generated code calls, and how each iteration ends."""

from __future__ import annotations

import logging

from tenterhook.execution import Iteration, ToolInfo

logger = logging.getLogger("shop")


async def on_before_tool(tool: ToolInfo) -> None:
    logger.warning("Calling tool: %s", tool.name)


async def on_iteration_end(iteration: Iteration) -> None:
    logger.warning("Iteration finished: %s", iteration.status.type)
