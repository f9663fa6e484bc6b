"""Scripts are kept from Python and from each other, end in time, take bounded memory, and can be
interrupted.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from equeue_rq import _lua
from equeue_rq._commands import _table
from equeue_rq._dispatch import execute
from equeue_rq._lua import _runtime
from equeue_rq._messages import CommandError
from equeue_rq._session import Session
from tests.rq._helpers import Caller

pytestmark = pytest.mark.once

own_alarm = pytest.mark.timeout(120, method="thread")


def _refusal(call: Caller, script: str, *args: Any) -> str:
    with pytest.raises(CommandError) as refused:
        call("EVAL", script, 0, *args)
    return str(refused.value)


# From Python and from each other


@pytest.mark.parametrize(
    "name",
    [
        "python",
        "io",
        "require",
        "package",
        "module",
        "debug",
        "print",
        "dofile",
        "loadfile",
        "getfenv",
        "setfenv",
        "newproxy",
    ],
)
def test_nothing_of_the_machine_is_in_reach(call: Caller, name: str) -> None:
    assert f"nonexistent global variable '{name}'" in _refusal(call, f"return {name}")
    assert call("EVAL", f"return rawget(_G, '{name}')", 0) is None


def test_of_the_system_there_is_a_clock_only(call: Caller) -> None:
    assert call("EVAL", "return {type(os.clock()), type(os.execute), type(os.getenv)}", 0) == [
        b"number",
        b"nil",
        b"nil",
    ]


@pytest.mark.parametrize(
    "script",
    [
        "return redis.call.__class__",
        "return redis.call.__globals__",
        "for _, f in pairs({redis.call, bit.band}) do if type(f) ~= 'function' then return 1 end end",
        "return getmetatable(redis.call)",
        "return getmetatable('').__index",
        "return string.dump",
        "return loadstring('\\27Lua')",
        "return (load(function() return '\\27Lua' end))",
    ],
)
def test_there_is_no_way_to_python_or_to_bytecode(call: Caller, script: str) -> None:
    with contextlib.suppress(CommandError):
        assert call("EVAL", script, 0) is None


def test_bytecode_is_no_script(call: Caller) -> None:
    assert "bytecode is not allowed" in _refusal(call, "\x1bLua")


@pytest.mark.parametrize(
    "change",
    [
        "leak = 1",
        "_G.leak = 1",
        "KEYS = 1",
        "string.leak = 1",
        "redis.call = nil",
        "cjson.encode = nil",
        "rawset(_G, 'leak', 1)",
        "rawset(string, 'leak', 1)",
        "setmetatable(_G, nil)",
        "setmetatable(string, {})",
        "loadstring('leak = 1')()",
        "coroutine.wrap(function() leak = 1 end)()",
    ],
)
def test_globals_and_libraries_are_read_only(call: Caller, change: str) -> None:
    assert "Attempt to modify a readonly table" in _refusal(call, change)


@pytest.mark.parametrize(
    "change",
    [
        "table.insert(string, 'leak')",
        "table.insert(_G, 'leak')",
        "KEYS.leak = 1",
        "local f = function() return 1 end ARGV[1] = f",
        "collectgarbage('stop')",
        "redis.setresp(3)",
        "math.randomseed(5)",
        "pcall(error, cjson.null)",
        "local t = setmetatable({}, {__index = function() error('x') end}) pcall(function() return t.a end)",
    ],
)
def test_nothing_is_left_for_the_next_script(call: Caller, change: str) -> None:
    look = (
        "return {#string, #_G, #KEYS, #ARGV, tostring(KEYS.leak), tostring(rawget(_G, 'leak')), "
        "tostring(redis.call('GET', 'x') == false), math.random(1000)}"
    )
    before = call("EVAL", look, 0)
    call("EVAL", change, 0)
    assert call("EVAL", look, 0) == before


# Time

ENDLESS = {
    "loop": "while true do end",
    "pcall": "while true do pcall(function() while true do end end) end",
    "xpcall": "while true do xpcall(function() while true do end end, function(e) return e end) end",
    "handler": "while true do xpcall(error, function() while true do end end) end",
    "coroutine": "local function f() while true do end end "
    "while true do coroutine.resume(coroutine.create(f)) end",
    "wrapped": "while true do pcall(coroutine.wrap(function() while true do end end)) end",
    "tail calls": "local function f() return f() end return f()",
    "tree": "local function f() pcall(f) pcall(f) end f()",
    "commands": "while true do redis.call('GET', 'x') end",
    "refused commands": "while true do redis.pcall('NO') end",
    "caught commands": "while true do pcall(redis.call, 'NO') end",
    "metatable": "local t = setmetatable({}, {__index = function(t, k) return k end}) "
    "local k = 1 while true do k = t[k] end",
    "sorting": "while true do table.sort({3, 2, 1}, function(a, b) return a < b end) end",
    "json": "while true do cjson.decode(cjson.encode({1, {2, {3}}})) end",
    "pattern": "return string.find(('a'):rep(10000), ('a-'):rep(20) .. 'b')",
    "pattern without repetition": "return ('a'):rep(40):match(('a?'):rep(40) .. ('a'):rep(40) .. 'b')",
    "pattern for each": "return ('a'):rep(1000):gsub(('.*'):rep(9) .. 'b', '')",
    "replacing": "while true do string.gsub('aaaa', 'a', function() return 'b' end) end",
}


@pytest.mark.parametrize("script", ENDLESS.values(), ids=ENDLESS)
def test_a_script_without_end_is_stopped(
    call: Caller, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(_runtime, "SECONDS", 0.2)
    started = time.monotonic()
    refusal = _refusal(call, f"redis.call('SET', 'before', 1) {script}")
    assert time.monotonic() - started < 30
    assert refusal.startswith("ERR Script killed: it ran for more than 0.2 seconds")
    assert call("GET", "before") == b"1"
    monkeypatch.undo()
    assert call("EVAL", "return 1", 0) == 1


def test_a_script_within_its_time_is_not_stopped(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_runtime, "SECONDS", 60.0)
    script = "local sum = 0 for i = 1, 3e6 do sum = sum + i end return sum"
    assert call("EVAL", script, 0) == 4_500_001_500_000


# Memory

GREEDY = {
    "table": "local t = {} while true do t[#t + 1] = ('x'):rep(100) .. #t end",
    "repeated": "return ('x'):rep(1e10)",
    "doubled": "local s = 'x' while true do s = s .. s end",
    "caught": "local t = {} while true do pcall(function() while true do t[#t + 1] = #t end end) end",
    "caught, then a command": "local t = {} pcall(function() while true do t[#t + 1] = {} end end) "
    "return redis.call('GET', 'large')",
    "an answer": "local t = {} while true do t[#t + 1] = redis.call('GET', 'large') .. #t end",
    "a caught answer": "local t = {} while true do pcall(function() t[#t + 1] = "
    "redis.call('GET', 'large') .. #t end) end",
    "many answers": "local t = {} while true do t[#t + 1] = redis.call('LRANGE', 'l', 0, -1) end",
    "result": "local t = {} for i = 1, 2e5 do t[i] = ('x'):rep(50) end return t",
    "deep": "local t = {} while true do t = {t} end",
    "coroutines": "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
    "packed": "local t = {} while true do t[#t + 1] = cmsgpack.pack(0.1) .. #t end",
}


@pytest.mark.parametrize("script", GREEDY.values(), ids=GREEDY)
def test_a_script_that_takes_too_much_memory_is_stopped(
    call: Caller, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    call("SET", "large", "z" * 200_000)
    call("RPUSH", "l", *range(1000))
    monkeypatch.setattr(_runtime, "MEMORY", 4 << 20)
    monkeypatch.setattr(_runtime, "SECONDS", 5.0)
    assert _refusal(call, script).startswith(("ERR not enough memory", "ERR Script killed"))
    assert call("EVAL", "return redis.call('GET', 'large') == ARGV[1]", 0, "z" * 200_000) == 1


def test_a_script_may_go_on_with_less(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runtime, "MEMORY", 4 << 20)
    script = "local ok, e = pcall(string.rep, 'x', 1e9) return {ok, e, redis.call('INCR', 'n')}"
    assert call("EVAL", script, 0) == [None, b"not enough memory", 1]


def test_garbage_is_no_memory(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runtime, "MEMORY", 8 << 20)
    call("SET", "large", "z" * 200_000)
    script = "local n = 0 for i = 1, 500 do n = n + #redis.call('GET', 'large') end return n"
    assert call("EVAL", script, 0) == 100_000_000


def test_arguments_are_not_counted(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runtime, "MEMORY", 4 << 20)
    large = "z" * (20 << 20)
    assert call("EVAL", "return #ARGV[1]", 0, large) == len(large)


def test_a_dropped_state_is_gone() -> None:
    """It knows functions of Python's that know it, and Python's garbage collector does not see that."""
    runtime = _runtime.Runtime()
    bridge = weakref.ref(runtime._bridge)
    del runtime
    assert bridge() is None


# Interruptions


class Interrupted(BaseException):
    """What a time limit raises."""


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command RAISE that writes and is then interrupted."""

    def run(call: _table.Call) -> None:
        call.db.txn.put(b"\xff\x03never", b"")
        raise Interrupted

    for name in ("COMMANDS", "_BY_WORD", "_BY_WORDS"):
        monkeypatch.setattr(_table, name, dict(getattr(_table, name)))
    _table.command("RAISE", 1, "write")(run)


