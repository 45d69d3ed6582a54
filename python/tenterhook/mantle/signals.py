"""Control signals: what a modify hook raises to veto or to steer. They are raised, never returned."""

from __future__ import annotations

__all__ = ["HookControlFlow", "HookRejection", "RetryModel"]


class HookControlFlow(Exception):
    """Base of the control signals."""


class HookRejection(HookControlFlow):
    """Veto this action. Taken at ``modify_incoming_message`` and ``modify_outgoing_text``.

    ``reason`` is for the log; ``response_message`` is what the user hears in place of the point's fallback.
    """

    def __init__(self, reason: str, response_message: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.response_message = response_message


class RetryModel(HookControlFlow):
    """Discard the model's answer and ask again. Taken at ``modify_model_response`` and ``modify_tool_call``.

    ``feedback`` is a note for the next model request of the turn; it is never stored and never shown to the user.
    """

    def __init__(self, feedback: str) -> None:
        super().__init__(feedback)
        self.feedback = feedback
