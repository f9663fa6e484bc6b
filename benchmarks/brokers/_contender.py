"""What every broker offers to the works of the Dramatiq part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from benchmarks._product import Product

Address = dict[str, Any]
"""Where a broker's messages are, in a form that other processes can be told: JSON."""


class BrokerContender(Product):
    """One Dramatiq broker with the server that it needs.

    The server is started once for each work and shared by its rounds; ``place`` makes room for one
    measurement, where no message is left from another.
    """

    distributions: ClassVar[tuple[str, ...]] = ("dramatiq",)

    def start(self, directory: Path) -> None:
        """Start the server, if there is one, with its files in the directory."""

    def stop(self) -> None:
        """End the server."""

    def place(self, directory: Path) -> Address:
        """An empty place for one measurement; the directory is its own."""
        raise NotImplementedError

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