@pytest.mark.usefixtures("raising")
def test_an_exception_from_outside_passes_through_a_script(call: Caller) -> None:
    for script in (
        "redis.call('SET', 'a', 1) pcall(redis.call, 'RAISE') return 1",
        "while true do pcall(redis.pcall, 'RAISE') end",
        "coroutine.wrap(function() redis.call('RAISE') end)()",
        "xpcall(function() redis.call('RAISE') end, function() return 1 end) return 1",
    ):
        with pytest.raises(Interrupted):
            call("EVAL", script, 0)
    assert call("EXISTS", "a") == 0
    assert call.entries(b"\xff\x03never") == []
    assert call("EVAL", "return redis.call('SET', 'a', 1)", 0) == b"OK"


@contextlib.contextmanager
def _alarms(handler: Callable[[], None]) -> Iterator[Callable[[float], None]]:
    """A function that has the handler called once, after so many seconds."""
    before = signal.signal(signal.SIGALRM, lambda *_: handler())
    try:
        yield lambda after: signal.setitimer(signal.ITIMER_REAL, after)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _interrupt() -> None:
    raise Interrupted


@own_alarm
@pytest.mark.parametrize(
    "loop", ["", "redis.call('INCR', 'n')", "pcall(redis.call, 'LPUSH', 'n', 1)"]
)
def test_a_time_limit_ends_a_script_that_goes_on(call: Caller, loop: str) -> None:
    call("PING")
    started = time.monotonic()
    with _alarms(_interrupt) as alarm:
        alarm(0.5)
        with pytest.raises(Interrupted):
            call("EVAL", f"while true do pcall(function() {loop} end) end", 0)
    assert time.monotonic() - started < 20
    assert call("GET", "n") is None
    assert call("EVAL", "return redis.call('INCR', 'n')", 0) == 1


