"""Who is connected, and what becomes of connections: threads, forked children, signals, kills."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from equeue_core import Store
from equeue_rq import LMDBRedis
from equeue_rq import _session as sessions
from equeue_rq._connection import LMDBConnection
from equeue_rq._errors import ConnectionLost
from tests.contract.helpers import WATCHDOG, wait_until
from tests.core._forked import Line, forked
from tests.core.children import child


@pytest.fixture
def client(store_path: Path) -> Iterator[LMDBRedis]:
    with LMDBRedis(store_path, sync="off", decode_responses=True) as client:
        client.ping()
        yield client


def names(client: LMDBRedis) -> list[str]:
    return sorted(each["name"] for each in client.client_list())


class TestClients:
    def test_the_list_is_of_all_processes(self, client: LMDBRedis, store_path: Path) -> None:
        client.client_setname("here")
        script = """
            from equeue_rq import LMDBRedis
            r = LMDBRedis(path, client_name="there", db=3)
            r.ping()
            say(r.client_id())
            hear()
        """
        with child(script, store_path) as other:
            number = int(other.hear())
            assert names(client) == ["here", "there"]
            (there,) = client.client_list(client_id=[str(number)])
            assert there["name"] == "there"
            assert int(there["pid"]) == other.pid
            assert str(there["db"]) == "3"
            assert number > client.client_id()
            other.process.kill()
            other.process.wait()
            assert names(client) == ["here"]

    def test_ids_grow(self, store_path: Path) -> None:
        ids = []
        for _ in range(20):
            with LMDBRedis(store_path, sync="off") as client:
                ids.append(client.client_id())
        assert ids == sorted(set(ids))

    def test_addresses_are_of_one_each(self, client: LMDBRedis, store_path: Path) -> None:
        others = [LMDBRedis(store_path) for _ in range(5)]
        for other in others:
            other.ping()
        addresses = [each["addr"] for each in client.client_list()]
        assert len(set(addresses)) == len(addresses) == 6
        client.client_kill(addresses[-1])
        assert len(client.client_list()) == 5
        with pytest.raises(redis.ResponseError, match="No such client"):
            client.client_kill("1.2.3.4:5")
        for other in others:
            other.close()

    def test_what_a_client_does_is_shown(self, client: LMDBRedis, store_path: Path) -> None:
        with LMDBRedis(store_path, client_name="other") as other, other.pubsub() as pubsub:

            def shown() -> dict[str, str]:
                return next(each for each in client.client_list() if each["name"] == "other")

            pubsub.subscribe("a", "b")
            pubsub.psubscribe("c*")
            assert (shown()["sub"], shown()["psub"], shown()["flags"]) == ("2", "1", "P")
            assert len(client.client_list(_type="pubsub")) == 1
            assert client.info("clients")["pubsub_clients"] == 1

    def test_a_long_name_is_shown_as_far_as_it_goes(self, client: LMDBRedis) -> None:
        client.client_setname("n" * 5000)
        assert client.client_getname() == "n" * 5000
        assert client.client_info()["name"] == "n" * 5000
        assert client.client_list()[0]["name"] == "n" * 400

    def test_work_is_shown(self, client: LMDBRedis, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [time.time()]
        monkeypatch.setattr(sessions, "_wall", lambda: now[0])
        with LMDBRedis(client.connection_pool.connection_kwargs["connection_pool"].path) as other:
            other.ping()
            now[0] += 5
            other.get("k")
            (shown,) = [each for each in client.client_list() if each["cmd"] == "get"]
            assert int(shown["idle"]) == 0

    def test_a_full_disk_hides_a_client_and_no_more(
        self, store_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from equeue_core._store import _roster

        def full(path: str) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(_roster, "_open", full)
        with LMDBRedis(store_path, sync="off") as client:
            assert client.set("k", "v")
            assert client.client_id() > 0
            with pytest.raises(redis.ResponseError, match="no room for one more subscriber"):
                client.execute_command("SUBSCRIBE", "c")


class TestKills:
    def test_an_idle_client_does_not_notice(self, client: LMDBRedis, store_path: Path) -> None:
        with LMDBRedis(store_path) as other:
            number = other.client_id()
            assert client.client_kill_filter(_id=number) == 1
            assert other.set("k", "v")
            assert other.client_id() > number

    def test_it_closes_the_store(self, client: LMDBRedis, store_path: Path) -> None:
        with LMDBRedis(store_path, single_connection_client=True) as other:
            client.client_kill_filter(_id=other.client_id())
            assert other.ping()
        client.close()
        # Which nobody can who is not alone.
        script = "import sys, equeue_core; equeue_core.Store(sys.argv[1]).compact()"
        subprocess.run([sys.executable, "-c", script, store_path], check=True)

    def test_but_its_watches_are_gone(self, client: LMDBRedis, store_path: Path) -> None:
        with LMDBRedis(store_path, client_name="victim") as other, other.pipeline() as pipe:
            pipe.watch("k")
            (victim,) = [each for each in client.client_list() if each["name"] == "victim"]
            client.client_kill_filter(_id=victim["id"])
            pipe.multi()
            pipe.set("k", "v")
            with pytest.raises(redis.WatchError):
                pipe.execute()

    def test_killing_oneself_is_answered(self, client: LMDBRedis) -> None:
        number = client.client_id()
        assert client.client_kill_filter(_id=number, skipme=False) == 1
        assert client.client_id() > number
        assert client.client_kill_filter(_type="normal") == 0

    def test_quit(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off") as client:
            number = client.client_id()
            assert client.quit()
            assert client.client_id() > number

    def test_reset(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off", single_connection_client=True) as client:
            client.client_setname("me")
            client.select(3)
            client.execute_command("WATCH", "k")
            assert client.reset() in (b"RESET", "RESET")
            assert client.client_getname() is None
            assert str(client.client_info()["db"]) == "0"


class TestRetries:
    def connection(self, path: Path, **options: Any) -> LMDBConnection:
        return LMDBConnection(path=path, sync="off", **options)

    def test_only_what_was_not_done_is_tried_again(
        self, store_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connection = self.connection(store_path)
        connection.connect()
        session = connection._session
        assert session is not None
        commands = connection.pack_commands([("RPUSH", "k", "1"), ("CLIENT", "ID"), ("PING",)])
        during = session.during

        def during_once(name: str, run: Callable[[], Any]) -> Any:
            if name == "PING":
                raise sessions.Disconnected("killed", idle=True)
            return during(name, run)

        monkeypatch.setattr(session, "during", during_once)
        with pytest.raises(redis.ConnectionError) as caught:
            connection.send_packed_command(commands)
        assert not isinstance(caught.value, ConnectionLost)
        assert not connection.is_connected
        connection.disconnect()

    def test_a_callers_retries_are_the_callers(self, store_path: Path) -> None:
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        with LMDBRedis(
            store_path, sync="off", retry=Retry(NoBackoff(), 5), retry_on_error=[KeyError]
        ) as client:
            connection = client.connection_pool.make_connection()
            assert connection.retry.get_retries() == 5 if hasattr(Retry, "get_retries") else True
            assert KeyError in connection.retry_on_error
            assert client.ping()

    def test_the_health_of_an_idle_connection_is_checked(self, store_path: Path) -> None:
        connection = self.connection(store_path, health_check_interval=10)
        connection.send_command("ECHO", "x")
        connection.read_response()
        sent: list[Any] = []
        send = connection.send_packed_command

        def note(command: Any, check_health: bool = True) -> None:
            sent.extend(command)
            send(command, check_health)

        connection.send_packed_command = note  # type: ignore[method-assign]
        connection.send_command("GET", "k")
        connection.next_health_check = -1
        connection.read_response()
        assert sent == [[b"GET", b"k"]]
        connection.next_health_check = -1
        connection.send_command("GET", "k")
        assert sent[1:] == [[b"GET", b"k"], [b"PING"]]
        assert connection.read_response() is None
        assert connection.next_health_check > 0
        connection.disconnect()


class TestThreads:
    @pytest.mark.contract("RQC-09")
    def test_threads_share_a_client(self, client: LMDBRedis) -> None:
        def work() -> None:
            for _ in range(50):
                client.incr("n")
                with client.pipeline() as pipe:
                    pipe.rpush("l", "x").lpop("l").execute()

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.get("n") == "300"
        assert client.llen("l") == 0

    def test_closing_while_others_work(self, store_path: Path) -> None:
        client = LMDBRedis(store_path, sync="off")
        stop = threading.Event()
        errors: list[BaseException] = []

        def work() -> None:
            while not stop.is_set():
                try:
                    client.incr("n")
                except redis.ConnectionError:
                    pass
                except BaseException as error:
                    errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(100):
            client.close()
        stop.set()
        for thread in threads:
            thread.join(WATCHDOG)
            assert not thread.is_alive()
        assert errors == []
        client.close()
        with Store(store_path) as store:
            store.compact()  # nobody has it open any more

    def test_connections_that_die_in_a_transaction(
        self, client: LMDBRedis, store_path: Path
    ) -> None:
        """The garbage collector may come at any time, even in the midst of an operation."""

        def litter() -> None:
            connection = LMDBConnection(path=store_path)
            connection.connect()
            cycle: list[Any] = [connection]
            cycle.append(cycle)

        thresholds = gc.get_threshold()
        gc.set_threshold(1)
        try:
            for number in range(100):
                litter()
                client.set("k", number)
        finally:
            gc.set_threshold(*thresholds)
        gc.collect()
        client.ping()
        assert len(client.client_list()) == 1


class TestForks:
    @pytest.mark.contract("RQC-09")
    def test_a_child_has_connections_of_its_own(self, client: LMDBRedis, store_path: Path) -> None:
        client.client_setname("parent")
        number = client.client_id()

        def run(line: Line) -> None:
            assert client.get("k") == "v"
            assert client.client_id() != number
            client.client_setname("child")
            client.set("from child", "x")
            line.say("done")
            line.hear()

        client.set("k", "v")
        with forked(run) as process:
            assert process.hear() == "done"
            assert names(client) == ["child", "parent"]
            assert client.client_id() == number
            assert client.get("from child") == "x"
            process.say("go")
            assert process.wait() == 0
        assert names(client) == ["parent"]

    def test_a_child_does_not_end_its_parents_subscriptions(self, client: LMDBRedis) -> None:
        pubsub = client.pubsub(ignore_subscribe_messages=True)
        pubsub.subscribe("c")
        pubsub.get_message(timeout=1)

        def run(line: Line) -> None:
            nonlocal pubsub
            pubsub.close()
            del pubsub
            gc.collect()
            client.close()
            line.say(str(client.publish("c", "x")))

        with forked(run) as process:
            assert process.hear() == "1"
            assert process.wait() == 0
        message = pubsub.get_message(timeout=WATCHDOG)
        assert message is not None
        assert message["data"] == "x"
        pubsub.close()

    def test_a_single_connection_is_made_anew(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off", single_connection_client=True) as client:
            number = client.client_id()

            def run(line: Line) -> None:
                line.say(str(client.client_id()))

            with forked(run) as process:
                assert int(process.hear()) != number
                assert process.wait() == 0
            assert client.client_id() == number

    def test_forks_while_threads_work(self, client: LMDBRedis) -> None:
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                client.incr("n")
                client.blpop("nothing", 0.001)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()

        def run(line: Line) -> None:
            client.set("child", "was here")
            line.say("done")

        for _ in range(10):
            with forked(run) as process:
                assert process.hear() == "done"
                assert process.wait() == 0
        stop.set()
        for thread in threads:
            thread.join()


class Alarm(Exception):
    """What a time limit raises."""


class TestSignals:
    @pytest.mark.contract("RQC-09")
    def test_a_handler_may_use_the_client(self, client: LMDBRedis) -> None:
        """At any point of a command: see `TestEverywhere` of the core's own tests."""
        rung = 0

        def handle(*_: Any) -> None:
            nonlocal rung
            rung += 1
            client.incr("handled")
            with client.pipeline() as pipe:
                pipe.rpush("l", rung).ltrim("l", -5, -1).execute()

        before = signal.signal(signal.SIGUSR1, handle)
        main = threading.main_thread().ident
        stop = threading.Event()

        def ring() -> None:
            while not stop.is_set():
                assert main is not None
                signal.pthread_kill(main, signal.SIGUSR1)
                time.sleep(0.002)

        ringer = threading.Thread(target=ring)
        ringer.start()
        try:
            for number in range(500):
                client.set("k", number)
                assert client.get("k") == str(number)
                with client.pipeline() as pipe:
                    pipe.incr("n").incr("n").execute()
            client.blpop("nothing", 0.2)
        finally:
            stop.set()
            ringer.join()
            signal.signal(signal.SIGUSR1, before)
        assert client.get("n") == "1000"
        assert rung > 10
        assert int(client.get("handled") or 0) == rung

    def test_a_handler_may_raise(self, store_path: Path) -> None:
        """A job's time limit, say: afterwards everything works, and transactions were whole."""
        script = """
            import redis
            from equeue_rq import LMDBRedis
            class Alarm(Exception): pass
            def handle(*_):
                raise Alarm
            signal.signal(signal.SIGALRM, handle)
            r = LMDBRedis(path, sync="off")
            raised = 0
            end = time.monotonic() + 3
            number = 0
            while time.monotonic() < end:
                number += 1
                try:
                    try:
                        # Again and again, because an exception in a destructor is lost.
                        signal.setitimer(signal.ITIMER_REAL, 0.0002 + number % 50 * 0.0001, 0.02)
                        while True:
                            with r.pipeline() as pipe:
                                pipe.incr("a").incr("b").execute()
                            r.blpop("nothing", 0.001)
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                except Alarm:
                    raised += 1
            assert r.get("a") == r.get("b"), (r.get("a"), r.get("b"))
            assert raised > 20, raised
            say(len(r.client_list()) < 20)
        """
        with child(script, store_path) as other:
            assert other.hear() == "True"
            assert other.process.wait(WATCHDOG) == 0

    def test_a_wait_goes_on_after_a_handler(self, client: LMDBRedis) -> None:
        before = signal.signal(signal.SIGUSR1, lambda *_: client.rpush("k", "v"))
        main = threading.main_thread().ident
        assert main is not None

        def ring() -> None:
            wait_until(
                lambda: any("b" in each["flags"] for each in client.client_list()), "it waits"
            )
            signal.pthread_kill(main, signal.SIGUSR1)

        ringer = threading.Thread(target=ring)
        ringer.start()
        try:
            assert client.blpop("k", WATCHDOG) is not None
        finally:
            ringer.join()
            signal.signal(signal.SIGUSR1, before)


