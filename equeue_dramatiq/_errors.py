"""The engine's errors as Dramatiq's, so that its workers wait and try again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

# Their base class has another name before Dramatiq 2.1.
from dramatiq.errors import ConnectionClosed, ConnectionFailed

from equeue_core import (
    EQueueError,
    ForeignStoreError,
    NetworkFileSystemError,
    StoreAccessError,
    StoreOptionError,
    StoreVersionError,
)

_NOT_OPENED = (
    ForeignStoreError,
    NetworkFileSystemError,
    StoreAccessError,
    StoreOptionError,
    StoreVersionError,
)


def broker_error(error: EQueueError) -> ConnectionClosed | ConnectionFailed:
    """`error` as one of Dramatiq's: ConnectionFailed if the store cannot be opened, otherwise
    ConnectionClosed. Raise it ``from error``.
    """
    kind = ConnectionFailed if isinstance(error, _NOT_OPENED) else ConnectionClosed
    return kind(str(error))


@contextlib.contextmanager
def broker_errors() -> Iterator[None]:
    """Raises the engine's errors as `broker_error` has them."""
    try:
        yield
    except EQueueError as error:
        raise broker_error(error) from error
