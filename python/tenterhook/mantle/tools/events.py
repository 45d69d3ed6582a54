"""What ``context.events`` holds: what has happened in the conversation, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["BotUttered", "Event", "SessionStarted", "ToolExecuted", "UserUttered", "event_of"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened; ``data`` is all that is stored of it, its kind under ``event``."""

    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class UserUttered(Event):
    """The user has said something."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class BotUttered(Event):
    """Something was said to the user. ``metadata`` has the name of a fixed response as ``utter_action``."""

    text: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolExecuted(Event):
    """A tool has run."""

    tool_name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    value: Any = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class SessionStarted(Event):
    """A session has begun."""


def event_of(data: dict[str, Any]) -> Event:
    """An event as it is stored, as an object of its class; kinds without one are :class:`Event`."""
    match data.get("event"):
        case "user_message":
            return UserUttered(data, data["text"])
        case "bot_message":
            metadata = dict(data.get("metadata", {}))
            if data.get("response") is not None:
                metadata["utter_action"] = data["response"]
            return BotUttered(data, data["text"], metadata)
        case "tool_executed":
            return ToolExecuted(data, data["tool_name"], data["arguments"], data["value"], data.get("is_error", False))
        case "session_started":
            return SessionStarted(data)
        case _:
            return Event(data)
