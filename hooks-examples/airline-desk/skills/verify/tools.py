"""Tools of the skill that finds out who calls."""

from __future__ import annotations

from lib.bookings import BOOKINGS
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ToolResult


@tool(description="Compare what the caller says with the booking")
async def verify_caller(name: str, booking: str, context: ToolContext) -> ToolResult:
    known = BOOKINGS.get(booking.upper())
    if known is None or known["name"] != name.strip().lower():
        return ToolResult(llm_response={"verified": False})
    context.memory.set("project.booking", booking.upper())
    context.memory.set("project.verified", True)
    return ToolResult(llm_response={"verified": True})
