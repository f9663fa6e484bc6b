"""A stopwatch that tells in which layer of the software the time goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

RQ = "RQ"
CLIENT = "redis-py's client, from `execute_command` on"
CONNECTION = "the connection"
COMMANDS = "the commands, within their transactions"
TRANSACTIONS = "the transactions: lock, begin, commit"
LAYERS = (RQ, CLIENT, CONNECTION, COMMANDS, TRANSACTIONS)

_CONNECTION_METHODS = (
    "send_command",
    "send_packed_command",
    "pack_commands",
    "read_response",
    "can_read",
)

Patch = Callable[[str, Callable[..., Any]], Callable[..., Any]]


class Stopwatch:
    """Times one thread; what is within no other layer is RQ's. It is never taken off again.

    Attributes:
        seconds: for each layer, without those that it calls.
        entered: how often each layer was called.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self.start()

    def start(self) -> None:
        """Begin anew, in RQ."""
        self.seconds = dict.fromkeys(LAYERS, 0.0)
        self.entered = dict.fromkeys(LAYERS, 0)
        self._layer = RQ
        self._since = time.perf_counter()

    def stop(self) -> dict[str, float]:
        """Seconds by layer since the start."""
        self._switch(RQ)
        return dict(self.seconds)

    def _switch(self, layer: str) -> str:
        now = time.perf_counter()
        before = self._layer
        self.seconds[before] += now - self._since
        self._layer, self._since = layer, now
        return before

    def timed(self, layer: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose time is this layer's."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._thread:
                return function(*args, **kwargs)
            before = self._switch(layer)
            self.entered[layer] += before != layer
            try:
                return function(*args, **kwargs)
            finally:
                self._switch(before)

        return call

    def transacting(self, method: Callable[..., Any], position: int) -> Callable[..., Any]:
        """A method of `Space` whose argument at this position is an operation."""

        @wraps(method)
        def call(space: Any, *args: Any, **kwargs: Any) -> Any:
            operation = self.timed(COMMANDS, args[position])
            return method(space, *args[:position], operation, *args[position + 1 :], **kwargs)

        return self.timed(TRANSACTIONS, call)


def attach() -> Stopwatch:
    """A stopwatch on redis-py's clients and connections and on ours, for good: in a process of its own."""
    import redis
    from redis.client import Pipeline

    from equeue_core.storage import Space
    from equeue_rq import LMDBConnection

    watch = Stopwatch()
    for owner, names, layer in (
        (redis.Redis, ("execute_command",), CLIENT),
        (Pipeline, ("execute_command", "execute", "watch", "immediate_execute_command"), CLIENT),
        (LMDBConnection, _CONNECTION_METHODS, CONNECTION),
        (redis.Connection, _CONNECTION_METHODS, CONNECTION),
    ):
        for name in names:
            setattr(owner, name, watch.timed(layer, getattr(owner, name)))
    for name, position in (("read", 0), ("write", 0), ("wait", 1), ("claim", 1)):
        setattr(Space, name, watch.transacting(getattr(Space, name), position))
    return watch
