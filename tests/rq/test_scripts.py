"""Lua scripts: their texts, their transactions, their errors, and RQ's own scripts as they are."""

from __future__ import annotations

import hashlib
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from rq import Queue, queue, scripts

from equeue_core import DiskFull
from equeue_core._store import Environment
from equeue_core.storage import Txn
from equeue_rq._commands._shortcuts import shortcut
from equeue_rq._commands.scripting import _PASSING
from equeue_rq._keyspace import SCRIPT
from equeue_rq._messages import CommandError
from equeue_rq.client import LMDBRedis
from tests.rq._helpers import Caller

rate_limit = pytest.importorskip("rq.rate_limit", reason="RQ 3.0 brought rate limits")


def _digest(script: str) -> str:
    return hashlib.sha1(script.encode()).hexdigest()


def _refusal(call: Caller, *words: Any) -> str:
    with pytest.raises(CommandError) as refused:
        call(*words)
    return str(refused.value)


# Texts


def test_a_script_is_known_by_its_digest_once_it_ran(call: Caller) -> None:
    script = "return {KEYS[1], ARGV[1]}"
    missing = _refusal(call, "EVALSHA", _digest(script), 1, "k", "a")
    assert missing.startswith("NOSCRIPT ")
    call("EVAL", script, 1, "k", "a")
    assert call("EVALSHA", _digest(script).upper(), 1, "k", "b") == [b"k", b"b"]
    assert call("SCRIPT", "LOAD", script) == _digest(script).encode()
    call("SCRIPT", "FLUSH")
    assert _refusal(call, "EVALSHA", _digest(script), 1, "k", "a").startswith("NOSCRIPT ")


def test_a_script_with_an_error_in_its_syntax_is_not_kept(call: Caller) -> None:
    for words in (("EVAL", "return +", 0), ("SCRIPT", "LOAD", "return +")):
        assert "Error compiling script" in _refusal(call, *words)
    assert call.entries(SCRIPT) == []


def test_scripts_that_were_only_run_do_not_pile_up(call: Caller) -> None:
    call("SCRIPT", "LOAD", "return 'loaded'")
    for number in range(_PASSING + 20):
        call("EVAL", f"return {number}", 0)
    assert len(call.entries(SCRIPT)) == _PASSING + 1
    assert call("EVALSHA", _digest("return 'loaded'"), 0) == b"loaded"
    assert call("EVALSHA", _digest(f"return {_PASSING + 19}"), 0) == _PASSING + 19


