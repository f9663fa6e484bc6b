"""What a worker has in hand: a note in the store, from the transaction that takes a job off its queue on.

RQ's worker takes a job off a queue first, and makes it known as started afterwards. If it is killed in
between, a job of one queue is in RQ's intermediate queue for minutes, and one of several queues nowhere. The
note says which job it is, and of which worker; it becomes that of the job's execution in the transaction
that makes that one. So whoever looks after a dead worker knows what it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rq.exceptions import DequeueTimeout
from rq.utils import as_text

if TYPE_CHECKING:
    import rq
    from redis import Redis
    from redis.client import Pipeline


@dataclass(frozen=True)
class Claim:
    """What a worker has in hand, or had last.

    Attributes:
        queue_key: where the job comes from.
        execution_id: the execution that it was given; None: none yet.
    """

    queue_key: str
    job_id: str
    execution_id: str | None


def key_of(worker_key: str) -> str:
    """The key of a worker's claim."""
    return f"{worker_key}:claim"


@lru_cache(maxsize=16)
def claiming(queue_class: type[rq.Queue], worker_key: str) -> type[rq.Queue]:
    """A class of queues like this one, which claims for a worker what it takes; the same one each time."""

    def lpop(
        cls: type, queue_keys: Sequence[str], timeout: int | None, connection: Redis | None = None
    ) -> Any:
        if connection is None or timeout == 0:
            return queue_class.lpop(queue_keys, timeout, connection=connection)
        taken = _take(connection, key_of(worker_key), queue_keys, timeout)
        if taken is None and timeout is not None:
            raise DequeueTimeout(timeout, queue_keys)
        return taken

    def lmove(cls: type, connection: Redis, queue_key: str, timeout: int | None) -> Any:
        if timeout == 0:
            return queue_class.lmove(connection, queue_key, timeout)
        return lpop(cls, [queue_key], timeout, connection)

    members = {
        "__module__": queue_class.__module__,
        "__qualname__": queue_class.__qualname__,
        "lpop": classmethod(lpop),
        "lmove": classmethod(lmove),
    }
    return type(queue_class.__name__, (queue_class,), members)


def _take(connection: Redis, holder: str, queue_keys: Sequence[str], timeout: float | None) -> Any:
    if timeout is None:
        return connection.execute_command("EQUEUE.CLAIM", holder, *queue_keys)
    return connection.execute_command("EQUEUE.BLCLAIM", holder, *queue_keys, timeout)


def note_execution(pipeline: Pipeline, worker_key: str, execution_id: str) -> None:
    """Note in a transaction that the claimed job has an execution."""
    pipeline.hset(key_of(worker_key), "execution", execution_id)


def read(connection: Redis, worker_key: str) -> Claim | None:
    """What the worker has in hand, or had last."""
    found: Any = connection.hgetall(key_of(worker_key))
    noted = {as_text(field): as_text(value) for field, value in found.items()}
    if "job" not in noted:
        return None
    return Claim(noted["queue"], noted["job"], noted.get("execution"))
