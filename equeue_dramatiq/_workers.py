"""The workers of this process: how many messages each may have, and what it gives back when it stops."""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

import dramatiq.worker
from dramatiq.common import iter_queue
from dramatiq.errors import ConnectionClosed, ConnectionFailed

from equeue_dramatiq._slots import Slots

if TYPE_CHECKING:
    from dramatiq import Worker
    from dramatiq.broker import MessageProxy
    from dramatiq.worker import ConsumerThread


class _Here(threading.local):
    slots: Slots | None = None


class Workers:
    """Knows each worker by the queue through which its consumer threads feed its worker threads."""

    def __init__(self) -> None:
        self._slots: weakref.WeakKeyDictionary[Any, Slots] = weakref.WeakKeyDictionary()
        self._here = _Here()

    def add(self, worker: Worker) -> None:
        """A worker is about to start."""
        # Not the worker itself: it would keep its own key alive.
        unload = partial(_unload, weakref.ref(worker))
        self._slots[worker.work_queue] = Slots(worker.worker_threads, unload)

    def enter(self, thread: ConsumerThread) -> None:
        """The calling thread is one of a worker's consumer threads."""
        self._here.slots = self._slots.get(thread.work_queue)

    def slots(self, prefetch: int) -> Slots:
        """The slots for a consumer that the calling thread makes: those of its worker, or `prefetch`
        of its own if there is no worker, or if somebody has said how many messages it is to fetch.
        """
        shared = self._here.slots
        if shared is None:
            return Slots(prefetch)
        # `Worker.queue_prefetch`, unless it was set.
        usual = min(2 * shared.number, 65535)
        if prefetch == usual and not dramatiq.worker.QUEUE_PREFETCH:
            return shared
        return shared.offshoot(prefetch)

    def are_busy(self) -> bool:
        """Whether a worker of this process has a message in hand."""
        return any(slots.are_taken for slots in list(self._slots.values()))

    def stop(self, worker: Worker) -> None:
        """Let the worker claim nothing more, and give back what it has not started."""
        slots = self._slots.get(worker.work_queue)
        if slots is None:
            return
        slots.close()
        _give_back_unstarted(worker)


def _unload(reference: weakref.ref[Worker]) -> None:
    worker = reference()
    if worker is not None:
        _give_back_unstarted(worker)


def _give_back_unstarted(worker: Worker) -> None:
    """Take what no thread has started out of the worker's hands."""
    unstarted: dict[str, list[MessageProxy]] = defaultdict(list)
    for item in iter_queue(worker.work_queue):
        # Before Dramatiq 2.2, a pair.
        message = item[1] if isinstance(item, tuple) else item.message
        unstarted[message.queue_name].append(message)
        worker.work_queue.task_done()
    for queue_name, messages in unstarted.items():
        try:
            worker.consumers[queue_name].requeue_messages(messages)
        except (ConnectionClosed, ConnectionFailed):
            worker.logger.warning("Cannot give messages of %r back.", queue_name, exc_info=True)
