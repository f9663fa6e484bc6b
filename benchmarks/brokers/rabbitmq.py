"""RabbitmqBroker with a node of its own on loopback."""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks._served import Address
from benchmarks.brokers._contender import BrokerContender
from benchmarks.brokers.redis import Redis

_PATIENCE = 60.0
_QUEUES = ("default", "default.DQ", "default.XQ")


class Rabbitmq(BrokerContender):
    """``RabbitmqBroker``; results, which it has no backend for, go to ``RedisBackend``.

    By default a ``send`` returns before the server has the message; with ``confirmed``, the server
    has written it to the disk by then.
    """

    modules = ("dramatiq", "pika")
    distributions = ("dramatiq", "pika")

    def __init__(self, confirmed: bool = False, results: bool = False) -> None:
        self._confirmed = confirmed
        self._node = ExitStack()
        self._port = 0
        self._backend = Redis() if results else None

    def start(self, directory: Path) -> None:
        # The tests need such a node too.
        from tests._servers import rabbitmq_server

        (directory / "node").mkdir(parents=True)
        self._port = self._node.enter_context(rabbitmq_server(directory / "node"))
        if self._backend is not None:
            self._backend.start(directory / "results")

    def stop(self) -> None:
        if self._backend is not None:
            self._backend.stop()
        self._node.close()

    def place(self, directory: Path) -> Address:
        address: Address = {"host": "127.0.0.1", "port": self._port}
        pika = import_module("pika")
        with pika.BlockingConnection(pika.ConnectionParameters(**address)) as connection:
            channel = connection.channel()
            for queue in _QUEUES:
                channel.queue_delete(queue)
        results = self._backend.place(directory) if self._backend is not None else None
        return {"parameters": address, "results": results}

    def broker(self, address: Address) -> Any:
        from dramatiq.brokers.rabbitmq import RabbitmqBroker

        return RabbitmqBroker(confirm_delivery=self._confirmed, **address["parameters"])

    def results(self, address: Address) -> Any:
        return Redis().results(address["results"])

    def send(self, broker: Any, actor: Any, count: int) -> None:
        super().send(broker, actor, count)
        deadline = time.monotonic() + _PATIENCE
        while broker.get_queue_message_counts(actor.queue_name)[0] < count:
            if time.monotonic() > deadline:
                raise TimeoutError("RabbitMQ did not take the messages in")
            time.sleep(0.05)

    @classmethod
    def installed(cls) -> bool:
        return super().installed() and None not in map(shutil.which, ("rabbitmq-server", "epmd"))

    @classmethod
    def versions(cls) -> dict[str, str]:
        command = ["rabbitmqctl", "version"]
        return super().versions() | {
            "RabbitMQ": subprocess.check_output(command, text=True, timeout=60).strip()
        }
