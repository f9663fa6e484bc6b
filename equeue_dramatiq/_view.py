"""Dramatiq's queues for the command line: the core's queues, whose payloads are messages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dramatiq import Message
from dramatiq.errors import ConnectionClosed, ConnectionFailed

from equeue_core import Job, PayloadError, Queue, Store
from equeue_core.queues import CoreQueue, NotSupported, QueueView, Source, existing
from equeue_dramatiq.broker import LMDBBroker

DEFAULT_NAMESPACE = "dramatiq"

_FIELDS: dict[str, Any] = {
    "actor_name": str,
    "args": list,
    "kwargs": dict,
    "options": dict,
    "message_id": str,
    "message_timestamp": (int, float),
}


class DramatiqSource(Source):
    """The queues of brokers of any namespace."""

    kind = "dramatiq"
    demo = "equeue_dramatiq.demo"
    packages = ("dramatiq",)

    def queues(self, store: Store, names: Iterable[str]) -> list[QueueView]:
        """Those of the usual namespace, and those of others with a message at their beginning."""
        return [
            DramatiqQueue(queue)
            for queue in (existing(store, name) for name in names if ":" in name)
            if queue.name.startswith(f"{DEFAULT_NAMESPACE}:") or _has_message(queue)
        ]

    def make(self, store: Store, name: str) -> QueueView | None:
        """A queue of the usual namespace."""
        namespace, _, rest = name.partition(":")
        return DramatiqQueue(store.queue(name)) if namespace == DEFAULT_NAMESPACE and rest else None


class DramatiqQueue(CoreQueue):
    """One queue of a broker; its name is the namespace, a colon, and Dramatiq's name."""

    kind = "dramatiq"

    def describe(self, job: Job) -> tuple[str, Any, dict[str, Any]]:
        """The message: what is called with what, and its options."""
        message = _message(job.payload_bytes)
        if message is None:
            return super().describe(job)
        arguments = [json.dumps(value) for value in message["args"]]
        arguments += [f"{name}={json.dumps(value)}" for name, value in message["kwargs"].items()]
        payload = {
            "actor": message["actor_name"],
            "args": message["args"],
            "kwargs": message["kwargs"],
            "options": message["options"],
        }
        details = {
            "message_id": message["message_id"],
            "made_at": message["message_timestamp"] / 1000,
        }
        return f"{message['actor_name']}({', '.join(arguments)})", payload, details

    def put(self, payload: Any, **options: Any) -> str:
        """Send a message; the id of its job.

        Parameters:
            payload: a dict with ``actor``, and ``args``, ``kwargs`` and ``options`` if need be.
            options: ``delay`` in seconds.
        """
        message = self._made(payload)
        delay = options.pop("delay", None)
        if options:
            raise NotSupported(
                f"a message of Dramatiq has no {', '.join(sorted(options))}: say what it needs in the "
                'payload\'s "options"'
            )
        namespace = self.name.partition(":")[0]
        broker = LMDBBroker(store=self.queue.store, namespace=namespace, middleware=[])
        try:
            put = broker._announced(message, None if delay is None else round(delay * 1000))
        except (ConnectionClosed, ConnectionFailed) as error:
            raise error.__cause__ or error from None
        return str(put.run())

    def _made(self, payload: Any) -> Message[Any]:
        given = dict(payload) if isinstance(payload, dict) else {}
        actor = given.pop("actor", None)
        args, kwargs = given.pop("args", []), given.pop("kwargs", {})
        options = given.pop("options", {})
        if (
            given
            or not isinstance(actor, str)
            or not isinstance(args, list)
            or not isinstance(kwargs, dict)
            or not isinstance(options, dict)
        ):
            raise PayloadError(
                'the payload of a Dramatiq queue is like {"actor": "send", "args": [1], "kwargs": {}, '
                '"options": {}}; all but the actor may be left out'
            )
        name = self.name.partition(":")[2]
        return Message(
            queue_name=name, actor_name=actor, args=tuple(args), kwargs=kwargs, options=options
        )


def _has_message(queue: Queue[Any]) -> bool:
    return any(_message(job.payload_bytes) is not None for job in queue.jobs(limit=1))


def _message(raw: bytes) -> dict[str, Any] | None:
    """The message as Dramatiq's JSONEncoder writes it; None: it is none. It is not decoded by Dramatiq's
    own means: another encoder may unpickle.
    """
    if not raw.startswith(b"{"):
        return None
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    fits = all(isinstance(message.get(name), kind) for name, kind in _FIELDS.items())
    return message if fits else None
