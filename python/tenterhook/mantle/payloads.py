"""The payloads of the ten points: frozen pydantic models.

Fields and defaults are those of the published interface (rasa-pro 3.21.0). ``frozen`` guards the fields, not the lists
and dicts in them: each handler has a copy of its own, so what it does to them is seen by nobody else.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "CallInfo",
    "ChannelInfo",
    "HookPayload",
    "TurnStartedPayload",
    "TurnFinishedPayload",
    "IncomingMessagePayload",
    "ModelRequestPayload",
    "ModelResponsePayload",
    "ToolCallPayload",
    "ToolResultPayload",
    "KnowledgeQueryPayload",
    "KnowledgeResultsPayload",
    "OutgoingTextPayload",
    "OutgoingMessagePayload",
]


class _Frozen(BaseModel):
    # `model_` is a protected prefix of pydantic's; `model_settings` is a name of the interface.
    model_config = ConfigDict(frozen=True, protected_namespaces=())


class CallInfo(_Frozen):
    """Telephony and session metadata; empty unless the channel supplies it."""

    phone_number: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class ChannelInfo(_Frozen):
    """The channel's name and what its front end says of itself."""

    name: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class HookPayload(_Frozen):
    """What every payload carries: the read-only identity of the turn."""

    sender_id: str
    call: CallInfo = Field(default_factory=CallInfo)
    channel: ChannelInfo = Field(default_factory=ChannelInfo)


class TurnStartedPayload(HookPayload):
    """The turn begins. Observed only."""

    turn_id: str | None = None
    is_voice: bool = False


class TurnFinishedPayload(HookPayload):
    """The turn has ended. Observed only."""

    turn_id: str | None = None
    status: Literal["completed", "cancelled", "error"]


class IncomingMessagePayload(HookPayload):
    """The user's final text, before it is stored. ``text`` may be changed."""

    text: str
    message_id: str | None = None


class ModelRequestPayload(HookPayload):
    """A request to the model. ``messages`` and ``model_settings`` may be changed.

    ``messages`` are chat messages, passed through as they are. ``model_settings`` starts empty and takes
    ``temperature``, ``top_p``, ``max_tokens``, ``presence_penalty``, ``frequency_penalty``, ``stop`` and ``seed``.
    """

    messages: list[dict[str, Any]]
    model_settings: dict[str, Any] = Field(default_factory=dict)
    tool_names: list[str] = Field(default_factory=list)
    iteration: int = 0


class ModelResponsePayload(HookPayload):
    """The model's answer. ``text`` and ``tool_calls`` may be changed.

    A tool call is a dict with ``id``, ``tool_name``, ``tool_args`` and, where known, ``type``. ``latency_ms`` is the
    provider's, in milliseconds.
    """

    text: str | None = None
    tool_calls: list[dict[str, Any]] = Field(default_factory=list)
    latency_ms: float | None = None


class ToolCallPayload(HookPayload):
    """A tool call before its batch runs. ``tool_name``, ``arguments`` and ``headers`` may be changed."""

    tool_name: str
    arguments: dict[str, Any]
    headers: dict[str, str] = Field(default_factory=dict)


class ToolResultPayload(HookPayload):
    """A tool's result before it is stored. ``arguments``, ``value`` and ``is_error`` may be changed."""

    tool_name: str
    arguments: dict[str, Any]
    value: Any
    is_error: bool = False


class KnowledgeQueryPayload(HookPayload):
    """A search of the references. ``query`` may be changed."""

    query: str


class KnowledgeResultsPayload(HookPayload):
    """What a search gave. ``passages`` may be changed: dicts with ``text``, ``scope``, ``source`` and maybe ``score``."""

    query: str
    passages: list[dict[str, Any]]


class OutgoingTextPayload(HookPayload):
    """A text that is about to be sent to the user. ``text`` may be changed."""

    text: str
    is_voice: bool = False


OutgoingMessagePayload = OutgoingTextPayload
