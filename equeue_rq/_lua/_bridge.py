"""What scripts call in Python.

Nothing here may raise in Lua, where a script could catch it: it is kept, and the script is told to stop.
And nothing may make Lua run out of memory: Lua cannot go on from there unless it is running code, so
there is always some room left before Python gives it anything.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from equeue_core import EQueueError
from equeue_rq._commands._table import Blocked, Call, Command, find
from equeue_rq._lua import _numbers
from equeue_rq._lua._values import argument, error_text, size, to_lua
from equeue_rq._messages import CommandError
from equeue_rq._replies import Reply

ROOM = 1 << 18
"""Bytes that Lua always has left when Python gives it something."""

_VERSION = (7, 2, 4)
_monotonic = time.monotonic

Answer = Any
"""What Lua gets; see `to_lua`. A lone ``True``: the script is to stop."""


class Stopped(CommandError):
    """A script went beyond its limits."""


class _Known:
    """A command that scripts may call."""

    __slots__ = ("command", "run", "takes")

    def __init__(self, command: Command) -> None:
        self.command = command
        self.run = command.run
        arity = command.arity
        self.takes: Callable[[int], bool] = arity.__eq__ if arity >= 0 else (-arity).__le__


class Bridge:
    """What a Lua state's scripts call, and what of them has to be known for it.

    It knows the state only while a script runs: the state knows it for ever, and nobody would find out
    that the two are garbage.

    Attributes:
        resp: in which version of the protocol the script wants its answers.
        problem: why the script stops.
        limit: how many bytes the Lua state may take.
    """

    def __init__(self) -> None:
        self.resp = 2
        self.problem: BaseException | None = None
        self.limit = 0
        self._lua: Any = None
        self._call: Call | None = None
        self._read_only = False
        self._known_by: tuple[dict[bytes, _Known], dict[bytes, _Known]] = ({}, {})
        self._known = self._known_by[False]
        self._seconds = 0.0
        self._deadline = 0.0
        self._random = _numbers.Random()

    def begin(self, lua: Any, call: Call, read_only: bool, seconds: float) -> None:
        """A script begins to run. Call `end` in any case."""
        self._lua, self._call, self._read_only = lua, replace(call), read_only
        self.problem, self.resp = None, 2
        self._known = {} if call.session.frugal else self._known_by[read_only]
        self._random.seed(0)
        self._seconds, self._deadline = seconds, _monotonic() + seconds

    def end(self) -> None:
        """The script has ended, in whatever way."""
        self._lua = self._call = None

    def functions(self) -> dict[bytes, Any]:
        """What the sandbox is given."""
        return {
            b"call": self._plain_command,
            b"call_mixed": self._mixed_command,
            b"tick": self._tick,
            b"halted": self._halted,
            b"setresp": self._set_resp,
            b"sha1hex": self._guarded(_sha1),
            b"random": self._guarded(self._random),
            b"randomseed": self._guarded(self._random.seed),
            b"bit": self._guarded(_numbers.bit),
            b"pack": self._guarded(_numbers.pack),
            b"unpack": self._guarded(_numbers.unpack),
            b"pack_float": self._guarded(_numbers.pack_float),
            b"struct_pack": self._guarded(_numbers.pack_sized),
            b"struct_unpack": self._guarded(_numbers.unpack_sized),
            b"version": b"%d.%d.%d" % _VERSION,
            b"version_number": _VERSION[0] << 16 | _VERSION[1] << 8 | _VERSION[2],
        }

    # Commands

    def _plain_command(self, *words: bytes) -> Answer:
        try:
            if self.problem is not None or (_monotonic() > self._deadline and self._tick()):
                return True
            known = self._known.get(words[0])
            if known is None or not known.takes(len(words)):
                return self._give(self._perform(list(words)))
            call = self._call
            assert call is not None, "a script is running"
            call.name, call.args = known.command.name, list(words[1:])
            try:
                reply = known.run(call)
            except CommandError as error:
                return True, error_text(error), False
            if type(reply) is int:
                return reply
            return self._give(reply)
        except BaseException as problem:  # noqa: BLE001 - it is raised when the script has stopped
            self.problem = problem
            return True

    def _mixed_command(self, *words: bytes | float) -> Answer:
        try:
            return self._plain_command(*map(argument, words))
        except BaseException as problem:  # noqa: BLE001 - as above
            self.problem = problem
            return True

    def _give(self, reply: Reply) -> Answer:
        if isinstance(reply, Blocked):
            reply = reply.otherwise
        return to_lua(reply, self._lua.table_from, self.resp) if self._has_room(reply) else True

    def _perform(self, words: list[bytes]) -> Reply:
        """The answer of a command that is not known to be allowed yet."""
        try:
            command, args = find(words)
        except CommandError as error:
            return _in_script(error)
        flags = command.flags
        if "noscript" in flags or command.name == "SELECT":
            return CommandError("ERR This Redis command is not allowed from script")
        if self._read_only and "write" in flags:
            return CommandError("ERR Write commands are not allowed from read-only scripts.")
        call = self._call
        assert call is not None, "a script is running"
        if call.session.frugal:
            if "adds" in flags:
                try:
                    call.db.space.require_room(call.db.txn, size(words))
                except EQueueError as error:
                    return CommandError(f"OOM {error}")
        elif args and len(args) == len(words) - 1:  # it has no subcommands
            self._known[words[0]] = _Known(command)
        call.name, call.args = command.name, args
        try:
            return command.run(call)
        except CommandError as error:
            return error

    # Stopping

    def _tick(self) -> bool:
        """Whether the script has to stop."""
        if self.problem is None and self._call is not None and _monotonic() > self._deadline:
            self.problem = Stopped(
                f"ERR Script killed: it ran for more than {self._seconds:g} seconds; what it wrote is "
                "kept"
            )
        return self.problem is not None

    def _halted(self) -> bool:
        return self.problem is not None

    def _has_room(self, reply: Reply) -> bool:
        """Whether Lua can be given this; if not, the script has to stop."""
        lua = self._lua
        needed = (len(reply) if type(reply) is bytes else size(reply)) + ROOM
        if lua.get_memory_used() + needed < self.limit:
            return True
        lua.gccollect()
        if lua.get_memory_used() + needed < self.limit:
            return True
        self.problem = Stopped("ERR not enough memory")
        return False

    # Others

    def _set_resp(self, version: float) -> None:
        self.resp = int(version)

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Answer]:
        """A function that Lua can call without harm."""

        def call(*args: Any) -> Answer:
            try:
                result = function(*args)
                return result if self._has_room(result) else True
            except (ArithmeticError, ValueError, struct.error) as error:
                self.problem = Stopped(f"ERR a number is out of range: {error}")
                return True
            except BaseException as problem:  # noqa: BLE001 - as above
                self.problem = problem
                return True

        return call


def _sha1(text: bytes) -> bytes:
    return hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()


def _in_script(error: CommandError) -> CommandError:
    """What a script is told of a command that cannot be called."""
    text = str(error)
    if text.startswith("ERR wrong number"):
        return CommandError("ERR Wrong number of args calling Redis command from script")
    if text.startswith("ERR unknown command"):
        return CommandError("ERR Unknown Redis command called from script")
    return error
