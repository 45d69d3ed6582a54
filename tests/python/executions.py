"""Executions whose model is a script: one answer after the other, each the code that it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenterhook import ExecutionResult, Exit, execute

ANSWER = Exit("answer", "What was asked for")

Messages = list[dict[str, Any]]


def scripted(*codes: str, sent: list[Messages] | None = None) -> Callable[..., Any]:
    """A model that writes these codes; ``sent`` gets what it is sent each time."""
    answers = iter(codes)

    async def script(messages: Messages, tools: list[dict[str, Any]]) -> dict[str, Any]:
        if sent is not None:
            sent.append(messages)
        return {"code": next(answers)}

    return script


async def played(*codes: str, sent: list[Messages] | None = None, **settings: Any) -> ExecutionResult:
    """An execution whose model writes these codes."""
    settings.setdefault("exits", [ANSWER])
    return await execute(instructions="Work.", model=scripted(*codes, sent=sent), **settings)
