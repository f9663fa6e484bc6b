"""Functions run in new processes (spawned, so that nothing is inherited)."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

_WATCHDOG = 120.0
_context = multiprocessing.get_context("spawn")

ChildMain = Callable[..., object]


class Child:
    """A process that says when it is ready and later hands over its function's result.

    The function's first argument is a callable to report readiness with.
    """

    def __init__(self, function: ChildMain, *arguments: Any) -> None:
        self._connection, theirs = _context.Pipe()
        self._process = _context.Process(target=_run, args=(theirs, function, arguments))
        self._process.start()
        theirs.close()

    def wait_ready(self) -> None:
        self._receive()

    def result(self, orderly: bool = True) -> Any:
        """What the function returned; ``orderly``: the process is left to end by itself."""
        value = self._receive()
        if not orderly:
            self._process.kill()
        self._process.join(_WATCHDOG)
        return value

    def _receive(self) -> Any:
        if not self._connection.poll(_WATCHDOG):
            self._process.kill()
            raise TimeoutError("a child process of the benchmark did not answer")
        value = self._connection.recv()
        if isinstance(value, _Failure):
            raise ChildFailed(value.text)
        return value


class ChildFailed(RuntimeError):
    """The function in the child process raised; the message is its traceback."""


class _Failure:
    def __init__(self, text: str) -> None:
        self.text = text


def in_child(function: ChildMain, *arguments: Any) -> Any:
    """The function's result, from a process of its own."""
    child = Child(function, *arguments)
    child.wait_ready()
    return child.result()


def in_passing_child(function: ChildMain, *arguments: Any) -> Any:
    """As ``in_child``, for a function that leaves threads behind: nobody waits for their end."""
    child = Child(function, *arguments)
    child.wait_ready()
    return child.result(orderly=False)


def _run(connection: Connection, function: ChildMain, arguments: tuple[Any, ...]) -> None:
    try:
        connection.send(function(lambda: connection.send(None), *arguments))
    except BaseException:
        import traceback

        connection.send(_Failure(traceback.format_exc()))
        raise
