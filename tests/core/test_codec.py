"""Codecs, and payloads that cannot be decoded."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from equeue_core import PayloadError, Queue, QueueEmpty, Store
from tests.contract.helpers import assert_counts, drain


class Json:
    def encode(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def decode(self, raw: bytes) -> Any:
        return json.loads(raw)


class Pickle:
    encode = staticmethod(pickle.dumps)
    decode = staticmethod(pickle.loads)


class Broken:
    """Encodes what it can't decode."""

    def __init__(self, error: type[BaseException] = LookupError) -> None:
        self._error = error

    def encode(self, value: Any) -> bytes:
        return b"\xc1 " + str(value).encode()

    def decode(self, raw: bytes) -> Any:
        raise self._error("no such class")


@pytest.mark.contract("COD-01")
def test_a_codec_encodes_and_decodes_payloads(store: Store) -> None:
    queue = store.queue(codec=Json())
    job_id = queue.put({"a": [1, None]})
    assert queue.job(job_id).payload_bytes == b'{"a": [1, null]}'
    assert queue.job(job_id).payload == {"a": [1, None]}
    queue.put_many([1, "two"])
    assert drain(queue) == [{"a": [1, None]}, 1, "two"]


class Nosy(dict[str, Any]):
    """A payload that runs code while it is encoded."""

    def __init__(self, look: Callable[[], Any]) -> None:
        super().__init__(a=1, b="two")
        self._look = look

    def items(self) -> Any:
        for item in super().items():
            self._look()
            yield item


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same-thread", "other-thread"])
def test_a_payload_is_encoded_by_itself_whatever_is_put_meanwhile(
    store: Store, elsewhere: bool
) -> None:
    queue = store.queue()

    def put() -> None:
        queue.put(["other"])

    def look() -> None:
        if elsewhere:
            thread = threading.Thread(target=put)
            thread.start()
            thread.join()
        else:
            put()

    queue.put(Nosy(look))
    assert drain(queue) == [["other"], ["other"], {"a": 1, "b": "two"}]


@pytest.mark.contract("COD-01")
def test_a_codec_may_carry_any_object(store: Store) -> None:
    queue = store.queue(codec=Pickle())
    queue.put({1, 2, 3})
    with store.transaction() as tx:
        tx.put(queue, (complex(1, 2),))
    assert drain(queue) == [{1, 2, 3}, (complex(1, 2),)]


@pytest.mark.contract("COD-01")
def test_results_are_plain_data_whatever_the_codec(store: Store) -> None:
    queue = store.queue(codec=Pickle())
    job_id = queue.put({1})
    record = queue.get_nowait()
    with pytest.raises(PayloadError):
        record.ack({1, 2})
    record.ack({"sum": 3})
    assert queue.result(job_id) == {"sum": 3}


@pytest.mark.contract("COD-02")
@pytest.mark.parametrize(
    "payload", [object(), {1, 2}, lambda: None, 2**70, "\ud800", {"deep": [object()]}]
)
def test_what_cannot_be_encoded_is_refused(queue: Queue, payload: Any) -> None:
    with pytest.raises(PayloadError) as caught:
        queue.put(payload)
    assert isinstance(caught.value, TypeError)
    assert "codec" in str(caught.value)
    assert_counts(queue)
    assert queue.put("next") == 1


@pytest.mark.contract("COD-02")
def test_a_payload_within_itself_is_refused(queue: Queue) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(PayloadError):
        queue.put(endless)
    queue.put("next")
    assert drain(queue) == ["next"]


@pytest.mark.contract("COD-02")
@pytest.mark.parametrize("made", ["text", None, bytearray(b"x"), 7])
def test_a_codec_must_make_bytes(store: Store, made: Any) -> None:
    class Odd:
        def encode(self, value: Any) -> Any:
            return made

        def decode(self, raw: bytes) -> Any:
            return raw

    queue = store.queue(codec=Odd())
    try:
        queue.put("x")
    except PayloadError:
        assert_counts(queue)
    else:
        assert queue.get_nowait().payload == made


