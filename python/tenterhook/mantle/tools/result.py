"""``rasa.mantle.tools.result``: what a tool gives."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

__all__ = ["ActivateSkill", "ToolResult"]


class ActivateSkill(BaseModel):
    """A skill that is to go on after the result."""

    skill_id: str
    ordered_block: str | None = None


class ToolResult(BaseModel):
    """What a tool gives: ``llm_response`` is what the model reads, any JSON value."""

    llm_response: Any = None
    next: list[ActivateSkill] = Field(default_factory=list)
