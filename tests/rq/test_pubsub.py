"""Publishing and subscribing through redis-py, between threads and processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.client import PubSub

from equeue_core import _watch
from equeue_core.storage import scan
from equeue_rq import LMDBRedis, _reading
from equeue_rq import _mailboxes as mailboxes
from equeue_rq._keyspace import ELEMENT, GARBAGE, sweep
from equeue_rq._session import Session
from tests.contract.helpers import WATCHDOG, wait_until
from tests.core.children import child


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def client(request: pytest.FixtureRequest, store_path: Path) -> Iterator[LMDBRedis]:
    with LMDBRedis(store_path, sync="off", protocol=request.param) as client:
        client.ping()
        yield client


@pytest.fixture
def no_backstop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_watch, "BACKSTOP", WATCHDOG)


def next_message(pubsub: Any) -> tuple[str, Any, Any]:
    """Type, channel and data of the next message."""
    message = pubsub.get_message(timeout=WATCHDOG)
    assert message is not None
    return message["type"], message["channel"], message["data"]


def entries(path: Path) -> list[bytes]:
    """What the store has of subscriptions and messages, once it has swept."""
    session = Session(path)
    for _ in range(2):
        session.space.write(lambda txn: sweep(txn, 0))
    prefixes = (mailboxes.SUBSCRIBER, mailboxes.SUBSCRIPTION, mailboxes.LISTENER, ELEMENT, GARBAGE)
    try:
        return session.space.read(
            lambda txn: [key for prefix in prefixes for key, _ in scan(txn, prefix)]
        )
    finally:
        session.close()


class TestMessages:
    @pytest.mark.contract("RQC-07")
    def test_they_come_in_the_order_of_publishing(self, client: LMDBRedis) -> None:
        with client.pubsub(ignore_subscribe_messages=False) as pubsub:
            pubsub.subscribe("c", "d")
            assert next_message(pubsub) == ("subscribe", b"c", 1)
            assert next_message(pubsub) == ("subscribe", b"d", 2)
            for number in range(50):
                assert client.publish("cd"[number % 2], number) == 1
            got = [next_message(pubsub) for _ in range(50)]
            assert got == [("message", b"cd"[n % 2 :][:1], b"%d" % n) for n in range(50)]
            assert pubsub.get_message() is None

    def test_nothing_is_lost_once_the_subscription_was_sent(self, client: LMDBRedis) -> None:
        """Not even if its confirmation was not read yet."""
        with client.pubsub() as pubsub:
            pubsub.subscribe("c")
            assert client.publish("c", "first") == 1
            assert next_message(pubsub)[0] == "subscribe"
            assert next_message(pubsub) == ("message", b"c", b"first")

    def test_patterns(self, client: LMDBRedis) -> None:
        with client.pubsub(ignore_subscribe_messages=True) as pubsub:
            pubsub.psubscribe("news.*", "n?ws.[ab]")
            pubsub.subscribe("news.a")
            while pubsub.get_message():
                pass
            assert client.publish("news.a", "x") == 3
            assert client.publish("news.c", "y") == 1
            assert client.publish("new.c", "z") == 0
            got = []
            for _ in range(20):
                message = pubsub.get_message()
                if message is not None:
                    got.append((message["type"], message["pattern"], message["data"]))
            assert sorted(got, key=str) == [
                ("message", None, b"x"),
                ("pmessage", b"n?ws.[ab]", b"x"),
                ("pmessage", b"news.*", b"x"),
                ("pmessage", b"news.*", b"y"),
            ]
            assert got[0][0] == "message"

    def test_shard_channels_are_apart(self, client: LMDBRedis) -> None:
        with client.pubsub(ignore_subscribe_messages=True) as pubsub:
            pubsub.ssubscribe("c")
            assert client.publish("c", "not for it") == 0
            assert client.spublish("c", "for it") == 1
            assert client.pubsub_shardchannels() == [b"c"]
            assert client.pubsub_shardnumsub("c") == [(b"c", 1)]
            assert pubsub.get_message() is None
            assert next_message(pubsub) == ("smessage", b"c", b"for it")

    def test_databases_play_no_part(self, client: LMDBRedis, store_path: Path) -> None:
        with LMDBRedis(store_path, db=5) as other, other.pubsub() as pubsub:
            pubsub.subscribe("c")
            assert client.publish("c", "x") == 1

    def test_any_bytes_of_any_length(self, client: LMDBRedis) -> None:
        names = [b"", b"\x00\xff\n", b"c" * 400, b"c" * 401, b"c" * 100_000]
        with client.pubsub(ignore_subscribe_messages=True) as pubsub:
            pubsub.subscribe(*names)
            while pubsub.get_message():
                pass
            for _ in names:
                pubsub.get_message()
            for name in names:
                assert client.publish(name, name * 2) == 1
                assert next_message(pubsub) == ("message", name, name * 2)
            assert sorted(client.pubsub_channels()) == sorted(names)

    def test_a_transaction_publishes_if_it_commits(self, client: LMDBRedis) -> None:
        with client.pubsub(ignore_subscribe_messages=True) as pubsub:
            pubsub.subscribe("c")
            pubsub.get_message()
            with client.pipeline() as pipe:
                pipe.watch("k")
                client.set("k", "changed")
                pipe.multi()
                pipe.publish("c", "never")
                with pytest.raises(redis.WatchError):
                    pipe.execute()
            with client.pipeline() as pipe:
                assert pipe.publish("c", "one").set("k", "v").publish("c", "two").execute() == [
                    1,
                    True,
                    1,
                ]
            assert [next_message(pubsub)[2] for _ in range(2)] == [b"one", b"two"]
            client.eval("return redis.call('PUBLISH', 'c', ARGV[1])", 0, "script")
            assert next_message(pubsub)[2] == b"script"

    def test_decoded(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off", decode_responses=True) as client:
            with client.pubsub() as pubsub:
                pubsub.psubscribe("c*")
                client.publish("cé", "ü")
                assert next_message(pubsub) == ("psubscribe", "c*", 1)
                assert next_message(pubsub) == ("pmessage", "cé", "ü")


class TestUnsubscribing:
    def test_it_ends_the_messages(self, client: LMDBRedis) -> None:
        with client.pubsub() as pubsub:
            pubsub.subscribe("c", "d")
            pubsub.unsubscribe("c")
            assert client.publish("c", "x") == 0
            assert client.publish("d", "x") == 1
            pubsub.unsubscribe()
            assert [next_message(pubsub) for _ in range(5)] == [
                ("subscribe", b"c", 1),
                ("subscribe", b"d", 2),
                ("unsubscribe", b"c", 1),
                ("message", b"d", b"x"),
                ("unsubscribe", b"d", 0),
            ]
            assert not pubsub.subscribed

    def test_a_closed_connection_leaves_nothing(self, client: LMDBRedis, store_path: Path) -> None:
        before = entries(store_path)
        pubsub = client.pubsub()
        pubsub.subscribe("c")
        pubsub.psubscribe("p*")
        client.publish("c", "x" * 10_000)
        assert len(entries(store_path)) > len(before)
        pubsub.close()
        assert client.publish("c", "x") == 0
        assert client.pubsub_numpat() == 0
        assert entries(store_path) == before

    def test_a_dead_process_leaves_nothing(self, client: LMDBRedis, store_path: Path) -> None:
        script = """
            from equeue_rq import LMDBRedis
            pubsub = LMDBRedis(path).pubsub()
            pubsub.subscribe("c", "forgotten")
            pubsub.psubscribe("p*")
            say("ready")
            hear()
        """
        before = entries(store_path)
        with child(script, store_path) as other:
            other.hear()
            assert client.pubsub_numsub("c") == [(b"c", 1)]
            assert client.publish("c", "x") == 1
            other.process.kill()
            other.process.wait()
        assert client.pubsub_numsub("c") == [(b"c", 0)]
        assert client.pubsub_channels() == []
        assert client.pubsub_numpat() == 0
        assert client.publish("c", "x") == 0
        assert entries(store_path) == before

    def test_who_subscribes_clears_dead_ones_away(
        self, client: LMDBRedis, store_path: Path
    ) -> None:
        script = """
            from equeue_rq import LMDBRedis
            pubsub = LMDBRedis(path).pubsub()
            pubsub.subscribe("nobody will publish here")
            say("ready")
            hear()
        """
        before = entries(store_path)
        with child(script, store_path) as other:
            other.hear()
            other.process.kill()
            other.process.wait()
        assert len(entries(store_path)) > len(before)

        def cleared() -> bool:
            with client.pubsub() as pubsub:
                pubsub.subscribe("c")
            return entries(store_path) == before

        wait_until(cleared, "one looks in the right place")

    def test_who_does_not_read_is_cut_off(
        self, client: LMDBRedis, store_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mailboxes, "LIMIT", 10_000)
        with client.pubsub(ignore_subscribe_messages=True) as pubsub, client.pubsub() as reader:
            pubsub.subscribe("c")
            reader.subscribe("c")
            for number in range(4):
                assert client.publish("c", "x" * 3000) == (2 if number < 3 else 1)
                while reader.get_message():
                    pass
            assert client.pubsub_numsub("c") == [(b"c", 1)]
            # It connects again, and subscribes again.
            got = []
            for _ in range(10):
                try:
                    got.append(pubsub.get_message())
                except redis.ConnectionError:
                    got.append("cut off")
            assert "cut off" in got or client.pubsub_numsub("c") == [(b"c", 2)]
            pubsub.subscribe("c")
            assert client.pubsub_numsub("c") == [(b"c", 2)]


@pytest.mark.usefixtures("no_backstop")
class TestWaiting:
    def test_a_thread_gets_them(self, client: LMDBRedis) -> None:
        got: list[Any] = []
        arrived = threading.Semaphore(0)

        def handle(message: Any) -> None:
            got.append(message["data"])
            arrived.release()

        pubsub = client.pubsub()
        pubsub.subscribe(c=handle)
        thread = pubsub.run_in_thread(sleep_time=WATCHDOG, daemon=True)
        for number in range(5):
            client.publish("c", number)
            assert arrived.acquire(timeout=WATCHDOG)
        assert got == [b"0", b"1", b"2", b"3", b"4"]
        # The answer to another thread's command has to wake it.
        thread.stop()
        pubsub.unsubscribe()
        thread.join(WATCHDOG)
        assert not thread.is_alive()
        pubsub.close()

    def test_a_thread_that_is_told_to_stop_after_unsubscribing_stops(
        self, client: LMDBRedis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As RQ's workers do it: the answer must not be there before the next statement."""
        under_way: list[float] = []
        waits, stopped = threading.Event(), threading.Event()
        look = _reading._look

        def watched_look(session: Session, txn: Any) -> bool | None:
            waits.set()
            return look(session, txn)

        def be_under_way(seconds: float) -> None:
            under_way.append(seconds)
            stopped.wait(WATCHDOG)

        monkeypatch.setattr(_reading, "_look", watched_look)
        monkeypatch.setattr(_reading, "_sleep", be_under_way)
        pubsub = client.pubsub()
        pubsub.subscribe(c=print)
        thread = pubsub.run_in_thread(sleep_time=2 * WATCHDOG, daemon=True)
        assert waits.wait(WATCHDOG)
        pubsub.unsubscribe()
        thread.stop()
        stopped.set()
        thread.join(WATCHDOG)
        assert not thread.is_alive()
        assert under_way == [0.005]
        pubsub.close()

    def test_a_thread_can_subscribe_for_another(self, client: LMDBRedis) -> None:
        pubsub = client.pubsub(ignore_subscribe_messages=True)
        pubsub.subscribe("first")
        got: list[Any] = []
        listening = threading.Event()

        def listen() -> None:
            listening.set()
            for message in pubsub.listen():
                got.append(message["data"])
                if message["data"] == b"stop":
                    break

        thread = threading.Thread(target=listen)
        thread.start()
        listening.wait()
        pubsub.subscribe("second")
        assert client.publish("second", "x") == 1
        assert client.publish("first", "stop") == 1
        thread.join(WATCHDOG)
        assert not thread.is_alive()
        assert got == [b"x", b"stop"]
        pubsub.close()

    @pytest.mark.contract("RQC-07")
    def test_processes_talk(self, client: LMDBRedis, store_path: Path) -> None:
        script = """
            from equeue_core import _watch
            _watch.BACKSTOP = 60
            from equeue_rq import LMDBRedis
            r = LMDBRedis(path)
            pubsub = r.pubsub(ignore_subscribe_messages=True)
            pubsub.subscribe("to")
            say("ready")
            for message in pubsub.listen():
                r.publish("from", message["data"].decode() + "!")
                if message["data"] == b"stop":
                    break
        """
        with (
            client.pubsub(ignore_subscribe_messages=True) as pubsub,
            child(script, store_path) as other,
        ):
            pubsub.subscribe("from")
            pubsub.get_message(timeout=1)
            other.hear()
            for word in ("one", "two", "stop"):
                assert client.publish("to", word) == 1
                assert next_message(pubsub)[2].decode() == word + "!"
            assert other.process.wait(WATCHDOG) == 0

    def test_a_timeout_is_kept(self, client: LMDBRedis) -> None:
        import time

        with client.pubsub(ignore_subscribe_messages=True) as pubsub:
            pubsub.subscribe("c")
            pubsub.get_message(timeout=1)
            begun = time.monotonic()
            assert pubsub.get_message(timeout=0.2) is None
            assert 0.2 <= time.monotonic() - begun < 1.2

    def test_killing_the_connection_makes_a_new_one_that_subscribes_again(
        self, client: LMDBRedis
    ) -> None:
        pubsub = client.pubsub(ignore_subscribe_messages=True)
        pubsub.subscribe("c")
        pubsub.get_message(timeout=1)
        assert client.client_kill_filter(_type="pubsub") == 1
        wait_until(lambda: _is_silent(pubsub) and client.publish("c", "x") == 1, "it is back")
        assert next_message(pubsub)[2] == b"x"
        pubsub.close()


