"""The engine's errors as redis-py's."""

from __future__ import annotations

from redis.exceptions import BusyLoadingError, ConnectionError  # noqa: A004 - redis-py's

from equeue_core import EQueueError, StoreBusy, StoreRemoved
from equeue_rq._session import Disconnected


class ConnectionLost(ConnectionError):
    """The connection ended while nothing was under way. It is made again, without anybody noticing."""


def connection_error(
    error: EQueueError | Disconnected, something_done: bool = False
) -> ConnectionError:
    """What redis-py is to raise for an error of the store. Raise it ``from error``.

    (That the store is full is an answer, not an error of the connection: Redis's ``OOM``.)

    Parameters:
        something_done: some of what was sent was done before it, so that it must not be sent again.
    """
    if isinstance(error, StoreBusy):
        return BusyLoadingError(str(error))
    idle = error.idle if isinstance(error, Disconnected) else isinstance(error, StoreRemoved)
    kind = ConnectionLost if idle and not something_done else ConnectionError
    return kind(str(error))
