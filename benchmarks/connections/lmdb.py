"""equeue's LMDBRedis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._served import Address
from benchmarks._session import settle
from benchmarks.connections._contender import ConnectionContender

if TYPE_CHECKING:
    from equeue_core.storage import Sync


class Lmdb(ConnectionContender):
    """``LMDBRedis`` on a store, at its defaults but for ``sync``."""

    modules = ("rq", "redis", "lupa", "equeue_rq")
    distributions = ("equeue", "lmdb", "msgpack", "rq", "redis")

    def __init__(self, sync: Sync) -> None:
        self._sync = sync

    def place(self, directory: Path) -> Address:
        return {"path": str(directory / "store")}

    def connect(self, address: Address) -> Any:
        from equeue_rq import LMDBRedis

        return LMDBRedis(**address, sync=self._sync)

    def options(self, address: Address) -> list[str]:
        url = f"lmdb://{address['path']}?sync={self._sync}"
        return ["--connection-class", "equeue_rq.LMDBRedis", "--url", url]

    def settle(self, address: Address) -> None:
        settle(Path(address["path"]))