@pytest.mark.contract("COD-03")
@pytest.mark.parametrize("error", [LookupError, ValueError, RecursionError, MemoryError])
def test_an_undecodable_job_fails_and_the_queue_moves_on(
    store: Store, error: type[Exception]
) -> None:
    broken, queue = store.queue(codec=Broken(error)), store.queue()
    bad = broken.put("odd")
    good = queue.put("good")
    record = queue.get_nowait()
    assert record.job_id == good
    record.ack()
    assert_counts(queue, failed=1, done=1)
    job = queue.job(bad)
    assert job.payload_bytes == b"\xc1 odd"
    assert len(job.errors) == 1
    assert "decode" in job.errors[0].message
    with pytest.raises(PayloadError):
        _ = job.payload


@pytest.mark.contract("COD-03")
def test_it_can_be_requeued_for_who_can_decode_it(store: Store) -> None:
    pickles, queue = store.queue(codec=Pickle()), store.queue()
    job_id = pickles.put({1, 2})
    with pytest.raises(QueueEmpty):
        queue.get_nowait()
    assert_counts(queue, failed=1)
    queue.requeue(job_id)
    assert pickles.get_nowait().payload == {1, 2}


@pytest.mark.contract("COD-03")
def test_many_undecodable_jobs_among_good_ones(store: Store) -> None:
    broken, queue = store.queue(codec=Broken()), store.queue()
    for number in range(200):
        (queue if number % 4 == 0 else broken).put(number)
    for number in range(0, 200, 4):
        record = queue.get_nowait()
        assert record.payload == number
        record.ack()
    with pytest.raises(QueueEmpty):
        queue.get_nowait()
    assert_counts(queue, done=50, failed=150)


@pytest.mark.contract("COD-03", "BLK-02")
def test_get_many_passes_over_undecodable_jobs(store: Store) -> None:
    broken, queue = store.queue(codec=Broken()), store.queue()
    broken.put("bad")
    queue.put("good")
    broken.put("bad")
    queue.put("good too")
    seen = []
    while len(seen) < 2:
        records = queue.get_many(10, timeout=60)
        seen += [record.payload for record in records]
        queue.ack_many(records)
    assert seen == ["good", "good too"]
    assert_counts(queue, done=2, failed=2)


@pytest.mark.contract("COD-03", "UNI-02")
def test_an_undecodable_job_frees_its_key(store: Store) -> None:
    broken, queue = store.queue(codec=Broken()), store.queue()
    broken.put("x", unique="k")
    with pytest.raises(QueueEmpty):
        queue.get_nowait()
    queue.put("y", unique="k")
    assert drain(queue) == ["y"]


@pytest.mark.contract("COD-03")
def test_listing_undecodable_jobs_works(store: Store) -> None:
    store.queue(codec=Broken()).put("x")
    (job,) = store.queue().jobs()
    assert job.payload_bytes == b"\xc1 x"


@pytest.mark.contract("COD-03")
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_decode_loses_nothing(store: Store, stop: type[BaseException]) -> None:
    interrupted, queue = store.queue(codec=Broken(stop)), store.queue()
    queue.put("x")
    with pytest.raises(stop):
        interrupted.get_nowait()
    assert queue.get(timeout=60).payload == "x"
    assert queue.stats()["failed"] == 0


@pytest.mark.contract("COD-02")
def test_a_payload_of_a_hundred_megabytes(path: Path) -> None:
    payload = b"\xa5" * 100_000_000
    with Queue(path, sync="off") as queue:
        job_id = queue.put(payload)
        queue.put("after")
        record = queue.get_nowait()
        assert record.payload == payload
        record.nack()
        after = queue.get_nowait()
        assert after.payload == "after"
        record = queue.get_nowait()
        assert record.payload == payload
        record.ack()
        assert queue.job(job_id).state == "done"
        queue.purge("done")
