"""Checks many modules: the command's whole process beside a CPython process that parses the same files.

    python check.py [--command PATH] [--rounds N] [--json FILE]

For 300 and 3,000 modules of 60 lines, in alternation: ``tenterhook check`` on an agent that holds them, and
``python -c`` with ``ast.parse`` over the same files. Whole processes, start-up included, in milliseconds; medians of
the rounds, and the median of the ratios of each round. Run it by the Python that is to be compared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

#: Raised when the JSON form changes its shape.
VERSION = 1

PARSE = """
import ast, pathlib, sys
for file in pathlib.Path(sys.argv[1]).rglob("*.py"):
    ast.parse(file.read_bytes(), str(file))
"""

MODULE = '''"""Module {number}."""

from __future__ import annotations

import re

from rasa.mantle.hooks import ToolResultPayload, on_tool_result

_WORD = re.compile(r"[a-z]+")


@on_tool_result()
async def observe_{number}(result: ToolResultPayload) -> None:
    words_{number}(str(result.value))
'''

FUNCTION = '''

def words_{number}{suffix}(text: str) -> dict[str, int]:
    """Counts words."""
    counts: dict[str, int] = {{}}
    for word in _WORD.findall(text.lower()):
        if len(word) > 2:
            counts[word] = counts.get(word, 0) + 1
    return {{word: count for word, count in counts.items() if count > {number}}}
'''


def write_agent(folder: Path, modules: int) -> None:
    """Writes an agent of so many hook modules, each of 60 lines."""
    (folder / "hooks").mkdir()
    for number in range(modules):
        text = MODULE.format(number=number)
        for suffix in ("", "_a", "_b", "_c", "_d"):
            text += FUNCTION.format(number=number, suffix=suffix)
        lines = text.splitlines()[:60]
        (folder / "hooks" / f"m{number}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")


def timed(command: list[str]) -> float:
    """Milliseconds that a whole process takes; it must succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return (time.perf_counter() - start) * 1e3


def main() -> int:
    """Measures and prints; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", default="tenterhook")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    print(f"{'modules':>8}  {'tenterhook check, ms':>21}  {'CPython ast, ms':>16}  {'times faster':>12}")
    for modules in (300, 3000):
        with tempfile.TemporaryDirectory() as folder:
            write_agent(Path(folder), modules)
            rounds = []
            for _ in range(options.rounds):
                ours = timed([options.command, "check", folder, "--output-format", "concise"])
                plain = timed([sys.executable, "-c", PARSE, folder])
                rounds.append((ours, plain, plain / ours))
        ours, plain, ratio = (median(column) for column in zip(*rounds, strict=True))
        rows.append({"modules": modules, "check_ms": ours, "ast_ms": plain, "ratio": ratio})
        print(f"{modules:>8}  {ours:>21.1f}  {plain:>16.1f}  {ratio:>12.1f}")
    if options.json is not None:
        options.json.write_text(
            json.dumps({"version": VERSION, "python": sys.version, "rows": rows}, indent=2), "utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
