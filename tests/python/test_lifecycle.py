"""What is told of conversations in which nobody says anything, from Python."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tenterhook import InvalidHooksError, TurnEngine


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    subprocess.run([sys.executable, "-m", "tenterhook", "init", str(folder)], check=True, capture_output=True)
    return folder


def configure(agent: Path, lifecycle: str) -> None:
    (agent / "agent.yml").write_text(f"agent: {{persona: x}}\nlifecycle: {lifecycle}\n")


async def say(engine: TurnEngine, text: str) -> list[str]:
    return [event["text"] async for event in engine.turn("s", text) if event["event"] == "message"]


async def first(engine: TurnEngine, count: int) -> list[dict[str, Any]]:
    events = []
    async for event in engine.lifecycle():
        events.append(event)
        if len(events) == count:
            break
    return events


def test_a_silent_conversation_is_nudged_and_expires(agent: Path, tmp_path: Path) -> None:
    configure(agent, "{nudge_after: 0.002, expire_after: 0.004}")

    async def main() -> list[dict[str, Any]]:
        async with TurnEngine.load(agent, store=tmp_path / "talks.db") as engine:
            await say(engine, "hello")
            return await asyncio.wait_for(first(engine, 2), 20)

    events = asyncio.run(main())
    since = events[0]["idle_since_ms"]
    assert events == [
        {"event": "nudge", "sender_id": "s", "idle_since_ms": since, "due_ms": since + 120},
        {"event": "expire", "sender_id": "s", "idle_since_ms": since, "due_ms": since + 240},
    ]


def test_what_is_not_taken_out_is_told_by_the_next_iteration(agent: Path) -> None:
    configure(agent, "{nudge_after: 0.001}")

    async def main() -> list[str]:
        async with TurnEngine.load(agent) as engine:
            for sender_id in ("a", "b"):
                async for _ in engine.turn(sender_id, "hello"):
                    pass
            await asyncio.sleep(0.1)
            told = [await asyncio.wait_for(first(engine, 1), 20) for _ in range(2)]
            return [event["sender_id"] for events in told for event in events]

    assert asyncio.run(main()) == ["a", "b"]


def test_a_turn_that_reacts_to_a_nudge_begins_no_new_time_of_silence(agent: Path) -> None:
    configure(agent, "{nudge_after: 0.001}")

    async def main() -> list[str]:
        async with TurnEngine.load(agent) as engine:
            await say(engine, "hello")
            kinds: list[str] = []

            async def react() -> None:
                async for event in engine.lifecycle():
                    kinds.append(event["event"])
                    await say(engine, "/nudge")

            with pytest.raises(TimeoutError):
                await asyncio.wait_for(react(), 1)
            return kinds

    assert asyncio.run(main()) == ["nudge"]


def test_without_a_lifecycle_the_iteration_is_over_at_once(agent: Path) -> None:
    async def main() -> list[dict[str, Any]]:
        async with TurnEngine.load(agent) as engine:
            return [event async for event in engine.lifecycle()]

    assert asyncio.run(main()) == []


def test_a_nudge_that_comes_after_the_end_refuses_the_load(agent: Path) -> None:
    configure(agent, "{nudge_after: 10, expire_after: 5}")
    with pytest.raises(InvalidHooksError) as raised:
        TurnEngine.load(agent)
    assert [str(problem.message) for problem in raised.value.problems] == [
        "A conversation that has expired cannot be nudged"
    ]
