"""The `rq` command as a child of the test."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable, Sequence

from .. import _command as command
from .._procs import wait_until
from ._application import Application
from ._jobs import COMMAND, DIRECTORY

_PACKAGE = __name__.rpartition(".")[0]
_numbers = itertools.count(1)


class Command(command.Command):
    """A running ``rq worker`` or ``rq worker-pool``.

    Parameters:
        arguments: of the subcommand: options and queues.
        worker_class: in what the package `equeue_rq` has, or where it is to be imported from; "": RQ's own.
        name: the worker's.
        processes: of a pool; 0: it is none.
        module: what is run instead of RQ's own command.
    """

    def __init__(
        self,
        application: Application,
        *arguments: str,
        worker_class: str = "Worker",
        name: str | None = None,
        processes: int = 0,
        module: str = "_rq",
        environment: dict[str, str] | None = None,
    ) -> None:
        self._application = application
        self.worker = name or f"worker-{next(_numbers)}"
        chosen = worker_class if "." in worker_class else f"equeue_rq.{worker_class}"
        of_class = ("--worker-class", chosen) if worker_class else ()
        kind = ["worker-pool", "-n", str(processes)] if processes else ["worker"]
        named = () if processes else ("--name", self.worker)
        file_name = f"{self.worker}-{next(_numbers)}"
        super().__init__(
            file_name,
            [sys.executable, "-m", f"{_PACKAGE}.{module}", *kind, *of_class, *named, *arguments],
            application.directory,
            {
                "RQ_CONNECTION_CLASS": "equeue_rq.LMDBRedis",
                "RQ_REDIS_URL": f"lmdb://{application.path}",
                DIRECTORY: str(application.directory),
                COMMAND: file_name,
                "EQUEUE_TEST_PROCESS": str(os.getpid()),
                **(environment or {}),
            },
        )

    def up(self) -> Command:
        """Wait until the worker listens, or has a job already."""
        wait_until(
            lambda: self._application.state(self.worker) in ("idle", "busy"),
            f"{self.worker} is up",
        )
        return self

    def stop(self) -> None:
        """Have it end after what it does just now.

        RQ's handler of the signal raises an exception if the worker is idle. It can arrive while redis-py
        notes how long a command took, where all exceptions are swallowed: then the worker goes on, on
        whatever connection.
        """
        self.signal(signal.SIGTERM)
        assert self.ended(again=signal.SIGTERM) == 0


def kill_together(commands: Sequence[Command]) -> None:
    """Kill several, none of which sees that another one is dead."""
    for each in commands:
        each.signal(signal.SIGSTOP)
    for each in commands:
        each.kill_session()


Starter = Callable[..., Command]
