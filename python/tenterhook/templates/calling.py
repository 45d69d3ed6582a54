"""Templates as the engine calls them: on the lane of the hooks, so that one that runs on is interrupted as a hook is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tenterhook.templates.checking import check
from tenterhook.templates.rendering import render
from tenterhook.templates.source import TemplateError
from tenterhook.tooling import COMPLAINT, RESULT, FoundTool

if TYPE_CHECKING:
    from tenterhook.mantle.payloads import ToolCallPayload

__all__ = ["MARK", "template_tool"]

#: The name of the call, and in the place of a skill's: nobody has one like it.
MARK = "<templates>"


async def _call(payload: ToolCallPayload) -> ToolCallPayload:
    """Checks ``template`` for ``event``, or renders it with ``context``; all of them are JSON texts."""
    given = payload.arguments
    try:
        if "event" in given:
            result = {RESULT: check(given["template"], given["event"])}
        else:
            result = {RESULT: render(given["template"], given["context"])}
    except TemplateError as error:
        result = {COMPLAINT: str(error)}
    return payload.model_copy(update={"arguments": result})


def template_tool() -> FoundTool:
    """What the engine calls; it belongs to no skill, and no model is offered it."""
    return FoundTool(MARK, "", "{}", __name__, Path(__file__), 1, MARK, _call)
