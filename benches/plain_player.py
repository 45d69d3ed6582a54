"""Plays recorded conversations through an agent's hooks in plain Python: the measure of the engine's own share.

    python plain_player.py AGENT INPUT

The points, their order and what a change leads to are those of ``tenterhook run``. Each modifier is called as
``await asyncio.wait_for(handler(payload.model_copy(deep=True)), timeout)``, each observer so in a task. Prints what each
hook did and where the time went, in milliseconds: ``total_ms`` from the first line to the last answer, ``in_handlers_ms``
inside the handlers' own code, ``runner_ms`` all the rest.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from asyncio import AbstractEventLoop
from pathlib import Path
from typing import Any

from plain_hooks import Failed, Hooks
from plain_recording import Completion, Message, Recording, text_of, with_text
from rasa.mantle.hooks import (
    ChannelInfo,
    HookPayload,
    HookRejection,
    IncomingMessagePayload,
    KnowledgeQueryPayload,
    KnowledgeResultsPayload,
    ModelRequestPayload,
    ModelResponsePayload,
    OutgoingTextPayload,
    RetryModel,
    ToolCallPayload,
    ToolResultPayload,
    TurnFinishedPayload,
    TurnStartedPayload,
)

#: Raised when the output changes its shape.
VERSION = 1

#: The engine tool whose recorded calls drive the knowledge points.
SEARCH_TOOL = "search_knowledge"


class Player:
    """Plays one conversation."""

    def __init__(self, hooks: Hooks, recording: Recording, line: int) -> None:
        self.hooks = hooks
        self.recording = recording
        self.identity = {"sender_id": recording.id or f"line-{line}", "channel": ChannelInfo(name="recording")}
        self.history = list(recording.opening)
        self.feedback: str | None = None

    async def visit(self, kind: type[HookPayload], **fields: Any) -> tuple[dict[str, Any], bool]:
        return await self.hooks.visit(kind, {**self.identity, **fields})

    async def play(self) -> None:
        for number, turn in enumerate(self.recording.turns, 1):
            turn_id = f"{self.identity['sender_id']}#{number}"
            await self.visit(TurnStartedPayload, turn_id=turn_id)
            status = "completed"
            try:
                await self.turn(turn.user, turn.items)
            except HookRejection:
                pass
            except Failed:
                status = "error"
            self.feedback = None
            await self.visit(TurnFinishedPayload, turn_id=turn_id, status=status)

    async def turn(self, user: Message, items: list[Completion | Message]) -> None:
        text = text_of(user)
        if text is not None:
            fields, changed = await self.visit(IncomingMessagePayload, text=text)
            if changed:
                user = with_text(user, fields["text"])
        self.history.append(user)
        iteration = 0
        for item in items:
            if not isinstance(item, Completion):
                self.history.append(item)
                continue
            await self.request(iteration)
            iteration += 1
            try:
                await self.completion(item)
            except RetryModel as retry:
                self.feedback = retry.feedback

    async def request(self, iteration: int) -> None:
        messages = [*self.history]
        if self.feedback is not None:
            messages.append({"role": "system", "content": self.feedback})
            self.feedback = None
        tool_names = self.recording.tool_names
        await self.visit(ModelRequestPayload, messages=messages, tool_names=tool_names, iteration=iteration)

    async def completion(self, completion: Completion) -> None:
        shown = [call.shown() for call in completion.calls]
        response, changed = await self.visit(ModelResponsePayload, text=completion.text, tool_calls=shown)
        calls = [{"id": "", "tool_name": "", "tool_args": {}, **call} for call in response["tool_calls"]]
        for call in calls:
            if isinstance(call["tool_args"], dict):
                name, arguments = call["tool_name"], call["tool_args"]
                fields, rewritten = await self.visit(ToolCallPayload, tool_name=name, arguments=arguments)
                call["tool_name"], call["tool_args"] = fields["tool_name"], fields["arguments"]
                changed |= rewritten
        text = response["text"]
        if text:
            try:
                fields, rewritten = await self.visit(OutgoingTextPayload, text=text)
            except HookRejection:
                text, changed = None, True
            else:
                text = fields["text"]
                changed |= rewritten
        results = []
        left = [*completion.calls]
        for call in calls:
            recorded = next((known for known in left if known.id == call["id"]), None)
            if recorded is None:
                continue
            left.remove(recorded)
            if recorded.result is not None:
                result, rewritten = await self.result(call, recorded.result)
                changed |= rewritten
                results.append(result)
        if not changed:
            self.history.append(completion.message)
        elif text is not None or calls:
            self.history.append(stored(completion.message, text, calls))
        self.history.extend(results)

    async def result(self, call: dict[str, Any], message: Message) -> tuple[Message, bool]:
        """The tool message as it is stored, and whether the call's arguments were rewritten."""
        arguments = call["tool_args"] if isinstance(call["tool_args"], dict) else {}
        value = message.get("content")
        if call["tool_name"] == SEARCH_TOOL:
            value = await self.search(arguments, value)
        name = call["tool_name"]
        fields, _ = await self.visit(ToolResultPayload, tool_name=name, arguments=arguments, value=value)
        rewritten = fields["arguments"] != arguments
        if rewritten:
            call["tool_args"] = fields["arguments"]
        value = fields["value"]
        if "content" in message and message["content"] == value:
            return message, rewritten
        return with_text(message, value if isinstance(value, str) else as_json(value)), rewritten

    async def search(self, arguments: dict[str, Any], value: Any) -> Any:
        """What the search gave, after the hooks of the query and of the passages."""
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return value
        try:
            fields, _ = await self.visit(KnowledgeQueryPayload, query=query)
        except Failed:
            return "[]"
        passages = passages_in(value)
        if passages is None:
            return value
        fields, changed = await self.visit(KnowledgeResultsPayload, query=fields["query"], passages=passages)
        return as_json(fields["passages"]) if changed else value


