"""Fixtures: agents written for a test."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

WriteAgent = Callable[..., Path]


@pytest.fixture
def write_agent(tmp_path: Path) -> WriteAgent:
    """``write_agent(hooks)`` writes a `hooks.py` that begins with all names of `rasa.mantle.hooks`; gives the folder."""

    def write(hooks: str) -> Path:
        (tmp_path / "hooks.py").write_text(f"from rasa.mantle.hooks import *\n{hooks}", encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests run on asyncio."""
    return "asyncio"
