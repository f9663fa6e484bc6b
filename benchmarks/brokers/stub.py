"""StubBroker: queues in the memory of one process, the limit of what a broker can reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks._served import Address
from benchmarks.brokers._contender import BrokerContender


class Stub(BrokerContender):
    """Nothing is stored and nothing leaves the process: what remains is Dramatiq itself."""

    modules = ("dramatiq",)

    def place(self, directory: Path) -> Address:
        return {}

    def broker(self, address: Address) -> Any:
        from dramatiq.brokers.stub import StubBroker

        return StubBroker()
