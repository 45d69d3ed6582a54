"""Hooks in a process of their own, from Python."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tenterhook import Engine, HookExecutionError, InvalidHooksError, Proceed
from tenterhook.mantle.hooks import ModelRequestPayload, OutgoingTextPayload

HOOKS = """
import os, re
from rasa.mantle.hooks import *
count = []

@modify_model_request(timeout_ms=100)
async def block(request: ModelRequestPayload) -> ModelRequestPayload:
    re.match(r'(a+)+$', 'a' * 40 + 'b')
    return request

@modify_outgoing_text(timeout_ms=5000)
async def good(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    print('printed')
    count.append(1)
    return payload.model_copy(update={'text': f'{os.getpid()} {len(count)}'})
"""


def agent(folder: Path, hooks: str = HOOKS) -> Path:
    (folder / "hooks.py").write_text(hooks)
    return folder


def is_alive(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False


def wait_for_end(process: int) -> None:
    start = time.monotonic()
    while is_alive(process):
        assert time.monotonic() - start < 10
        time.sleep(0.01)


def test_what_keeps_the_interpreters_lock_keeps_neither_caller_nor_other_hooks(tmp_path: Path) -> None:
    async def main() -> None:
        text = OutgoingTextPayload(sender_id="s", text="")
        async with Engine.load(agent(tmp_path), isolation="process") as engine:
            process = engine.health()["worker"]["process"]
            assert process != os.getpid()
            for expected in (1, 2):
                match await engine.modify(text):
                    case Proceed(payload):
                        assert payload.text == f"{process} {expected}"
            start = time.monotonic()
            with pytest.raises(HookExecutionError) as raised:
                await engine.modify(ModelRequestPayload(sender_id="s", messages=[]))
            assert time.monotonic() - start < 0.4
            assert raised.value.failure.cause == "timeout"
            # A call that is sent before the process is killed is lost with it.
            while engine.health()["worker"]["restarts"] == 0:
                await asyncio.sleep(0.01)
            match await engine.modify(text):
                case Proceed(payload):
                    other, count = payload.text.split()
                    assert int(other) != process
                    assert count == "1"
            health = engine.health()
            assert health["worker"]["restarts"] == 1
            assert health["worker"]["stack"][0] == f"{tmp_path}/hooks.py:8 in block"
        wait_for_end(int(other))

    asyncio.run(main())


def test_the_worker_ends_with_the_process_even_where_a_hook_keeps_the_lock(tmp_path: Path) -> None:
    script = f"""
import asyncio, threading
from tenterhook import Engine
from tenterhook.mantle.hooks import ModelRequestPayload

async def main():
    engine = Engine.load({str(agent(tmp_path))!r}, isolation="process")
    print(engine.health()["worker"]["process"], flush=True)
    task = asyncio.ensure_future(engine.modify(ModelRequestPayload(sender_id="s", messages=[])))
    await asyncio.sleep(0.05)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    wait_for_end(int(done.stdout))


def test_a_load_that_is_refused_has_its_problems(tmp_path: Path) -> None:
    folder = agent(tmp_path, "from rasa.mantle.hooks import modify_model_request\n1 / 0\n")
    with pytest.raises(InvalidHooksError) as raised:
        Engine.load(folder, isolation="process")
    assert [problem.rule for problem in raised.value.problems] == ["import-failed"]
    with pytest.raises(ValueError, match="expected 'thread' or 'process'"):
        Engine.load(folder, isolation="container")  # type: ignore[arg-type]
