"""The claiming side of a queue handle: one try, and waiting for the next."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from equeue_core import _clock, _upkeep
from equeue_core import _ledger as books
from equeue_core._codec import checked_decode, is_from_outside
from equeue_core._record import Record
from equeue_core._store import _rows as rows
from equeue_core._store._ownership import enlist, owner_rows
from equeue_core.errors import PayloadError, QueueClosed, QueueEmpty

if TYPE_CHECKING:
    from equeue_core._queue import Queue
    from equeue_core._store import Environment, Txn
    from equeue_core._store._queue_keys import Ledger
    from equeue_core._store._waiter import Waiter

BACKSTOP = 1.0
"""Seconds after which a waiting consumer looks for itself, whatever the bells did."""

_DYING_PAUSE = 0.001
"""Seconds between two looks at an owner that is just being torn down."""

_VACUUM_EVERY = 0.05
"""Share of the vacuum interval that passes between two looks for old jobs, at most a second."""


class Consumer:
    """What a queue handle needs to claim, with its own timers of upkeep."""

    def __init__(self, queue: Queue[Any]) -> None:
        self._queue = queue
        self._options = queue._options
        self._claimer: books.Claimer | None = None
        self._recover_at = 0.0
        self._vacuum_at = 0.0
        self._vacuum_pause = min(1.0, self._options.vacuum_interval * _VACUUM_EVERY)

    # Trying

    def try_claim(
        self, limit: int, waiter: Waiter | None = None, patient: bool = True
    ) -> tuple[list[Record[Any]], float]:
        """Claim up to `limit` jobs, and tell how many seconds the next try may wait for a bell.

        With a `waiter` and no job, the waiter is left registered.

        Raises:
            BlockingIOError: somebody else has the store's lock, and the caller is not `patient`.
        """
        queue = self._queue
        claimer = self._claimer
        if claimer is None or claimer.owner != queue._environment.owners.owner_id:
            claimer = self.enlist()
        claim = partial(self._claim, claimer, limit, waiter)
        decode = self._options.codec.decode
        while True:
            records, wait = queue._write(claim, False, patient)
            if records is None:
                if not self.is_enlisted():
                    claim = partial(self._claim, self.enlist(), limit, waiter)
                continue
            refused = 0
            for record in records:
                try:
                    record.payload = decode(record.payload)
                except Exception:
                    if is_from_outside(decode, record.payload):
                        raise
                    self._refuse(record)
                    refused += 1
            if not refused:
                return records, wait
            if refused < len(records):
                return [record for record in records if record._held], wait

    def is_enlisted(self) -> bool:
        """Whether this process is an owner, and known to claim from this queue."""
        owner = self._queue._environment.owners.owner_id
        return self._claimer is not None and self._claimer.owner == owner

    def enlist(self) -> books.Claimer:
        """Become an owner, if this process is not (or no longer, after a fork) one in this queue."""
        environment = self._queue._environment
        owner = enlist(environment, self._queue._ledger.id)
        environment.farewell = partial(_upkeep.withdraw, environment=environment)
        self._claimer = books.Claimer(
            owner,
            self._options.lease_time,
            self._options.max_retries,
            partial(Record, self._queue, owner),
        )
        return self._claimer

    def _refuse(self, record: Record[Any]) -> None:
        """Make a job whose payload cannot be decoded FAILED; its bytes are kept."""
        try:
            checked_decode(self._options.codec, record.payload)
        except PayloadError as error:
            record.fail(error)

    def _claim(
        self, claimer: books.Claimer, limit: int, waiter: Waiter | None, txn: Txn
    ) -> tuple[list[Record[Any]] | None, float]:
        """Records and seconds to wait, or None: there is more to do before the next claim, some upkeep, or
        to become an owner, because this is a child that was forked in the middle of the call.
        """
        ledger = self._queue._ledger
        environment = ledger.environment
        if claimer.owner != environment.owners.owner_id:
            return None, 0.0
        now = _clock.monotonic()
        wait = BACKSTOP
        if self._options.do_recover and (waiter is not None or now >= self._recover_at):
            wait = self._recover(txn, environment, now, waiter)
        counts = books.load_counts(txn, ledger)
        changed = self._keep_up(txn, ledger, counts, now)
        records: list[Record[Any]] = []
        if changed and counts[rows.N_EXPIRING] and _upkeep.has_expired(txn, ledger):
            books.save_counts(txn, ledger, counts)
            return None, 0.0
        if counts[rows.N_PENDING] and not counts[rows.PAUSED]:
            records = books.claim(txn, ledger, counts, claimer, limit)
        if records or changed:
            books.save_counts(txn, ledger, counts)
        if waiter is not None:
            if records:
                environment.after_commit(waiter.settle)
                environment.after_commit(waiter.leave)
            else:
                waiter.settle()
                waiter.register()
                if self._watch_owners(txn, environment):
                    wait = 0.0
        if changed:
            # After this sleeper has left: it would take one of the tokens for its own.
            environment.after_commit(partial(_upkeep.wake_others, ledger, counts))
        if counts[rows.N_SCHEDULED] or counts[rows.N_LEASED]:
            wait = min(wait, self._next_event(txn, ledger))
            if records and waiter is not None and wait < BACKSTOP:
                # This sleeper leaves: another one has to wake in time for what comes next.
                environment.after_commit(partial(environment.bells.ring, ledger.id))
        return records, wait

    def _recover(
        self, txn: Txn, environment: Environment, now: float, waiter: Waiter | None
    ) -> float:
        """Give dead owners' jobs back if it is time to look, or a death was noticed; seconds to
        wait.
        """
        dead = environment.owners.dead() if waiter is not None else []
        if not dead and now < self._recover_at:
            return BACKSTOP
        recovered = _upkeep.recover(txn, environment)
        # Its last descriptors close one after the other: who hung up may hold its lock a moment
        # longer.
        dying = any(environment.owners.is_alive(owner) for owner in dead)
        again = dying or recovered >= _upkeep.BATCH
        self._recover_at = now if again else now + self._options.recover_interval
        return _DYING_PAUSE if dying else BACKSTOP

    def _keep_up(self, txn: Txn, ledger: Ledger, counts: books.Counts, now: float) -> bool:
        """The upkeep of this queue that is due; whether it can have changed the counters."""
        options = self._options
        changed = False
        if counts[rows.N_SCHEDULED]:
            changed = _upkeep.promote(txn, ledger, counts) > 0
        if counts[rows.N_LEASED] and options.do_recover:
            changed |= _upkeep.expire_leases(txn, ledger, counts) > 0
        if counts[rows.N_EXPIRING]:
            changed |= _upkeep.expire(txn, ledger, counts, options.width) > 0
        if now >= self._vacuum_at and options.do_vacuum:
            removed = _upkeep.vacuum(txn, ledger, counts, options.vacuum_interval)
            self._vacuum_at = now if removed == _upkeep.BATCH else now + self._vacuum_pause
            changed |= removed > 0
        return changed

    def is_behind(self) -> bool:
        """Whether upkeep is due."""
        now = _clock.monotonic()
        return now >= self._recover_at or now >= self._vacuum_at

    def keep_up(self) -> None:
        """The upkeep that is due, for handles that look but do not claim."""
        if self.is_behind():
            # The ledger first: making the queue is a transaction of its own.
            self._queue._write(partial(self._upkeep_only, self._queue._ledger))

    def _upkeep_only(self, ledger: Ledger, txn: Txn) -> None:
        now = _clock.monotonic()
        if self._options.do_recover:
            self._recover(txn, ledger.environment, now, None)
        counts = books.load_counts(txn, ledger)
        if self._keep_up(txn, ledger, counts, now):
            books.save_counts(txn, ledger, counts)
            _upkeep.wake_others(ledger, counts)

    def recover_now(self) -> int:
        """Give back the jobs of all dead owners, and of this queue's ended leases; how many."""
        environment = self._queue._environment
        total = 0
        while True:
            number: int = self._queue._write(partial(self._recover_step, environment))
            total += number
            if number < _upkeep.BATCH:
                return total

    def _recover_step(self, environment: Environment, txn: Txn) -> int:
        number = _upkeep.recover(txn, environment)
        ledger = self._queue._ledger
        counts = books.load_counts(txn, ledger)
        expired = _upkeep.expire_leases(txn, ledger, counts)
        if expired:
            books.save_counts(txn, ledger, counts)
        return max(number, expired) if _upkeep.BATCH in (number, expired) else number + expired

    def _next_event(self, txn: Txn, ledger: Ledger) -> float:
        """Seconds until the next job is due or the next lease ends."""
        wait = BACKSTOP
        due = _upkeep.next_due(txn, ledger)
        if due is not None:
            wait = min(wait, due - _clock.wall())
        deadline = _upkeep.next_deadline(txn, ledger)
        if deadline is not None and self._options.do_recover:
            wait = min(wait, deadline - _clock.monotonic())
        return max(0.0, wait)

    def _watch_owners(self, txn: Txn, environment: Environment) -> bool:
        """Watch the others; whether one of them was dead before."""
        owners = environment.owners
        owners.watch([owner for owner, _ in owner_rows(txn) if owner != owners.owner_id])
        return self._options.do_recover and owners.has_unheard_death()

    # Waiting

    def claim(self, limit: int, timeout: float | None) -> list[Record[Any]]:
        """Claim up to `limit` jobs, waiting up to `timeout` seconds (None: for ever) for the first.

        Raises:
            QueueEmpty: none came.
            QueueClosed: the handle was closed meanwhile.
        """
        records, _ = self.try_claim(limit)
        if records:
            return records
        started = _clock.monotonic()
        if timeout == 0:
            raise QueueEmpty("the queue has no job that can be claimed now")
        waiter = self.waiter()
        records = []
        try:
            self._queue._waiters.add(waiter)
            while True:
                records, wait = self.try_claim(limit, waiter)
                if records:
                    return records
                if timeout is not None:
                    left = started + timeout - _clock.monotonic()
                    if left <= 0:
                        raise QueueEmpty(f"no job came within {timeout} seconds")
                    wait = min(wait, left)
                waiter.wait(wait)
        finally:
            self.dismiss(waiter, counted=not records)

    def waiter(self) -> Waiter:
        """A waiter on this queue's jobs."""
        environment = self._queue._environment
        return environment.bells.waiter(
            jobs=(self._queue._ledger.id,), extra_fd=environment.owners.watch_fd
        )

    def dismiss(self, waiter: Waiter, counted: bool) -> None:
        """Put the waiter away; taken out of the count of sleepers before, if it may be `counted`
        there.
        """
        self._queue._waiters.discard(waiter)
        if counted:
            with contextlib.suppress(QueueClosed):
                self._queue._environment.write(lambda txn: waiter.leave())
        waiter.close()
