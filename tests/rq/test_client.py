"""`LMDBRedis`: how it is made, what it says of itself, and the ways in which RQ hands it to children."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from redis import ConnectionPool
from redis.backoff import NoBackoff
from redis.retry import Retry

from equeue_core import Store, StoreBusy
from equeue_rq import LMDBConnection, LMDBConnectionPool, LMDBRedis
from equeue_rq._address import Address
from equeue_rq._errors import connection_error


@pytest.fixture
def client(store_path: Path) -> Any:
    with LMDBRedis(store_path, sync="off") as client:
        yield client


class TestMaking:
    def test_nothing_is_opened_before_the_first_command(self, store_path: Path) -> None:
        with LMDBRedis(store_path) as client:
            assert not store_path.exists()
            client.ping()
            assert store_path.is_dir()

    def test_the_default_path_is_data(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)
        with LMDBRedis(sync="off") as client:
            client.set("k", "v")
        assert (tmp_path / "data" / "data.mdb").exists()

    def test_a_relative_path_is_kept_when_the_directory_changes(
        self, tmp_path: Path, monkeypatch: Any
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with LMDBRedis("here", sync="off") as client:
            (tmp_path / "elsewhere").mkdir()
            monkeypatch.chdir(tmp_path / "elsewhere")
            client.ping()
        assert (tmp_path / "here" / "data.mdb").exists()

    def test_clients_of_one_directory_share_what_is_in_it(self, client: LMDBRedis) -> None:
        path = client.connection_pool.connection_kwargs["connection_pool"].path
        client.set("k", "v")
        with LMDBRedis(path) as same, LMDBRedis(path, db=1) as another:
            assert same.get("k") == b"v"
            assert another.get("k") is None

    def test_the_durability_is_that_of_the_store(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="normal") as client:
            client.ping()
        with Store(store_path) as store:
            assert store.sync == "normal"
        with LMDBRedis(store_path, sync="off") as client, pytest.raises(redis.ConnectionError):
            client.ping()

    @pytest.mark.parametrize("option", ["host", "port", "unix_socket_path", "ssl", "ssl_certfile"])
    def test_what_is_about_a_server_is_refused(self, option: str) -> None:
        with pytest.raises(TypeError, match=r"has no server.*lmdb:///"):
            LMDBRedis(**{option: "localhost"})

    def test_an_option_that_redis_py_does_not_know_is_refused(self, store_path: Path) -> None:
        with pytest.raises(TypeError, match="no option 'decode_response'"):
            LMDBRedis(store_path, decode_response=True)

    def test_a_path_and_a_pool_are_one_too_many(self, client: LMDBRedis, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match="not both"):
            LMDBRedis(tmp_path, connection_pool=client.connection_pool)

    @pytest.mark.parametrize("path", ["", "a\0b"])
    def test_what_cannot_be_a_path_is_an_error(self, path: str) -> None:
        client = LMDBRedis(path or "\0")
        with pytest.raises((ValueError, redis.ConnectionError)):
            client.ping()

    def test_a_file_is_no_store(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with LMDBRedis(tmp_path / "file") as client, pytest.raises(redis.ConnectionError):
            client.ping()

    def test_a_database_that_is_not_there_is_refused(self, store_path: Path) -> None:
        with LMDBRedis(store_path, db=16) as client, pytest.raises(redis.ResponseError, match="DB"):
            client.ping()

    def test_one_connection_for_all(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off", single_connection_client=True) as client:
            client.client_setname("me")
            assert client.client_getname() in ("me", b"me")
            assert len(client.client_list()) == 1

    def test_options_reach_the_connections(self, store_path: Path) -> None:
        with LMDBRedis(
            store_path, sync="off", decode_responses=True, client_name="me", db=2, protocol=2
        ) as client:
            info = client.client_info()
            assert (info["name"], str(info["db"]), info["resp"]) == ("me", "2", "2")
            assert info["lib-name"].startswith("redis-py")
            client.set("k", "é")
            assert client.get("k") == "é"

    def test_encoding_is_the_clients(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off", encoding="latin-1", decode_responses=True) as latin:
            latin.set("k", "é")
            assert latin.get("k") == "é"
        with LMDBRedis(store_path) as plain:
            assert plain.get("k") == b"\xe9"
        with LMDBRedis(store_path, decode_responses=True) as strict:
            with pytest.raises(UnicodeDecodeError):
                strict.get("k")
        with LMDBRedis(store_path, decode_responses=True, encoding_errors="replace") as lenient:
            assert lenient.get("k") == "\ufffd"

    def test_a_password_is_refused_as_by_a_server_without_one(self, store_path: Path) -> None:
        with LMDBRedis(store_path, password="pw") as client:
            with pytest.raises(redis.AuthenticationError, match="without any password"):
                client.ping()
        with LMDBRedis(store_path, username="default", password="pw") as client:
            assert client.ping()
        with LMDBRedis(store_path, username="nobody", password="pw") as client:
            with pytest.raises(redis.AuthenticationError):
                client.ping()

    def test_the_limit_of_connections_is_the_pools(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off", max_connections=1) as client:
            with client.pipeline() as pipe:
                pipe.watch("k")
                with pytest.raises(redis.ConnectionError, match="Too many connections"):
                    client.ping()

    def test_a_handler_for_new_connections_is_called(self, store_path: Path) -> None:
        def greet(connection: Any) -> None:
            connection.on_connect()
            connection.send_command("SET", "greeted", "yes")
            connection.read_response()

        with LMDBRedis(store_path, sync="off", redis_connect_func=greet) as client:
            assert client.get("greeted") == b"yes"


class TestUrls:
    def test_an_absolute_path(self, store_path: Path) -> None:
        with LMDBRedis.from_url(f"lmdb://{store_path}?sync=off&db=3") as client:
            client.set("k", "v")
        with LMDBRedis(store_path, db=3) as client:
            assert client.get("k") == b"v"

    @pytest.mark.parametrize(
        "url", ["lmdb://./some%20where", "lmdb://some%20where", "lmdb:some where"]
    )
    def test_a_relative_path(self, url: str, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)
        with LMDBRedis.from_url(url, sync="off") as client:
            client.ping()
        assert (tmp_path / "some where" / "data.mdb").exists()

    def test_options_of_the_url_go_before_the_others(self, store_path: Path) -> None:
        url = f"lmdb://{store_path}?decode_responses=True&protocol=3&client_name=me&sync=off"
        with LMDBRedis.from_url(url, decode_responses=False, db=1) as client:
            info = client.client_info()
            assert (info["name"], str(info["db"]), info["resp"]) == ("me", "1", "3")
            client.set("k", "v")
            assert client.get("k") == "v"

    @pytest.mark.parametrize(
        "url",
        [
            "redis://localhost:6379/0",
            "/var/lib/data",
            "lmdb://",
            "lmdb:///",
            "lmdb://localhost/0",
            "lmdb://127.0.0.1:6379/0",
            "lmdb://user:word@host/0",
            "lmdb:///d#e",
            "lmdb:///d?db=x",
            "lmdb:///d?decode_responses=maybe",
        ],
    )
    def test_what_cannot_be_meant_is_refused(self, url: str) -> None:
        with pytest.raises(ValueError, match="URL"):
            LMDBRedis.from_url(url)

    def test_an_unknown_option_is_refused(self) -> None:
        with pytest.raises(TypeError, match="nonsense"):
            LMDBRedis.from_url("lmdb:///tmp/data?nonsense=1")


class TestChildren:
    """RQ's ways: see rq.connections, rq.worker_pool, rq.scheduler and rq.worker.worker_classes."""

    def test_a_client_is_made_again_of_its_parts(self, client: LMDBRedis) -> None:
        client.set("k", "v")
        pool = client.connection_pool
        arguments = {
            name: value
            for name, value in pool.connection_kwargs.items()
            if name != "himport_registry"
        }
        arguments = pickle.loads(pickle.dumps(arguments))
        again = type(client)(
            connection_pool=ConnectionPool(connection_class=pool.connection_class, **arguments)
        )
        assert again.get("k") == b"v"
        again.connection_pool.disconnect()

    def test_a_plain_client_is_made_of_the_arguments_as_they_are_written(
        self, client: LMDBRedis, tmp_path: Path
    ) -> None:
        client.set("k", "v")
        arguments = dict(client.connection_pool.connection_kwargs)
        arguments.pop("himport_registry", None)
        arguments["socket_timeout"] = 425  # what a worker adds
        source = f"from redis import Redis\nprint(Redis(**{arguments!r}).get('k'))"
        child = subprocess.run(
            [sys.executable, "-W", "error", "-c", source],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
        )
        assert child.stdout == "b'v'\n", child.stderr

    def test_options_survive_that(self, store_path: Path) -> None:
        client = LMDBRedis(store_path, db=2, decode_responses=True, sync="off", protocol=2)
        address = client.connection_pool.connection_kwargs["connection_pool"]
        pool = eval(repr(address))
        assert isinstance(pool, LMDBConnectionPool)
        with redis.Redis(connection_pool=pool) as again:
            again.set("k", "é")
            assert again.get("k") == "é"
            info = again.client_info()
            assert (str(info["db"]), info["resp"]) == ("2", "2")
        pool.disconnect()

    def test_what_cannot_be_written_is_left_out(self, store_path: Path) -> None:
        client = LMDBRedis(store_path, retry=Retry(NoBackoff(), 3), retry_on_error=[ValueError])
        pool = eval(repr(client.connection_pool.connection_kwargs["connection_pool"]))
        assert "retry" not in pool.connection_kwargs

    def test_addresses_compare_by_what_they_lead_to(self, tmp_path: Path) -> None:
        def address(path: Path, **options: Any) -> Address:
            pool = LMDBRedis(path, **options).connection_pool
            found = pool.connection_kwargs["connection_pool"]
            assert isinstance(found, Address)
            return found

        one, same = (
            address(tmp_path / "a"),
            address(tmp_path / "b" / ".." / "a", decode_responses=True),
        )
        assert one == same
        assert hash(one) == hash(same)
        assert one != address(tmp_path / "b")
        assert one != address(tmp_path / "a", sync="off")
        assert pickle.loads(pickle.dumps(one)) == one

    def test_a_pool_is_made_from_a_url_as_django_makes_them(self, store_path: Path) -> None:
        pool = LMDBConnectionPool.from_url(
            f"lmdb://{store_path}?db=1", parser_class=object, decode_responses=True
        )
        assert isinstance(pool, LMDBConnectionPool)
        with redis.Redis(connection_pool=pool) as client:
            client.set("k", "é")
            assert client.get("k") == "é"
        with LMDBRedis(store_path, db=1) as other:
            assert other.get("k") == "é".encode()
        pool.disconnect()

    def test_a_pools_url_has_no_unknown_options(self, store_path: Path) -> None:
        with pytest.raises(TypeError, match="colour"):
            LMDBConnectionPool.from_url(f"lmdb://{store_path}?colour=red")
        with pytest.raises(ValueError, match="lmdb:///"):
            LMDBConnectionPool.from_url("redis://localhost")

    def test_a_pool_is_made_of_a_path(self, store_path: Path) -> None:
        pool = LMDBConnectionPool(path=store_path, db=1)
        with LMDBRedis(connection_pool=pool) as client:
            assert client.ping()
        pool.disconnect()

    def test_a_pool_says_where_it_leads(self, client: LMDBRedis, store_path: Path) -> None:
        assert repr(str(store_path)) in repr(client)
        connection = client.connection_pool.make_connection()
        assert isinstance(connection, LMDBConnection)
        assert str(store_path) in repr(connection)


