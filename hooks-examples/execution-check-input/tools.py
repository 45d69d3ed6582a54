"""A shop's tools."""

from __future__ import annotations

from rasa.mantle.tools.decorator import tool

PRODUCTS: list[dict[str, str | float]] = [
    {"name": "Wool socks", "price": 12.5},
    {"name": "Running socks", "price": 9.0},
    {"name": "Rain jacket", "price": 89.0},
]


@tool(description="Products whose names have these words")
async def search_products(query: str) -> list[dict[str, str | float]]:
    words = query.lower().split()
    return [product for product in PRODUCTS if all(word in str(product["name"]).lower() for word in words)]
