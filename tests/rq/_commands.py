"""Commands of RQ and its ecosystem, run as a user runs them on the projects beside this file."""

from __future__ import annotations

import os
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

from tests.contract.helpers import WATCHDOG
from tests.dramatiq import _commands

PROJECTS = Path(__file__).parent / "projects"


def run(directory: Path, *command: str, **extra: str) -> str:
    """What a command prints."""
    done = subprocess.run(
        _commands.installed(*command),
        cwd=directory,
        env=_commands.environment(directory, **_environment(directory, extra)),
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def running(
    directory: Path, *command: str, **extra: str
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """A command for the length of a block; see there."""
    return _commands.running(directory, *command, **_environment(directory, extra))


def _environment(directory: Path, extra: dict[str, str]) -> dict[str, str]:
    packages = extra.pop("packages", "")
    places = [packages, str(PROJECTS), str(_commands.SHARED), str(_commands.ROOT)]
    path = os.pathsep.join(filter(None, places))
    return {
        "PYTHONPATH": path,
        "RQ_CONNECTION_CLASS": "equeue_rq.LMDBRedis",
        "RQ_REDIS_URL": f"lmdb://{directory / 'data'}",
        "RQ_WORKER_CLASS": "equeue_rq.Worker",
        **extra,
    }
