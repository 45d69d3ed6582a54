"""Decorators, payload classes and the engine's table agree; fields and defaults are those of the published interface."""

import inspect
import json
import subprocess
import sys
from typing import Any

import pydantic
import pytest
from tenterhook.mantle import decorators, hooks, payloads, signals

PUBLISHED_FIELDS: dict[str, dict[str, Any]] = {
    "CallInfo": {"phone_number": None, "metadata": {}},
    "ChannelInfo": {"name": None, "metadata": {}},
    "HookPayload": {"sender_id": ..., "call": payloads.CallInfo(), "channel": payloads.ChannelInfo()},
    "TurnStartedPayload": {"turn_id": None, "is_voice": False},
    "TurnFinishedPayload": {"turn_id": None, "status": ...},
    "IncomingMessagePayload": {"text": ..., "message_id": None},
    "ModelRequestPayload": {"messages": ..., "model_settings": {}, "tool_names": [], "iteration": 0},
    "ModelResponsePayload": {"text": None, "tool_calls": [], "latency_ms": None},
    "ToolCallPayload": {"tool_name": ..., "arguments": ..., "headers": {}},
    "ToolResultPayload": {"tool_name": ..., "arguments": ..., "value": ..., "is_error": False},
    "KnowledgeQueryPayload": {"query": ...},
    "KnowledgeResultsPayload": {"query": ..., "passages": ...},
    "OutgoingTextPayload": {"text": ..., "is_voice": False},
}


@pytest.fixture(scope="module")
def points() -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tenterhook", "points", "--output-format", "json"]
    catalogue = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert catalogue["version"] == 1
    assert catalogue["default_timeouts_ms"] == {"observe": 100, "modify": 500}
    found: list[dict[str, Any]] = catalogue["points"]
    return found


@pytest.mark.parametrize("name", PUBLISHED_FIELDS)
def test_a_payload_has_the_published_fields_and_defaults(name: str) -> None:
    model: type[pydantic.BaseModel] = getattr(payloads, name)
    base = PUBLISHED_FIELDS["HookPayload"] if issubclass(model, payloads.HookPayload) else {}
    fields = {
        field: ... if info.is_required() else info.get_default(call_default_factory=True)
        for field, info in model.model_fields.items()
    }
    assert fields == {**base, **PUBLISHED_FIELDS[name]}
    assert model.model_config["frozen"] is True


def test_the_decorators_are_those_of_the_table(points: list[dict[str, Any]]) -> None:
    of_table = [name for point in points for name in (point["observe"], point["modify"]) if name]
    aliases = ["on_outgoing_message", "modify_outgoing_message"]
    assert len(of_table) == 18
    assert sorted([*of_table, *aliases]) == sorted(decorators.__all__)


def test_a_decorator_marks_with_its_point_and_lane(points: list[dict[str, Any]]) -> None:
    for point in points:
        for lane in ("observe", "modify"):
            if point[lane] is None:
                continue
            decorator = getattr(hooks, point[lane])

            @decorator(timeout_ms=7)  # type: ignore[untyped-decorator]
            async def handler(payload: object) -> None: ...

            marks = (handler._hook_point, handler._hook_lane, handler._hook_timeout_ms)
            assert marks == (point["point"], lane, 7)
            assert handler._tenterhook_marks[0].payload is getattr(hooks, point["payload"])
            assert inspect.iscoroutinefunction(handler)
            assert str(inspect.signature(decorator)) in {
                "(*, timeout_ms: 'int | None' = None)",
                "(*, timeout_ms: int | None = None)",
            }


def test_the_payload_fields_are_those_of_the_table(points: list[dict[str, Any]]) -> None:
    for point in points:
        model: type[pydantic.BaseModel] = getattr(payloads, point["payload"])
        of_table = {field["name"]: field["required"] for field in point["fields"]}
        of_class = {name: info.is_required() for name, info in model.model_fields.items()}
        assert of_table == of_class, point["point"]
        for field in point["fields"]:
            annotation = model.__annotations__.get(field["name"]) or payloads.HookPayload.__annotations__[field["name"]]
            assert annotation.replace('"', "'") == field["type"], (point["point"], field["name"])


def test_the_signals_are_those_of_the_table(points: list[dict[str, Any]]) -> None:
    taken = {point["point"]: point["signals"] for point in points if point["signals"]}
    assert taken == {
        "incoming_message": ["HookRejection"],
        "model_response": ["RetryModel"],
        "tool_call": ["RetryModel"],
        "outgoing_text": ["HookRejection"],
    }
    assert {name for names in taken.values() for name in names} <= set(signals.__all__)


def test_everything_that_a_hook_module_imports_is_in_one_module() -> None:
    assert hooks.__all__ == [*decorators.__all__, *payloads.__all__, *signals.__all__]
    assert hooks.OutgoingMessagePayload is hooks.OutgoingTextPayload
    assert hooks.on_outgoing_message is hooks.on_outgoing_text
    assert hooks.modify_outgoing_message is hooks.modify_outgoing_text


def test_signals_carry_what_they_were_raised_with() -> None:
    assert hooks.RetryModel("again").feedback == "again"
    rejection = hooks.HookRejection(reason="no", response_message="Sorry")
    assert (rejection.reason, rejection.response_message, str(rejection)) == ("no", "Sorry", "no")
    assert isinstance(rejection, hooks.HookControlFlow)
    assert hooks.HookRejection("no").response_message is None


def test_a_decorator_without_parentheses_says_so_outside_an_engine_too() -> None:
    async def handler(payload: object) -> None: ...

    with pytest.raises(TypeError, match=r"`@on_tool_call` is used without parentheses \(write `@on_tool_call\(\)`\)"):
        hooks.on_tool_call(handler)  # type: ignore[call-arg, arg-type]
