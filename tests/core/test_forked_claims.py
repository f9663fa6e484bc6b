"""A process that forks while it holds, or takes, a job."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from equeue_core import ClaimLost, Queue
from tests.contract.helpers import assert_counts
from tests.core.children import run


class Stop(BaseException):
    """Not an Exception, as a KeyboardInterrupt is not."""


def leave() -> None:
    """The block ends well."""


def fail() -> None:
    raise LookupError


def stop() -> None:
    raise Stop


@pytest.mark.contract("OWN-04")
@pytest.mark.parametrize("end", [leave, fail, stop])
@pytest.mark.parametrize("sync", ["off", "full"])
def test_a_child_that_leaves_the_block_does_not_end_the_parents_job(
    store_path: Path, end: Callable[[], None], sync: str
) -> None:
    with Queue(store_path, sync=sync) as queue:
        queue.put("x")
        pid = None
        try:
            with queue.processing(timeout=0) as record:
                pid = os.fork()
                if pid == 0:
                    end()
                os.waitpid(pid, 0)
                assert queue.job(record.job_id).state == "running"
                assert queue.job(record.job_id).errors == ()
        finally:
            if pid == 0:
                os._exit(0)
        assert_counts(queue, done=1)


@pytest.mark.contract("OWN-04")
@pytest.mark.parametrize("verb", ["ack", "nack", "fail", "release"])
def test_a_child_cannot_complete_the_parents_job(store_path: Path, verb: str) -> None:
    with Queue(store_path, sync="off") as queue:
        queue.put("x")
        record = queue.get_nowait()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                getattr(record, verb)()
            except ClaimLost:
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        assert_counts(queue, running=1)
        record.ack()


FORK_IN_A_HANDLER = """
from equeue_core._store import _environment
queue = Queue(path, sync=sys.argv[2])
queue.put_many(["a", "b", "c"])
queue.get().ack()
pid = None

def handler(signum, frame):
    global pid
    pid = os.fork()

signal.signal(signal.SIGUSR1, handler)
transact, flock = _environment.Environment.transact, _environment._flock
armed = [True]

def before(*arguments, **options):
    if armed:
        armed.pop()
        signal.raise_signal(signal.SIGUSR1)
    return transact(*arguments, **options)

def locked(descriptor, how):
    flock(descriptor, how)
    if armed and how != _environment._UNLOCK:
        armed.pop()
        signal.raise_signal(signal.SIGUSR1)

if sys.argv[3] == "before":
    _environment.Environment.transact = before
else:
    _environment._flock = locked
record = queue.get(timeout=5)
if pid == 0:
    assert record._owner == queue._environment.owners.owner_id
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
record.ack()
queue.get(timeout=30).ack()
counts = queue.stats()
assert (counts["done"], counts["running"]) == (3, 0), counts
say("well")
"""


@pytest.mark.contract("OWN-04")
@pytest.mark.parametrize("sync", ["off", "full"])
@pytest.mark.parametrize("moment", ["before", "locked"])
def test_a_child_forked_in_the_middle_of_a_get_claims_for_itself(
    store_path: Path, sync: str, moment: str
) -> None:
    assert run(FORK_IN_A_HANDLER, store_path, sync, moment).endswith("well")
