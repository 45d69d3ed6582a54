"""Replays recorded conversations through an agent's hooks: the engine's own share beside plain Python's.

    python replay.py AGENT INPUT [--command PATH] [--rounds N] [--jobs N] [--json FILE]

Runs ``tenterhook run`` and ``plain_player.py`` by turns on the same agent and input. Compared is what is left of the
playing time when the time inside handlers is taken off, in milliseconds: ``time.engine_ms`` of the command's report, and
``time.runner_ms`` of the plain player's. Start-up is in neither. Run it by the Python of the environment that holds the
package: the command is told to use that one, unless ``VIRTUAL_ENV`` names another.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

#: Raised when the JSON form changes its shape.
VERSION = 1


class Unfit(Exception):
    """The two cannot be compared, and why."""


@dataclass(frozen=True)
class Round:
    """Milliseconds that one run of each needed."""

    engine: float
    engine_total: float
    runner: float
    runner_total: float

    @property
    def ratio(self) -> float:
        """Plain Python's own share in parts of the engine's: above 1, the engine adds less."""
        return self.runner / self.engine


def report_of(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """Runs a command and reads its report. An exit code that tells of problems in hooks still comes with one."""
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(ended.stdout)
    except ValueError:
        raise Unfit(f"`{command[0]}` gave no report (exit code {ended.returncode}):\n{ended.stderr.strip()}") from None
    return report


def played(report: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """How often each hook was called and how often it changed something."""
    hooks = {}
    for hook in report["hooks"]:
        name = hook.get("hook") or f"{hook['module']}:{hook['function']}"
        hooks[f"{name} at {hook['point']}"] = (hook["calls"], hook["changed"])
    return hooks


def one_round(commands: tuple[list[str], list[str]], environment: dict[str, str]) -> tuple[Round, int]:
    """Runs both once and checks that they did the same; the round, and how many calls it had."""
    engine, plain = (report_of(command, environment) for command in commands)
    if (ours := played(engine)) != (theirs := played(plain)):
        raise Unfit(f"The hooks' calls and changes differ:\n  engine {ours}\n  plain  {theirs}")
    spent, baseline = engine["time"], plain["time"]
    times = Round(spent["engine_ms"], spent["total_ms"], baseline["runner_ms"], baseline["total_ms"])
    return times, sum(calls for calls, _ in ours.values())


def as_text(rounds: list[Round], calls: int) -> str:
    """The table: one line a runner, medians of the rounds."""
    engine, runner = median(r.engine for r in rounds), median(r.runner for r in rounds)
    lines = [
        ("", "own share, ms", "a call, µs", "whole, ms"),
        ("tenterhook", engine, engine * 1e3 / calls, median(r.engine_total for r in rounds)),
        ("plain Python", runner, runner * 1e3 / calls, median(r.runner_total for r in rounds)),
    ]
    text = "\n".join(
        f"{name:<14}" + "".join(f"{cell if isinstance(cell, str) else format(cell, '.1f'):>15}" for cell in cells)
        for name, *cells in lines
    )
    ratio = median(r.ratio for r in rounds)
    return f"{text}\nplain Python's own share is {ratio:.2f} times the engine's; medians of {len(rounds)} rounds, {calls} calls each"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Replays conversations: the engine's own share beside plain Python's.")
    parser.add_argument("agent", type=Path, help="the agent's folder")
    parser.add_argument("input", type=Path, help="recorded conversations, one a line")
    parser.add_argument(
        "--command", default="tenterhook", help="the binary or the wheel's command (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="conversations that the engine plays at once (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was measured to FILE")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    return arguments


def main() -> None:
    arguments = parse()
    if (command := shutil.which(arguments.command)) is None:
        sys.exit(f"There is no command `{arguments.command}`; name the binary by --command")
    environment = {"VIRTUAL_ENV": sys.prefix, **os.environ} if sys.prefix != sys.base_prefix else dict(os.environ)
    agent, source = str(arguments.agent), str(arguments.input)
    run = [command, "run", agent, "--input", source, "--jobs", str(arguments.jobs), "--output-format", "json"]
    plain = [sys.executable, str(Path(__file__).with_name("plain_player.py")), agent, source]
    rounds, calls = [], 0
    try:
        for _ in range(arguments.rounds):
            times, calls = one_round((run, plain), environment)
            rounds.append(times)
    except Unfit as reason:
        sys.exit(str(reason))
    print(as_text(rounds, calls))
    if arguments.json is not None:
        content = {
            "version": VERSION,
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "jobs": arguments.jobs,
            "calls": calls,
            "rounds": [
                {
                    "engine_ms": r.engine,
                    "engine_total_ms": r.engine_total,
                    "runner_ms": r.runner,
                    "runner_total_ms": r.runner_total,
                }
                for r in rounds
            ],
            "engine_ms": median(r.engine for r in rounds),
            "runner_ms": median(r.runner for r in rounds),
            "ratio": round(median(r.ratio for r in rounds), 3),
        }
        arguments.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