def test_every_process_knows_a_script(store_path: Path) -> None:
    script = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
    with LMDBRedis(store_path) as client:
        digest = client.script_load(script)
        code = (
            "import sys; from equeue_rq.client import LMDBRedis\n"
            "with LMDBRedis(sys.argv[1]) as client:\n"
            "    print(client.evalsha(sys.argv[2], 1, 'n', 5))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(store_path), digest],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "5\n"
        assert client.evalsha(digest, 1, "n", 1) == 6


# Transactions and errors


def test_what_a_script_wrote_before_an_error_is_kept(call: Caller) -> None:
    script = "redis.call('SET', 'a', 1) redis.call('LPUSH', 'a', 1) redis.call('SET', 'b', 1)"
    assert _refusal(call, "EVAL", script, 0) == (
        "WRONGTYPE Operation against a key holding the wrong kind of value "
        f"script: {_digest(script)}, on @user_script:1."
    )
    assert call("MGET", "a", "b") == [b"1", None]


def test_a_script_among_the_commands_of_a_transaction(call: Caller) -> None:
    call("MULTI")
    call("SET", "a", 1)
    call("EVAL", "return redis.call('INCR', 'a')", 0)
    call("EVAL", "redis.call('INCR', 'a') error('no more', 0)", 0)
    call("EVAL", "return +", 0)
    call("BLPOP", "a", 0)
    call("INCR", "a")
    answers = call("EXEC")
    assert answers[:2] == [b"OK", 2]
    assert all(isinstance(answer, CommandError) for answer in answers[2:5])
    assert answers[5] == 4


def test_a_script_runs_on_a_full_disk_but_adds_nothing(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(environment: Environment, txn: Txn, adds: int) -> None:
        raise DiskFull("the disk is full")

    call("RPUSH", "l", *range(10))
    monkeypatch.setattr(Environment, "require_room", refuse)
    assert _refusal(call, "RPUSH", "l", 1) == "OOM the disk is full"
    script = """
        for _ = 1, 10 do redis.call('LPOP', KEYS[1]) end
        return {redis.pcall('SET', 'a', 1).err, redis.call('DEL', KEYS[1]), redis.call('EXISTS', 'a')}
    """
    assert call("EVAL", script, 1, "l") == [b"OOM the disk is full", 0, 0]
    assert call("EXISTS", "l") == 0
    assert _refusal(call, "EVAL", "redis.call('SET', 'a', 1)", 0).startswith("OOM ")
    monkeypatch.undo()
    assert call("EVAL", "return redis.call('SET', 'a', 1)", 0) == b"OK"


@pytest.mark.parametrize(
    ("script", "text", "line"),
    [
        ("error('boom')", "ERR user_script:1: boom", 1),
        ("\n\nerror('boom', 0)", "ERR boom", 3),
        ("error({err = 'MY boom'})", "MY boom", 1),
        ("error({})", "ERR unknown error", 1),
        ("error()", "ERR nil", 1),
        ("local a\n\na.b = 1", "ERR user_script:3: attempt to index local 'a' (a nil value)", 3),
        ("return redis.call('FOO')", "ERR Unknown Redis command called from script", 1),
        (
            "\nreturn redis.call('GET')",
            "ERR Wrong number of args calling Redis command from script",
            2,
        ),
        (
            "local function f()\n redis.call('MULTI')\nend\nf()",
            "ERR This Redis command is not allowed from script",
            2,
        ),
        (
            "return cjson.decode('{')",
            "ERR user_script:1: Expected object key string but found T_END at character 2",
            1,
        ),
        (
            "return redis.call('GET', {})",
            "ERR Lua redis lib command arguments must be strings or integers",
            1,
        ),
        ("redis.call()", "ERR Please specify at least one argument for this redis.call() call", 1),
        ("return math.random(0)", "ERR user_script:1: bad argument #1 to 'random'", 1),
        (
            "return struct.pack('!4bi4', 1, 2)",
            "ERR user_script:1: bad argument #1 to 'pack' (nothing is aligned here: '!')",
            1,
        ),
    ],
)
def test_an_error_tells_what_and_where(call: Caller, script: str, text: str, line: int) -> None:
    told = _refusal(call, "EVAL", script, 0)
    assert told.startswith(text)
    assert told.endswith(f" script: {_digest(script)}, on @user_script:{line}.")


def test_a_read_only_script_writes_nothing(call: Caller) -> None:
    call("SET", "a", 1)
    script = "return redis.call('GET', KEYS[1])"
    assert call("EVAL_RO", script, 1, "a") == b"1"
    assert call("EVALSHA_RO", _digest(script), 1, "a") == b"1"
    writing = "redis.call('SET', KEYS[1], 2)"
    call("SCRIPT", "LOAD", writing)
    call("EVAL", writing, 1, "b")
    for words in (("EVAL_RO", writing), ("EVALSHA_RO", _digest(writing))):
        assert "Write commands are not allowed" in _refusal(call, *words, 1, "a")
    assert call("MGET", "a", "b") == [b"1", b"2"]


def test_numbers_of_scripts_are_the_same_each_time(call: Caller) -> None:
    script = "return {math.random(1000), math.random(5, 9), tostring(math.random())}"
    assert call("EVAL", script, 0) == call("EVAL", script, 0)
    seeded = "math.randomseed(ARGV[1]) " + script
    assert call("EVAL", seeded, 0, 1) != call("EVAL", seeded, 0, 2)


def test_arguments_and_answers_are_any_bytes(call: Caller) -> None:
    every = bytes(range(256))
    script = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1]) .. ARGV[2]"
    assert call("EVAL", script, 1, every, every, "") == every
    large = every * 40_000
    assert call("EVAL", script, 1, "k", large, b"\0") == large + b"\0"
    assert call("EVAL", "return {ARGV[1], {ARGV[2]}}", 0, every, b"\r\n") == [every, [b"\r\n"]]
    many = [b"%d" % number for number in range(7000)]
    assert call("EVAL", "return {unpack(ARGV)}", 0, *many) == many
    assert call("EVAL", "return redis.call('RPUSH', 'l', unpack(ARGV))", 0, *many) == 7000
    assert call("EVAL", "return redis.call('LRANGE', 'l', 0, -1)", 0) == many


