"""Tools of the skill that moves callers to other seats."""

from __future__ import annotations

from lib.bookings import BOOKINGS, FREE
from rasa.mantle.tools.decorator import ToolContext, tool
from rasa.mantle.tools.result import ActivateSkill, ToolResult


@tool(description="Which seats are free")
async def free_seats() -> ToolResult:
    return ToolResult(llm_response={"free": FREE})


@tool(description="Move the caller to the chosen seat")
async def change_seat(context: ToolContext) -> ToolResult:
    seat = context.memory.get("seat")
    if seat not in FREE:
        return ToolResult(llm_response={"error": "this seat is taken"})
    BOOKINGS[context.memory.get("booking")]["seat"] = seat
    return ToolResult(llm_response={"seat": seat})


@tool(description="The caller misses a bag")
async def lost_bag() -> ToolResult:
    return ToolResult(
        llm_response={"handed over": "baggage"}, next=[ActivateSkill(skill_id="baggage", ordered_block="trace")]
    )


@tool(description="Checks a seat that was chosen")
async def run_after_setting_seat(context: ToolContext) -> ToolResult:
    known = context.memory.get("seat") in FREE
    return ToolResult(llm_response={"error": None if known else "there is no such seat free"})
