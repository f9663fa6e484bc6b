"""Transactions through redis-py: what one runs as, and what exactly is a conflict."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from equeue_rq import LMDBRedis
from equeue_rq._commands import _table
from equeue_rq._commands._table import Command
from tests.core.children import child


@pytest.fixture
def client(store_path: Path) -> Iterator[LMDBRedis]:
    with LMDBRedis(store_path, sync="off") as client:
        yield client


def conflicts(client: LMDBRedis, change: Callable[[LMDBRedis], object], *keys: str) -> bool:
    """Whether a change between WATCH and EXEC ends the transaction."""
    with client.pipeline() as pipe:
        pipe.watch(*keys)
        change(client)
        pipe.multi()
        pipe.set("done", "yes")
        try:
            pipe.execute()
        except redis.WatchError:
            assert client.get("done") is None
            return True
        assert client.get("done") == b"yes"
        return False


def refused(command: Callable[..., object], *args: str) -> None:
    with pytest.raises(redis.ResponseError):
        command(*args)


CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda r: r.set("s", "other"),
    "set to the same": lambda r: r.set("s", "value"),
    "append": lambda r: r.append("s", "x"),
    "delete": lambda r: r.delete("s"),
    "delete and make again": lambda r: (r.delete("s"), r.set("s", "value")),
    "rename": lambda r: r.rename("s", "t"),
    "rename onto": lambda r: r.rename("other", "s"),
    "expire": lambda r: r.expire("s", 1000),
    "flush": lambda r: r.flushdb(),
    "push": lambda r: r.rpush("l", "x"),
    "pop": lambda r: r.lpop("l"),
    "pop the last": lambda r: r.lpop("l", 10),
    "set a field": lambda r: r.hset("h", "f", "2"),
    "add a member": lambda r: r.sadd("set", "new"),
    "change a score": lambda r: r.zadd("z", {"m": 2}),
    "add an entry": lambda r: r.xadd("x", {"f": "v"}),
}

NO_CHANGES: dict[str, Callable[[Any], object]] = {
    "read": lambda r: (r.get("s"), r.lrange("l", 0, -1), r.hgetall("h"), r.smembers("set")),
    "another key": lambda r: r.set("other", "x"),
    "another database": lambda r: LMDBRedis(r.path, db=1).set("s", "x"),
    "delete nothing": lambda r: r.delete("nothing"),
    "set if it is not there": lambda r: r.set("s", "x", nx=True),
    "wrong type": lambda r: refused(r.lpush, "s", "x"),
    "add a member that is there": lambda r: r.sadd("set", "m"),
    "the score that it has": lambda r: r.zadd("z", {"m": 1}),
    "remove what is not there": lambda r: (
        r.srem("set", "x"),
        r.hdel("h", "x"),
        r.lrem("l", 0, "x"),
    ),
    "persist what lasts": lambda r: r.persist("s"),
    "rename nothing": lambda r: refused(r.rename, "nothing", "t"),
}

KEYS = ("s", "l", "h", "set", "z", "x")


class TestConflicts:
    @pytest.fixture(autouse=True)
    def fill(self, client: LMDBRedis, store_path: Path) -> None:
        client.path = store_path  # type: ignore[attr-defined]
        client.set("s", "value")
        client.set("other", "value")
        client.rpush("l", "a", "b")
        client.hset("h", "f", "1")
        client.sadd("set", "m")
        client.zadd("z", {"m": 1})
        client.xadd("x", {"f": "v"})

    @pytest.mark.contract("RQC-04")
    @pytest.mark.parametrize("change", CHANGES)
    def test_a_change_is_one(self, client: LMDBRedis, change: str) -> None:
        assert conflicts(client, CHANGES[change], *KEYS)

    @pytest.mark.contract("RQC-04")
    @pytest.mark.parametrize("change", NO_CHANGES)
    def test_what_changes_nothing_is_none(self, client: LMDBRedis, change: str) -> None:
        assert not conflicts(client, NO_CHANGES[change], *KEYS)

    def test_a_key_that_appears_is_one(self, client: LMDBRedis) -> None:
        assert conflicts(client, lambda r: r.set("new", "x"), "new")

    def test_a_key_that_comes_and_goes_is_none(self, client: LMDBRedis) -> None:
        assert not conflicts(client, lambda r: (r.set("new", "x"), r.delete("new")), "new")

    @pytest.mark.contract("RQC-04")
    def test_a_key_that_expires_meanwhile_is_one(self, client: LMDBRedis) -> None:
        client.set("short", "x", px=50)
        assert conflicts(client, lambda r: time.sleep(0.06), "short")

    def test_a_key_that_had_expired_before_is_none(self, client: LMDBRedis) -> None:
        client.set("short", "x", px=1)
        time.sleep(0.01)
        assert not conflicts(client, lambda r: r.set("other", "sweeps it away"), "short")

    def test_the_watchers_own_change_is_one(self, client: LMDBRedis) -> None:
        with client.pipeline() as pipe:
            pipe.watch("s")
            pipe.set("s", "mine")
            pipe.multi()
            pipe.get("s")
            with pytest.raises(redis.WatchError):
                pipe.execute()

    def test_unwatch_forgets(self, client: LMDBRedis) -> None:
        with client.pipeline() as pipe:
            pipe.watch("s")
            client.set("s", "other")
            pipe.unwatch()
            pipe.multi()
            pipe.get("s")
            assert pipe.execute() == [b"other"]

    def test_the_first_watch_counts(self, client: LMDBRedis) -> None:
        with client.pipeline() as pipe:
            pipe.watch("s")
            client.set("s", "other")
            pipe.watch("s", "l")
            pipe.multi()
            pipe.get("s")
            with pytest.raises(redis.WatchError):
                pipe.execute()

    def test_a_transaction_that_reads_only_conflicts_as_well(self, client: LMDBRedis) -> None:
        with client.pipeline() as pipe:
            pipe.watch("s")
            client.set("s", "other")
            pipe.multi()
            pipe.get("l")
            with pytest.raises(redis.WatchError):
                pipe.execute()

    @pytest.mark.contract("RQC-04")
    def test_another_process_conflicts_too(self, client: LMDBRedis, store_path: Path) -> None:
        script = """
            from equeue_rq import LMDBRedis
            r = LMDBRedis(path)
            say("ready")
            hear()
            r.set("s", "other")
            say("done")
            hear()
        """
        with child(script, store_path) as other:
            other.hear()

            def change(_: LMDBRedis) -> None:
                other.say()
                assert other.hear() == "done"

            assert conflicts(client, change, "s")


class TestRunning:
    @pytest.mark.contract("RQC-03")
    def test_commands_run_as_one(self, client: LMDBRedis) -> None:
        """Who reads meanwhile sees all of it or nothing."""
        stop = threading.Event()
        torn: list[Any] = []

        def read() -> None:
            while not stop.is_set():
                both = client.mget("a", "b")
                if both[0] != both[1]:
                    torn.append(both)

        reader = threading.Thread(target=read)
        reader.start()
        for number in range(200):
            with client.pipeline() as pipe:
                pipe.set("a", number).set("b", number).execute()
        stop.set()
        reader.join()
        assert torn == []

    def test_counting_with_watch_loses_nothing(self, client: LMDBRedis) -> None:
        def count() -> None:
            for _ in range(30):
                client.transaction(
                    lambda pipe: (
                        number := int(pipe.get("n") or 0),
                        pipe.multi(),
                        pipe.set("n", number + 1),
                    ),
                    "n",
                )

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.get("n") == b"120"

    def test_an_error_in_it_is_its_own(self, client: LMDBRedis) -> None:
        client.set("s", "value")
        with client.pipeline() as pipe:
            pipe.set("a", "1").lpush("s", "x").incr("a")
            replies = pipe.execute(raise_on_error=False)
        assert isinstance(replies[1], redis.ResponseError)
        assert (replies[0], replies[2]) == (True, 2)
        with client.pipeline() as pipe:
            pipe.lpush("s", "x").incr("a")
            with pytest.raises(redis.ResponseError, match=r"Command # 1 \(LPUSH s x\) of pipeline"):
                pipe.execute()
        assert client.get("a") == b"3"

    def test_what_cannot_be_queued_ends_it(self, client: LMDBRedis) -> None:
        with client.pipeline() as pipe:
            pipe.set("a", "1")
            pipe.execute_command("NONSENSE")
            with pytest.raises(redis.ResponseError, match="unknown command"):
                pipe.execute()
        assert client.get("a") is None

    def test_a_pipeline_without_transaction_goes_on_after_an_error(self, client: LMDBRedis) -> None:
        client.set("s", "value")
        with client.pipeline(transaction=False) as pipe:
            pipe.lpush("s", "x").set("a", "1").execute_command("NONSENSE")
            pipe.get("a").ping().blpop("nothing", 0.01).select(3).get("a")
            replies = pipe.execute(raise_on_error=False)
        assert [type(reply) for reply in replies[:3:2]] == [redis.ResponseError] * 2
        assert replies[1:2] + replies[3:] == [True, b"1", True, None, True, None]

    def test_a_long_pipeline(self, client: LMDBRedis) -> None:
        for transaction in (True, False):
            with client.pipeline(transaction=transaction) as pipe:
                for number in range(2000):
                    pipe.rpush("l", number)
                assert pipe.execute()[-1] == 2000
            assert client.lrange("l", -2, -1) == [b"1998", b"1999"]
            client.delete("l")

    def test_an_empty_pipeline(self, client: LMDBRedis) -> None:
        assert client.pipeline().execute() == []

    @pytest.mark.contract("RQC-03")
    def test_a_mistake_in_a_command_undoes_that_transaction_only(
        self, client: LMDBRedis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def err(call: Any) -> None:
            raise KeyError("a mistake")

        entry = Command("MISTAKE", err, 1, frozenset({"write"}), (0, 0, 0), "")
        monkeypatch.setitem(_table._BY_WORD, b"MISTAKE", entry)
        with client.pipeline() as pipe:
            pipe.set("a", "1").execute_command("MISTAKE")
            with pytest.raises(redis.ResponseError, match="internal error: MISTAKE: KeyError"):
                pipe.execute()
        assert client.get("a") is None
        assert client.set("a", "2")
        with pytest.raises(redis.ResponseError, match="internal error"):
            client.execute_command("MISTAKE")
        assert "in err" in caplog.text

    def test_a_mistake_in_a_command_that_reads_is_its_answer(
        self, client: LMDBRedis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def err(call: Any) -> None:
            raise KeyError("a mistake")

        entry = Command("MISTAKE", err, 1, frozenset({"readonly"}), (0, 0, 0), "")
        monkeypatch.setitem(_table._BY_WORD, b"MISTAKE", entry)
        for reading in (partial(client.execute_command, "MISTAKE"), partial(_with_get, client)):
            with pytest.raises(redis.ResponseError, match="internal error: MISTAKE: KeyError"):
                reading()
        assert client.get("a") is None


def _with_get(client: LMDBRedis) -> None:
    """A transaction that only reads, and errs."""
    with client.pipeline() as pipe:
        pipe.get("a").execute_command("MISTAKE")
        pipe.execute()