# RQ's own


@pytest.fixture
def both(store_path: Path, redis_port: int) -> list[redis.Redis]:
    """A client of a store, and one of a real server."""
    server = redis.Redis(port=redis_port)
    server.flushall()
    return [LMDBRedis(store_path, sync="off"), server]


def _all(client: redis.Redis) -> dict[bytes, Any]:
    """All keys, with how long they last."""
    read: dict[bytes, Callable[[bytes], Any]] = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
    }
    return {key: (read[client.type(key)](key), client.ttl(key)) for key in client.scan_iter()}


def _same(both: list[redis.Redis], script: str, keys: list[str], args: list[Any]) -> Any:
    ours, theirs = (client.register_script(script)(keys=keys, args=args) for client in both)
    assert ours == theirs
    assert _all(both[0]) == _all(both[1])
    return ours


def test_rqs_scripts_for_unique_jobs(both: list[redis.Redis]) -> None:
    hset = ["status", "queued", "data", b"\x80\x00\xff", "timeout", 180]
    for number, (side, ttl) in enumerate([("L", -1), ("R", 500), ("N", 0), ("L", 30)]):
        keys = [f"rq:job:{number}", "rq:queue:q"]
        args = [str(number), side, ttl, *hset]
        assert _same(both, scripts.UNIQUE_ENQUEUE_SCRIPT, keys, args) == 1
        assert _same(both, scripts.UNIQUE_ENQUEUE_SCRIPT, keys, args) == 0
    for number, ttl in enumerate([-1, 500]):
        keys = [f"rq:job:s{number}", "rq:scheduled:q", "rq:queues"]
        args = [f"s{number}", ttl, 1_700_000_000 + number, "rq:queue:q", *hset]
        assert _same(both, scripts.UNIQUE_SCHEDULE_SCRIPT, keys, args) == 1
        assert _same(both, scripts.UNIQUE_SCHEDULE_SCRIPT, keys, args) == 0


