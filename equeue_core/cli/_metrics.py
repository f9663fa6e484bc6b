"""``equeue metrics``: what Prometheus reads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from equeue_core import queues as views
from equeue_core._examine import examine
from equeue_core._store_handle import Store
from equeue_core.cli._errors import Code, Failure, text_of
from equeue_core.cli._open import opened, path_argument
from equeue_core.cli._output import note
from equeue_core.errors import EQueueError

if TYPE_CHECKING:
    from prometheus_client.core import CollectorRegistry, Metric

METRICS = {
    "equeue_up": "Whether the store could be read (1) or not (0).",
    "equeue_jobs": "Jobs of a queue in a state.",
    "equeue_put_total": "Jobs that were ever put in a queue.",
    "equeue_oldest_pending_timestamp_seconds": (
        "When the pending job was put that has waited longest; there is none if no job is pending."
    ),
    "equeue_queue_paused": "Whether the queue is paused (1) or not (0).",
    "equeue_workers": "Live processes that work on jobs, by what they work for.",
    "equeue_dead_owners": "Processes that died and whose jobs were not given back yet.",
    "equeue_file_bytes": "Size of the data file.",
    "equeue_live_bytes": "How much of the data file is in use.",
    "equeue_free_bytes": "Free space of the store's file system.",
}
"""Each metric, and what it tells."""


class Collector:
    """Reads the store whenever Prometheus asks.

    It opens it for that each time: `equeue compact` and `restore` find it unused in between, and what is
    at the path afterwards is what is read.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._last_error = ""

    def describe(self) -> list[Metric]:
        """Nothing is known before the store was read."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics, all of one look."""
        with self._lock:
            try:
                with opened(self._path) as store:
                    found = list(_read(store))
            except (EQueueError, OSError, Failure) as error:
                self._report(error.message if isinstance(error, Failure) else text_of(error))
                yield _gauge("equeue_up", value=0)
                return
        self._last_error = ""
        yield _gauge("equeue_up", value=1)
        yield from found

    def _report(self, error: str) -> None:
        """Say it once, not at each scrape."""
        if error != self._last_error:
            self._last_error = error
            note(f"equeue: {error}")


def _read(store: Store) -> Iterator[Metric]:
    jobs = _gauge("equeue_jobs", ["queue", "kind", "state"])
    paused = _gauge("equeue_queue_paused", ["queue", "kind"])
    put = _counter("equeue_put_total", ["queue", "kind"])
    oldest = _gauge("equeue_oldest_pending_timestamp_seconds", ["queue", "kind"])
    for view in views.queues(store):
        labels = [_label(view.name), view.kind]
        counts = view.counts()
        for state, number in counts.items():
            jobs.add_metric([*labels, state], number)
        paused.add_metric(labels, view.paused())
        ever_put = view.ever_put()
        if ever_put is not None:
            put.add_metric(labels, ever_put)
        oldest_at = view.oldest_pending() if counts["pending"] else None
        if oldest_at is not None:
            oldest.add_metric(labels, oldest_at)
    workers = _gauge("equeue_workers", ["kind"])
    # None: it is not known.
    there = [each for each in views.workers(store) if each.details.get("alive") is not False]
    kinds = [worker.kind for worker in there]
    for kind in sorted({"core", *kinds}):
        workers.add_metric([kind], kinds.count(kind))
    yield from (jobs, put, oldest, paused, workers)
    found = examine(store)
    yield _gauge("equeue_dead_owners", value=len(found.dead))
    yield _gauge("equeue_file_bytes", value=found.file_bytes)
    yield _gauge("equeue_live_bytes", value=found.live_bytes)
    yield _gauge("equeue_free_bytes", value=found.free_bytes)


def _gauge(name: str, labels: list[str] | None = None, value: float | None = None) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(name, METRICS[name], labels=labels, value=value)


def _counter(name: str, labels: list[str]) -> Any:
    from prometheus_client.core import CounterMetricFamily

    return CounterMetricFamily(name, METRICS[name], labels=labels)


def _label(name: str) -> str:
    """A queue's name as a label; the format escapes what it has to, but for carriage returns."""
    return name.replace("\r", "\\r")


def _registry(path: str) -> CollectorRegistry:
    from prometheus_client.core import CollectorRegistry

    registry = CollectorRegistry()
    registry.register(Collector(path))
    return registry


@click.command(short_help="Tell Prometheus about all queues.")
@path_argument
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Answer HTTP requests on this port, until Ctrl-C; 0: a free one.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on, with --port."
)
@click.option("--once", is_flag=True, help="Print the metrics once instead.")
def metrics(path: str, port: int | None, host: str, once: bool) -> None:
    """Tell Prometheus about all queues of a store.

    Needs prometheus-client.
    """
    if once is (port is not None):
        raise click.UsageError("Give --port, or --once.")
    try:
        import prometheus_client
    except ImportError:
        raise Failure(
            "metrics need prometheus-client, which is not installed: pip install prometheus-client",
            Code.MISSING,
        ) from None
    with opened(path):
        pass  # what is wrong now is an error; what goes wrong later, a metric
    registry = _registry(os.path.abspath(path))
    if once:
        click.echo(prometheus_client.generate_latest(registry).decode(), nl=False)
        return
    assert port is not None
    try:
        started: Any = prometheus_client.start_http_server(port, host, registry)
    except OSError as error:
        raise Failure(
            f"cannot listen at {host}:{port}: {error.strerror or error}", Code.OTHER
        ) from error
    if started is None:
        raise Failure(
            "this prometheus-client is too old: pip install 'prometheus-client>=0.20'", Code.MISSING
        )
    server, thread = started
    try:
        note(f"Metrics are at http://{host}:{server.server_port}/metrics")
        threading.Event().wait()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


COMMANDS = [metrics]