@pytest.fixture
def no_destructors() -> Iterator[None]:
    """An exception that comes while garbage is collected would be lost in its destructors."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@own_alarm
@pytest.mark.usefixtures("no_destructors")
def test_exceptions_at_any_moment_leave_scripts_and_store_whole(call: Caller) -> None:
    script = (
        "for i = 1, 20 do redis.call('INCR', 'n') pcall(redis.call, 'LPUSH', 'n', 1) end "
        "return {tonumber(redis.call('GET', 'n')), cjson.encode({KEYS, ARGV})}"
    )
    done, interrupted, called = 0, 0, [0]

    def interrupt() -> None:
        called[0] += 1
        raise Interrupted

    call("EVAL", script, 1, "k", "a")
    with _alarms(interrupt) as alarm:
        for turn in range(600):
            try:
                alarm(0.0002 + turn * 2e-6)
                while called[0] == turn:
                    number, text = call("EVAL", script, 1, "k", "a")
                    assert number % 20 == 0
                    assert text == b'[["k"],["a"]]'
                    done += 1
            except Interrupted:
                interrupted += 1
    assert interrupted == 600
    number = int(call("GET", "n"))
    assert number % 20 == 0
    assert number >= 20 * (1 + done)


@own_alarm
def test_a_handler_runs_commands_and_scripts_in_the_middle_of_a_script(call: Caller) -> None:
    called = [0]

    def handler() -> None:
        called[0] += 1
        execute(call.session, [b"EVAL", b"return redis.call('INCR', 'handler')", b"0"])
        execute(call.session, [b"INCR", b"handler"])

    script = "for i = 1, 400 do redis.call('INCR', 'n') end return redis.call('GET', 'n')"
    with _alarms(handler) as alarm:
        number = 0
        for turn in range(100):
            alarm(0.0001 + turn * 1e-4)
            while called[0] == turn:
                number += 400
                assert call("EVAL", script, 0) == b"%d" % number
    assert called == [100]
    assert call("GET", "handler") == b"200"


# Threads and processes


def test_threads_run_scripts_at_the_same_time(store_path: Path) -> None:
    script = b"for i = 1, 10 do redis.call('INCR', KEYS[1]) end return redis.call('GET', KEYS[1])"
    errors: list[BaseException] = []

    def work(number: int) -> None:
        session = Session(store_path, sync="off")
        try:
            for turn in range(1, 51):
                key = b"n%d" % number
                answer = execute(session, [b"EVAL", script, b"1", key])
                assert answer == b"%d" % (10 * turn)
        except BaseException as error:
            errors.append(error)
        finally:
            session.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(_lua._idle) <= _lua._SPARE


def test_a_forked_child_runs_scripts(call: Caller) -> None:
    script = "return redis.call('INCR', 'n')"
    assert call("EVAL", script, 0) == 1
    child = os.fork()
    if not child:
        status = 1
        with contextlib.suppress(BaseException):
            fine = call("EVAL", script, 0) == 2 and call("EVAL", "return {1, {2}}", 0) == [1, [2]]
            status = 0 if fine else 2
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert call("EVAL", script, 0) == 3
