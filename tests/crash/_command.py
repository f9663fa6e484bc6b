"""A command line as a child of the test."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ._procs import wait_until

AGAIN = 5.0
"""Seconds after which a signal that seems to have got lost is sent again."""

_ROOT = Path(__file__).parents[__name__.count(".")]


class Command:
    """A running command, in a session and process group of its own.

    The process is not reaped before `close`, so that its number, which is that of the group and of the
    session, stays its own.

    Parameters:
        name: of the file with what it says.
        directory: where it runs.
        environment: what is added to the test's.
    """

    def __init__(
        self, name: str, arguments: Sequence[str], directory: Path, environment: dict[str, str]
    ) -> None:
        self.name = name
        self._log = directory / f"{name}.log"
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                arguments,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path, **environment},
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: int) -> None:
        """Signal the process that was started."""
        os.kill(self.pid, number)

    def kill_group(self) -> None:
        """SIGKILL to every process of the group."""
        os.killpg(self.pid, signal.SIGKILL)

    def kill_session(self) -> None:
        """SIGKILL to every process of the session, those of other groups, too; they are gone then."""

        wait_until(
            lambda: not self.signal_session(signal.SIGKILL), f"no process of {self.name} is left"
        )

    def signal_session(self, number: int) -> list[int]:
        """Signal every living process of the session; which ones there were."""
        pids = _living(self.pid)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids

    def ended(self, again: int | None = None) -> int:
        """Wait until the process that was started has ended; its exit status, a signal as a negative
        number.

        Parameters:
            again: a signal that is sent every few seconds, should it have got lost.
        """
        found: list[os.waitid_result] = []
        send_at = time.monotonic() + AGAIN

        def look() -> bool:
            nonlocal send_at
            result = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if result is not None:
                found.append(result)
            elif again is not None and time.monotonic() > send_at:
                send_at = time.monotonic() + AGAIN
                self.signal(again)
            return bool(found)

        wait_until(look, f"{self.name} ends")
        status = found[0].si_status
        return status if found[0].si_code == os.CLD_EXITED else -status

    def log(self) -> str:
        """What it has said."""
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """Kill what is left of it."""
        if self.process.returncode is None:
            self.kill_session()
            self.process.wait()
            print(f"--- {self.name}\n{self.log()}")


def _living(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                state, _, _, of = (
                    Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[:4]
                )
                if int(of) == session and state not in "ZX":
                    found.append(int(entry))
    return found


def end_with(pid: int) -> None:
    """Have this process end when that one ends, as no test is left to do it then."""

    def wait() -> None:
        poll = select.poll()
        poll.register(os.pidfd_open(pid), select.POLLIN)
        poll.poll()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
