"""The example that is a Python program of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "hooks-examples" / "execution-reuse" / "shop.py"


def test_one_set_of_hooks_serves_several_executions() -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    shown = "socks {'success': True, 'result': 12}\njackets {'success': True, 'result': 0}\ntools called: ['stock', 'stock']\n"
    assert (done.returncode, done.stdout) == (0, shown), done.stderr