def stored(message: Message, text: str | None, calls: list[dict[str, Any]]) -> Message:
    """The assistant message as it is stored after the hooks."""
    message = {**message, "content": text}
    message.pop("tool_calls", None)
    if calls:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": call.get("type") or "function",
                "function": {
                    "name": call["tool_name"],
                    "arguments": call["tool_args"]
                    if isinstance(call["tool_args"], str)
                    else as_json(call["tool_args"]),
                },
            }
            for call in calls
        ]
    return message


def passages_in(content: Any) -> list[dict[str, Any]] | None:
    """The passages of a recorded search: a JSON list of objects."""
    try:
        passages = json.loads(content)
    except (TypeError, ValueError):
        return None
    fits = isinstance(passages, list) and all(isinstance(passage, dict) for passage in passages)
    return passages if fits else None


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def play(hooks: Hooks, source: Path) -> dict[str, Any]:
    """Plays all conversations of a file, one after the other. A line that is none is passed over."""
    conversations = messages = skipped = 0
    start = time.perf_counter()
    with source.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                recording = Recording.of_line(line)
            except (KeyError, TypeError, ValueError):
                skipped += 1
                continue
            conversations += 1
            messages += recording.messages
            await Player(hooks, recording, number).play()
    await hooks.ended()
    total = time.perf_counter() - start
    in_handlers = sum(hook.seconds for hook in hooks.all)
    return {
        "version": VERSION,
        "conversations": conversations,
        "skipped": skipped,
        "messages": messages,
        "hooks": [
            {"hook": hook.name, "point": hook.point, "calls": hook.calls, "changed": hook.changed} for hook in hooks.all
        ],
        "time": {
            "total_ms": round(total * 1e3, 3),
            "in_handlers_ms": round(in_handlers * 1e3, 3),
            "runner_ms": round((total - in_handlers) * 1e3, 3),
        },
    }


def new_loop() -> AbstractEventLoop:
    """A loop of the kind that the engine takes."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def main() -> None:
    parser = argparse.ArgumentParser(description="Plays recorded conversations through hooks in plain Python.")
    parser.add_argument("agent", type=Path, help="the agent's folder")
    parser.add_argument("input", type=Path, help="recorded conversations, one a line")
    arguments = parser.parse_args()
    hooks = Hooks(arguments.agent)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        print(json.dumps(runner.run(play(hooks, arguments.input)), indent=2))


if __name__ == "__main__":
    main()
