"""Quick Apps from Python: the example's manifest, a real server behind it."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tenterhook import InvalidHooksError, LoadError, PayloadError, QuickApp

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLE = Path(__file__).parents[2] / "hooks-examples" / "memory-app"


async def answered(app: QuickApp, messages: Sequence[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    return [event async for event in app.request(messages, **more)]


def test_a_request_is_answered_and_its_conversation_goes_on() -> None:
    async def main() -> None:
        async with QuickApp.load(EXAMPLE / "app.json", key=b"sixteen bytes, at least") as app:
            events = await answered(app, [{"role": "user", "content": "I drink green tea with honey"}])
            told = [event for event in events if event["event"] != "token"]
            assert [event["event"] for event in told] == ["app_hook_ran", "message", "app_hook_ran", "finished"]
            text = "Noted. Green tea with honey, then."
            assert told[1] == {"event": "message", "text": text}
            assert "".join(event["text"] for event in events if event["event"] == "token") == text
            messages = events[-1]["messages"]
            assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
            follow = [*messages, {"role": "user", "content": "What tea do I drink when it rains?"}]
            last = (await answered(app, follow))[-1]
            assert last["status"] == "completed"
            recalled = [message["content"] for message in last["messages"] if message["role"] == "tool"]
            assert "The user said: I drink green tea with honey" in recalled
            told = [{key: hook[key] for key in ("name", "calls", "ran", "failures")} for hook in app.statistics()]
            assert told == [{"name": name, "calls": 2, "ran": 2, "failures": {}} for name in ("recall", "remember")]

    asyncio.run(main())


def test_calls_for_tools_of_the_caller_come_back(tmp_path: Path) -> None:
    script = "in_order: [{calls: [{tool: pick_file, arguments: {kind: pdf}}]}]"
    (tmp_path / "script.yml").write_text(script)
    (tmp_path / "app.json").write_text(json.dumps({"model": {"provider": "scripted", "script": "script.yml"}}))
    schema = {"type": "object", "properties": {"kind": {"type": "string"}}}
    tool = {"name": "pick_file", "description": "Picks a file", "parameters": schema}

    async def main() -> None:
        async with QuickApp.load(tmp_path / "app.json") as app:
            events = await answered(app, [{"role": "user", "content": "Open it"}], client_tools=[tool])
            assert events[-1]["status"] == "client_tools"
            function = events[-1]["messages"][-1]["tool_calls"][0]["function"]
            assert function == {"name": "pick_file", "arguments": '{"kind":"pdf"}'}

    asyncio.run(main())


def test_a_manifest_with_a_wrong_template_is_refused_with_its_place(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "app")
    manifest = tmp_path / "app" / "app.json"
    manifest.write_text(manifest.read_text().replace("${last_user_message.content}", "${last_user_mesage.content}"))
    with pytest.raises((LoadError, InvalidHooksError), match="last_user_mesage"):
        QuickApp.load(manifest)


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("given", ["messages", "client_tools"])
@pytest.mark.parametrize("levels", [125, 130, 100_000])
def test_what_is_nested_too_deep_is_refused_and_the_next_request_is_answered(
    tmp_path: Path, levels: int, given: str
) -> None:
    (tmp_path / "script.yml").write_text("in_order: [{text: Hm.}, {text: Hm.}]")
    (tmp_path / "app.json").write_text(json.dumps({"model": {"provider": "scripted", "script": "script.yml"}}))
    user = {"role": "user", "content": "Hello"}
    deep = nested(levels)
    messages = [{**user, "content": deep}] if given == "messages" else [user]
    tool = {"name": "pick", "description": "Picks", "parameters": {"type": deep}}

    async def main() -> None:
        async with QuickApp.load(tmp_path / "app.json") as app:
            asked = answered(app, messages, client_tools=[tool] if given == "client_tools" else [])
            if levels == 125:
                assert (await asked)[-1]["status"] == "completed"
            else:
                with pytest.raises(PayloadError) as raised:
                    await asked
                place, why = str(raised.value).split("` is ")
                assert place.startswith(
                    "Invalid `messages[0].content[0]" if given == "messages" else "Invalid `client_tools[0].parameters"
                )
                assert why == "nested deeper than 128 levels; does it contain itself?"
            assert (await answered(app, [user]))[-1]["messages"] == [user, {"role": "assistant", "content": "Hm."}]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        (["Hello"], 'Invalid `messages`: invalid type: string "Hello", expected a map'),
        (
            [{"role": "user", "content": float("nan")}],
            "Invalid `messages[0].content` is nan; JSON has only finite numbers",
        ),
        (
            [{"role": "user", "content": "\ud800"}],
            "Invalid `messages[0].content` holds a lone surrogate, which UTF-8 cannot carry",
        ),
        ([{"role": "user", 1: "x"}], "Invalid `messages[0]` has a key that is a `int`; JSON keys are `str`"),
    ],
)
def test_messages_that_are_no_json_are_refused_with_their_place(tmp_path: Path, messages: Any, why: str) -> None:
    (tmp_path / "script.yml").write_text("in_order: []")
    (tmp_path / "app.json").write_text(json.dumps({"model": {"provider": "scripted", "script": "script.yml"}}))

    async def main() -> None:
        async with QuickApp.load(tmp_path / "app.json") as app:
            with pytest.raises(PayloadError) as raised:
                await answered(app, messages)
            assert str(raised.value).startswith(why)

    asyncio.run(main())
