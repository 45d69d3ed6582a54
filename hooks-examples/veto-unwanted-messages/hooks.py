"""Keeps messages out that the model should not read, and answers in that the company could not stand by."""

from __future__ import annotations

import re

import structlog
from rasa.mantle.hooks import (
    HookRejection,
    IncomingMessagePayload,
    OutgoingTextPayload,
    modify_incoming_message,
    modify_outgoing_text,
)

logger = structlog.get_logger()

#: Longer than people type: pasted logs and attempts to push the instructions out of the model's window.
MAX_CHARACTERS = 1_500

#: Attempts to give the model new instructions, or to read those that it has.
_INJECTIONS = (
    re.compile(
        r"\b(?:ignore|disregard|forget|override)\s+(?:(?:all|any|the|your|of|these)\s+)*"
        r"(?:previous|prior|above|earlier|system)\s+(?:instructions?|prompts?|rules|messages)\b",
        re.IGNORECASE,
    ),
    re.compile(r"\b(?:reveal|print|repeat|show|output)\s+(?:me\s+)?(?:your|the)\s+system\s+prompt\b", re.IGNORECASE),
    re.compile(r"\byou\s+are\s+now\s+(?:in\s+)?(?:developer|debug|unrestricted)\s+mode\b", re.IGNORECASE),
    re.compile(r"<\|?(?:im_start|system)\|?>|\[/?INST\]"),
)

#: Promises, by the reason for which they are vetoed. "We cannot guarantee a refund" is none.
_PROMISES = {
    "promises a refund": re.compile(
        r"\bguaranteed\s+(?:full\s+)?refund\b"
        r"|(?<!not )(?<!cannot )(?<!can't )\bguarantee\s+(?:that\s+)?(?:you\s+(?:will\s+)?(?:get\s+)?)?(?:an?|your)\s+"
        r"(?:full\s+)?refund\b",
        re.IGNORECASE,
    ),
    "promises a price for ever": re.compile(
        r"\bprice\s+will\s+never\s+(?:rise|go\s+up|increase)\b|\bfree\s+for\s+life\b", re.IGNORECASE
    ),
    "takes on liability": re.compile(r"\bwe\s+(?:accept|take)\s+(?:full\s+|all\s+)?liability\b", re.IGNORECASE),
}


@modify_incoming_message()
async def veto_message(message: IncomingMessagePayload) -> IncomingMessagePayload:
    """Ends the turn before the model is asked: what it never reads cannot steer it."""
    if len(message.text) > MAX_CHARACTERS:
        logger.warning("veto.too_long", characters=len(message.text), sender_id=message.sender_id)
        raise HookRejection(
            reason=f"message of {len(message.text)} characters",
            response_message="That message is too long for me. Could you put it in a few sentences?",
        )
    if any(pattern.search(message.text) for pattern in _INJECTIONS):
        logger.warning("veto.injection", sender_id=message.sender_id)
        raise HookRejection(
            reason="prompt injection",
            response_message="I can help with orders, deliveries and returns. What can I do for you?",
        )
    return message


@modify_outgoing_text()
async def veto_promise(text: OutgoingTextPayload) -> OutgoingTextPayload:
    """Holds an answer back that promises too much: once said, a customer may rely on it."""
    for reason, pattern in _PROMISES.items():
        if pattern.search(text.text):
            logger.warning("veto.promise", reason=reason, sender_id=text.sender_id)
            raise HookRejection(
                reason=reason,
                response_message="A colleague decides that. Shall I pass your request on?",
            )
    return text
