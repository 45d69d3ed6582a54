"""Mends the arguments of tool calls where that is safe, and sends the model back where it is not."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

import structlog
from rasa.mantle.hooks import RetryModel, ToolCallPayload, modify_tool_call, on_tool_call

logger = structlog.get_logger()

#: What a tool cannot do without.
REQUIRED = {
    "issue_refund": ("order_id", "amount"),
    "book_pickup": ("order_id", "date"),
    "get_order": ("order_id",),
}

#: The most that the agent may refund without a person.
REFUND_LIMIT = 200.0

#: Ids that are upper case by definition; others, such as a user's, may not be.
UPPER_CASE_IDS = {"order_id", "reservation_id"}

#: Ways of writing a date that have one reading only. ``05/06/2030`` has two.
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d %B %Y", "%B %d, %Y", "%d %b %Y")

_AMOUNT = re.compile(r"(?:[$€£]|USD|EUR|GBP)?\s?(\d+(?:,\d{3})*(?:\.\d{1,2})?)\s?(?:€|USD|EUR|GBP)?")


@on_tool_call()
async def audit_call(call: ToolCallPayload) -> None:
    """Writes down what the model asked for, before anything is mended. Names only: arguments may be private."""
    logger.info("tool_call.asked", tool=call.tool_name, arguments=sorted(call.arguments), sender_id=call.sender_id)


@modify_tool_call()
async def guard_call(call: ToolCallPayload) -> ToolCallPayload:
    """Mends the arguments, then checks them. One bad call sends the whole batch back before any tool has run."""
    arguments = {name: mend(name, value) for name, value in call.arguments.items()}
    missing = [name for name in REQUIRED.get(call.tool_name, ()) if arguments.get(name) in (None, "")]
    if missing:
        raise RetryModel(feedback=f"{call.tool_name} needs {' and '.join(missing)}. Ask the user if you do not know.")
    amount = arguments.get("amount")
    if call.tool_name == "issue_refund" and isinstance(amount, int | float) and amount > REFUND_LIMIT:
        raise RetryModel(
            feedback=f"Refunds above {REFUND_LIMIT:.2f} need a person: call hand_over instead of issue_refund."
        )
    return call if arguments == call.arguments else call.model_copy(update={"arguments": arguments})


def mend(name: str, value: Any) -> Any:
    """The value as the tools expect it. A value that cannot be mended safely is sent back to the model."""
    if not isinstance(value, str):
        return value
    value = value.strip()
    if not value:
        return value
    if name in UPPER_CASE_IDS:
        return value.removeprefix("#").upper()
    if name == "date":
        return iso_date(value)
    if name == "amount":
        return number(value)
    return value


def iso_date(value: str) -> str:
    """The date as ``YYYY-MM-DD``."""
    for form in DATE_FORMATS:
        try:
            return _parsed(value, form).isoformat()
        except ValueError:
            continue
    raise RetryModel(feedback=f"The date {value!r} is not clear: write it as YYYY-MM-DD.")


def number(value: str) -> float:
    """The amount without its currency."""
    match = _AMOUNT.fullmatch(value)
    if match is None:
        raise RetryModel(feedback=f"The amount {value!r} is no number: give digits, without words.")
    return float(match[1].replace(",", ""))


def _parsed(value: str, form: str) -> date:
    return datetime.strptime(value, form).date()
