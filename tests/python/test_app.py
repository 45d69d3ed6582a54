"""Quick Apps from Python: the example's manifest, a real server behind it."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tenterhook import InvalidHooksError, LoadError, QuickApp

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
