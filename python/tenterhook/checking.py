"""What is wrong with hook modules, found without importing them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tenterhook import _engine
from tenterhook.errors import Problem

if TYPE_CHECKING:
    import os

__all__ = ["check"]


def check(path: str | os.PathLike[str], *, target_version: tuple[int, int] | None = None) -> list[Problem]:
    """Checks the agent in the folder ``path`` (hooks, configuration, skills), or one module, as ``tenterhook check`` does.

    ``target_version`` is the Python whose grammar counts, such as ``(3, 11)``; unless given, what the settings beside the
    agent name, else the running one. Those settings also say which rules count.

    Raises :class:`tenterhook.AgentError` where there is nothing to check.
    """
    minor = None if target_version is None else target_version[1]
    return [Problem.of(found) for found in _engine.check(Path(path), minor)]
