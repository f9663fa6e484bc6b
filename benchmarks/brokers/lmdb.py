"""equeue's LMDBBroker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._served import Address
from benchmarks._session import settle
from benchmarks.brokers._contender import BrokerContender

if TYPE_CHECKING:
    from equeue_core._store_handle import Sync

_BATCH = 1000


class Lmdb(BrokerContender):
    """``LMDBBroker`` and ``LMDBResultBackend`` in one store, at their defaults but for ``sync``."""

    modules = ("dramatiq", "equeue_dramatiq")
    distributions = ("equeue", "lmdb", "msgpack", "dramatiq")

    def __init__(self, sync: Sync) -> None:
        self._sync = sync

    def place(self, directory: Path) -> Address:
        return {"path": str(directory / "store")}

    def broker(self, address: Address) -> Any:
        from equeue_dramatiq import LMDBBroker

        return LMDBBroker(address["path"], sync=self._sync)

    def results(self, address: Address) -> Any:
        from equeue_dramatiq import LMDBResultBackend

        return LMDBResultBackend(address["path"], sync=self._sync)

    def send(self, broker: Any, actor: Any, count: int) -> None:
        for start in range(0, count, _BATCH):
            size = min(_BATCH, count - start)
            broker.enqueue_many([actor.message() for _ in range(size)])
        # The filling must not be written back at the expense of what is measured.
        settle(Path(broker.queue(actor.queue_name).path))

    def send_many(self, broker: Any, messages: Sequence[Any]) -> None:
        broker.enqueue_many(messages)