def test_rqs_scripts_for_rate_limits(both: list[redis.Redis]) -> None:
    for client in both:
        for number in range(7):
            key, front = f"rq:job:j{number}", {"enqueue_at_front": "1"} if number % 2 else {}
            client.hset(key, mapping={"origin": "q", "status": "rate_limited", **front})
            client.zadd("waiting", {f"j{number}": 100 + number // 2})
        client.zadd("waiting", {"gone": 50})
        client.zadd("executions", {"e": 2_000_000_000})
    keys, args = ["allowed", "waiting"], [2, 1_700_000_000.5, "now", "rq:queue:", "rq:job:"]
    assert _same(both, rate_limit.ACQUIRE_AND_ENQUEUE_SCRIPT, keys, args) == [b"j0", b"j1"]
    assert _same(both, rate_limit.ACQUIRE_AND_ENQUEUE_SCRIPT, keys, args) == []
    release = [*args, "j0"]
    assert _same(both, rate_limit.RELEASE_AND_ENQUEUE_SCRIPT, keys, release) == [b"j2"]
    stale = rate_limit.RELEASE_STALE_AND_ENQUEUE_SCRIPT
    for job, executions, promoted in [
        ("j1", "none", []),  # queued
        ("j0", "none", []),  # holds no slot
        ("j1", "executions", []),
        ("j1", "none", [b"j3"]),
    ]:
        if promoted or executions == "executions":
            for client in both:
                client.hset("rq:job:j1", "status", "canceled")
        stale_keys = [*keys, f"rq:job:{job}", executions]
        assert _same(both, stale, stale_keys, [*args, job]) == promoted
    cleanup = [*keys, "config", "keys"]
    assert _same(both, rate_limit.CLEANUP_REGISTRY_SCRIPT, cleanup, ["k"]) == 0
    for client in both:
        client.delete("allowed", "waiting")
        client.hset("config", "concurrency", 2)
        client.sadd("keys", "k", "other")
    assert _same(both, rate_limit.CLEANUP_REGISTRY_SCRIPT, cleanup, ["k"]) == 1


def _fill_queue(client: redis.Redis) -> Queue:
    filled = Queue("default", connection=client)
    for number in range(30):
        job = filled.enqueue(print, number, job_id=f"job{number}", result_ttl=number)
        client.sadd(f"{job.key}:dependents", "other")
        client.rpush(f"rq:results:job{number}", "not even a stream")
    client.rpush(filled.key, "no such job", "job3")
    client.set("rq:job:other", "stays")
    return filled


def test_rq_empties_a_queue(both: list[redis.Redis]) -> None:
    for client in both:
        assert _fill_queue(client).empty() == 32
        assert _fill_queue(client).empty() == 32
        assert Queue("nothing", connection=client).empty() == 0
        client.set("rq:queue:text", "x")
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            Queue("text", connection=client).empty()
    assert _all(both[0]) == _all(both[1])


def test_a_queue_is_emptied_without_lua_as_with_it(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LMDBRedis(store_path, sync="off") as client:
        filled = _fill_queue(client)
        sent: list[str] = []

        def register(text: bytes) -> Callable[..., int]:
            sent.append(text.decode())
            return lambda **_: 0

        monkeypatch.setattr(client, "register_script", register)
        filled.empty()
        monkeypatch.undo()
        [script] = sent
        assert shortcut(script.encode()) is not None, inspect.getsource(queue.Queue.empty)
        in_lua = script.replace("local count = 0", "local count = 0 + 0")
        assert shortcut(in_lua.encode()) is None
        left = []
        for text in (script, in_lua):
            client.flushall()
            _fill_queue(client)
            assert client.eval(text, 1, filled.key) == 32
            left.append(_all(client))
        assert left[0] == left[1]


@pytest.mark.parametrize(
    "change",
    [
        ('"rq:job:"', '"rq:queue:"'),  # the list may be among what is deleted
        ("prefix..job_id)", 'prefix..job_id.."  ")'),
        ("prefix..job_id)", "other..job_id)"),
        ("prefix..job_id)", "prefix..job_id, KEYS[1])"),
        ("prefix..job_id)", "prefix..count)"),
        ("count + 1", "count + 2"),
        ("KEYS[1]", "KEYS[2]"),
        ('"lpop"', '"rpop"'),
        ("return count", "return count + 1"),
        ("return count", "redis.call('SET', 'a', 1) return count"),
    ],
)
def test_another_script_is_run_by_lua(call: Caller, change: tuple[str, str]) -> None:
    script = """
        local prefix = "rq:job:"
        local q = KEYS[1]
        local count = 0
        while true do
            local job_id = redis.call("lpop", q) -- from the left
            if job_id == false then
                break
            end
            redis.call("del", prefix..job_id)
            count = count + 1
        end
        return count
    """
    assert shortcut(script.encode()) is not None
    other = script.replace(*change)
    quick = shortcut(other.encode())
    call("RPUSH", "rq:queue:q", "a", "b")
    if quick is not None:
        assert call("EVAL", other, 1, "rq:queue:q") == 2
        call("RPUSH", "rq:queue:q", "q", "b")
        assert call("EVAL", other, 1, "rq:queue:q") == 1
        assert call("EXISTS", "rq:queue:q") == 0
