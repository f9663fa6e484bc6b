"""Commands that Redis has not: how a worker takes a job without ever having it in its memory only."""

from __future__ import annotations

from equeue_rq._commands._blocking import seconds
from equeue_rq._commands._table import Blocked, Call, command
from equeue_rq._keyspace import Kind
from equeue_rq._replies import Reply
from equeue_rq._types.hash import Hash
from equeue_rq._types.list import List

QUEUE, JOB = b"queue", b"job"
"""The fields of a claim."""

_INTERMEDIATE = b":intermediate"
"""Behind a queue's key: the list in which RQ keeps what was taken and is not started."""


@command("EQUEUE.CLAIM", -3, "write", keys=(1, -1, 1))
def claim(call: Call) -> Reply:
    """Take the first entry of the first of several queues that has some, and note that in a hash."""
    return _claim(call, call.args)


@command("EQUEUE.BLCLAIM", -4, "write", "blocking", keys=(1, -2, 1))
def blclaim(call: Call) -> Reply:
    """Take the first entry of the first of several queues that has some, and note that; wait for one."""
    *names, raw = call.args
    timeout = seconds(raw)
    claimed = _claim(call, names)
    return Blocked(names[1:], timeout) if claimed is None else claimed


def _claim(call: Call, names: list[bytes]) -> Reply:
    note = call.db.of(names[0], Kind.HASH)
    for name in names[1:]:
        queue = List.find(call.db, name)
        if queue is None:
            continue
        taken = List.find_or_make(call.db, name + _INTERMEDIATE)
        job = queue.pop(True)
        queue.save()
        taken.push(False, [job])
        taken.save()
        if note is not None:
            call.db.delete(note)
        noted = Hash.find_or_make(call.db, names[0])
        noted.set(QUEUE, name)
        noted.set(JOB, job)
        noted.save()
        return [name, job]
    return None
