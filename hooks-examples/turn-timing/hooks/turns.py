"""Logs, at the end of each turn, how long it took and what took the time."""

from __future__ import annotations

import structlog
from lib import turn_log
from rasa.mantle.hooks import TurnFinishedPayload, TurnStartedPayload, on_turn_finished, on_turn_started

logger = structlog.get_logger()


@on_turn_started()
async def start_clock(turn: TurnStartedPayload) -> None:
    """Starts the turn's clock."""
    turn_log.begin(turn.sender_id)


@on_turn_finished()
async def log_turn(finished: TurnFinishedPayload) -> None:
    """One line for each turn, also for one that failed: those are the slow ones more often than not."""
    turn = turn_log.end(finished.sender_id)
    if turn is None:
        return
    logger.info(
        "turn.finished",
        sender_id=finished.sender_id,
        turn_id=finished.turn_id,
        status=finished.status,
        channel=finished.channel.name,
        duration_ms=round(turn.elapsed_ms(), 1),
        model_ms=round(turn.model_ms, 1),
        model_calls=turn.model_calls,
        tools=dict(turn.tools),
        tool_errors=turn.tool_errors,
    )
