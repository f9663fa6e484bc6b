"""A Lua state in which scripts run, one at a time."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from lupa import lua51

from equeue_rq._commands._table import Call
from equeue_rq._lua._bridge import Bridge, Stopped
from equeue_rq._lua._values import Decoder, plain_reply, size
from equeue_rq._messages import CommandError
from equeue_rq._replies import Reply

SECONDS = 30.0
"""How long a script may run: all others wait meanwhile."""

MEMORY = 256 << 20
"""Bytes that a script may use beside its arguments."""

_TIDY = 16 << 20
"""A state that has taken more than this is not used again."""
_SCRIPTS = 256
"""Compiled scripts that a state keeps."""

_CHUNKS = (
    "answers",
    "bit",
    "cjson",
    "cmsgpack",
    "matcher",
    "patterns",
    "redis",
    "struct",
)


class Runtime:
    """A Lua state with its sandbox.

    Attributes:
        usable: whether it may run another script.
    """

    def __init__(self) -> None:
        self._lua = lua51.LuaRuntime(
            encoding=None,
            source_encoding="latin-1",
            attribute_filter=_no_attributes,
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            max_memory=MEMORY,
        )
        self._scripts: dict[bytes, Any] = {}
        self._bridge = Bridge()
        self.usable = True
        load, make = self._lua.eval(b"loadstring"), self._lua.table_from
        chunks = {name.encode(): load(_source(name), b"=sandbox") for name in _CHUNKS}
        sandbox = load(_source("sandbox"), b"=sandbox")
        self._compile, self._run = sandbox(make(self._bridge.functions()), make(chunks))

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
        compiled = self._scripts.get(digest) or self.compile(script, digest)
        self._allow(size(keys) + size(arguments))
        bridge, make = self._bridge, self._lua.table_from
        try:
            bridge.begin(self._lua, call, read_only, SECONDS)
            outcome = self._run(compiled, make(keys), make(arguments))
        except lua51.LuaError as error:  # no memory was left even to tell so
            outcome = (False, b"ERR " + (str(error) or "not enough memory").encode())
        finally:
            bridge.end()
        problem, bridge.problem = bridge.problem, None
        if isinstance(problem, Stopped):
            return problem
        if problem is not None:
            raise problem
        self.usable = self._used() < _TIDY
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
        self, digest: bytes, fine: bool, first: Any, value: Any = None, line: int = 0
    ) -> Reply:
        if fine:
            return Decoder(value).read() if first else plain_reply(value, self._bridge.resp)
        text = first.decode("utf-8", "replace").replace("\r", " ").replace("\n", " ")
        if value is not None:
            where = b"%b:%d" % (value, line)
            text += f" script: {digest.decode()}, on {where.decode('utf-8', 'replace')}."
        return CommandError(text)

    def _allow(self, given: int) -> None:
        """Let Lua take so much as a script may have that is given so many bytes."""
        self._bridge.limit = self._used() + MEMORY + 4 * given
        self._lua.set_max_memory(self._bridge.limit)

    def _used(self) -> int:
        return int(self._lua.get_memory_used())


@cache
def _source(name: str) -> bytes:
    return resources.files("equeue_rq._lua").joinpath(f"{name}.lua").read_bytes()


def _no_attributes(owner: object, name: object, is_setting: bool) -> str:
    raise AttributeError("scripts have no access to Python objects")
