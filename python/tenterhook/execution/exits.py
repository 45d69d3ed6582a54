"""The ends that generated code may reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from tenterhook.errors import ExecutionError

__all__ = ["Exit", "described"]


@dataclass(frozen=True, slots=True)
class Exit:
    """An end that generated code may reach, and what it has to give there.

    ``schema`` is a JSON schema (a dict), or a type that pydantic knows: a model, ``list[int]``, a dataclass; without it the result may be
    anything. ``name`` and ``aliases`` are the same in upper and lower case.
    """

    name: str
    description: str
    schema: Any = None
    aliases: tuple[str, ...] = ()


def described(exit: object) -> dict[str, Any]:
    """The exit as the engine is told of it."""
    if not isinstance(exit, Exit):
        raise ExecutionError(
            f"An exit is a `{type(exit).__name__}`\n  hint: write `tenterhook.Exit(name, description)` for each"
        )
    aliases = (exit.aliases,) if isinstance(exit.aliases, str) else tuple(exit.aliases)
    return {
        "name": exit.name,
        "description": exit.description,
        "aliases": list(aliases),
        "schema": _schema(exit.name, exit.schema),
    }


def _schema(name: str, schema: Any) -> dict[str, Any] | None:
    from tenterhook.tooling import plain_schema

    if schema is None or isinstance(schema, dict):
        return schema
    try:
        made: dict[str, Any] = plain_schema(TypeAdapter(schema).json_schema())
    except PydanticUserError as error:
        raise ExecutionError(
            f"The schema of the exit `{name}` is neither a JSON schema nor a type that has one: {error.message}\n"
            "  hint: give a dict, or a pydantic model"
        ) from None
    return made
