"""What is wrong with hook modules, found without importing them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tenterhook import _engine
from tenterhook.errors import Problem

if TYPE_CHECKING:
    import os

__all__ = ["check"]


def check(path: str | os.PathLike[str], *, target_version: tuple[int, int] | None = None) -> list[Problem]:
    """Checks the hooks of the agent in the folder ``path``, or one module, as ``tenterhook check`` does.

    ``target_version`` is the Python whose grammar counts, such as ``(3, 11)``; the running one unless given.

    Raises :class:`tenterhook.AgentError` where there is nothing to check.
    """
    minor = (target_version or sys.version_info)[1]
    return [Problem.of(found) for found in _engine.check(Path(path), minor)]
