"""A consumer inside another one, so that a test can look at what passes."""

from __future__ import annotations

from collections.abc import Iterable

import dramatiq


class Watched(dramatiq.Consumer):
    """Hands everything on."""

    def __init__(self, inner: dramatiq.Consumer) -> None:
        self.inner = inner

    def __next__(self) -> dramatiq.MessageProxy | None:
        return next(self.inner)

    def ack(self, message: dramatiq.MessageProxy) -> None:
        self.inner.ack(message)

    def nack(self, message: dramatiq.MessageProxy) -> None:
        self.inner.nack(message)

    def requeue(self, messages: Iterable[dramatiq.MessageProxy]) -> None:
        self.inner.requeue(messages)

    def close(self) -> None:
        self.inner.close()
