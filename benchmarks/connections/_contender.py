"""What every connection offers to the works of the RQ part."""

from __future__ import annotations

from typing import Any, ClassVar

from benchmarks._served import Address, Served


class ConnectionContender(Served):
    """What RQ is given as its connection, with the server that it needs."""

    distributions: ClassVar[tuple[str, ...]] = ("rq", "redis")

    def connect(self, address: Address) -> Any:
        """A new client."""
        raise NotImplementedError

    def options(self, address: Address) -> list[str]:
        """Options of the ``rq`` command."""
        raise NotImplementedError

    def settle(self, address: Address) -> None:
        """Have written back what was filled in, so that this disturbs no measurement."""
