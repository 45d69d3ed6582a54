"""Orders, with notes that are nobody's but the shop's."""

from __future__ import annotations

from rasa.mantle.tools.decorator import tool


@tool(description="An order: where it is, and what is known of it")
async def look_up_order(order_id: str) -> dict[str, str]:
    return {"order_id": order_id, "status": "on its way", "internal_note": "Customer has complained before"}
