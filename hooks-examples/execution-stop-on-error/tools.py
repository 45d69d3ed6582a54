"""A bank that is closed."""

from __future__ import annotations

from rasa.mantle.tools.decorator import tool


@tool(description="Pays an amount out to a customer")
async def pay(customer: str, amount: float) -> str:
    raise RuntimeError(f"The bank has not taken the payment of {amount}")
