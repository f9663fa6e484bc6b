"""What a worker has in hand: a note in the store, from the transaction that takes a job off its queue on.

RQ's worker takes a job off a queue first, and makes it known as started afterwards. If it is killed in
between, a job of one queue is in RQ's intermediate queue for minutes, and one of several queues nowhere. The
note says which job it is, and of which worker; it becomes that of the job's execution in the transaction
that makes that one. So whoever looks after a dead worker knows what it had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rq.utils import as_text

if TYPE_CHECKING:
    from redis import Redis

_KEY = "{}:claim"

_holder: ContextVar[str | None] = ContextVar("holder", default=None)


@dataclass(frozen=True)
class Claim:
    """What a worker has in hand.

    Attributes:
        queue_key: where the job comes from.
        execution_id: the execution that it was given; None: none yet.
    """

    queue_key: str
    job_id: str
    execution_id: str | None

    @property
    def intermediate_key(self) -> str:
        """The key of the list where RQ keeps the job until it is started."""
        return f"{self.queue_key}:intermediate"


def key_of(worker_key: str) -> str:
    """The key of a worker's claim."""
    return _KEY.format(worker_key)


@contextmanager
def claiming(worker_key: str) -> Iterator[None]:
    """What this thread takes meanwhile is claimed for the worker."""
    token = _holder.set(worker_key)
    try:
        yield
    finally:
        _holder.reset(token)


def is_claiming() -> bool:
    """Whether what is taken now is claimed for a worker."""
    return _holder.get() is not None


def take(connection: Redis, queue_keys: Sequence[str], timeout: float | None) -> Any:
    """The key of a queue, and the job that is taken from it; None: there is none.

    Parameters:
        timeout: seconds to wait for one; None: not at all.
    """
    holder = _holder.get()
    assert holder is not None, "nobody claims"
    if timeout is None:
        return connection.execute_command("EQUEUE.CLAIM", key_of(holder), *queue_keys)
    return connection.execute_command("EQUEUE.BLCLAIM", key_of(holder), *queue_keys, timeout)


def note_execution(
    pipeline: Any, worker_key: str, queue_key: str, job_id: str, execution_id: str
) -> None:
    """Note in a transaction that the worker's job has an execution."""
    pipeline.hset(
        key_of(worker_key),
        mapping={"queue": queue_key, "job": job_id, "execution": execution_id},
    )


def read(connection: Redis, worker_key: str) -> Claim | None:
    """What the worker has in hand, or had last."""
    found: Any = connection.hgetall(key_of(worker_key))
    noted = {as_text(field): as_text(value) for field, value in found.items()}
    if "job" not in noted:
        return None
    return Claim(noted["queue"], noted["job"], noted.get("execution"))
