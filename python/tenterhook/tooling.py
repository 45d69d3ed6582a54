"""Tools of an agent: found by the mark of ``@tool``, described by their signature, called with arguments that fit it."""

from __future__ import annotations

import inspect
import json
import logging
import typing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, ValidationError, create_model

from tenterhook import _engine
from tenterhook.mantle.orchestration.turn_context import current
from tenterhook.mantle.tools.decorator import MemoryWriteError, ToolContext
from tenterhook.mantle.tools.events import event_of
from tenterhook.mantle.tools.result import ToolResult
from tenterhook.registration import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path
    from types import ModuleType

    from pydantic import BaseModel

    from tenterhook.mantle.payloads import ToolCallPayload
    from tenterhook.mantle.tools.decorator import Utterance
    from tenterhook.mantle.tools.events import Event

__all__ = ["COMPLAINT", "RESULT", "CallTurn", "FoundTool", "complaint", "find_tools", "parameters_of", "plain_schema"]

#: Under these names a tool's call tells its result to the engine, in place of its arguments.
RESULT, COMPLAINT, NEXT = "llm_response", "complaint", "next"

#: Tools that the engine offers itself.
ENGINE_TOOLS = frozenset(
    {
        "activate_skill",
        "cancel_skill",
        "cannot_help",
        "complete_skill",
        "listen",
        "resolve_tool_confirmation",
        "search_knowledge",
        "set_fields",
    }
)

