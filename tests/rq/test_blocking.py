"""Commands that wait: how long, for what, and what else ends the wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from equeue_core import _watch
from equeue_rq import LMDBRedis
from tests.contract.helpers import WATCHDOG, wait_until
from tests.core.children import child


@pytest.fixture
def client(store_path: Path) -> Iterator[LMDBRedis]:
    with LMDBRedis(store_path, sync="off") as client:
        yield client


@pytest.fixture
def no_backstop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits does not look by itself: a wake-up that is lost is one that never comes."""
    monkeypatch.setattr(_watch, "BACKSTOP", WATCHDOG)


class Waits:
    """A blocking call in a thread."""

    def __init__(self, client: LMDBRedis, call: Callable[[], Any]) -> None:
        self.outcome: list[Any] = []
        before = blocked(client)

        def run() -> None:
            try:
                self.outcome.append(call())
            except Exception as error:
                self.outcome.append(error)

        self._thread = threading.Thread(target=run)
        self._thread.start()
        wait_until(lambda: blocked(client) > before or bool(self.outcome), "it waits")

    def result(self) -> Any:
        self._thread.join(WATCHDOG)
        assert self.outcome, "it waits still"
        return self.outcome[0]


def blocked(client: LMDBRedis) -> int:
    """How many clients wait."""
    return sum("b" in each["flags"] for each in client.client_list())


CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Any]] = {
    "BLPOP": (lambda r: r.blpop("k"), lambda r: r.rpush("k", "v"), (b"k", b"v")),
    "BLPOP of two": (lambda r: r.blpop(["j", "k"]), lambda r: r.lpush("k", "v"), (b"k", b"v")),
    "BRPOP": (lambda r: r.brpop("k", 0), lambda r: r.rpush("k", "v"), (b"k", b"v")),
    "BLMOVE": (lambda r: r.blmove("k", "to", 0), lambda r: r.rpush("k", "v"), b"v"),
    "BRPOPLPUSH": (lambda r: r.brpoplpush("k", "to"), lambda r: r.rpush("k", "v"), b"v"),
    "BLMPOP": (
        lambda r: r.blmpop(0, 1, "k", direction="LEFT"),
        lambda r: r.rpush("k", "v"),
        [b"k", [b"v"]],
    ),
    "BZPOPMIN": (lambda r: r.bzpopmin("k"), lambda r: r.zadd("k", {"v": 1}), (b"k", b"v", 1.0)),
    "BZPOPMAX": (lambda r: r.bzpopmax("k"), lambda r: r.zadd("k", {"v": 1}), (b"k", b"v", 1.0)),
    "XREAD": (
        lambda r: r.xread({"k": "$"}, block=0),
        lambda r: r.xadd("k", {"f": "v"}, id="5-1"),
        [[b"k", [(b"5-1", {b"f": b"v"})]]],
    ),
    "rename": (
        lambda r: r.blpop("k"),
        lambda r: (r.rpush("a", "v"), r.rename("a", "k")),
        (b"k", b"v"),
    ),
    "transaction": (
        lambda r: r.blpop("k"),
        lambda r: r.pipeline().set("x", 1).rpush("k", "v").execute(),
        (b"k", b"v"),
    ),
    "script": (
        lambda r: r.blpop("k"),
        lambda r: r.eval("return redis.call('RPUSH', KEYS[1], 'v')", 1, "k"),
        (b"k", b"v"),
    ),
    "sort": (
        lambda r: r.blpop("k"),
        lambda r: (r.rpush("a", "2"), r.copy("a", "k")),
        (b"k", b"2"),
    ),
}


