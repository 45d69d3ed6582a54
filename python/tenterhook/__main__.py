"""The command: ``tenterhook`` and ``python -m tenterhook``."""

from __future__ import annotations

import sys

from tenterhook import _engine

__all__ = ["main"]


def main() -> int:
    """Runs the command with the process's arguments; gives its exit code: 0 clean, 1 problems found, 2 could not do the work."""
    return _engine.main(["tenterhook", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
