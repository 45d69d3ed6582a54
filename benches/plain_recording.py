"""Recorded conversations for the plain player: Chat Completions messages, cut into turns as the engine cuts them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Call", "Completion", "Message", "Recording", "Turn", "text_of", "with_text"]

Message = dict[str, Any]


@dataclass
class Call:
    """A tool call and its answer. ``arguments`` is a dict, or the recorded text where that is no JSON object."""

    id: str
    type: str | None
    name: str
    arguments: dict[str, Any] | str
    result: Message | None = None

    def shown(self) -> dict[str, Any]:
        """The call as a response payload shows it."""
        shown = {"id": self.id, "tool_name": self.name, "tool_args": self.arguments}
        return shown if self.type is None else {**shown, "type": self.type}


@dataclass
class Completion:
    """An assistant message with its calls."""

    message: Message
    text: str | None
    calls: list[Call]

    @classmethod
    def of(cls, message: Message) -> Completion:
        return cls(message, text_of(message), [_call(call) for call in message.get("tool_calls") or ()])


@dataclass
class Turn:
    """A user message and what followed it; an item that is no completion only joins the history."""

    user: Message
    items: list[Completion | Message] = field(default_factory=list)


@dataclass
class Recording:
    """One conversation."""

    id: str | None
    messages: int
    opening: list[Message] = field(default_factory=list)
    tool_names: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    @classmethod
    def of_line(cls, line: str) -> Recording:
        """Reads a line; ``ValueError``, ``KeyError`` or ``TypeError`` where it is no conversation."""
        content = json.loads(line)
        recording = cls(content.get("conversation_id"), len(content["messages"]))
        for message in content["messages"]:
            recording._take(message)
        if isinstance(offered := content.get("tools"), list):
            recording.tool_names = [tool["function"]["name"] for tool in offered]
        return recording

    def _take(self, message: Message) -> None:
        role, turn = message["role"], self.turns[-1] if self.turns else None
        if role == "user":
            self.turns.append(Turn(message))
        elif role == "assistant":
            completion = Completion.of(message)
            names = (call.name for call in completion.calls if call.name not in self.tool_names)
            self.tool_names.extend(dict.fromkeys(names))
            if turn is None:
                self.opening.append(message)
            else:
                turn.items.append(completion)
        elif role == "tool" and turn is not None:
            self._answer(message)
        elif turn is None:
            self.opening.append(message)
        else:
            turn.items.append(message)

    def _answer(self, message: Message) -> None:
        """Puts a tool message beside the nearest earlier call of its id that has no answer yet."""
        for turn in reversed(self.turns):
            for item in reversed(turn.items):
                for call in item.calls if isinstance(item, Completion) else ():
                    if call.id == message["tool_call_id"] and call.result is None:
                        call.result = message
                        return
        raise ValueError("a tool message answers no call")


def text_of(message: Message) -> str | None:
    """The text of a message: a string, or the text parts of a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [part["text"] for part in content if isinstance(part.get("text"), str)]
        return "\n".join(texts) if texts else None
    return content if isinstance(content, str) else None


def with_text(message: Message, text: str) -> Message:
    """The message with another text; the parts of a list that are no text stay."""
    content: Any = text
    if isinstance(message.get("content"), list):
        content, placed = [], False
        for part in message["content"]:
            if "text" not in part:
                content.append(part)
            elif not placed:
                content.append({**part, "text": text})
                placed = True
    return {**message, "content": content}


def _call(call: dict[str, Any]) -> Call:
    function = call["function"]
    arguments = function.get("arguments")
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        arguments = {}
    elif isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except ValueError:
            parsed = None
        arguments = parsed if isinstance(parsed, dict) else arguments
    elif not isinstance(arguments, dict):
        arguments = json.dumps(arguments)
    return Call(call["id"], call.get("type"), function["name"], arguments)