class TestDurability:
    @pytest.mark.contract("RQC-05")
    @pytest.mark.parametrize("sync", ["full", "normal", "off"])
    def test_what_was_written_survives_a_kill(self, store_path: Path, sync: str) -> None:
        script = """
            from equeue_rq import LMDBRedis
            r = LMDBRedis(path, sync=sys.argv[2])
            r.rpush("l", *range(100))
            with r.pipeline() as pipe:
                pipe.set("a", 1).hset("h", mapping={"f": "v"}).execute()
            say("done")
            os.kill(os.getpid(), 9)
        """
        with child(script, store_path, sync) as other:
            assert other.hear() == "done"
            other.process.wait()
        with LMDBRedis(store_path) as client:
            assert client.llen("l") == 100
            assert client.hgetall("h") == {b"f": b"v"}

    def test_a_full_store_refuses_what_adds_and_no_more(
        self, store_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from equeue_core import DiskFull
        from equeue_core._store._environment import Environment

        with LMDBRedis(store_path, sync="off") as client:
            client.rpush("l", "a", "b")

            def full(self: Any, txn: Any, adds: int) -> None:
                raise DiskFull(28, "no room on the disk")

            monkeypatch.setattr(Environment, "require_room", full)
            for add in (
                lambda: client.rpush("l", "c"),
                lambda: client.pipeline().hset("h", "f", "v").rpush("l", "c").execute(),
            ):
                with pytest.raises(redis.exceptions.OutOfMemoryError, match="no room"):
                    add()
            assert client.lpop("l") == b"a"
            assert client.lrange("l", 0, -1) == [b"b"]
            assert client.hgetall("h") == {}
            assert client.expire("l", 100)


def test_a_forked_horse_leaves_no_place_behind(client: LMDBRedis) -> None:
    """RQ ends its work horses with os._exit."""
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            client.client_setname("horse")
            os._exit(0)
        os.waitpid(pid, 0)
    client.ping()
    assert len(client.client_list()) == 1
    path = client.connection_pool.connection_kwargs["connection_pool"].path
    assert os.path.getsize(os.path.join(path, "clients")) <= 4096 + 3 * 1024
