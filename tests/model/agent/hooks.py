"""The same answers each time, short ones, and no number of a card in any of them."""

import re

from rasa.mantle.hooks import (
    IncomingMessagePayload,
    ModelRequestPayload,
    OutgoingTextPayload,
    modify_incoming_message,
    modify_model_request,
    modify_outgoing_text,
)

CARD = re.compile(r"\b(?:\d[ -]?){13,16}\b")


@modify_incoming_message()
async def mask(payload: IncomingMessagePayload) -> IncomingMessagePayload:
    return payload.model_copy(update={"text": CARD.sub("[card]", payload.text)})


@modify_model_request()
async def settle(payload: ModelRequestPayload) -> ModelRequestPayload:
    return payload.model_copy(update={"model_settings": {"temperature": 0, "seed": 1, "max_tokens": 60}})


@modify_outgoing_text()
async def mask_again(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    return payload.model_copy(update={"text": CARD.sub("[card]", payload.text)})
