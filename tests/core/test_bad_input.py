"""Bad input: a clear error, and nothing is lost."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equeue_core import AsyncQueue, Queue, Store, exponential_backoff
from tests.contract.helpers import WATCHDOG, assert_counts, drain, snapshot

NAN, INF = math.nan, math.inf

NOT_SECONDS = [-1, -0.001, NAN, INF, -INF, True, "1", [1], 1j]

PUT_OPTIONS: dict[str, list[Any]] = {
    "priority": [NAN, INF, -INF, True, "1", None, [1], 10**400],
    "delay": NOT_SECONDS,
    "run_at": [NAN, INF, True, "tomorrow", dt.date(2030, 1, 1), dt.timedelta(1)],
    "expires_in": [*NOT_SECONDS, 0],
    "unique": [3, b"bytes", True, ["k"]],
    "max_retries": [-1, 1.5, True, "1", NAN, 2**70],
}

QUEUE_OPTIONS: dict[str, list[Any]] = {
    "lease_time": [*NOT_SECONDS, 0],
    "max_retries": [-1, 1.5, True, None, "1", 2**70],
    "backoff": [-1, NAN, INF, "soon", [1], True],
    "map_size": [0, -1, 1.5, True, "1"],
    "sync": ["sometimes", "", 2, b"full", ["full"]],
    "recover_interval": [*NOT_SECONDS, 0, None],
    "vacuum_interval": [*NOT_SECONDS, 0, None],
    "keep_failed": [value for value in NOT_SECONDS if value is not None],
    "codec": ["json", object(), len],
    "name": [None, 3, b"bytes", "", ["a"]],
}


def cases(options: dict[str, list[Any]]) -> Any:
    """One parameter for each option and value."""
    pairs = [(name, value) for name, values in options.items() for value in values]
    return pytest.mark.parametrize(
        ("name", "value"), pairs, ids=[f"{name}={value!r:.20}" for name, value in pairs]
    )


@pytest.mark.contract("BAD-01")
@cases(PUT_OPTIONS)
def test_a_bad_option_of_put(queue: Queue, name: str, value: Any) -> None:
    queue.put("before")
    before = snapshot(queue)
    for put in (
        lambda: queue.put("x", **{name: value}),
        lambda: queue.put_many(["x", "y"], **{name: value}),
        lambda: _put_in_a_transaction(queue, name, value),
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            put()
        assert str(caught.value)
    assert snapshot(queue) == before
    assert queue.put("after") == 2


def _put_in_a_transaction(queue: Queue, name: str, value: Any) -> None:
    with queue.store.transaction() as tx:
        tx.put(queue, "first")
        tx.put(queue, "x", **{name: value})


@pytest.mark.contract("BAD-01")
def test_the_message_names_the_option(queue: Queue) -> None:
    for options in ({"delay": -1}, {"priority": NAN}, {"expires_in": -1}, {"max_retries": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            queue.put("x", **options)


@pytest.mark.contract("BAD-01")
def test_delay_and_run_at_exclude_each_other(queue: Queue) -> None:
    with pytest.raises(ValueError, match="run_at"):
        queue.put("x", delay=1, run_at=1e9)
    assert_counts(queue)


@pytest.mark.contract("BAD-01")
def test_unknown_options_are_refused(queue: Queue) -> None:
    with pytest.raises(TypeError):
        queue.put("x", prio=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        queue.put_many(["x"], unique="k")  # type: ignore[call-arg]
    assert_counts(queue)


@pytest.mark.contract("BAD-02")
@cases(QUEUE_OPTIONS)
@pytest.mark.parametrize("make", [Queue, AsyncQueue, lambda p, **o: Store(p).queue(**o)])
def test_a_bad_option_of_a_queue(path: Path, make: Any, name: str, value: Any) -> None:
    if name == "sync" and make not in (Queue, AsyncQueue):
        pytest.skip("sync is the store's")
    with pytest.raises((ValueError, TypeError)) as caught:
        make(path, **{name: value})
    assert str(caught.value)
    assert not path.exists()


@pytest.mark.contract("BAD-02")
@cases({"sync": QUEUE_OPTIONS["sync"], "map_size": QUEUE_OPTIONS["map_size"]})
def test_a_bad_option_of_a_store(path: Path, name: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Store(path, **{name: value})
    assert not path.exists()


@pytest.mark.contract("BAD-02")
@pytest.mark.parametrize("make", [Store, Queue, AsyncQueue])
@pytest.mark.parametrize(
    "bad", [None, 3, 1.5, [], object(), b"bytes"], ids=lambda bad: type(bad).__name__
)
def test_what_is_no_path_is_refused(make: Any, bad: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        make(bad)


@pytest.mark.contract("BAD-02")
@pytest.mark.parametrize(
    "url", ["redis://localhost:6379/0", "amqp://localhost", "file:///srv/jobs"]
)
def test_a_servers_address_is_no_path(url: str) -> None:
    with pytest.raises(ValueError, match="name of a directory"):
        Store(url)


@pytest.mark.contract("BAD-02")
def test_a_path_with_a_nul_is_refused(tmp_path: Path) -> None:
    with pytest.raises((ValueError, OSError)):
        Queue(f"{tmp_path}/a\0b").stats()


@pytest.mark.contract("BAD-02")
@pytest.mark.parametrize("make", [str, Path])
def test_paths_of_each_kind_are_accepted(path: Path, make: Callable[[Path], Any]) -> None:
    with Queue(make(path)) as queue:
        queue.put("x")
        assert (path / "data.mdb").exists()


BAD_CALLS: dict[str, Callable[[Queue], Any]] = {
    "get(timeout=nan)": lambda q: q.get(timeout=NAN),
    "get(timeout='1')": lambda q: q.get(timeout="1"),  # type: ignore[arg-type]
    "get(timeout=True)": lambda q: q.get(timeout=True),
    "get(timeout=-inf)": lambda q: q.get(timeout=-INF),
    "get_many(0)": lambda q: q.get_many(0),
    "get_many(-1)": lambda q: q.get_many(-1),
    "get_many(1.5)": lambda q: q.get_many(1.5),  # type: ignore[arg-type]
    "get_many('1')": lambda q: q.get_many("1"),  # type: ignore[arg-type]
    "get_many(timeout=nan)": lambda q: q.get_many(1, timeout=NAN),
    "processing(timeout=nan)": lambda q: q.processing(timeout=NAN).__enter__(),
    "put_many(3)": lambda q: q.put_many(3),  # type: ignore[arg-type]
    "put_many(None)": lambda q: q.put_many(None),  # type: ignore[arg-type]
    "ack_many(None)": lambda q: q.ack_many(None),  # type: ignore[arg-type]
    "ack_many(ids)": lambda q: q.ack_many([1, 2]),  # type: ignore[list-item]
    "job('1')": lambda q: q.job("1"),  # type: ignore[arg-type]
    "job(None)": lambda q: q.job(None),  # type: ignore[arg-type]
    "job(1.5)": lambda q: q.job(1.5),  # type: ignore[arg-type]
    "cancel('1')": lambda q: q.cancel("1"),  # type: ignore[arg-type]
    "cancel(None)": lambda q: q.cancel(None),  # type: ignore[arg-type]
    "requeue('1')": lambda q: q.requeue("1"),  # type: ignore[arg-type]
    "jobs(state='gone')": lambda q: q.jobs("gone"),
    "jobs(state=3)": lambda q: q.jobs(3),  # type: ignore[arg-type]
    "jobs(limit=0)": lambda q: q.jobs(limit=0),
    "jobs(limit=-1)": lambda q: q.jobs(limit=-1),
    "jobs(limit=1.5)": lambda q: q.jobs(limit=1.5),  # type: ignore[arg-type]
    "jobs(after=1)": lambda q: q.jobs(after=1),  # type: ignore[arg-type]
    "join(timeout=nan)": lambda q: q.join(timeout=NAN),
    "result('1')": lambda q: q.result("1", timeout=0),  # type: ignore[arg-type]
    "result(timeout=nan)": lambda q: q.result(1, timeout=NAN),
}


@pytest.mark.contract("BAD-03")
@pytest.mark.parametrize("call", BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_argument(queue: Queue, call: Callable[[Queue], Any]) -> None:
    queue.put("x")
    before = snapshot(queue)
    with pytest.raises((ValueError, TypeError)) as caught:
        call(queue)
    assert str(caught.value)
    assert snapshot(queue) == before


BAD_COMPLETIONS: dict[str, Callable[[Any], Any]] = {
    **{f"nack(delay={d!r})": (lambda r, d=d: r.nack(delay=d)) for d in NOT_SECONDS},
    **{f"release(delay={d!r})": (lambda r, d=d: r.release(delay=d)) for d in NOT_SECONDS},
    **{f"extend({d!r})": (lambda r, d=d: r.extend(d)) for d in [*NOT_SECONDS, None]},
    "ack(object())": lambda r: r.ack(object()),
}


@pytest.mark.contract("BAD-04")
@pytest.mark.parametrize("complete", BAD_COMPLETIONS.values(), ids=BAD_COMPLETIONS)
def test_a_bad_completion_keeps_the_job_in_hand(
    queue: Queue, complete: Callable[[Any], Any]
) -> None:
    queue.put("x")
    record = queue.get_nowait()
    with pytest.raises((ValueError, TypeError)) as caught:
        complete(record)
    assert str(caught.value)
    assert_counts(queue, running=1)
    record.ack()
    assert_counts(queue, done=1)


def broken_policy(retries: int) -> float:
    raise LookupError("no such policy")


@pytest.mark.contract("BAD-07")
@pytest.mark.parametrize(
    ("backoff", "why"),
    [
        (lambda retries: -1, "returned -1"),
        (lambda retries: NAN, "returned nan"),
        (lambda retries: INF, "returned inf"),
        (lambda retries: "soon", "raised ValueError"),
        (lambda: 3, "raised TypeError"),
        (broken_policy, "raised LookupError: no such policy"),
    ],
)
def test_a_failing_backoff_retries_at_once_and_says_so(
    store: Store, backoff: Any, why: str
) -> None:
    queue = store.queue(backoff=backoff)
    job_id = queue.put("x")
    queue.get_nowait().nack("the handler's own error")
    assert_counts(queue, pending=1)
    (error,) = queue.job(job_id).errors
    assert error.message.startswith("the handler's own error (the queue's backoff ")
    assert why in error.message


@pytest.mark.contract("BAD-08")
@pytest.mark.parametrize("backoff", [exponential_backoff, "3", True, [1]])
def test_what_is_no_backoff_is_refused_when_the_queue_is_made(store: Store, backoff: Any) -> None:
    with pytest.raises(TypeError, match="backoff"):
        store.queue(backoff=backoff)


@pytest.mark.contract("BAD-09")
@pytest.mark.parametrize("payloads", ["abc", b"abc", {"to": "somebody"}])
def test_put_many_of_one_payload_is_refused(queue: Queue, payloads: Any) -> None:
    with pytest.raises(TypeError, match="put_many takes an iterable of payloads"):
        queue.put_many(payloads)
    assert_counts(queue)


@pytest.mark.contract("BAD-10")
def test_a_tuple_as_a_key_comes_back(queue: Queue) -> None:
    queue.put({(1, (2, "three")): [4], "k": {(5,): None}})
    assert queue.get_nowait().payload == {(1, (2, "three")): [4], "k": {(5,): None}}


NAMES = [
    "default",
    "a b",
    "a/b",
    "../up",
    "/",
    "a\0b",
    "\0",
    "\N{PARTY POPPER}\N{SNOWMAN}",
    "n" * 5000,
    "\N{SNOWMAN}" * 2000,
    ".",
    "..",
    "bell",
    "data.mdb",
    "CON",
    "%s%n",
    "e\u0301",
    "\u00e9",
]


@pytest.mark.contract("BAD-05")
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:12])
def test_any_text_is_a_queues_name(path: Path, name: str) -> None:
    with Queue(path, name) as queue, Queue(path, name + "x") as other:
        queue.put("x")
        other.put("other")
        assert queue.name == name
        assert queue.get(timeout=WATCHDOG).queue == name
        assert drain(other) == ["other"]
        assert sorted(queue.store.queues()) == sorted([name, name + "x"])
        assert queue.jobs()[0].queue == name
    with Store(path) as store:
        assert name in store.stats()
        assert store.check().ok


@pytest.mark.contract("BAD-05")
def test_all_these_names_are_different_queues(store: Store) -> None:
    for name in NAMES:
        store.queue(name).put(name)
    assert sorted(store.queues()) == sorted(NAMES)
    for name in NAMES:
        assert drain(store.queue(name)) == [name]


@pytest.mark.contract("BAD-05")
def test_names_of_five_thousand_characters_are_told_apart_by_their_end(store: Store) -> None:
    first, second = store.queue("n" * 4999 + "1"), store.queue("n" * 4999 + "2")
    first.put("first")
    assert_counts(second)
    assert drain(first) == ["first"]


@pytest.mark.contract("BAD-05")
def test_a_name_that_is_no_text_for_the_disk_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="name"):
        Queue(path, "lone surrogate \ud800").stats()


@pytest.mark.contract("BAD-05")
def test_a_thousand_queues(store: Store) -> None:
    queues = [store.queue(f"queue {number}") for number in range(1000)]
    for queue in queues:
        queue.put(queue.name)
    assert len(store.queues()) == 1000
    assert all(drain(queue) == [queue.name] for queue in queues)
