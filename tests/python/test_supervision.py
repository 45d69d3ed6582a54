"""Handlers that do not give their thread back, as a Python caller sees them."""

import asyncio
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tenterhook import Engine, HookExecutionError, LoadError, Proceed
from tenterhook.mantle.hooks import ModelRequestPayload, OutgoingTextPayload

from tests.python.conftest import WriteAgent

HOOKS = """
import time
@modify_model_request(timeout_ms=100)
async def block(request: ModelRequestPayload) -> ModelRequestPayload:
    time.sleep(1)
    return request

@modify_outgoing_text()
async def good(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    return payload.model_copy(update={"text": "good"})
"""


async def _outcome(engine: Engine) -> tuple[str, float]:
    start = time.perf_counter()
    with pytest.raises(HookExecutionError) as caught:
        await engine.modify(ModelRequestPayload(sender_id="s", messages=[]))
    return str(caught.value), time.perf_counter() - start


@pytest.mark.anyio
async def test_a_blocking_handler_times_out_and_the_others_answer(write_agent: WriteAgent) -> None:
    async with Engine.load(write_agent(HOOKS)) as engine:
        blocked = asyncio.ensure_future(_outcome(engine))
        await asyncio.sleep(0.01)
        outcomes = await asyncio.gather(*(engine.modify(OutgoingTextPayload(sender_id="s", text="")) for _ in range(5)))
        said, after = await blocked
        assert re.search("it was not done after 100 ms$", said)
        assert 0.1 <= after < 0.5
        assert [outcome.payload.text for outcome in outcomes if isinstance(outcome, Proceed)] == ["good"] * 5
        for _ in range(200):
            if engine.health()["retired"] and engine.health()["retired"][0]["stack"]:
                break
            await asyncio.sleep(0.01)
        health = engine.health()
        (stuck,) = health["retired"]
        assert (stuck["handler"]["function"], health["serving"], health["taken_over"]) == ("block", 1, 1)
        assert re.search(r"hooks\.py:\d+ in block$", stuck["stack"][-1])


@pytest.mark.anyio
async def test_a_reload_swaps_or_leaves_all_as_it_was(write_agent: WriteAgent) -> None:
    agent = write_agent(HOOKS)
    async with Engine.load(agent) as engine:
        (agent / "hooks.py").write_text("import nothing_of_this_name\n")
        with pytest.raises(LoadError, match="nothing_of_this_name"):
            await engine.reload()
        outcome = await engine.modify(OutgoingTextPayload(sender_id="s", text=""))
        assert isinstance(outcome, Proceed)
        assert outcome.payload.text == "good"
        write_agent(HOOKS.replace('"good"', '"better"'))
        await engine.reload()
        outcome = await engine.modify(OutgoingTextPayload(sender_id="s", text=""))
        assert isinstance(outcome, Proceed)
        assert outcome.payload.text == "better"


EXIT = """
import asyncio, sys, time
from tenterhook import Engine, install
install()
from rasa.mantle.hooks import ModelRequestPayload

async def main():
    engine = Engine.load(sys.argv[1])
    calls = [asyncio.ensure_future(engine.modify(ModelRequestPayload(sender_id="s", messages=[]))) for _ in range(3)]
    await asyncio.sleep(0)
    time.sleep(float(sys.argv[2]))
    sys.exit(0)

asyncio.run(main())
"""

BODIES = {
    "good": "pass",
    "sleeping": "time.sleep(1)",
    "spinning": "while True: pass",
    "awaiting": "await asyncio.sleep(1)",
}


@pytest.mark.parametrize("delay", [0, 0.03, 0.12])
@pytest.mark.parametrize("body", BODIES)
def test_the_interpreter_exits_clean_with_handlers_in_flight(
    body: str, delay: float, write_agent: WriteAgent, tmp_path: Path
) -> None:
    agent = write_agent(
        "import asyncio, time\n@modify_model_request(timeout_ms=100)\n"
        f"async def f(p: ModelRequestPayload) -> ModelRequestPayload:\n    {BODIES[body]}\n    return p\n"
    )
    script = tmp_path / "script.py"
    script.write_text(EXIT)
    command = [sys.executable, "-W", "ignore", str(script), str(agent), str(delay)]
    for _ in range(5):
        runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(4)]
        ends = [(run.communicate(timeout=60)[1], run.returncode) for run in runs]
        assert [code for _, code in ends] == [0] * 4, ends
