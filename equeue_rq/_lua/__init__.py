"""Lua scripts: what Redis gives them, in a sandbox that is bounded in time and memory.

The states in which they run are kept for the next ones. One that is in use, or was interrupted, is not
among them: so threads, signal handlers and forked children never share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equeue_rq._messages import CommandError

if TYPE_CHECKING:
    from equeue_rq._commands._table import Call
    from equeue_rq._lua._runtime import Runtime
    from equeue_rq._replies import Reply

_SPARE = 8
"""Idle states that are kept."""

_idle: list[Runtime] = []


def run(
    call: Call,
    script: bytes,
    digest: bytes,
    keys: list[bytes],
    arguments: list[bytes],
    read_only: bool,
) -> Reply:
    """What a script answers, in the transaction of `call`; an error of its own as a value.

    Raises:
        CommandError: the script cannot be compiled.
    """
    runtime = _take()
    reply = runtime.run(call, script, digest, keys, arguments, read_only)
    _give_back(runtime)
    return reply


def check(script: bytes, digest: bytes) -> None:
    """See whether a script can be compiled.

    Raises:
        CommandError: it cannot.
    """
    runtime = _take()
    try:
        runtime.compile(script, digest)
    finally:
        _give_back(runtime)


def prepare() -> None:
    """Have a state ready, for the others not to wait for it while a transaction is running.

    Raises:
        CommandError: lupa is not installed.
    """
    if not _idle:
        _give_back(_take())


def _take() -> Runtime:
    try:
        return _idle.pop()
    except IndexError:
        pass
    try:
        from equeue_rq._lua._runtime import Runtime
    except ImportError as error:  # pragma: no cover - it is part of the extra
        raise CommandError("ERR scripts need lupa: pip install 'equeue[rq]'") from error
    return Runtime()


def _give_back(runtime: Runtime) -> None:
    if runtime.usable and len(_idle) < _SPARE:
        _idle.append(runtime)
