"""The command: ``tenterhook`` and ``python -m tenterhook``."""

from __future__ import annotations

import signal
import sys

from tenterhook import _engine

__all__ = ["main"]


def main() -> int:
    """Runs the command with the process's arguments; gives its exit code: 0 clean, 1 problems found, 2 could not do the work."""
    # Python's own handler would only note a Ctrl-C while the engine works.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _engine.main(["tenterhook", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