logger = logging.getLogger("tenterhook.tools")


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool that is well formed."""

    name: str
    description: str
    #: The JSON schema of its arguments, as text.
    schema: str
    module: str
    file: Path
    line: int
    #: The skill that it belongs to; none: it lies at the agent's root.
    skill: str | None
    call: Callable[[ToolCallPayload], Coroutine[Any, Any, ToolCallPayload]]
    #: What it gives, as a Python annotation; ``None``: nobody asks, or it does not say.
    returns: str | None = None


def find_tools(
    root: Path,
    modules: Sequence[tuple[Path, ModuleType]],
    describe: Callable[[Path, str, Any, str], FoundTool | Problem] | None = None,
) -> tuple[list[FoundTool], list[Problem]]:
    """The tools that ``modules`` (file relative to ``root``, module) hold, and what is wrong with them; ``describe`` looks at each.

    A name that comes twice in one place is the later module's: a file in ``tools/`` shadows ``tools.py``.
    """
    found: dict[tuple[str | None, str], FoundTool] = {}
    problems: list[Problem] = []
    seen: set[tuple[str | None, int]] = set()
    names = {module.__name__ for _, module in modules}
    for file, module in modules:
        skill = file.parts[1] if file.parts[0] == "skills" else None
        others = names - {module.__name__}
        for function in list(vars(module).values()):
            description = getattr(function, "_tool_description", None)
            if not isinstance(description, str) or isinstance(function, type) or (skill, id(function)) in seen:
                continue
            # What is imported from another tool module is that module's, and not offered here by the way.
            if getattr(function, "__module__", None) in others:
                continue
            seen.add((skill, id(function)))
            tool = (describe or _tool)(root / file, ".".join(file.with_suffix("").parts), function, description)
            if isinstance(tool, Problem):
                problems.append(tool)
                continue
            tool = replace(tool, skill=skill)
            shadowed = found.get((tool.skill, tool.name))
            if shadowed is not None:
                logger.info("The tool `%s` of %s shadows that of %s", tool.name, tool.file, shadowed.file)
            found[tool.skill, tool.name] = tool
    return list(found.values()), problems


def _tool(file: Path, module: str, function: Any, description: str) -> FoundTool | Problem:
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(inspect.unwrap(function), "__code__", None)
    line = code.co_firstlineno if code is not None else 1
    if name in ENGINE_TOOLS:
        message = f"`{name}` is a tool of the engine's own"
        return Problem("reserved-name", message, "give the tool another name", file, line)
    if not inspect.iscoroutinefunction(inspect.unwrap(function)):
        return Problem("sync-tool", f"The tool `{name}` is not async", "make it `async def`", file, line)
    try:
        arguments = parameters_of(function, name)
        schema = plain_schema(arguments.model_json_schema())
    except Exception as error:  # whatever a user's annotation raises
        message = f"The parameters of the tool `{name}` cannot be described: {type(error).__name__}: {error}"
        return Problem("unresolved-annotation", message, "annotate each with a type that JSON can carry", file, line)
    schema.pop("description", None)
    return FoundTool(
        name, description, json.dumps(schema), module, file, line, None, _caller(function, name, arguments)
    )


def parameters_of(function: Any, name: str) -> type[BaseModel]:
    """The parameters as a pydantic model; string annotations are resolved, ``functools.wraps`` is followed."""
    target = inspect.unwrap(function)
    hints = typing.get_type_hints(target, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(target).parameters.values():
        if parameter.name == "context" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints.get(parameter.name, Any), default)
    return create_model(name, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)


def plain_schema(schema: Any) -> Any:
    """A schema without the titles that pydantic adds."""
    if isinstance(schema, dict):
        return {
            key: plain_schema(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)
        }
    if isinstance(schema, list):
        return [plain_schema(item) for item in schema]
    return schema


class CallTurn:
    """The turn of one call, on the engine's side."""

    __slots__ = ("_invocation",)

    def __init__(self, invocation: int) -> None:
        self._invocation = invocation

    def say(self, utterance: Utterance) -> None:
        """Hands a text to the user."""
        if not isinstance(utterance["text"], str):
            raise TypeError(f"What is said is a text, not `{type(utterance['text']).__name__}`")
        _engine.tool_says(self._invocation, json.dumps(utterance, allow_nan=False))

    def write(self, piece: str) -> None:
        """Hands a piece of a text to the user."""
        _engine.tool_writes(self._invocation, piece)

    def set_buttons(self, buttons: list[dict[str, Any]]) -> None:
        """Buttons for the next text of the turn."""
        _engine.tool_sets_buttons(self._invocation, json.dumps(buttons, allow_nan=False))

    def recall(self, entry: str) -> Any:
        """The value of an entry of memory."""
        found = _engine.tool_recalls(self._invocation, entry)
        return None if found is None else json.loads(found)

    def remember(self, entry: str, value: Any) -> None:
        """Writes an entry of memory."""
        complaint = _engine.tool_remembers(self._invocation, entry, json.dumps(value, allow_nan=False))
        if complaint is not None:
            raise MemoryWriteError(complaint)

    def events(self) -> list[Event]:
        """What has happened in the conversation."""
        return [event_of(event) for event in json.loads(_engine.tool_events(self._invocation))]

    def model(self) -> str:
        """The name of the agent's model."""
        return _engine.tool_model(self._invocation)

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the tool any more."""
        return _engine.tool_is_cancelled(self._invocation)


def _caller(
    function: Any, name: str, arguments: type[BaseModel]
) -> Callable[[ToolCallPayload], Coroutine[Any, Any, ToolCallPayload]]:
    takes_context = "context" in inspect.signature(inspect.unwrap(function)).parameters

    async def call(payload: ToolCallPayload) -> ToolCallPayload:
        def answer(**result: Any) -> ToolCallPayload:
            return payload.model_copy(update={"arguments": result})

        invocation = int(payload.headers["invocation"])
        try:
            try:
                given = arguments.model_validate(payload.arguments)
            except ValidationError as error:
                return answer(**{COMPLAINT: complaint(error)})
            context = ToolContext(payload.sender_id, CallTurn(invocation))
            current.set(context)
            values = {field: getattr(given, field) for field in arguments.model_fields}
            if takes_context:
                values["context"] = context
            result = await function(**values)
        finally:
            # A turn that is cancelled waits a moment for this.
            _engine.tool_is_over(invocation)
        if not isinstance(result, ToolResult):
            raise TypeError(f"The tool `{name}` gave a `{type(result).__name__}`; expected a `ToolResult`")
        return answer(**{RESULT: result.llm_response, NEXT: [activation.model_dump() for activation in result.next]})

    call.__qualname__ = name
    return call


def complaint(error: ValidationError) -> str:
    """What is wrong with the arguments, in words that a model can act on."""

    def place(location: tuple[int | str, ...]) -> str:
        return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")

    wrong = [f"`{place(found['loc'])}`: {found['msg']}" for found in error.errors(include_url=False)]
    return "The arguments do not fit: " + "; ".join(wrong[:10])
