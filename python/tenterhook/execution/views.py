"""What hooks are shown. An iteration is read from its JSON when it is looked at, so that what nobody looks at costs little."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NoReturn, final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ExitInfo", "Iteration", "Status", "Tokens", "ToolInfo", "Trace"]


@final
@dataclass(frozen=True, slots=True)
class Status:
    """How an iteration stands or has ended. What a kind of status does not have is ``None``.

    ``type`` is ``pending``, ``generation_error``, ``invalid_code_error``, ``execution_error``, ``thinking_requested``,
    ``exit_success``, ``exit_error`` or ``aborted``.
    """

    type: str
    #: What went wrong: of the four kinds of error.
    message: str | None = None
    #: A marked listing of the code: of ``execution_error``.
    stack: str | None = None
    #: Of ``thinking_requested`` and ``aborted``.
    reason: str | None = None
    #: What the model is to look at: of ``thinking_requested``.
    variables: dict[str, Any] | None = None
    #: Of ``exit_success``.
    exit_name: str | None = None
    #: Of ``exit_error``.
    exit: str | None = None
    #: The exit's result: of ``exit_success`` and ``exit_error``.
    return_value: Any = None

    def is_successful(self) -> bool:
        """Whether nothing went wrong."""
        return self.type in ("thinking_requested", "exit_success")

    def is_failed(self) -> bool:
        """Whether something did."""
        return self.type != "pending" and not self.is_successful()


@final
@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens that models have read (``input``) and written (``output``)."""

    input: int = 0
    output: int = 0
    total: int = 0


@final
@dataclass(frozen=True, slots=True)
class ToolInfo:
    """A tool that generated code calls; ``parameters`` is the JSON schema of its input."""

    name: str
    description: str
    parameters: dict[str, Any]


@final
@dataclass(frozen=True, slots=True)
class ExitInfo:
    """An exit that generated code has reached."""

    name: str
    description: str


@final
class Trace:
    """Something that has happened in an iteration.

    ``type`` says what: ``llm_call_started``, ``llm_call_success``, ``message_delivery``, ``log``, ``tool_call``, ``tool_slow``,
    ``think_signal``, ``code_execution``, ``code_execution_exception``, ``invalid_code_exception`` or ``abort_signal``. What it has
    beside is there as attributes: ``trace.tool_name``, for instance.
    """

    __slots__ = ("_data",)

    _data: dict[str, Any]

    def __init__(self, data: dict[str, Any]) -> None:
        object.__setattr__(self, "_data", data)

    @property
    def type(self) -> str:
        """What has happened."""
        kind: str = self._data["type"]
        return kind

    @property
    def started_at(self) -> int:
        """When it began, in milliseconds since 1970."""
        at: int = self._data["started_at"]
        return at

    @property
    def ended_at(self) -> int | None:
        """When it ended; ``None``: it has no length."""
        at: int | None = self._data.get("ended_at")
        return at

    def to_dict(self) -> dict[str, Any]:
        """All of it."""
        return dict(self._data)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._data[name]
        except KeyError:
            raise AttributeError(f"A trace of type `{self._data.get('type')}` has no `{name}`") from None

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"`{name}` of a trace cannot be set: what has happened stays")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and other._data == self._data

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Trace(type={self.type!r})"


@final
class Iteration:
    """One round of model, code, tools and exits, as it stood when it was shown. It cannot be changed: return the change."""

    __slots__ = ("_parts", "_source")

    _source: str | Mapping[str, Any]
    _parts: dict[str, Any]

    def __init__(self, source: str | Mapping[str, Any]) -> None:
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "_parts", {})

    def _read(self) -> Mapping[str, Any]:
        if isinstance(self._source, str):
            object.__setattr__(self, "_source", json.loads(self._source))
        assert not isinstance(self._source, str)
        return self._source

    def _part(self, name: str, make: Any) -> Any:
        if name not in self._parts:
            self._parts[name] = make(self._read()[name])
        return self._parts[name]

    @property
    def id(self) -> str:
        """The execution's id and the iteration's number, with ``_`` between."""
        value: str = self._read()["id"]
        return value

    @property
    def number(self) -> int:
        """From 1."""
        value: int = self._read()["number"]
        return value

    @property
    def status(self) -> Status:
        """How it stands or has ended."""
        known = {field.name for field in fields(Status)}
        status: Status = self._part("status", lambda of: Status(**{key: of[key] for key in of if key in known}))
        return status

    @property
    def model(self) -> str:
        """The name of the model that is asked."""
        value: str = self._read()["model"]
        return value

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What the model is sent, in the form of Chat Completions."""
        value: list[dict[str, Any]] = self._read()["messages"]
        return value

    @property
    def code(self) -> str | None:
        """The code that is run: the model's, or a hook's in its place."""
        value: str | None = self._read()["code"]
        return value

    @property
    def text(self) -> str | None:
        """The model's text beside the code."""
        value: str | None = self._read()["text"]
        return value

    @property
    def traces(self) -> list[Trace]:
        """What has happened so far."""
        traces: list[Trace] = self._part("traces", lambda made: [Trace(trace) for trace in made])
        return traces

    @property
    def variables(self) -> dict[str, Any]:
        """The variables that are carried between iterations."""
        value: dict[str, Any] = self._read()["variables"]
        return value

    @property
    def tokens(self) -> Tokens:
        """The tokens that the model has read and written."""
        tokens: Tokens = self._part("tokens", lambda of: Tokens(**of))
        return tokens

    @property
    def started_ts(self) -> int:
        """When it began, in milliseconds since 1970."""
        value: int = self._read()["started_ts"]
        return value

    @property
    def ended_ts(self) -> int | None:
        """When it ended."""
        value: int | None = self._read()["ended_ts"]
        return value

    @property
    def error(self) -> str | None:
        """What went wrong, in one line."""
        value: str | None = self._read()["error"]
        return value

    @property
    def errors(self) -> list[str]:
        """Everything that went wrong, what the code has caught included."""
        value: list[str] = self._read()["errors"]
        return value

    def has_exited(self) -> bool:
        """Whether it has ended with a valid exit."""
        return self.status.type == "exit_success"

    def has_exited_with(self, exit: object) -> bool:
        """Whether it has ended with that exit, given by its name or as the :class:`tenterhook.Exit`."""
        return self.has_exited() and self.status.exit_name == getattr(exit, "name", exit)

    def is_successful(self) -> bool:
        """Whether nothing went wrong."""
        return self.status.is_successful()

    def is_failed(self) -> bool:
        """Whether something did."""
        return self.status.is_failed()

    def to_dict(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return dict(self._read())

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"`{name}` of an iteration cannot be set in a hook: return the change, such as `return {{{name!r}: …}}`"
        )

    def __repr__(self) -> str:
        return f"Iteration(number={self.number}, status={self.status.type!r})"
