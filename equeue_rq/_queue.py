"""RQ's jobs and queues, on a store: they take paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rq
import rq.job

from equeue_rq._paths import accepts_paths

if TYPE_CHECKING:
    from equeue_rq._paths import Location


@accepts_paths
class Job(rq.job.Job):
    """``rq.job.Job``, which takes a store's path where that takes a connection."""

    if TYPE_CHECKING:  # what `accepts_paths` makes of it

        @classmethod
        def fetch(
            cls,
            id: str,  # noqa: A002 - RQ's name
            connection: Location | None = None,
            serializer: Any = None,
        ) -> rq.job.Job: ...


@accepts_paths
class Queue(rq.Queue):
    """``rq.Queue``, which takes a store's path where that takes a connection."""

    job_class = Job

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str = "default",
            connection: Location | None = None,
            *args: Any,
            **options: Any,
        ) -> None: ...
