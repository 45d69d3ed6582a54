"""What has come of an execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, final

from tenterhook.execution.views import Iteration, Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ExecutionResult"]


@final
class ExecutionResult:
    """What has come of an execution: an exit that its code has reached, or why it ended otherwise."""

    __slots__ = ("_context", "_data", "_iterations")

    def __init__(self, data: Mapping[str, Any], context: Any = None) -> None:
        self._data = data
        self._context = context
        self._iterations = [Iteration(iteration) for iteration in data["iterations"]]

    @property
    def id(self) -> str:
        """The execution's id."""
        value: str = self._data["id"]
        return value

    @property
    def status(self) -> Literal["success", "error"]:
        """``success``: it has ended with a valid exit."""
        value: Literal["success", "error"] = self._data["status"]
        return value

    @property
    def exit(self) -> str | None:
        """The exit that was reached, where one was."""
        value: str | None = self._data["exit"]
        return value

    @property
    def output(self) -> Any:
        """The exit's validated result; ``None`` unless one was reached."""
        return self._data["output"]

    @property
    def error(self) -> str | None:
        """Why it ended otherwise: the reason of an abort as it was given, or what went wrong."""
        value: str | None = self._data["error"]
        return value

    @property
    def iterations(self) -> list[Iteration]:
        """Its iterations, in order."""
        return list(self._iterations)

    @property
    def iteration(self) -> Iteration | None:
        """The last of them; ``None``: it ended before the first."""
        return self._iterations[-1] if self._iterations else None

    @property
    def tokens(self) -> Tokens:
        """The tokens of all of them."""
        return Tokens(**self._data["tokens"])

    @property
    def context(self) -> Any:
        """What was given with it."""
        return self._context

    def is_success(self) -> bool:
        """Whether it has ended with a valid exit."""
        return self.status == "success"

    def is_(self, exit: object) -> bool:
        """Whether it has ended with that exit, given by its name or as the :class:`tenterhook.Exit`."""
        return self.exit is not None and self.exit == getattr(exit, "name", exit)

    def to_dict(self) -> dict[str, Any]:
        """All of it but ``context``, as plain values."""
        return {key: value for key, value in self._data.items() if key != "context"}

    def __repr__(self) -> str:
        return f"ExecutionResult(status={self.status!r}, exit={self.exit!r}, iterations={len(self._iterations)})"
