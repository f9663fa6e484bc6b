"""A forked child that runs a function of the test, and talks with it in lines."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from tests.contract.helpers import WATCHDOG


class Line:
    """One end of the conversation."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading = reading
        self.writing = writing
        self._heard = b""

    def say(self, word: str) -> None:
        os.write(self.writing, word.encode() + b"\n")

    def hear(self) -> str:
        """The next line."""
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self.reading], [], [], WATCHDOG)
            assert ready, "nothing was said"
            some = os.read(self.reading, 4096)
            assert some, "the other side is gone"
            self._heard += some
        word, _, self._heard = self._heard.partition(b"\n")
        return word.decode()

    def silent(self) -> bool:
        """Whether nothing was said that was not heard."""
        return not self._heard and not select.select([self.reading], [], [], 0)[0]

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)


class Forked:
    """The child, as its parent sees it."""

    def __init__(self, function: Callable[..., object], *arguments: Any) -> None:
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(from_parent)
                os.close(to_parent)
                function(Line(to_child, from_child), *arguments)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(to_child)
        os.close(from_child)
        self.line = Line(to_parent, from_parent)
        self.say = self.line.say
        self.hear = self.line.hear
        self._status: int | None = None

    def wait(self) -> int:
        """The exit code; negative: the signal that ended it."""
        if self._status is None:
            _, status = os.waitpid(self.pid, 0)
            self._status = os.waitstatus_to_exitcode(status)
            self.line.close()
        return self._status

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def until_asleep(self) -> None:
        """Wait until it sleeps in the kernel. It has said that it is about to."""
        while True:
            with open(f"/proc/{self.pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "S":
                    return
            os.sched_yield()


@contextlib.contextmanager
def forked(function: Callable[..., object], *arguments: Any) -> Iterator[Forked]:
    """Start a child; kill it at the end if it still runs."""
    child = Forked(function, *arguments)
    try:
        yield child
    finally:
        child.kill()
