"""Child processes of a test, and what /proc tells about them."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

WATCHDOG = 120.0
_ROOT = Path(__file__).parents[__name__.count(".")]
RUN = f"{__name__.rpartition('.')[0]}._run"


class Child:
    """A function of this package that runs in a process, and a process group, of its own.

    The function gets the arguments as strings and talks through `_talk`. `prefix` is a command that
    runs the interpreter (unshare, strace).
    """

    def __init__(
        self, function: Callable[..., None], *args: object, prefix: Sequence[str] = ()
    ) -> None:
        self.name = f"{function.__module__}:{function.__name__}"
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", RUN, self.name, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reaped = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put("")

    def line(self, timeout: float = WATCHDOG) -> str:
        """The next line that the child says."""
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise self._hung(timeout) from None
        assert line, f"{self.name} ended with status {self.wait()}"
        return line

    def _hung(self, timeout: float) -> AssertionError:
        # Every process of the group writes its threads' tracebacks to standard error.
        if not self._reaped:
            os.killpg(self.pid, signal.SIGUSR1)
            time.sleep(1)
        return AssertionError(f"{self.name} said nothing for {timeout} s")

    def has_line(self) -> bool:
        return not self._lines.empty()

    def tell(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def hang_up(self) -> None:
        """Close its input: it exits as an interpreter does that has reached its end."""
        assert self.process.stdin
        self.process.stdin.close()

    def signal(self, number: int) -> None:
        assert not self._reaped
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        if not self._reaped:
            os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def wait(self, timeout: float = WATCHDOG) -> int:
        """Wait for its end, and end what it leaves behind in its group; its status."""
        status = self.process.wait(timeout)
        self._end_group()
        return status

    def finish(self, timeout: float = WATCHDOG) -> None:
        """Wait for a clean end."""
        status = self.wait(timeout)
        assert status == 0, f"{self.name} ended with status {status}"

    def _end_group(self) -> None:
        # At once and only once: later the number may belong to somebody else's processes.
        if not self._reaped:
            self._reaped = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._end_group()
        self.process.wait(WATCHDOG)
        self._reader.join(WATCHDOG)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            try:
                pipe.close()
            except BrokenPipeError:
                pass


def state(pid: int) -> str:
    """The kernel's letter for what a process does: R running, S asleep, T stopped, Z gone."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    total = 0
    for task in tasks:
        with contextlib.suppress(FileNotFoundError):  # a thread that has ended meanwhile
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def io_counters(pid: int) -> dict[str, int]:
    text = Path(f"/proc/{pid}/io").read_text()
    return {name: int(value) for name, value in (line.split(": ") for line in text.splitlines())}


def children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def wait_until(condition: Callable[[], bool], what: str, timeout: float = WATCHDOG) -> None:
    """For what has no event to wait for: states that only /proc shows."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.002)


def wait_asleep(*pids: int) -> None:
    """Until these processes sleep in the kernel: four looks in a row see no CPU used."""
    looks: list[list[tuple[str, float]]] = []

    def asleep() -> bool:
        looks.append([(state(pid), cpu_seconds(pid)) for pid in pids])
        last = looks[-1]
        return looks[-4:] == [last] * 4 and all(letter == "S" for letter, _ in last)

    wait_until(asleep, f"processes {pids} fall asleep")


def wait_state(pid: int, letter: str) -> None:
    wait_until(lambda: state(pid) == letter, f"process {pid} in state {letter}")
