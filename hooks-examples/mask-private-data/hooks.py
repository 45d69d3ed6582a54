"""Masks card numbers and e-mail addresses before the model, the log or the user sees them."""

from __future__ import annotations

import re
from typing import Any

from rasa.mantle.hooks import (
    IncomingMessagePayload,
    ModelRequestPayload,
    OutgoingTextPayload,
    ToolResultPayload,
    modify_incoming_message,
    modify_model_request,
    modify_outgoing_text,
    modify_tool_result,
)

#: 13 to 19 digits, alone or in groups: the lengths of payment cards (ISO/IEC 7812).
_DIGITS = re.compile(r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])")
_EMAIL = re.compile(r"\b([\w.+-])[\w.+-]*@([\w-]+(?:\.[\w-]+)+)")


def passes_luhn(digits: str) -> bool:
    """Whether the last digit checks the others (ISO/IEC 7812, annex B): order numbers rarely do."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def mask_text(text: str) -> str:
    """The text with card numbers down to their last four digits, and addresses down to a letter and the domain."""

    def mask_card(match: re.Match[str]) -> str:
        digits = re.sub(r"\D", "", match.group())
        return f"[card ending {digits[-4:]}]" if passes_luhn(digits) else match.group()

    return _EMAIL.sub(r"\1***@\2", _DIGITS.sub(mask_card, text))


def mask(value: Any) -> Any:
    """The value with every text in it masked; what has nothing to mask comes back as the very object."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, list):
        masked = [mask(item) for item in value]
        return masked if masked != value else value
    if isinstance(value, dict):
        masked_dict = {key: mask(item) for key, item in value.items()}
        return masked_dict if masked_dict != value else value
    return value


@modify_incoming_message()
async def mask_incoming(message: IncomingMessagePayload) -> IncomingMessagePayload:
    return message.model_copy(update={"text": mask_text(message.text)})


@modify_model_request()
async def mask_request(request: ModelRequestPayload) -> ModelRequestPayload:
    return request.model_copy(update={"messages": mask(request.messages)})


@modify_tool_result()
async def mask_result(result: ToolResultPayload) -> ToolResultPayload:
    return result.model_copy(update={"value": mask(result.value)})


@modify_outgoing_text()
async def mask_outgoing(text: OutgoingTextPayload) -> OutgoingTextPayload:
    return text.model_copy(update={"text": mask_text(text.text)})
