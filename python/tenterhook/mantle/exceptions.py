"""``rasa.exceptions``: as much of it as :mod:`rasa.mantle.validation` raises."""

from __future__ import annotations

__all__ = ["ValidationError"]


class ValidationError(Exception):
    """An agent has errors; the message tells each with its place."""
