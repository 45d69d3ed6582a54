"""Ends the execution after the first error: what pays is not to be tried again by guessing."""

from __future__ import annotations

from tenterhook.execution import Controller, Iteration


async def on_iteration_end(iteration: Iteration, controller: Controller) -> None:
    if iteration.status.type == "execution_error":
        controller.abort("Stopping after an execution error")
