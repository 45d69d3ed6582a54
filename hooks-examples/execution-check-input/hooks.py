"""Looks at the input of one tool, and trims or refuses it before the tool runs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from tenterhook.execution import ToolInfo


class SearchInput(BaseModel):
    model_config = ConfigDict(extra="allow")

    query: str


async def on_before_tool(tool: ToolInfo, input: dict[str, Any]) -> dict[str, Any] | None:
    if tool.name != "search_products":
        return None
    parsed = SearchInput.model_validate(input)
    query = parsed.query.strip()
    if not query:
        raise ValueError("Provide a non-empty search query.")
    return {"input": {**parsed.model_dump(), "query": query}}