@pytest.mark.usefixtures("no_backstop")
class TestWaking:
    @pytest.mark.contract("RQC-06")
    @pytest.mark.parametrize("name", CALLS)
    def test_what_was_waited_for_ends_it(self, client: LMDBRedis, name: str) -> None:
        call, feed, wanted = CALLS[name]
        waits = Waits(client, lambda: call(client))
        assert not waits.outcome
        feed(client)
        result = waits.result()
        if isinstance(wanted, tuple):
            result = tuple(result)
        assert result == wanted
        assert blocked(client) == 0

    def test_what_is_there_is_had_at_once(self, client: LMDBRedis) -> None:
        client.rpush("k", "v")
        assert client.blpop("k") is not None

    def test_another_key_does_not(self, client: LMDBRedis, store_path: Path) -> None:
        waits = Waits(client, lambda: client.blpop("k"))
        with LMDBRedis(store_path, db=1) as elsewhere:
            elsewhere.rpush("k", "elsewhere")
        client.rpush("j", "v")
        client.set("k", "no list")
        client.delete("k")
        client.zadd("k", {"m": 1})
        client.delete("k")
        assert not waits.outcome
        client.rpush("k", "v")
        assert waits.result()[1] == b"v"

    @pytest.mark.contract("RQC-06")
    def test_each_element_wakes_one_that_gets_it(self, client: LMDBRedis) -> None:
        waits = [Waits(client, lambda: client.blpop("k")) for _ in range(4)]
        client.rpush("k", *range(4))
        assert sorted(each.result()[1] for each in waits) == [b"0", b"1", b"2", b"3"]

    def test_many_producers_and_consumers_lose_nothing(self, client: LMDBRedis) -> None:
        got: list[bytes] = []

        def consume() -> None:
            while (found := client.blpop(["k", "l"])[1]) != b"stop":
                got.append(found)

        def produce(start: int) -> None:
            for number in range(start, start + 100):
                client.rpush("k" if number % 2 else "l", number)

        consumers = [threading.Thread(target=consume) for _ in range(3)]
        producers = [threading.Thread(target=produce, args=(100 * n,)) for n in range(3)]
        for thread in (*consumers, *producers):
            thread.start()
        for thread in producers:
            thread.join()
        client.rpush("l", *["stop"] * 3)
        for thread in consumers:
            thread.join(WATCHDOG)
            assert not thread.is_alive()
        assert sorted(map(int, got)) == list(range(300))

    @pytest.mark.contract("RQC-06")
    def test_another_process_wakes_and_is_woken(self, client: LMDBRedis, store_path: Path) -> None:
        script = """
            from equeue_core import _watch
            _watch.BACKSTOP = 60
            from equeue_rq import LMDBRedis
            r = LMDBRedis(path)
            while True:
                found = r.blpop("to", 60)[1].decode()
                r.rpush("from", found + "!")
                if found == "stop":
                    break
        """
        with child(script, store_path) as other:
            for word in ("one", "two", "three", "stop"):
                client.rpush("to", word)
                assert client.blpop("from", WATCHDOG)[1].decode() == word + "!"
            assert other.process.wait(WATCHDOG) == 0

    def test_a_transaction_does_not_wait(self, client: LMDBRedis) -> None:
        with client.pipeline() as pipe:
            pipe.blpop("k", 60).xread({"s": "$"}, block=0).bzpopmin("z", 0)
            assert [not reply for reply in pipe.execute()] == [True] * 3

    def test_nor_does_a_script(self, client: LMDBRedis) -> None:
        assert client.eval("return redis.call('BLPOP', KEYS[1], 0)", 1, "k") is None


