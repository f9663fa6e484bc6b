"""The `dramatiq` command as a child of the test, and what its processes wrote down."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._procs import wait_until
from ._application import COMMAND, DIRECTORY, OPTIONS, TEST

_ROOT = Path(__file__).parents[__name__.count(".")]
SERVED = f"{__name__.rpartition('.')[0]}._served"
_numbers = itertools.count(1)


class Event(NamedTuple):
    """A line of the journal."""

    kind: str
    token: str
    pid: int
    at: float
    retries: int
    command: str


class Watch:
    """Reads the journal as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._rest = ""
        self.events: list[Event] = []

    def look(self) -> list[Event]:
        """All events until now."""
        with self._path.open() as file:
            file.seek(self._read)
            text = self._rest + file.read()
            self._read = file.tell()
        *lines, self._rest = text.split("\n")
        if self._rest.endswith(";"):
            lines.append(self._rest)
            self._rest = ""
        for line in lines:
            if line.endswith(";"):
                kind, token, pid, at, retries, command = line[:-1].split()
                event = Event(kind, token, int(pid), float(at), int(retries), command)
                self.events.append(event)
        return self.events

    def of(self, kind: str, token: str | None = None, command: str | None = None) -> list[Event]:
        """The events of a kind until now, in order; of one token, or one command."""
        return [
            event
            for event in self.look()
            if event.kind == kind
            and token in (None, event.token)
            and command in (None, event.command)
        ]

    def wait(
        self, kind: str, token: str | None = None, count: int = 1, command: str | None = None
    ) -> list[Event]:
        """Wait until there are at least `count` such events; all of them."""
        wait_until(
            lambda: len(self.of(kind, token, command)) >= count,
            f"{count} times {kind} {token or ''} {command or ''}",
        )
        return self.of(kind, token, command)

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


class Gate:
    """What the application's `hold` waits for; shut at first."""

    def __init__(self, directory: Path, queue_name: str = "default") -> None:
        self._file = (directory / f"gate-{queue_name}").open("w")
        self.shut()

    def shut(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def open(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        self._file.close()


class Command:
    """A running `dramatiq` command, in a session and process group of its own.

    The process is not reaped before `close`, so that its number, which is that of the group, stays its
    own.
    """

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
        self.name = f"{program}-{next(_numbers)}"
        self._log = directory / f"{self.name}.log"
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *prefix,
                    str(Path(sys.executable).with_name(program)),
                    *("--processes", str(processes), "--threads", str(threads)),
                    *arguments,
                    f"{SERVED}:broker",
                ],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": path,
                    DIRECTORY: str(directory),
                    OPTIONS: json.dumps({"sync": "off", **(options or {})}),
                    COMMAND: self.name,
                    # A container ends with its command, and has other numbers.
                    TEST: "" if prefix else str(os.getpid()),
                    **(environment or {}),
                },
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def workers(self, generation: int = 1) -> list[int]:
        """The worker processes' numbers, once they are up; `generation`: after so many starts."""
        count = generation * self._processes
        up = self._watch.wait("up", count=count, command=self.name)
        # By then the master has heard of all of them.
        wait_until(lambda: self.log().count("is booting up") == generation, f"{self.name} is up")
        return [event.pid for event in up[-self._processes :]]

    def signal(self, number: int) -> None:
        """Signal the master."""
        os.kill(self.pid, number)

    def kill_group(self) -> None:
        """SIGKILL to every process of the command."""
        os.killpg(self.pid, signal.SIGKILL)

    def ended(self) -> int:
        """Wait until the master has ended; its exit status, a signal as a negative number."""
        found: list[os.waitid_result] = []

        def look() -> bool:
            result = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if result is not None:
                found.append(result)
            return bool(found)

        wait_until(look, f"{self.name} ends")
        status = found[0].si_status
        return status if found[0].si_code == os.CLD_EXITED else -status

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.kill_group()
            self.process.wait()
            print(f"--- {self.name}\n{self.log()}")


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does not notice what happens meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


Starter = Callable[..., Command]
