"""A Lua state in which scripts run, one at a time.

What comes from Python must not raise in Lua, which a script could catch: it is kept, the script is
stopped, and then it is raised. And it must not make Lua run out of memory: Lua cannot go on from there
unless it is running code, so there is always some room left before Python gives it anything.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from equeue_core import EQueueError
from equeue_rq._commands._table import Blocked, Call, Command, find
from equeue_rq._lua import _numbers
from equeue_rq._lua._values import Decoder, argument, error_text, plain_reply, size, to_lua
from equeue_rq._messages import CommandError
from equeue_rq._replies import Reply

SECONDS = 30.0
"""How long a script may run: all others wait meanwhile."""

MEMORY = 256 << 20
"""Bytes that a script may use beside its arguments."""

_ROOM = 1 << 18
"""Bytes that Lua always has left when Python gives it something."""
_TIDY = 16 << 20
"""A state that has taken more than this is not used again."""
_SCRIPTS = 256
"""Compiled scripts that a state keeps."""

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


class Runtime:
    """A Lua state with its sandbox.

    Attributes:
        usable: whether it may run another script.
    """

    def __init__(self) -> None:
        self._lua, self._lua_error = _new_state(MEMORY)
        self._scripts: dict[bytes, Any] = {}
        self._call: Call | None = None
        self._read_only = False
        self._known_by: tuple[dict[bytes, _Known], dict[bytes, _Known]] = ({}, {})
        self._known = self._known_by[False]
        self._deadline = 0.0
        self._limit = MEMORY
        self._resp = 2
        self._problem: BaseException | None = None
        self._random = _numbers.Random()
        self.usable = True
        self._compile, self._run = self._load()

    def _load(self) -> Any:
        lua = self._lua
        load = lua.eval(b"loadstring")
        chunks = {name.encode(): load(_source(name), b"=sandbox") for name in _LIBRARIES}
        functions = {
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
        sandbox = load(_source("sandbox"), b"=sandbox")
        return sandbox(lua.table_from(functions), lua.table_from(chunks))

    # Running a script

    def run(
        self,
        call: Call,
        script: bytes,
        digest: bytes,
        keys: list[bytes],
        arguments: list[bytes],
        read_only: bool,
    ) -> Reply:
        """What a script answers; an error of its own as a value.

        Raises:
            CommandError: it cannot be compiled.
        """
        self.usable = False  # until it is seen to have ended well
        self._call, self._read_only = replace(call), read_only
        self._problem, self._resp = None, 2
        self._known = {} if call.session.frugal else self._known_by[read_only]
        self._random.seed(0)
        self._deadline = _monotonic() + SECONDS
        self._allow(size(keys) + size(arguments))
        try:
            compiled = self._scripts.get(digest) or self.compile(script, digest)
            make = self._lua.table_from
            outcome = self._run(compiled, make(keys), make(arguments))
        except self._lua_error as error:  # no memory was left even to tell so
            if self._problem is None:
                self._problem = Stopped(f"ERR {str(error) or 'not enough memory'}")
            outcome = (False,)
        finally:
            self._call = None
        return self._answer(digest, *outcome)

    def compile(self, script: bytes, digest: bytes) -> Any:
        """The function that a script is.

        Raises:
            CommandError: it is none.
        """
        self._allow(len(script))
        compiled = self._compile(script)
        if isinstance(compiled, tuple):
            self.usable = True
            text = compiled[1].decode("utf-8", "replace")
            raise CommandError(f"ERR Error compiling script (new function): {text}")
        if len(self._scripts) >= _SCRIPTS:
            self._scripts.clear()
        self._scripts[digest] = compiled
        return compiled

    def _answer(
        self, digest: bytes, fine: bool, first: Any = b"", value: Any = None, line: int = 0
    ) -> Reply:
        self.usable = self._problem is None and self._used() < _TIDY
        if isinstance(self._problem, Stopped):
            return self._problem
        if self._problem is not None:
            raise self._problem
        if fine:
            return Decoder(value).read() if first else plain_reply(value, self._resp)
        text = first.decode("utf-8", "replace").replace("\r", " ").replace("\n", " ")
        if value is not None:
            where = b"%b:%d" % (value, line)
            text += f" script: {digest.decode()}, on {where.decode('utf-8', 'replace')}."
        return CommandError(text)

    # What Lua calls

    def _plain_command(self, *words: bytes) -> Answer:
        try:
            if self._problem is not None or (_monotonic() > self._deadline and self._tick()):
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
            self._problem = problem
            return True

    def _mixed_command(self, *words: bytes | float) -> Answer:
        try:
            return self._plain_command(*map(argument, words))
        except BaseException as problem:  # noqa: BLE001 - as above
            self._problem = problem
            return True

    def _give(self, reply: Reply) -> Answer:
        if isinstance(reply, Blocked):
            reply = reply.otherwise
        return to_lua(reply, self._lua.table_from, self._resp) if self._has_room(reply) else True

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

    def _tick(self) -> bool:
        """Whether the script has to stop."""
        if self._problem is None and self._call is not None and _monotonic() > self._deadline:
            self._problem = Stopped(
                f"ERR Script killed: it ran for more than {SECONDS:g} seconds; what it wrote is kept"
            )
        return self._problem is not None

    def _halted(self) -> bool:
        return self._problem is not None

    def _set_resp(self, version: float) -> None:
        self._resp = int(version)

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Answer]:
        """A function that Lua can call without harm."""

        def call(*args: Any) -> Answer:
            try:
                result = function(*args)
                return result if self._has_room(result) else True
            except (ArithmeticError, ValueError, struct.error) as error:
                self._problem = Stopped(f"ERR a number is out of range: {error}")
                return True
            except BaseException as problem:  # noqa: BLE001 - as above
                self._problem = problem
                return True

        return call

    # Memory

    def _allow(self, given: int) -> None:
        """Let Lua take so much as a script may have that is given so many bytes."""
        self._limit = self._used() + MEMORY + 4 * given
        self._lua.set_max_memory(self._limit)

    def _used(self) -> int:
        used: int = self._lua.get_memory_used()
        return used

    def _has_room(self, reply: Reply) -> bool:
        """Whether Lua can be given this; if not, the script has to stop."""
        adds = len(reply) if type(reply) is bytes else size(reply)
        if self._used() + adds + _ROOM < self._limit:
            return True
        self._lua.gccollect()
        if self._used() + adds + _ROOM < self._limit:
            return True
        self._problem = Stopped("ERR not enough memory")
        return False


_LIBRARIES = ("bit", "cjson", "cmsgpack", "struct")


@cache
def _source(name: str) -> bytes:
    return resources.files("equeue_rq._lua").joinpath(f"{name}.lua").read_bytes()


def _new_state(memory: int) -> tuple[Any, type[Exception]]:
    from lupa import lua51

    state = lua51.LuaRuntime(
        encoding=None,
        source_encoding="latin-1",
        attribute_filter=_no_attributes,
        register_eval=False,
        register_builtins=False,
        unpack_returned_tuples=True,
        max_memory=memory,
    )
    return state, lua51.LuaError


def _no_attributes(owner: object, name: object, is_setting: bool) -> str:
    raise AttributeError("scripts have no access to Python objects")


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