def _is_silent(pubsub: PubSub) -> bool:
    """Whether there is no message; redis-py 5.0.0 says once that the connection was lost."""
    try:
        return pubsub.get_message() is None
    except redis.ConnectionError:
        return False


class TestInContext:
    def test_other_commands_are_refused_in_resp2(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off", protocol=2, single_connection_client=True) as client:
            connection = client.connection
            assert connection is not None
            connection.send_command("SUBSCRIBE", "c")
            assert connection.read_response() == [b"subscribe", b"c", 1]
            connection.send_command("GET", "k")
            with pytest.raises(redis.ResponseError, match="Can't execute 'get'"):
                connection.read_response()
            connection.send_command("PING")
            assert connection.read_response() == [b"pong", b""]

    def test_and_run_in_resp3_between_messages(self, store_path: Path) -> None:
        with (
            LMDBRedis(store_path, sync="off", protocol=3, single_connection_client=True) as client,
            LMDBRedis(store_path) as other,
        ):
            connection = client.connection
            assert connection is not None
            connection.send_command("SUBSCRIBE", "c")
            assert connection.read_response(push_request=True) == [b"subscribe", b"c", 1]
            other.publish("c", "x")
            assert client.set("k", "v")
            assert client.get("k") == b"v"
            assert connection.read_response(push_request=True) == [b"message", b"c", b"x"]

    def test_a_health_check_goes_unnoticed(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off", health_check_interval=1) as client:
            pubsub = client.pubsub(ignore_subscribe_messages=True)
            pubsub.subscribe("c")
            pubsub.get_message()
            assert pubsub.connection is not None
            pubsub.connection.next_health_check = -1
            assert pubsub.get_message() is None
            client.publish("c", "x")
            wait_until(lambda: (pubsub.get_message() or {}).get("data") == b"x", "it comes")
            pubsub.close()
