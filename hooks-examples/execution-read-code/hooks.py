"""Looks at generated code before it runs, and replaces code that searches for nothing in particular."""

from __future__ import annotations

import logging

from tenterhook.execution import Iteration

logger = logging.getLogger("shop")

EVERYTHING = 'search_products("")'


async def on_before_execution(iteration: Iteration) -> dict[str, str] | None:
    code = iteration.code or ""
    logger.warning("Generated %d characters of code", len(code))
    if EVERYTHING in code:
        return {"code": code.replace(EVERYTHING, 'search_products("socks")')}
    return None