class TestTimeouts:
    @pytest.mark.contract("RQC-06")
    @pytest.mark.parametrize("seconds", [0.05, 0.3, 1.2])
    def test_it_is_exact(self, client: LMDBRedis, seconds: float) -> None:
        begun = time.monotonic()
        assert client.blpop("k", seconds) is None
        took = time.monotonic() - begun
        assert seconds <= took < seconds + 1.0

    def test_it_is_that_of_the_whole_wait(self, client: LMDBRedis) -> None:
        """Being woken for nothing does not begin it anew."""
        stop = threading.Event()

        def disturb() -> None:
            while not stop.wait(0.02):
                client.rpush("k", "v")
                client.lpop("k")
                client.zadd("k", {"m": 1})
                client.delete("k")

        thread = threading.Thread(target=disturb)
        thread.start()
        begun = time.monotonic()
        client.blpop("other", 0.3)
        assert 0.3 <= time.monotonic() - begun < 1.3
        stop.set()
        thread.join()

    def test_patched_clocks_do_not_matter(
        self, client: LMDBRedis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client.ping()
        monotonic, sleep, mine = time.monotonic, time.sleep, threading.get_ident()

        def patched(seconds: float) -> None:
            if threading.get_ident() == mine:  # other tests' threads may be at it
                pytest.fail("it slept")
            sleep(seconds)

        monkeypatch.setattr(time, "sleep", patched)
        monkeypatch.setattr(time, "time", lambda: 0.0)
        client.set("k", "v", ex=100)
        assert client.ttl("k") in (99, 100)
        begun = monotonic()
        assert client.blpop("l", 0.1) is None
        assert monotonic() - begun >= 0.1

    def test_more_than_the_socket_timeout_is_an_error(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off", socket_timeout=0.1) as client:
            with pytest.raises(redis.TimeoutError):
                client.blpop("k", 5)
            assert client.blpop("k", 0.05) is None
            client.rpush("k", "v")
            assert client.lrange("k", 0, -1) == [b"v"], "nobody waits for it any more"


@pytest.mark.usefixtures("no_backstop")
class TestEnding:
    def test_closing_the_client_ends_it(self, store_path: Path, client: LMDBRedis) -> None:
        other = LMDBRedis(store_path)
        waits = Waits(client, lambda: other.blpop("k"))
        other.close()
        assert isinstance(waits.result(), redis.ConnectionError)
        client.rpush("k", "v")
        assert client.llen("k") == 1

    def test_killing_it_ends_it(self, store_path: Path, client: LMDBRedis) -> None:
        with LMDBRedis(store_path, client_name="victim") as other:
            waits = Waits(client, lambda: other.blpop("k"))
            (victim,) = [each for each in client.client_list() if each["name"] == "victim"]
            assert client.client_kill_filter(_id=victim["id"]) == 1
            assert isinstance(waits.result(), redis.ConnectionError)

    def test_killing_ends_it_in_another_process(self, client: LMDBRedis, store_path: Path) -> None:
        script = """
            from equeue_core import _watch
            _watch.BACKSTOP = 60
            import redis
            from equeue_rq import LMDBRedis
            r = LMDBRedis(path)
            try:
                r.blpop("k", 60)
            except redis.ConnectionError as error:
                say(error)
        """
        with child(script, store_path) as other:
            wait_until(lambda: blocked(client) == 1, "it waits")
            (victim,) = [each for each in client.client_list() if "b" in each["flags"]]
            assert int(victim["pid"]) == other.pid
            client.client_kill(victim["addr"])
            assert other.hear() == "Connection closed by server."

    @pytest.mark.parametrize("error", [False, True])
    def test_unblocking_it(self, client: LMDBRedis, error: bool) -> None:
        waits = Waits(client, lambda: client.blpop("k"))
        (other,) = [each for each in client.client_list() if "b" in each["flags"]]
        assert client.client_unblock(int(other["id"]), error=error) == 1
        if error:
            assert "UNBLOCKED" in str(waits.result())
        else:
            assert waits.result() is None
        assert client.client_unblock(int(other["id"])) == 0

    def test_a_key_of_another_type_does_not(self, client: LMDBRedis) -> None:
        waits = Waits(client, lambda: client.blpop("k", 0.4))
        client.set("k", "no list")
        assert waits.result() is None
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            client.blpop("k", 1)

    def test_a_client_whose_process_died_takes_nothing(
        self, client: LMDBRedis, store_path: Path
    ) -> None:
        script = """
            from equeue_rq import LMDBRedis
            LMDBRedis(path).blpop("k", 60)
        """
        with child(script, store_path) as other:
            wait_until(lambda: blocked(client) == 1, "it waits")
            other.process.kill()
            other.process.wait()
            assert blocked(client) == 0
            client.rpush("k", "v")
            assert client.lpop("k") == b"v"
