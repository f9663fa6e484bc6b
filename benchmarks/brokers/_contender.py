"""What every broker offers to the works of the Dramatiq part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from benchmarks._served import Address, Served


class BrokerContender(Served):
    """One Dramatiq broker with the server that it needs."""

    distributions: ClassVar[tuple[str, ...]] = ("dramatiq",)

    def broker(self, address: Address) -> Any:
        """A new broker with Dramatiq's default middleware."""
        raise NotImplementedError

    def results(self, address: Address) -> Any:
        """A new result backend."""
        raise NotImplementedError(f"{type(self).__name__} has no results")

    def send(self, broker: Any, actor: Any, count: int) -> None:
        """Put ``count`` messages without arguments into the queue; all are there on return."""
        for _ in range(count):
            actor.send()

    def send_many(self, broker: Any, messages: Sequence[Any]) -> None:
        """Enqueue messages that were made before."""
        for message in messages:
            broker.enqueue(message)