class TestClosing:
    def test_a_closed_client_connects_again(self, client: LMDBRedis) -> None:
        client.set("k", "v")
        client.close()
        assert client.get("k") == b"v"

    def test_closing_gives_the_store_back(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off") as client:
            client.set("k", "v")
        with Store(store_path) as store:
            store.compact()  # it needs the store for itself

    def test_a_client_that_is_forgotten_gives_the_store_back(self, store_path: Path) -> None:
        client = LMDBRedis(store_path, sync="off")
        client.set("k", "v")
        del client
        with LMDBRedis(store_path) as other:
            assert len(other.client_list()) == 1

    def test_a_directory_that_was_removed_is_made_anew(self, store_path: Path) -> None:
        with LMDBRedis(store_path, sync="off") as client:
            client.set("k", "v")
            shutil.rmtree(store_path)
            time.sleep(0.06)  # it is looked at every 50 ms
            assert client.get("k") is None
            client.set("k", "w")
        with LMDBRedis(store_path) as client:
            assert client.get("k") == b"w"

    def test_a_store_that_somebody_has_for_himself_is_busy(self) -> None:
        error = connection_error(StoreBusy("try again"))
        assert isinstance(error, redis.exceptions.BusyLoadingError)
        assert isinstance(error, redis.ConnectionError)


class _Listener:
    def __init__(self) -> None:
        self.calls = 0

    def hear(self, connection: LMDBConnection) -> None:
        self.calls += 1


def test_connect_callbacks_are_called_until_they_are_taken_back(store_path: Path) -> None:
    connection, one, other = LMDBConnection(path=store_path), _Listener(), _Listener()
    connection.register_connect_callback(one.hear)
    connection.register_connect_callback(other.hear)
    connection.connect()
    connection.disconnect()
    connection.deregister_connect_callback(one.hear)
    connection.connect()
    connection.disconnect()
    connection.clear_connect_callbacks()
    connection.connect()
    connection.disconnect()
    assert (one.calls, other.calls) == (1, 2)
    # redis-py 5.0.1 calls them by these names.
    connection._register_connect_callback(one.hear)
    connection._register_connect_callback(other.hear)
    connection._deregister_connect_callback(one.hear)
    connection.connect()
    assert (one.calls, other.calls) == (1, 3)
