"""The command on stores of Dramatiq and RQ, made by their own code."""

from __future__ import annotations

import datetime
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dramatiq
import pytest
import rq
from rq.serializers import JSONSerializer

import equeue_rq
from equeue_core import Queue, Store, queues
from equeue_core.cli._errors import Code
from equeue_dramatiq import LMDBBroker
from equeue_rq import LMDBRedis
from tests.cli.conftest import Run

Shown = Callable[..., Any]


class Trap:
    """Its pickle makes a directory when it is loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


@pytest.fixture
def broker(store_path: Path) -> Iterator[LMDBBroker]:
    broker = LMDBBroker(store_path, middleware=[])
    yield broker
    broker.close()


@pytest.fixture
def connection(store_path: Path) -> Iterator[LMDBRedis]:
    with LMDBRedis(store_path) as connection:
        yield connection


def send(broker: LMDBBroker, *args: Any, **kwargs: Any) -> dramatiq.Message[Any]:
    message: dramatiq.Message[Any] = dramatiq.Message(
        queue_name="default", actor_name="send", args=args, kwargs=kwargs, options={"x": 1}
    )
    return broker.enqueue(message)


def work(connection: LMDBRedis, name: str = "default") -> None:
    worker = rq.SimpleWorker([rq.Queue(name, connection=connection)], connection=connection)
    worker.work(burst=True, logging_level="CRITICAL")


def counts(shown: Shown, path: Path, name: str) -> dict[str, int]:
    by_name = {each["name"]: each["counts"] for each in shown("stats", path)["queues"]}
    return {state: number for state, number in by_name[name].items() if number}


# Dramatiq


def test_a_message_is_shown(
    broker: LMDBBroker, store_path: Path, shown: Shown, equeue: Run
) -> None:
    message = send(broker, 1, to="x")
    job = shown("show", store_path, "dramatiq:default", 1)
    assert job["payload"] == {
        "actor": "send",
        "args": [1],
        "kwargs": {"to": "x"},
        "options": {"x": 1},
    }
    assert job["message_id"] == message.message_id
    assert 'send(1, to="x")' in equeue("jobs", store_path, "dramatiq:default").stdout
    (queue,) = shown("queues", store_path)
    assert (queue["kind"], queue["unfinished"]) == ("dramatiq", 1)


def test_another_namespace(store_path: Path, shown: Shown) -> None:
    broker = LMDBBroker(store_path, namespace="other", middleware=[])
    send(broker)
    assert [each["kind"] for each in shown("queues", store_path)] == ["dramatiq"]
    broker.close()
    with Queue(store_path, "a:b") as queue:
        queue.put({"actor_name": 1})
    assert [each["kind"] for each in shown("queues", store_path)] == ["dramatiq", "core"]


def test_a_message_that_is_none(broker: LMDBBroker, store_path: Path, shown: Shown) -> None:
    broker.queue("default").put(pickle.dumps("another encoder"))
    broker.queue("default").put(b'{"half": ')
    broker.queue("default").put(b"{" * 100_000)
    broker.queue("default").put(send(broker).encode().replace(b'"args":[]', b'"args":5'))
    found = shown("jobs", store_path, "dramatiq:default")
    assert len(found) == 5


@pytest.mark.contract("CLI-03")
def test_messages_are_managed(
    broker: LMDBBroker, store_path: Path, shown: Shown, equeue: Run
) -> None:
    sent = equeue(
        "put", store_path, "dramatiq:default", '{"actor": "send", "args": [1]}', "--create"
    )
    later = equeue("put", store_path, "dramatiq:default", '{"actor": "send"}', "--delay", 1000)
    consumer = broker.consume("default", timeout=1000)
    message = next(consumer)
    assert message is not None
    job = shown("show", store_path, "dramatiq:default", sent.stdout.strip())
    assert (message.message_id, message.args) == (job["message_id"], (1,))
    message.fail()
    consumer.nack(message)
    assert counts(shown, store_path, "dramatiq:default") == {"scheduled": 1, "failed": 1}
    equeue("requeue", store_path, "dramatiq:default", "--all-failed", "-y")
    equeue("cancel", store_path, "dramatiq:default", later.stdout.strip(), "-y")
    assert counts(shown, store_path, "dramatiq:default") == {"pending": 1, "cancelled": 1}
    consumer.close()


@pytest.mark.parametrize(
    "payload",
    ["1", "{}", '{"actor": 1}', '{"actor": "x", "argz": []}', '{"actor": "x", "args": {}}'],
)
def test_what_is_no_message(
    payload: str, broker: LMDBBroker, store_path: Path, equeue: Run
) -> None:
    send(broker)
    assert (
        '"actor"' in equeue("put", store_path, "dramatiq:default", payload, code=Code.USAGE).stderr
    )
    equeue(
        *("put", store_path, "dramatiq:default", '{"actor": "x"}', "--priority", 1),
        code=Code.REFUSED,
    )


# RQ


def test_the_states_of_rq(
    connection: LMDBRedis, store_path: Path, shown: Shown, equeue: Run
) -> None:
    queue = rq.Queue(connection=connection)
    queue.enqueue("os.path.join", "a", "b", job_id="done")
    queue.enqueue("os.path.nope", 1, job_id="failed")
    work(connection)
    first = queue.enqueue("os.path.join", "c", job_id="pending")
    queue.enqueue("os.path.join", "d", depends_on=first, job_id="deferred")
    queue.enqueue_in(datetime.timedelta(hours=1), "os.path.join", "e", job_id="scheduled")
    queue.enqueue("os.path.join", "f", job_id="cancelled").cancel()
    states = ["pending", "scheduled", "done", "failed", "cancelled", "deferred"]
    assert counts(shown, store_path, "rq:default") == dict.fromkeys(states, 1)
    listed = shown("jobs", store_path, "rq:default")
    assert {each["id"]: each["state"] for each in listed} == {each: each for each in states}
    for state in states:
        (found,) = shown("jobs", store_path, "rq:default", "--state", state)
        assert found["id"] == state
        assert shown("show", store_path, "rq:default", state)["state"] == state
    assert shown("jobs", store_path, "rq:default", "--state", "stopped") == []
    assert "os.path.nope(1)" in equeue("jobs", store_path, "rq:default").stdout


def test_a_job_of_rq_is_shown(connection: LMDBRedis, store_path: Path, shown: Shown) -> None:
    queue = rq.Queue(connection=connection)
    done = queue.enqueue("os.path.join", "a", "b")
    failed = queue.enqueue("os.path.nope", 1)
    scheduled = queue.enqueue_in(datetime.timedelta(hours=1), "os.path.join", "e")
    work(connection)
    job = shown("show", store_path, "rq:default", done.id)
    assert job["payload"] == {"function": "os.path.join", "args": ["a", "b"], "kwargs": {}}
    assert (job["result"], job["attempts"]) == ("a/b", 1)
    assert job["enqueued_at"] <= job["started_at"] <= job["finished_at"]
    (error,) = shown("show", store_path, "rq:default", failed.id)["errors"]
    assert "Traceback" in error["traceback"]
    assert "nope" in error["message"]
    due = shown("show", store_path, "rq:default", scheduled.id)["due_at"]
    assert due == pytest.approx(job["enqueued_at"] + 3600, abs=60)


@pytest.mark.contract("CLI-06")
def test_nothing_of_a_pickle_is_run(
    connection: LMDBRedis, store_path: Path, tmp_path: Path, shown: Shown, equeue: Run
) -> None:
    made = tmp_path / "made"
    queue = rq.Queue(connection=connection)
    job = queue.enqueue(
        "os.path.join", Trap(str(made)), datetime.date(2020, 1, 1), meta={"trap": Trap(str(made))}
    )
    equeue("jobs", store_path, "rq:default")
    function, stub = shown("show", store_path, "rq:default", job.id)["payload"]["args"]
    assert not made.exists()
    assert (function, stub) == ("<posix.mkdir>", "<datetime.date>")
    equeue("cancel", store_path, "rq:default", job.id, "-y")
    assert not made.exists()


def test_a_job_that_rq_cannot_read_is_listed_and_purged(
    connection: LMDBRedis, store_path: Path, shown: Shown, equeue: Run
) -> None:
    queue = rq.Queue(connection=connection)
    halves = [queue.enqueue("os.getcwd", job_id=f"half-{number}") for number in range(2)]
    queue.enqueue("os.getcwd", job_id="whole")
    connection.hdel(halves[0].key, "data")
    connection.hset(halves[1].key, "timeout", b"\xff")
    listed = shown("jobs", store_path, "rq:default")
    assert [each["id"] for each in listed] == ["half-0", "half-1", "whole"]
    assert "cannot read" in equeue("jobs", store_path, "rq:default").stdout
    output = equeue("show", store_path, "rq:default", "half-0", code=Code.OTHER).stderr
    assert "cannot read" in output
    equeue("purge", store_path, "rq:default", "--state", "pending", "-y")
    assert counts(shown, store_path, "rq:default") == {}
    assert not connection.exists(*(half.key for half in halves))


def test_other_serializers(
    connection: LMDBRedis, store_path: Path, shown: Shown, equeue: Run
) -> None:
    queue = rq.Queue(connection=connection, serializer=JSONSerializer)
    job = queue.enqueue("os.path.nope", 1, meta={"kept": [1]})
    rq.SimpleWorker([queue], connection=connection, serializer=JSONSerializer).work(
        burst=True, logging_level="CRITICAL"
    )
    assert shown("show", store_path, "rq:default", job.id)["payload"]["args"] == [1]
    equeue("requeue", store_path, "rq:default", job.id)
    again = rq.job.Job.fetch(job.id, connection, serializer=JSONSerializer)
    assert (again.get_status(), again.args, again.meta) == ("queued", [1], {"kept": [1]})


@pytest.mark.contract("CLI-03")
def test_jobs_of_rq_are_managed(
    connection: LMDBRedis, store_path: Path, shown: Shown, equeue: Run
) -> None:
    payload = '{"function": "os.path.nope", "args": [1]}'
    job_id = equeue("put", store_path, "rq:default", payload, "--create").stdout.strip()
    later = equeue("put", store_path, "rq:default", payload, "--delay", 1000).stdout.strip()
    assert counts(shown, store_path, "rq:default") == {"pending": 1, "scheduled": 1}
    assert (
        "failed jobs only"
        in equeue("requeue", store_path, "rq:default", job_id, code=Code.REFUSED).stderr
    )
    work(connection)
    equeue("requeue", store_path, "rq:default", "--all-failed", "-y")
    assert counts(shown, store_path, "rq:default") == {"pending": 1, "scheduled": 1}
    equeue("cancel", store_path, "rq:default", later, "-y")
    equeue("cancel", store_path, "rq:default", later, "-y", code=Code.REFUSED)
    for state in ("pending", "cancelled"):
        assert (
            "Removed 1" in equeue("purge", store_path, "rq:default", "--state", state, "-y").stderr
        )
    equeue("purge", store_path, "rq:default", "--state", "done", "-y")
    assert counts(shown, store_path, "rq:default") == {}
    assert not rq.job.Job.exists(job_id, connection)


def test_what_rq_has_not(connection: LMDBRedis, store_path: Path, equeue: Run) -> None:
    rq.Queue(connection=connection).enqueue("os.getcwd")
    for verb, command in (("pause", "rq suspend"), ("resume", "rq resume")):
        assert command in equeue(verb, store_path, "rq:default", code=Code.REFUSED).stderr
    assert "function" in equeue("put", store_path, "rq:default", "1", code=Code.USAGE).stderr
    equeue("put", store_path, "rq:default", '{"function": "x"}', "--unique", 1, code=Code.REFUSED)
    for command in ("show", "requeue"):
        equeue(command, store_path, "rq:default", "none", code=Code.NOT_FOUND)
    other = rq.Queue("other", connection=connection).enqueue("os.getcwd")
    equeue("show", store_path, "rq:default", other.id, code=Code.NOT_FOUND)


@pytest.mark.contract("CLI-03")
def test_databases_and_names(
    connection: LMDBRedis, store_path: Path, shown: Shown, equeue: Run
) -> None:
    rq.Queue(connection=connection).enqueue("os.getcwd")
    with LMDBRedis(store_path, db=15) as last:
        rq.Queue(connection=last).enqueue("os.getcwd")
    rq.Queue("mine", connection=connection).enqueue("os.getcwd")
    with Queue(store_path, "rq:mine") as queue:
        queue.put(1)
    names = [each["name"] for each in shown("queues", store_path)]
    assert names == ["rq:mine", "rq:default", "rq@0:mine", "rq@15:default"]
    assert shown("jobs", store_path, "rq@15:default")[0]["payload"]["function"] == "os.getcwd"
    equeue("put", store_path, "rq@3:new", '{"function": "os.getcwd"}', "--create")
    for place in ("rq@16", "rq@x"):
        payload = '{"function": "os.getcwd"}'
        wrong = equeue("put", store_path, f"{place}:a", payload, "--create", code=Code.USAGE)
        assert "RQ's are 0 to 15" in wrong.stderr
    with LMDBRedis(store_path, db=3) as third:
        assert [each.name for each in rq.Queue.all(third)] == ["new"]


def test_workers_of_rq(connection: LMDBRedis, store_path: Path, shown: Shown, equeue: Run) -> None:
    worker = rq.Worker([rq.Queue(connection=connection)], connection=connection, name="w")
    worker.register_birth()
    connection.sadd(rq.Worker.redis_workers_keys, "rq:worker:gone")
    (found,) = shown("workers", store_path)
    assert (found["kind"], found["name"], found["pid"]) == ("rq", "w", os.getpid())
    assert found["queues"] == ["default"]
    assert " w " in equeue("workers", store_path).stdout
    assert connection.sismember(rq.Worker.redis_workers_keys, "rq:worker:gone"), "a look"
    worker.register_death()
    assert shown("workers", store_path) == []


def test_a_killed_worker_of_rq(
    connection: LMDBRedis, store_path: Path, shown: Shown, equeue: Run
) -> None:
    worker = equeue_rq.Worker(["default"], connection=store_path, name="w")
    worker.register_birth()
    worker.set_state("idle")
    (found,) = shown("workers", store_path)
    assert (found["alive"], found["state"]) == (True, "idle")
    assert worker._life is not None
    worker._life._file.close()  # as the kernel does
    (found,) = shown("workers", store_path)
    assert (found["alive"], found["state"]) == (False, "killed")
    assert 'equeue_workers{kind="rq"}' not in equeue("metrics", store_path, "--once").stdout
    equeue_rq.Worker(["default"], connection=store_path, name="other").register_birth()
    assert [each["name"] for each in shown("workers", store_path)] == ["other"]


@pytest.mark.contract("CLI-01")
def test_a_look_at_rq_writes_nothing(connection: LMDBRedis, store_path: Path, equeue: Run) -> None:
    queue = rq.Queue(connection=connection)
    job = queue.enqueue("os.getcwd")
    connection.zadd(queue.finished_job_registry.key, {"expired": 1})
    before = (store_path / "data.mdb").read_bytes()
    for arguments in (["stats"], ["queues"], ["workers"], ["jobs", "rq:default"], ["check"]):
        equeue(arguments[0], store_path, *arguments[1:])
    equeue("show", store_path, "rq:default", job.id)
    assert (store_path / "data.mdb").read_bytes() == before
    equeue("purge", store_path, "rq:default", "--state", "done", "-y")
    assert connection.zcard(queue.finished_job_registry.key) == 0


# Without them


def test_an_adapter_that_is_not_installed_is_passed_over(
    broker: LMDBBroker, store_path: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Entry:
        name = "gone"

        def load(self) -> None:
            raise ImportError("No module named 'gone'")

    send(broker)
    monkeypatch.setattr(queues, "entry_points", lambda group: [Entry()])
    monkeypatch.setattr(
        queues, "sources", queues.sources.__wrapped__
    )  # what was found before is kept
    assert queues.sources() == ([], {"gone": "No module named 'gone'"})
    assert [each["kind"] for each in shown("queues", store_path)] == ["core"]
    assert shown("show", store_path, "dramatiq:default", 1)["payload"]["actor_name"] == "send"


def test_the_queues_of_an_adapter_that_is_not_installed(
    store_path: Path, tmp_path: Path, equeue: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are neither made as queues of the core nor said not to be there."""
    missing = {"rq": "No module named 'rq'"}
    monkeypatch.setattr(queues, "sources", lambda: ([], missing))
    Store(store_path).stats()
    for name in ("rq:default", "rq@1:default"):
        said = equeue("jobs", store_path, name, code=Code.MISSING).stderr
        assert "its extra: rq" in said
        for path in (store_path, tmp_path / "new"):
            equeue("put", path, name, '{"function": "f"}', "--create", code=Code.MISSING)
    assert not (tmp_path / "new").exists()
    assert Store(store_path).queues() == []
    assert "not installed" in equeue("queues", store_path).stderr
    assert "not installed" in equeue("stats", store_path).stderr
    equeue("put", store_path, "rq", "1", "--create")
    equeue("jobs", store_path, "other:default", code=Code.NOT_FOUND)


def test_both_adapters_are_declared(store_path: Path) -> None:
    found, missing = queues.sources()
    assert ([each.kind for each in found], missing) == (["dramatiq", "rq"], {})
    with Store(store_path) as store:
        assert queues.queues(store) == []
