"""The interpreter of the command: whatever hooks print or log goes to stderr, stdout is for the report."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import sys

import structlog

__all__ = ["finish", "set_up"]

#: Seconds after which a thread that wants the GIL gets it from one that runs Python code.
SWITCH_INTERVAL = 0.0005


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=repr)


def set_up(level: str, as_json: bool) -> None:
    """Sends stdout, ``logging`` and structlog to stderr, from ``level`` on. Modules may configure their own logs later."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    sys.stdout = sys.stderr
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if as_json else logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def finish() -> None:
    """Runs the exit functions and flushes: the process ends without finalising the interpreter."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
