"""Takes out of a tool's result what the model does not need."""

from __future__ import annotations

from typing import Any

from tenterhook.execution import ToolInfo


async def on_after_tool(tool: ToolInfo, output: Any) -> dict[str, Any] | None:
    if tool.name != "look_up_order":
        return None
    return {"output": {**output, "internal_note": ""}}
