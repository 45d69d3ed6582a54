"""Repairs that make a list of chat messages acceptable to a strict provider.

Pure functions: each returns a new list and leaves the messages it was given alone, so that the caller can compare.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

Message = dict[str, Any]

#: Stands where a message has no content: some providers refuse an empty text.
PLACEHOLDER = "(no text)"

#: Ends a request that would end with the assistant: some providers take that for an answer to go on with.
GO_ON = "Please go on."


def repair(messages: list[Message]) -> list[Message]:
    """All repairs, in an order in which none spoils what an earlier one has mended."""
    for step in (
        drop_opening_calls,
        drop_unanswered_calls,
        drop_orphan_results,
        merge_neighbours,
        fill_empty,
        end_open,
    ):
        messages = step(messages)
    return messages


def drop_opening_calls(messages: list[Message]) -> list[Message]:
    """Drops tool calls at the head of the history: the cut of a history window has left the user's question out."""
    head = list(takewhile(lambda message: message.get("role") == "system", messages))
    rest = messages[len(head) :]
    while rest and rest[0].get("tool_calls"):
        rest = rest[1:]
    return head + rest


def drop_unanswered_calls(messages: list[Message]) -> list[Message]:
    """Drops calls whose result does not follow, as an interrupted turn leaves them."""
    repaired = []
    for place, message in enumerate(messages):
        calls = message.get("tool_calls")
        if not calls:
            repaired.append(message)
            continue
        results = takewhile(lambda later: later.get("role") == "tool", messages[place + 1 :])
        answered = {result.get("tool_call_id") for result in results}
        kept = [call for call in calls if call.get("id") in answered]
        if kept:
            repaired.append({**message, "tool_calls": kept})
        elif message.get("content"):
            repaired.append({key: value for key, value in message.items() if key != "tool_calls"})
    return repaired


def drop_orphan_results(messages: list[Message]) -> list[Message]:
    """Drops tool messages whose call does not stand before them."""
    repaired = []
    called: set[str] = set()
    for message in messages:
        called.update(call["id"] for call in message.get("tool_calls") or () if "id" in call)
        if message.get("role") != "tool" or message.get("tool_call_id") in called:
            repaired.append(message)
    return repaired


def merge_neighbours(messages: list[Message]) -> list[Message]:
    """Makes one message of neighbours of one role. Tool results stay apart, and so does what follows tool calls."""
    repaired: list[Message] = []
    for message in messages:
        last = repaired[-1] if repaired else {}
        if message.get("role") != last.get("role") or message.get("role") == "tool" or last.get("tool_calls"):
            repaired.append(message)
        else:
            repaired[-1] = {**last, **message, "content": _joined(last.get("content"), message.get("content"))}
    return repaired


def fill_empty(messages: list[Message]) -> list[Message]:
    """Puts a placeholder into messages that say nothing. Beside tool calls no text is needed."""
    return [
        message
        if message.get("tool_calls") or not _is_empty(message.get("content"))
        else {**message, "content": PLACEHOLDER}
        for message in messages
    ]


def end_open(messages: list[Message]) -> list[Message]:
    """Lets the user speak last. System messages do not count: such providers take them out of the list."""
    spoken = [message for message in messages if message.get("role") != "system"]
    if spoken and spoken[-1].get("role") == "assistant":
        return [*messages, {"role": "user", "content": GO_ON}]
    return messages


def _is_empty(content: Any) -> bool:
    return not (content.strip() if isinstance(content, str) else content)


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, list) or isinstance(second, list):
        return [*_parts(first), *_parts(second)]
    return "\n\n".join(text for text in (first, second) if text) or None


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
