"""Asks the model again when its answer holds a price, a percentage or a date that nothing it was shown holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import structlog
from lib.figures import claims, evidence
from rasa.mantle.hooks import (
    ModelRequestPayload,
    ModelResponsePayload,
    RetryModel,
    TurnFinishedPayload,
    modify_model_response,
    on_model_request,
    on_turn_finished,
)

logger = structlog.get_logger()

#: A model that insists gets its way in the end: a doubtful answer serves better than none.
MAX_RETRIES = 2


@dataclass
class Turn:
    """What is known of a conversation's current turn."""

    evidence: set[str] = field(default_factory=set)
    retries: int = 0


_turns: dict[str, Turn] = {}


@on_model_request()
async def remember_evidence(request: ModelRequestPayload) -> None:
    """Notes every figure that the model is shown.

    An observer is early enough, since the model takes far longer to answer, and it leaves the point's only modify hook
    to others. Tool results and passages are among the messages, as they were after all other hooks.
    """
    if request.iteration == 0:
        _turns[request.sender_id] = Turn()
    turn = _turns.setdefault(request.sender_id, Turn())
    for place, message in enumerate(request.messages):
        # Neither the model's own earlier words nor a retry's feedback, a later system message, are evidence.
        if message.get("role") in {"user", "tool"} or place == 0:
            turn.evidence |= evidence(_text(message.get("content")))


@modify_model_response()
async def require_evidence(response: ModelResponsePayload) -> ModelResponsePayload:
    """Drops an answer with a figure out of nowhere, and tells the model which."""
    turn = _turns.get(response.sender_id)
    if turn is None or not response.text:
        return response
    unfounded = [written for written, forms in claims(response.text).items() if not forms & turn.evidence]
    if not unfounded:
        return response
    if turn.retries == MAX_RETRIES:
        logger.warning("grounding.gave_up", figures=unfounded, sender_id=response.sender_id)
        return response
    turn.retries += 1
    logger.info("grounding.retry", figures=unfounded, attempt=turn.retries, sender_id=response.sender_id)
    raise RetryModel(
        feedback=f"No tool result holds {', '.join(unfounded)}. Look it up or compute it with a tool, or leave it out."
    )


@on_turn_finished()
async def forget_turn(turn: TurnFinishedPayload) -> None:
    """Lets the turn's state go: a process that serves many conversations must not keep one entry for each for ever."""
    _turns.pop(turn.sender_id, None)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
