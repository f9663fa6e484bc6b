"""A queue in another process, driven step by step by the test."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equeue_core
from equeue_core import EQueueError, Queue, QueueEmpty, QueueFull, Record

from ._procs import Child, children, wait_asleep
from ._talk import hear, say


class Remote:
    """The test's side. Errors of the other side are raised here again, by name."""

    def __init__(
        self,
        spawn: Callable[..., Child],
        path: Path,
        *,
        prefix: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        self.child = spawn(serve, path, json.dumps(options), prefix=prefix)
        #: the process id that the other side sees
        self.inner_pid = int(self.child.line())
        #: time.monotonic() when the last operation ended
        self.at = 0.0

    @property
    def pid(self) -> int:
        """The process id here, also if the other side runs below `unshare`."""
        below = children(self.child.pid)
        return below[0] if self.inner_pid != self.child.pid and below else self.child.pid

    def send(self, operation: str, *args: Any, **options: Any) -> None:
        self.child.tell(json.dumps([operation, args, options]))

    def reply(self, timeout: float = 120) -> Any:
        answer = json.loads(self.child.line(timeout))
        self.at = answer["at"]
        if "error" in answer:
            raise getattr(equeue_core, answer["error"])(answer["message"])
        return answer["value"]

    def call(self, operation: str, *args: Any, **options: Any) -> Any:
        self.send(operation, *args, **options)
        return self.reply()

    def send_and_sleep(self, operation: str, *args: Any, **options: Any) -> None:
        """Send an operation that blocks, and wait until it does."""
        self.send(operation, *args, **options)
        wait_asleep(self.pid)

    def kill(self) -> float:
        """SIGKILL; returns the time of it."""
        at = time.monotonic()
        os.kill(self.pid, signal.SIGKILL)
        return at


class _Server:
    """The other side: each public method is an operation."""

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self._queue = Queue(path, **options)
        self._held: dict[int, Record] = {}

    def put(self, payload: Any, **options: Any) -> int:
        return self._queue.put(payload, **options)

    def get(self, timeout: float | None = None) -> dict[str, Any]:
        record = self._queue.get(timeout)
        self._held[record.job_id] = record
        return {"id": record.job_id, "attempt": record.attempt, "payload": record.payload}

    def complete(self, verb: str, job_id: int, *args: Any) -> None:
        """ack, nack, fail, release or extend the record of this job."""
        getattr(self._held[job_id], verb)(*args)

    def drop(self, job_id: int) -> None:
        del self._held[job_id]

    def close(self) -> None:
        self._queue.close()

    def state(self, job_id: int) -> str:
        return self._queue.job(job_id).state.value

    def listed(self, state: str) -> list[int]:
        return [job.job_id for job in self._queue.jobs(equeue_core.State(state))]

    def stats(self) -> dict[str, int]:
        return self._queue.stats()

    def recover(self) -> int:
        return self._queue.recover()

    def purge(self, state: str) -> int:
        return self._queue.purge(equeue_core.State(state))

    def fill(self, size: int, limit: int = 100_000) -> tuple[list[int], str, str]:
        """Put until it is refused: the ids, the error's name and its message."""
        ids: list[int] = []
        for number in range(limit):
            try:
                ids.append(self._queue.put({"number": number, "fill": "x" * size}))
            except QueueFull as error:
                return ids, type(error).__name__, str(error)
        raise AssertionError(f"{limit} puts of {size} bytes filled nothing")

    def drain(self) -> list[int]:
        """Take and ack until nothing is left."""
        ids: list[int] = []
        while self._queue.qsize():
            try:
                record = self._queue.get_nowait()
            except QueueEmpty:
                continue  # another process has taken what was left
            record.ack()
            ids.append(record.job_id)
        return ids

    def block_interpreter(self, seconds: float) -> None:
        """Sit in C code that never lets go of the interpreter lock."""
        ctypes.PyDLL(None).usleep(int(seconds * 1e6))

    def fork_sleeper(self) -> int:
        """Fork a child that never uses the queue and outlives this process."""
        pid = os.fork()
        if not pid:
            signal.alarm(60)
            while True:
                signal.pause()
        return pid


def serve(path: str, options: str) -> None:
    server = _Server(path, json.loads(options))
    say(os.getpid())
    while True:
        operation, args, keywords = json.loads(hear())
        answer: dict[str, Any] = {}
        try:
            answer["value"] = getattr(server, operation)(*args, **keywords)
        except EQueueError as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        say(json.dumps({**answer, "at": time.monotonic()}))
