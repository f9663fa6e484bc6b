"""The `dramatiq` command as a child of the test, and what its processes wrote down."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from .. import _command as command
from .. import _watch as watch
from .._procs import wait_until
from .._watch import Event
from ._application import COMMAND, DIRECTORY, OPTIONS, TEST

SERVED = f"{__name__.rpartition('.')[0]}._served"
_numbers = itertools.count(1)


class Watch(watch.Watch):
    """Reads the journal as it grows, and says whether it is in order."""

    def check(self, runs: Iterable[str], killed: Sequence[int] = ()) -> None:
        """Everything was done, and was begun again only where the process had been killed.

        Call it when the queues are empty; what was done last may still have to be written down.

        Parameters:
            runs: the tokens of what should be done; see `Witness`.
            killed: the processes that were.
        """
        lost = set(runs) - {event.token for event in self.of("start")}
        assert lost == set()

        def not_done() -> set[str]:
            last = {event.token: event.pid for event in self.of("start")}
            acked = {event.token for event in self.of("acked")}
            # Who was killed after the ack could not write it down.
            return {run for run in runs if run not in acked and last[run] not in killed}

        wait_until(lambda: not not_done(), f"all is done; not: {not_done()}")
        acked: set[str] = set()
        lives: dict[str, Event] = {}
        for event in self.look():
            if event.kind == "acked":
                acked.add(event.token)
            elif event.kind == "start":
                assert event.token not in acked, f"begun after its ack: {event}"
                assert event.token not in lives, f"begun beside {lives[event.token]}: {event}"
                if event.pid not in killed:
                    lives[event.token] = event


class Command(command.Command):
    """A running `dramatiq` command."""

    def __init__(
        self,
        watch: Watch,
        directory: Path,
        processes: int,
        threads: int,
        *arguments: str,
        program: str = "dramatiq",
        prefix: Sequence[str] = (),
        options: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._watch = watch
        self._processes = processes
        name = f"{program}-{next(_numbers)}"
        super().__init__(
            name,
            [
                *prefix,
                str(Path(sys.executable).with_name(program)),
                *("--processes", str(processes), "--threads", str(threads)),
                *arguments,
                f"{SERVED}:broker",
            ],
            directory,
            {
                DIRECTORY: str(directory),
                OPTIONS: json.dumps({"sync": "off", **(options or {})}),
                COMMAND: name,
                # A container ends with its command, and has other numbers.
                TEST: "" if prefix else str(os.getpid()),
                **(environment or {}),
            },
        )

    def workers(self, generation: int = 1) -> list[int]:
        """The worker processes' numbers, once they are up; `generation`: after so many starts."""
        count = generation * self._processes
        up = self._watch.wait("up", count=count, command=self.name)
        # By then the master has heard of all of them.
        wait_until(lambda: self.log().count("is booting up") == generation, f"{self.name} is up")
        return [event.pid for event in up[-self._processes :]]


Starter = Callable[..., Command]
