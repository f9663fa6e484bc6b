"""A named queue in a store: what users put to and get from."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from equeue_core import _admin, _clock, _lookup, _upkeep, _watch
from equeue_core import _config as config
from equeue_core import _ledger as books
from equeue_core._codec import Codec, checked_decode, checked_encode
from equeue_core._consumer import Consumer
from equeue_core._handle import Handle
from equeue_core._job import Job, State, from_store
from equeue_core._record import Record
from equeue_core._retry import Backoff
from equeue_core._store import _rows as rows
from equeue_core._store._names import check_name, make_queue
from equeue_core._store._txn import used_pages
from equeue_core._store_handle import Store, Sync
from equeue_core._typing import Self, T
from equeue_core.errors import ClaimLost, QueueClosed, QueueFull

if TYPE_CHECKING:
    from equeue_core._store import Environment, Txn
    from equeue_core._store._combine import Operation
    from equeue_core._store._queue_keys import Ledger


class Queue(Handle, Generic[T]):
    """A durable queue of jobs, shared by every process, thread and container that opens the
    directory.

    Making one touches no disk; the first operation opens the store. Handles are cheap, may be used
    by several threads, and go on working in a forked child.

    Parameters:
        path: the store's directory (made with mode 0700 if missing), or a `Store`.
        name: which queue of the store; any text.
        lease_time: seconds a consumer may hold a job before it is given to another, unless it calls
            ``Record.extend``. None, the default: as long as its process lives.
        max_retries: how often a job may be nacked, crash its worker or lose its lease before it is
            FAILED at the next time; 0 allows one attempt.
        backoff: seconds a nacked job waits, or a function of its retries (see
            `exponential_backoff`). None: it may run again at once.
        map_size: bytes of data in the store at which ``put`` raises `QueueFull`, after removing done
            jobs of the queue that were to be kept. None: no limit but the disk's.
        sync: ``"full"`` (or True): a put survives a power cut once it has returned. ``"normal"``:
            the very last commit may be undone by one. ``"off"`` (or False): safe against crashes of
            processes only. None: the store's own mode, ``"full"`` for a new store. See
            docs/explanation/durability.md.
        do_recover: whether this handle gives back jobs of dead processes and ended leases.
        recover_interval: seconds between two looks of a busy consumer for dead owners; an idle one
            is told of a death at once.
        do_vacuum: whether this handle removes old jobs that have ended.
        vacuum_interval: seconds that done and cancelled jobs are kept.
        keep_done: False removes this handle's done and cancelled jobs as they end: `job` and
            `result` do not find them.
        keep_failed: seconds that failed jobs are kept. None: until they are requeued or purged.
        codec: how payloads become bytes; None means msgpack.
        allow_network_fs: open a store on a network file system all the same.

    Raises:
        ValueError, TypeError: an option cannot be meant.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Store,
        name: str = "default",
        *,
        lease_time: float | None = None,
        max_retries: int = 3,
        backoff: float | Backoff | None = None,
        map_size: int | None = None,
        sync: Sync = None,
        do_recover: bool = True,
        recover_interval: float = 0.05,
        do_vacuum: bool = True,
        vacuum_interval: float = 300.0,
        keep_done: bool = True,
        keep_failed: float | None = None,
        codec: Codec | None = None,
        allow_network_fs: bool = False,
    ) -> None:
        super().__init__()
        self.name = check_name(name)
        # Kept for pickle: a fresh handle with the same options where it is unpickled.
        self._arguments: dict[str, Any] = {
            "lease_time": lease_time,
            "max_retries": max_retries,
            "backoff": backoff,
            "map_size": map_size,
            "do_recover": do_recover,
            "recover_interval": recover_interval,
            "do_vacuum": do_vacuum,
            "vacuum_interval": vacuum_interval,
            "keep_done": keep_done,
            "keep_failed": keep_failed,
            "codec": codec,
        }
        self._options = config.queue_options(**self._arguments)
        self._owns_store = not isinstance(path, Store)
        self.store = (
            path
            if isinstance(path, Store)
            else Store(path, sync=sync, allow_network_fs=allow_network_fs)
        )
        limit = self._options.map_size
        self._limit = self.store._map_size if limit is None else limit
        self._lazy_ledger: Ledger | None = None
        self._consumer = Consumer(self)
        self.store._adopt(self)

    @property
    def path(self) -> str:
        """The store's directory, as it was given."""
        return self.store.path

    # Plumbing for Record, Consumer, Transaction

    @property
    def _environment(self) -> Environment:
        if self._closed:
            raise self._closed_error()
        return self.store._opened or self.store._environment

    def _closed_error(self) -> QueueClosed:
        return QueueClosed(f"the queue {self.name!r} at {self.path} is closed")

    @property
    def _ledger(self) -> Ledger:
        return self._lazy_ledger or self._make()

    def _make(self) -> Ledger:
        environment = self._environment
        queue_id = environment.write(partial(make_queue, name=self.name))
        self._lazy_ledger = environment.ledger(queue_id)
        return self._lazy_ledger

    def _write(self, operation: Operation, adds: int = 0, patient: bool = True) -> Any:
        try:
            return self._environment.write(operation, adds, patient)
        except ClaimLost as error:
            if self._closed:  # meanwhile, which gave the job back
                raise self._closed_error() from error
            raise

    def _decode(self, raw: bytes) -> Any:
        return checked_decode(self._options.codec, raw)

    # Putting

    def put(
        self,
        payload: T,
        *,
        priority: float = 0,
        delay: float | None = None,
        run_at: datetime | float | None = None,
        expires_in: float | None = None,
        unique: str | None = None,
        max_retries: int | None = None,
    ) -> int:
        """Add a job.

        Parameters:
            payload: what the codec takes; msgpack takes None, bool, numbers, str, bytes, lists and
                dicts.
            priority: smaller runs first; equal ones in the order in which they became pending.
            delay: seconds until it may run.
            run_at: the moment from which it may run: a datetime (a naive one means local time) or
                epoch seconds.
            expires_in: seconds within which it must be claimed; afterwards it is CANCELLED.
            unique: a key that no two unfinished jobs of the queue share.
            max_retries: the job's own limit instead of the consumer's.

        Returns:
            The job's id: 1 for the queue's first, then growing.

        Raises:
            PayloadError: the payload cannot be encoded.
            DuplicateJob: an unfinished job has this unique key.
            QueueFull, DiskFull: there is no room; nothing was put.
            ValueError, TypeError: an option cannot be meant.
            QueueClosed: the queue was closed.
        """
        raw = checked_encode(self._options.codec, payload)
        ledger = self._lazy_ledger or self._ledger
        if (
            priority == 0
            and delay is None
            and run_at is None
            and expires_in is None
            and unique is None
            and max_retries is None
            and self._limit is None
        ):
            job_id: int = self._write(lambda txn: books.put(txn, ledger, raw), 1 + len(raw))
            return job_id
        spec = self._spec(priority, delay, run_at, expires_in, unique, max_retries)
        return self._put_encoded([raw], spec)[0]

    put_nowait = put

    def put_many(
        self,
        payloads: Iterable[T],
        *,
        priority: float = 0,
        delay: float | None = None,
        run_at: datetime | float | None = None,
        expires_in: float | None = None,
        max_retries: int | None = None,
    ) -> list[int]:
        """Add several jobs in one commit: all or none. Options and errors as for `put`.

        Returns:
            Their ids, in order.
        """
        spec = self._spec(priority, delay, run_at, expires_in, None, max_retries)
        encoded = self._encode_all(payloads)
        return self._put_encoded(encoded, spec) if encoded else []

    def _encode_all(self, payloads: Iterable[T]) -> list[bytes]:
        if isinstance(payloads, (str, bytes, Mapping)):
            raise TypeError(
                f"put_many takes an iterable of payloads, not one {type(payloads).__name__}: "
                "call put(), or put_many([payload])"
            )
        codec = self._options.codec
        return [checked_encode(codec, payload) for payload in payloads]

    def _spec(
        self,
        priority: float,
        delay: float | None,
        run_at: datetime | float | None,
        expires_in: float | None,
        unique: str | None,
        max_retries: int | None,
    ) -> books.Spec:
        """The options of a put, checked."""
        now = _clock.wall()
        if unique is not None and not isinstance(unique, str):
            raise TypeError(f"unique must be a string, not {type(unique).__name__}")
        return books.Spec(
            priority=config.check_priority(priority),
            due=config.due_time(now, delay, run_at),
            expires=None if expires_in is None else now + config.positive("expires_in", expires_in),
            unique=unique,
            max_retries=None if max_retries is None else config.check_retries(max_retries),
        )

    def _put_encoded(self, payloads: list[bytes], spec: books.Spec) -> list[int]:
        put, adds = self._put_operation(payloads, spec)
        while True:
            try:
                job_ids: list[int] = self._write(put, adds)
            except QueueFull:
                if not self._may_make_room(adds) or not self._write(self._room_operation()):
                    raise
            else:
                return job_ids

    def _may_make_room(self, adds: int) -> bool:
        """Whether a put of so many bytes that was refused may succeed once jobs that are done are gone."""
        return self._limit is not None and adds < self._limit and self._options.do_vacuum

    def _room_operation(self) -> Operation:
        return partial(self._make_room, self._ledger)

    @staticmethod
    def _make_room(ledger: Ledger, txn: Txn) -> int:
        """Remove a batch of jobs that are done: they are kept only as long as nothing needs their room.
        How many.
        """
        counts = books.load_counts(txn, ledger)
        number = _upkeep.vacuum(txn, ledger, counts, keep=0)
        if number:
            books.save_counts(txn, ledger, counts)
        return number

    def _put_operation(self, payloads: list[bytes], spec: books.Spec) -> tuple[Operation, int]:
        """The put as an operation, and how much it adds."""
        put = partial(self._put_within_limit, self._ledger, payloads, spec)
        return put, 1 + sum(map(len, payloads))

    def _put_within_limit(
        self, ledger: Ledger, payloads: list[bytes], spec: books.Spec, txn: Txn
    ) -> list[int]:
        if self._limit is not None and not self._has_room(txn, payloads):
            # If one batch of jobs that are done is not enough, the caller removes more, and tries again.
            if self._may_make_room(sum(map(len, payloads))):
                self._make_room(ledger, txn)
            if not self._has_room(txn, payloads):
                raise QueueFull(
                    f"the store at {self.path} has reached its limit of {self._limit} bytes (map_size): "
                    "complete or purge jobs, then put again"
                )
        if spec.unique is not None:
            _upkeep.expire_holder(txn, ledger, spec.unique, self._options.width)
        return books.put_many(txn, ledger, payloads, spec)

    def _has_room(self, txn: Txn, payloads: list[bytes]) -> bool:
        assert self._limit is not None
        pages, size = used_pages(txn)
        used = pages * size
        # A payload that does not fit a page takes whole ones; rows and keys are allowed for.
        used += sum(len(payload) + 128 for payload in payloads) // size * size
        return used + size <= self._limit

    # Getting

    def get(self, timeout: float | None = None) -> Record[T]:
        """Claim the next job, waiting for one if need be.

        Parameters:
            timeout: seconds to wait at most; None waits for ever, 0 not at all.

        Raises:
            QueueEmpty: no job came in time.
            QueueClosed: the queue was closed, before or meanwhile.
            ValueError: the timeout is negative.
        """
        wait = None if timeout is None else config.timeout_seconds(timeout)
        return self._consumer.claim(1, wait)[0]

    def get_nowait(self) -> Record[T]:
        """Claim the next job, or raise `QueueEmpty` at once."""
        return self._consumer.claim(1, 0)[0]

    def get_many(self, n: int, timeout: float | None = None) -> list[Record[T]]:
        """Claim up to `n` jobs in one commit, waiting for the first as `get` does.

        Raises:
            QueueEmpty: no job came in time.
            QueueClosed: the queue was closed, before or meanwhile.
            ValueError: `n` is less than 1, or the timeout negative.
        """
        return self._consumer.claim(config.count("n", n), config.timeout_seconds(timeout))

    @contextlib.contextmanager
    def processing(self, timeout: float | None = None) -> Iterator[Record[T]]:
        """Claim a job for the length of a ``with`` block.

        Left normally, the job is acked; with an Exception, it is nacked with that error, which goes
        on up; with another BaseException (KeyboardInterrupt, SystemExit), it is released. A record
        that the block itself completed is left alone.

        Parameters:
            timeout: as for `get`.

        Raises:
            QueueEmpty, QueueClosed, ValueError: as `get`.
            ClaimLost: the claim was lost before the end of the block.
        """
        record = self.get(timeout)
        try:
            yield record
        except Exception as error:
            if record._held:
                with contextlib.suppress(ClaimLost):
                    record.nack(error)
            raise
        except BaseException:
            if record._held:
                with contextlib.suppress(ClaimLost, QueueClosed):
                    record.release()
            raise
        else:
            if record._held:
                record.ack()

    def ack_many(self, records: Iterable[Record[T]]) -> None:
        """Acknowledge several records of this queue in one commit: all or none.

        Raises:
            ClaimLost: one of the claims is not held any more; nothing changed.
            ValueError: a record is of another queue, or given twice.
            QueueClosed: the queue was closed.
        """
        batch = list(records)
        self._write(self._ack_many_operation(batch))
        for record in batch:
            record._held = False

    def _ack_many_operation(self, records: list[Record[T]]) -> Operation:
        try:
            tokens = [record._token() for record in records]
        except AttributeError as error:
            raise TypeError("ack_many takes records, as get_many returns them") from error
        if len(set(tokens)) < len(tokens):
            raise ValueError("ack_many was given a record twice")
        ledger = self._ledger
        if any(
            record._queue is not self and record._queue._ledger is not ledger for record in records
        ):
            raise ValueError("ack_many was given a record of another queue")
        return partial(books.ack_many, ledger=ledger, tokens=tokens, width=self._options.width)

    # Looking

    def job(self, job_id: int) -> Job:
        """The job with this id, as it is now.

        Raises:
            JobNotFound: it never was, or it was vacuumed or purged.
        """
        config.check_job_id(job_id)
        found = self._environment.read(partial(_admin.find, ledger=self._ledger, job_id=job_id))
        return self._describe(found)

    def jobs(
        self, state: State | str | None = None, limit: int = 100, after: Job | None = None
    ) -> list[Job]:
        """One page of jobs.

        Parameters:
            state: only these; None means all, state by state.
            limit: jobs on the page at most.
            after: the last job of the page before.

        Returns:
            Pending jobs in the order in which they will run, scheduled ones by their time, the
            others by id (done and cancelled ones: by when they ended, in steps of a 32nd of the
            vacuum interval).

        Raises:
            ValueError: there is no such state, or the limit is less than 1.
        """
        config.count("limit", limit)
        if after is not None and not isinstance(after, Job):
            raise TypeError(f"after must be a Job of the page before, not {type(after).__name__}")
        states = list(State) if state is None else [State(state)]
        if after is not None and state is None:
            states = states[states.index(after.state) :]
        found = self._environment.read(
            partial(_lookup.pages, ledger=self._ledger, states=states, limit=limit, after=after)
        )
        return [self._describe(each) for each in found]

    def _describe(self, found: _lookup.Found) -> Job:
        return from_store(found.state, found.key, found.value, self.name, self._decode)

    def stats(self) -> dict[str, int]:
        """Jobs by state (``pending``, ``scheduled``, ``running``, ``done``, ``failed``,
        ``cancelled``), and ``total``: how many were ever put, which never falls. Takes the same
        time for any number of jobs.
        """
        self._consumer.keep_up()
        counted: dict[str, int] = self._environment.read(partial(_admin.count, ledger=self._ledger))
        return counted

    def qsize(self) -> int:
        """How many jobs are pending."""
        return self.stats()["pending"]

    def empty(self) -> bool:
        """Whether no job is pending."""
        return self.qsize() == 0

    def result(self, job_id: int, timeout: float | None = None) -> Any:
        """Wait until the job has ended; what its consumer gave to ``ack(result=...)``.

        Parameters:
            timeout: seconds to wait at most; None waits for ever.

        Raises:
            JobFailed: it is FAILED; the error's ``job`` has the details.
            JobCancelled: it was cancelled, or expired.
            JobNotFound: it never was, or it was vacuumed or purged.
            ResultTimeout: it did not end in time.
            QueueClosed: the queue was closed, before or meanwhile.
        """
        return _watch.result(self, job_id, config.timeout_seconds(timeout))

    def join(self, timeout: float | None = None) -> None:
        """Wait until no job is pending, scheduled or running.

        Raises:
            JoinTimeout: that took longer than `timeout` seconds.
            QueueClosed: the queue was closed, before or meanwhile.
        """
        _watch.join(self, config.timeout_seconds(timeout))

    # Managing

    def cancel(self, job_id: int) -> None:
        """Keep a pending or scheduled job from running.

        Raises:
            JobNotFound: it never was, or it was vacuumed or purged.
            JobStateError: it runs, or it ended.
        """
        self._write(self._cancel_operation(job_id))

    def _cancel_operation(self, job_id: int) -> Operation:
        config.check_job_id(job_id)
        width = self._options.width
        return partial(_admin.cancel, ledger=self._ledger, job_id=job_id, width=width)

    def requeue(self, job_id: int) -> None:
        """Put a failed, cancelled or done job behind the pending ones, with all its retries.

        Raises:
            JobNotFound: it never was, or it was vacuumed or purged.
            JobStateError: it has not ended.
            DuplicateJob: another job has its unique key now.
        """
        config.check_job_id(job_id)
        self._write(partial(_admin.requeue, ledger=self._ledger, job_id=job_id), True)

    def requeue_failed(self) -> int:
        """`requeue` every failed job, in batches; how many. One whose unique key is taken stays
        failed.
        """
        total: int = 0
        after: bytes | None = None
        while True:
            number, after = self._write(
                partial(_admin.requeue_failed, ledger=self._ledger, after=after), True
            )
            total += number
            if after is None:
                return total

    def purge(self, state: State | str) -> int:
        """Remove every job in `state`, in batches; how many.

        Raises:
            JobStateError: the state is running.
            ValueError: there is no such state.
        """
        total = 0
        while True:
            number: int = self._write(
                partial(_admin.purge, ledger=self._ledger, state=State(state))
            )
            total += number
            if number < _admin.BATCH:
                return total

    def pause(self) -> None:
        """Hand out no more jobs, in any process, until `resume`. Jobs in hand go on."""
        self._write(partial(_admin.pause, ledger=self._ledger, paused=True))

    def resume(self) -> None:
        """Hand out jobs again."""
        self._write(partial(_admin.pause, ledger=self._ledger, paused=False))

    @property
    def paused(self) -> bool:
        """Whether the queue is paused."""
        counts = self._environment.read(partial(books.load_counts, ledger=self._ledger))
        return bool(counts[rows.PAUSED])

    def recover(self) -> int:
        """Give back the jobs of dead owners (of all queues) and of ended leases now; how many."""
        return self._consumer.recover_now()

    def vacuum(self) -> int:
        """Remove done and cancelled jobs older than the vacuum interval, and failed ones older than
        ``keep_failed``, now; how many.
        """
        total = 0
        while True:
            number: int = self._write(self._vacuum_step)
            total += number
            if number < _upkeep.BATCH:
                return total

    def _vacuum_step(self, txn: Txn) -> int:
        ledger = self._ledger
        counts = books.load_counts(txn, ledger)
        options = self._options
        number = _upkeep.vacuum_all(
            txn, ledger, counts, options.vacuum_interval, options.keep_failed
        )
        if number:
            books.save_counts(txn, ledger, counts)
        return number

    # Closing

    def close(self) -> None:
        """Close the handle; may be called again. Blocked calls of other threads raise
        `QueueClosed`.

        The last handle of the process on the store gives jobs still in hand back, without spending
        a retry.
        """
        self._shut()
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        # A store of its own becomes one of the new handle's own, also when it is only copied.
        own = self.store.__reduce__() if self._owns_store else None
        shared = None if self._owns_store else self.store
        return _rebuild, (type(self), own, shared, self.name, self._arguments)

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        return f"<Queue {self.name!r} at {self.path!r}{closed}>"


def _rebuild(
    kind: type[Queue[Any]],
    own: tuple[Any, ...] | None,
    shared: Store | None,
    name: str,
    arguments: dict[str, Any],
) -> Queue[Any]:
    """A queue handle from its pickle."""
    if own is None:
        assert shared is not None
        return kind(shared, name, **arguments)
    make_store, store_arguments = own
    queue = kind(make_store(*store_arguments), name, **arguments)
    queue._owns_store = True
    return queue
