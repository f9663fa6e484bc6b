"""The fixtures that the tests of the broker contract share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from dramatiq import Broker
from dramatiq.broker import Consumer
from dramatiq.errors import ConnectionClosed, ConnectionFailed

from tests.contract.clock import Clock
from tests.contract.dramatiq.helpers import TICK, BrokerBackend, Recorder


class BrokerFixtures:
    @pytest.fixture(autouse=True)
    def _impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Dramatiq waits 3 s before it starts a consumer anew, and 0.1 s before it polls results."""
        monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 0.01)
        monkeypatch.setattr("dramatiq.results.backend.BACKOFF_FACTOR", 5)

    @pytest.fixture
    def queue(self) -> str:
        """The name of a queue that nobody else uses."""
        return f"queue-{uuid4().hex}"

    @pytest.fixture
    def broker(self, backend: BrokerBackend) -> Broker:
        return backend.open()

    @pytest.fixture
    def record(self) -> Callable[[Broker], Recorder]:
        """Makes a broker's signals be written down."""

        def record(broker: Broker) -> Recorder:
            recorder = Recorder()
            broker.add_middleware(recorder)
            return recorder

        return record

    @pytest.fixture
    def recorder(self, broker: Broker, record: Callable[[Broker], Recorder]) -> Recorder:
        """The signals of `broker`."""
        return record(broker)

    @pytest.fixture
    def consume(self, backend: BrokerBackend) -> Iterator[Callable[..., Consumer]]:
        """Makes consumers; those that are left at the end are closed."""
        with contextlib.ExitStack() as stack:

            def close(consumer: Consumer) -> None:
                with contextlib.suppress(ConnectionClosed, ConnectionFailed):
                    consumer.close()

            def consume(
                broker: Broker, queue: str, prefetch: int = 1, timeout: int = TICK
            ) -> Consumer:
                consumer = broker.consume(queue, prefetch=prefetch, timeout=timeout)
                stack.callback(close, consumer)
                return consumer

            yield consume

    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> Clock:
        """The clock of the engine and of Dramatiq's workers, to be moved."""
        clock = Clock()
        clock.install(monkeypatch)
        monkeypatch.setattr("dramatiq.worker.current_millis", lambda: int(clock.wall() * 1000))
        return clock
