"""Tools of the skill that traces bags."""

from __future__ import annotations

from lib.bookings import BAGS
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult


@tool(description="Trace a bag by its tag")
async def trace_bag(tag: str, context: ToolContext) -> ToolResult:
    place = BAGS.get(tag.upper())
    context.memory.set("place", place)
    return ToolResult(llm_response={"place": place})
