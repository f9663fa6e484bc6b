"""Handles cross to other processes as descriptions of themselves."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
from pathlib import Path

import pytest

from equeue_core import Queue, Store, exponential_backoff


def put_from_there(queue: Queue) -> None:
    queue.put(["from", os.getpid()])


@pytest.mark.contract("HND-13")
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_a_queue_as_an_argument_of_a_process(store_path: Path, method: str) -> None:
    with Queue(store_path, "mail") as queue:
        queue.put(["from", os.getpid()])
        process = multiprocessing.get_context(method).Process(target=put_from_there, args=(queue,))
        process.start()
        process.join()
        assert process.exitcode == 0
        assert [job.payload for job in queue.jobs()] == [
            ["from", os.getpid()],
            ["from", process.pid],
        ]


@pytest.mark.contract("HND-13")
def test_options_go_along(store_path: Path) -> None:
    with Queue(
        store_path, "mail", max_retries=0, lease_time=7, sync="off", backoff=exponential_backoff()
    ) as queue:
        queue.put("x")
        with pickle.loads(pickle.dumps(queue)) as twin:
            assert (twin.name, twin.store.sync) == ("mail", "off")
            record = twin.get_nowait()
            assert queue.job(record.job_id).deadline is not None
            record.nack()
            assert queue.stats()["failed"] == 1


@pytest.mark.contract("HND-13")
def test_a_relative_path_means_the_same_elsewhere(
    store_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(store_path.parent)
    with Store(store_path.name) as store:
        store.queue().put("x")
        pickled = pickle.dumps(store)
        monkeypatch.chdir(tmp_path)
        with pickle.loads(pickled) as twin:
            assert twin.queue().qsize() == 1


@pytest.mark.contract("HND-13")
def test_a_copy_is_a_handle_of_its_own(store_path: Path) -> None:
    with Queue(store_path) as queue:
        queue.put("x")
        twin = copy.copy(queue)
        twin.close()
        assert "closed" in repr(twin)
        assert queue.qsize() == 1


@pytest.mark.contract("HND-13")
def test_what_cannot_be_pickled_says_so(store_path: Path) -> None:
    with Queue(store_path, backoff=lambda retries: 1) as queue:
        queue.put("x")
        record = queue.get_nowait()
        with pytest.raises(TypeError, match="a Record cannot be pickled"):
            pickle.dumps(record)
        with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
            pickle.dumps(queue)
