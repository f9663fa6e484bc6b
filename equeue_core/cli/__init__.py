"""The command ``equeue``. It needs the extra ``cli``; without it, it says so."""

from __future__ import annotations

import sys

MISSING = 9
"""The exit code when something has to be installed first."""


def main() -> int:
    """Run the command with the process's arguments; the exit code."""
    try:
        try:
            import click  # noqa: F401 - only whether it is there
            import rich  # noqa: F401
        except ImportError as error:
            print(
                f"equeue: the command line needs {error.name}, which is not installed: "
                "pip install click rich (or install equeue with its extra: cli)",
                file=sys.stderr,
            )
            return MISSING
        from equeue_core.cli._app import run

        return run()
    except KeyboardInterrupt:  # before the command has begun
        return 130
