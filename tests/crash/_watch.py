"""What the processes of an application wrote down, and how a test holds them up."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ._procs import wait_until


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


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does not notice what happens meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
