"""Functions as tools of an execution: described by their signature and docstring, called with arguments that fit it."""

from __future__ import annotations

import inspect
import json
import typing
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from tenterhook import _engine
from tenterhook.errors import ExecutionError
from tenterhook.execution.calling import answered, invoked, plain, signalled
from tenterhook.execution.places import name_of, place_of
from tenterhook.mantle.orchestration.turn_context import current
from tenterhook.mantle.tools.decorator import ToolContext
from tenterhook.mantle.tools.result import ToolResult
from tenterhook.tooling import COMPLAINT, RESULT, CallTurn, FoundTool, complaint, parameters_of, plain_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from tenterhook.execution.places import Call
    from tenterhook.mantle.payloads import ToolCallPayload

__all__ = ["found_tool"]


def found_tool(function: Any) -> FoundTool:
    """The tool as the engine is told of it.

    ``function`` is decorated with ``@tool`` or any function with a name; its docstring is what the model reads where the decorator
    says nothing. A parameter named ``context`` is given a :class:`ToolContext` and hidden from the model.
    """
    if not callable(function) or isinstance(function, type):
        kind = function.__name__ if isinstance(function, type) else type(function).__name__
        raise ExecutionError(f"A tool is a `{kind}`\n  hint: give a function, with or without `@tool`")
    name = name_of(function)
    if name is None:
        raise ExecutionError(f"A tool has no name: {function!r}\n  hint: write it as `def name(…)`")
    description = getattr(function, "_tool_description", None) or inspect.getdoc(function) or ""
    try:
        arguments = parameters_of(function, name)
        schema = plain_schema(arguments.model_json_schema())
    except Exception as error:  # whatever a user's annotation raises
        raise ExecutionError(
            f"The parameters of the tool `{name}` cannot be described: {type(error).__name__}: {error}\n"
            "  hint: annotate each with a type that JSON can carry"
        ) from error
    schema.pop("description", None)
    place = place_of(function)
    return FoundTool(
        name,
        description,
        json.dumps(schema),
        place.module,
        place.file,
        place.line,
        None,
        _caller(function, name, arguments),
        _returns(function),
    )


def _caller(function: Callable[..., Any], name: str, arguments: type[BaseModel]) -> Call:
    takes_context = "context" in inspect.signature(inspect.unwrap(function)).parameters

    async def call(payload: ToolCallPayload) -> ToolCallPayload:
        invocation = int(payload.headers["invocation"])
        try:
            try:
                given = arguments.model_validate(payload.arguments)
            except ValidationError as error:
                return answered(payload, **{COMPLAINT: complaint(error)})
            context = ToolContext(payload.sender_id, CallTurn(invocation))
            current.set(context)
            values = {field: getattr(given, field) for field in arguments.model_fields}
            if takes_context:
                values["context"] = context
            result = await invoked(function, **values)
            if isinstance(result, ToolResult):
                result = result.llm_response
            return answered(payload, **{RESULT: plain(result, f"The result of the tool `{name}`")})
        except BaseException as error:  # also what is no `Exception`: it is the tool's failure
            signal = signalled(error)
            if signal is None or "think" not in signal:
                raise
            return answered(payload, **signal)
        finally:
            # An execution that is cancelled waits a moment for this.
            _engine.tool_is_over(invocation)

    call.__qualname__ = name
    return call


def _returns(function: Any) -> str | None:
    """What a tool gives, as a Python annotation of the plain values that generated code receives; ``None``: it does not say."""
    try:
        hints = typing.get_type_hints(inspect.unwrap(function), include_extras=True)
        if "return" not in hints or hints["return"] in (Any, ToolResult):
            return None
        schema = TypeAdapter(hints["return"]).json_schema(mode="serialization")
    except Exception:  # an annotation that pydantic cannot follow is for people
        return None
    return _annotation(schema, schema.get("$defs", {}), 4)


_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def _annotation(schema: Any, definitions: dict[str, Any], depth: int) -> str:
    if not isinstance(schema, dict) or depth == 0:
        return "Any"
    if "$ref" in schema:
        return _annotation(definitions.get(schema["$ref"].rpartition("/")[2]), definitions, depth - 1)
    if "enum" in schema or "const" in schema:
        return f"Literal[{', '.join(map(repr, schema.get('enum', [schema.get('const')])))}]"
    arms = schema.get("anyOf") or schema.get("oneOf")
    if arms:
        return " | ".join(dict.fromkeys(_annotation(arm, definitions, depth) for arm in arms))
    kind = schema.get("type")
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "array":
        return f"list[{_annotation(schema.get('items'), definitions, depth - 1)}]"
    if kind == "object":
        properties = schema.get("properties")
        if properties:
            # No annotation of Python's, but what a model reads without being told.
            of = (f"{name!r}: {_annotation(inner, definitions, depth - 1)}" for name, inner in properties.items())
            return f"{{{', '.join(of)}}}"
        return f"dict[str, {_annotation(schema.get('additionalProperties'), definitions, depth - 1)}]"
    return "Any"
