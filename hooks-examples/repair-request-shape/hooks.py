"""Gives every request the shape that strict providers ask for, so that none is refused for its messages' order."""

from __future__ import annotations

import structlog
from lib.request_shape import repair
from rasa.mantle.hooks import ModelRequestPayload, modify_model_request

logger = structlog.get_logger()


@modify_model_request()
async def repair_shape(request: ModelRequestPayload) -> ModelRequestPayload:
    """Repairs the messages. A request in good shape comes back as it is, so that the report counts real repairs only."""
    messages = repair(request.messages)
    if messages == request.messages:
        return request
    logger.info(
        "request.repaired",
        messages_before=len(request.messages),
        messages_after=len(messages),
        iteration=request.iteration,
        sender_id=request.sender_id,
    )
    return request.model_copy(update={"messages": messages})
