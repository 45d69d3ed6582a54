"""Models of an execution: entries such as a manifest has under ``model``, and functions of the caller's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tenterhook.errors import ExecutionError
from tenterhook.execution.calling import answered, invoked
from tenterhook.execution.places import FoundHook, name_of, place_of

if TYPE_CHECKING:
    from tenterhook.mantle.payloads import ToolCallPayload

__all__ = ["CODE_TOOL", "Model", "given_models"]

#: An entry of a manifest, or ``(messages, tools)`` → a text or an assistant's message.
Model: TypeAlias = "Mapping[str, Any] | Callable[..., Any]"

#: The tool by which a model gives its code.
CODE_TOOL = "run_python"


def given_models(model: Model | Sequence[Model] | None) -> list[str | FoundHook]:
    """The models as the engine is told of them: the text of an entry, or a function."""
    if model is None:
        return []
    models = list(model) if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    return [_given(one) for one in models]


def _given(model: object) -> str | FoundHook:
    if isinstance(model, Mapping):
        try:
            return json.dumps(dict(model), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ExecutionError(f"The entry of the model is not JSON: {error}") from None
    if not callable(model):
        raise ExecutionError(
            f"The model is a `{type(model).__name__}`\n"
            '  hint: give an entry such as `{"provider": "openai", "model": "…"}`, or a function `async (messages, tools) -> str | dict`'
        )
    place = place_of(model)
    name = name_of(model) or type(model).__name__
    return FoundHook("model", [], place.module, name, place.file, place.line, _caller(model))


def _caller(function: Callable[..., Any]) -> Any:
    async def call(payload: ToolCallPayload) -> ToolCallPayload:
        messages = json.loads(payload.arguments["messages"])
        tools = json.loads(payload.arguments["tools"])
        return answered(payload, reply=_reply(await invoked(function, messages, tools)))

    return call


def _reply(answer: Any) -> dict[str, Any]:
    """A text, an assistant's message in the form of Chat Completions, or such a message with ``code`` in the place of a call."""
    if isinstance(answer, str):
        return {"text": answer, "calls": [], "usage": None}
    if not isinstance(answer, Mapping):
        raise TypeError(f"The model gave a `{type(answer).__name__}`; expected a text or an assistant's message")
    unknown = set(answer) - {"role", "content", "tool_calls", "code", "usage"}
    if unknown:
        raise TypeError(
            f"The model gave a message with `{min(unknown)}`; expected `content`, `tool_calls`, `code`, `usage`"
        )
    calls = [_call(call) for call in answer.get("tool_calls") or ()]
    if answer.get("code") is not None:
        calls.append({"id": None, "name": CODE_TOOL, "arguments": {"code": answer["code"]}})
    usage = answer.get("usage") or {}
    counted = [usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)] if usage else None
    return {"text": answer.get("content"), "calls": calls, "usage": counted}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {"id": call.get("id"), "name": function["name"], "arguments": function.get("arguments") or {}}
