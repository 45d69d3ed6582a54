"""``rasa.mantle.validation``: what is wrong with an agent, found without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenterhook.checking import check
from tenterhook.mantle.exceptions import ValidationError

if TYPE_CHECKING:
    import os

    from tenterhook.errors import Problem

__all__ = ["collect_project_findings", "validate_project"]


def collect_project_findings(path: str | os.PathLike[str]) -> list[Problem]:
    """All that is wrong or unwise in the agent in the folder ``path``: its configuration, skills and hooks."""
    return check(path)


def validate_project(path: str | os.PathLike[str]) -> None:
    """Raises ``rasa.exceptions.ValidationError`` where the agent in the folder ``path`` has errors; warnings are none."""
    errors = [problem for problem in collect_project_findings(path) if problem.severity == "error"]
    if errors:
        raise ValidationError("\n".join(str(problem) for problem in errors))
