"""One set of hooks for several executions, from a Python program."""

from __future__ import annotations

import asyncio
from typing import Any

import tenterhook
from tenterhook.execution import Hooks, ToolInfo

called: list[str] = []


async def tell(tool: ToolInfo) -> None:
    called.append(tool.name)


#: Passed to each execution that is to have them: hooks hold for one call alone.
SHARED = Hooks(on_before_tool=tell)


async def stock(product: str) -> int:
    """How many pieces of a product there are."""
    return {"socks": 12, "jackets": 0}.get(product, 0)


async def script(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """In the place of a model: it writes code that asks for what the instructions name."""
    product = "jackets" if "jackets" in str(messages) else "socks"
    return {"code": f'exit("done", {{"success": True, "result": stock("{product}")}})'}


async def main() -> None:
    for product in ("socks", "jackets"):
        result = await tenterhook.execute(
            instructions=f"Say how many {product} there are.", tools=[stock], hooks=SHARED, model=script
        )
        print(product, result.output)
    print("tools called:", called)


if __name__ == "__main__":
    asyncio.run(main())
