"""Counts what happens, and tells where the execution has ended."""

from __future__ import annotations

import logging
from collections import Counter

from tenterhook.execution import ExitInfo, Trace

logger = logging.getLogger("shop")


class Watch:
    """A class whose methods are the hooks: one object for each load keeps its counts apart from all others."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def on_trace(self, trace: Trace, iteration: int) -> None:
        self.seen[f"{iteration}:{trace.type}"] += 1

    async def on_exit(self, exit: ExitInfo) -> None:
        logger.warning("Reached exit: %s", exit.name)

    async def on_iteration_end(self) -> None:
        logger.warning("So far: %s", dict(self.seen))


hooks = Watch()
