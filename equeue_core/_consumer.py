"""The claiming side of a queue handle: one try, and waiting for the next."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from equeue_core import _clock, _upkeep
from equeue_core import _ledger as books
from equeue_core._codec import checked_decode
from equeue_core._record import Record
from equeue_core._store import _rows as rows
from equeue_core._store._ownership import enlist, owner_rows
from equeue_core.errors import PayloadError, QueueClosed, QueueEmpty

if TYPE_CHECKING:
    from equeue_core._config import QueueOptions
    from equeue_core._queue import Queue
    from equeue_core._store import Environment, Txn
    from equeue_core._store._queue_keys import Ledger
    from equeue_core._store._waiter import Waiter

BACKSTOP = 1.0
"""Seconds after which a waiting consumer looks for itself, whatever the bells did."""

_VACUUM_EVERY = 0.05
"""Share of the time that jobs are kept that passes between two looks for old ones, at most a second."""


def _vacuum_pause(options: QueueOptions) -> float:
    kept = options.vacuum_interval
    if options.keep_failed is not None:
        kept = min(kept, options.keep_failed)
    return min(1.0, kept * _VACUUM_EVERY)


class Consumer:
    """What a queue handle needs to claim, with its own timers of upkeep."""

    def __init__(self, queue: Queue[Any]) -> None:
        self._queue = queue
        self._options = queue._options
        self._claimer: books.Claimer | None = None
        self._recover_at = 0.0
        self._vacuum_at = 0.0
        self._vacuum_pause = _vacuum_pause(self._options)

    # Trying

    def try_claim(
        self, limit: int, waiter: Waiter | None = None, patient: bool = True
    ) -> tuple[list[Record[Any]], float]:
        """Claim up to `limit` jobs, and tell how many seconds the next try may wait for a bell.

        With a `waiter` and no job, the waiter is left registered.

        Raises:
            BlockingIOError: somebody else has the store's lock, and the caller is not `patient`.
        """
        codec = self._options.codec
        while True:
            claim = partial(self._claim, self._enlisted() or self._enlist(), limit, waiter)
            records, wait = self._queue._write(claim, patient=patient)
            if records is None:
                continue
            refused = 0
            for record in records:
                try:
                    record.payload = checked_decode(codec, record.payload)
                except PayloadError as error:
                    record.fail(error)  # its bytes are kept
                    refused += 1
            if not refused:
                return records, wait
            if refused < len(records):
                return [record for record in records if record._held], wait

    def is_enlisted(self) -> bool:
        """Whether this process is an owner, and known to claim from this queue."""
        return self._enlisted() is not None

    def _enlisted(self) -> books.Claimer | None:
        """The claimer of this process; None if it has none (or no longer, after a fork)."""
        claimer = self._claimer
        if claimer is None or claimer.owner != self._queue._environment.owners.owner_id:
            return None
        return claimer

    def _enlist(self) -> books.Claimer:
        """Become an owner who claims from this queue."""
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
            self._recover(txn, environment, now, waiter)
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
    ) -> None:
        """Give dead owners' jobs back if it is time to look, or a death was noticed."""
        noticed = waiter is not None and environment.owners.dead()
        if noticed or now >= self._recover_at:
            again = _upkeep.recover(txn, environment) >= _upkeep.BATCH
            self._recover_at = now if again else now + self._options.recover_interval

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
            removed = _upkeep.vacuum_all(
                txn, ledger, counts, options.vacuum_interval, options.keep_failed
            )
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
        step = partial(self._recover_step, self._queue._ledger)
        total, more = 0, True
        while more:
            number, more = self._queue._write(step)
            total += number
        return total

    @staticmethod
    def _recover_step(ledger: Ledger, txn: Txn) -> tuple[int, bool]:
        """How many, and whether there may be more."""
        recovered = _upkeep.recover(txn, ledger.environment)
        counts = books.load_counts(txn, ledger)
        expired = _upkeep.expire_leases(txn, ledger, counts)
        if expired:
            books.save_counts(txn, ledger, counts)
        return recovered + expired, _upkeep.BATCH in (recovered, expired)

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
