"""Whole agents, from Python."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tenterhook import InvalidHooksError, TurnEngine
from tenterhook.mantle.hooks import CallInfo, ChannelInfo


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    subprocess.run([sys.executable, "-m", "tenterhook", "init", str(folder)], check=True, capture_output=True)
    return folder


async def played(engine: TurnEngine, text: str, **settings: Any) -> list[dict[str, Any]]:
    return [event async for event in engine.turn("s", text, **settings)]


def heard(events: list[dict[str, Any]]) -> list[str]:
    return [event["text"] for event in events if event["event"] == "message"]


def test_a_turn_gives_its_events_and_the_store_remembers(agent: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with TurnEngine.load(agent, store=tmp_path / "talks.db") as engine:
            events = await played(engine, "Where is my parcel?", channel="rest", message_id="m1")
            assert heard(events) == ["Let me look.", "Your parcel 4711 is in Hamburg and comes tomorrow."]
            assert [event["event"] for event in events if event["event"] not in ("token", "hook_ran")] == [
                "started", "model_answered", "message", "tool_called", "tool_returned", "model_answered", "message",
                "finished",
            ]  # fmt: skip
            assert events[-1] == {"event": "finished", "status": "completed"}
            assert heard(await played(engine, "4111 1111 1111 1111")) == [
                "Please write to me without the number of your card."
            ]

    asyncio.run(main())
    assert (tmp_path / "talks.db").stat().st_size > 0


def test_hooks_see_the_call_and_the_channel_and_the_caller_sees_what_they_change(agent: Path) -> None:
    (agent / "hooks.py").write_text(
        "from rasa.mantle.hooks import OutgoingTextPayload, modify_outgoing_text\n"
        "@modify_outgoing_text()\n"
        "async def tell(payload: OutgoingTextPayload) -> OutgoingTextPayload:\n"
        "    call, channel = payload.call, payload.channel\n"
        "    seen = f'{call.phone_number} {call.metadata} {channel.name} {channel.metadata}'\n"
        "    return payload.model_copy(update={'text': seen})\n"
    )
    call = CallInfo(phone_number="+49 40 1", metadata={"trunk": 2})
    channel = ChannelInfo(name="phone", metadata={"region": "eu"})

    async def main() -> None:
        async with TurnEngine.load(agent) as engine:
            events = await played(engine, "hello", call=call, channel=channel, shows_changes=True)
            seen = "+49 40 1 {'trunk': 2} phone {'region': 'eu'}"
            assert heard(events) == [seen]
            changes = [event["changed"] for event in events if event["event"] == "hook_ran"]
            assert changes == [
                {"before": {"text": "Hello! Ask me about your parcel."}, "after": {"text": seen}},
            ]

    asyncio.run(main())


def test_turns_run_at_once_and_leaving_the_loop_cancels_one(agent: Path) -> None:
    (agent / "tools.py").write_text(
        "import asyncio\n"
        "from rasa.mantle.tools.decorator import tool\n"
        "from rasa.mantle.tools.result import ToolResult\n"
        "@tool(description='Waits')\n"
        "async def find_parcel(number: str) -> ToolResult:\n"
        "    await asyncio.sleep(60)\n"
    )

    async def main() -> None:
        async with TurnEngine.load(agent) as engine:
            async for event in engine.turn("s", "parcel"):
                if event["event"] == "tool_called":
                    break
            # The conversation is free again.
            events = await asyncio.wait_for(played(engine, "hello"), 10)
            assert heard(events) == ["Hello! Ask me about your parcel."]
            others = [asyncio.ensure_future(played(engine, "hello")) for _ in range(20)]
            assert all(heard(events) for events in await asyncio.gather(*others))
            slow = asyncio.ensure_future(played(engine, "parcel"))
            await asyncio.sleep(0.2)
            assert engine.interrupt("s")
            assert (await slow)[-1]["status"] == "cancelled"

    asyncio.run(main())


def test_a_load_that_is_refused_has_its_problems(agent: Path) -> None:
    (agent / "agent.yml").write_text("agent: {persona: 7}\n")
    with pytest.raises(InvalidHooksError) as raised:
        TurnEngine.load(agent)
    assert [problem.rule for problem in raised.value.problems] == ["wrong-type"]
