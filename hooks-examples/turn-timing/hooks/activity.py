"""Notes what the model and the tools do in the running turn. Observers only: nothing here can delay or change a turn."""

from __future__ import annotations

from lib import turn_log
from rasa.mantle.hooks import (
    ModelRequestPayload,
    ModelResponsePayload,
    ToolResultPayload,
    on_model_request,
    on_model_response,
    on_tool_result,
)


@on_model_request()
async def note_request(request: ModelRequestPayload) -> None:
    """Counts the request and starts the model's clock."""
    if (turn := turn_log.current(request.sender_id)) is not None:
        turn.ask()


@on_model_response()
async def note_response(response: ModelResponsePayload) -> None:
    """Stops the model's clock."""
    if (turn := turn_log.current(response.sender_id)) is not None:
        turn.answer(response.latency_ms)


@on_tool_result()
async def note_result(result: ToolResultPayload) -> None:
    """Counts the tool, and whether it failed."""
    if (turn := turn_log.current(result.sender_id)) is not None:
        turn.tools[result.tool_name] += 1
        turn.tool_errors += result.is_error
