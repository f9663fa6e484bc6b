"""The walk behind ``Store.check``: every entry against every other that speaks of the same job."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from equeue_core import _lookup
from equeue_core._job import State, from_store
from equeue_core._ledger import load_counts
from equeue_core._store import _keys as keys
from equeue_core._store import _rows as rows
from equeue_core._store._names import all_queues
from equeue_core._store._queue_keys import Ledger
from equeue_core._store._scan import scan
from equeue_core._store._spaces import Entries, space_ids

if TYPE_CHECKING:
    from equeue_core._store import Environment, Txn


def walk(txn: Txn, environment: Environment) -> tuple[list[str], int, int]:
    """Problems found, queues and jobs walked through."""
    problems: list[str] = []
    queues = all_queues(txn)
    jobs = 0
    for queue_id, name in queues:
        walker = _Walker(txn, environment.ledger(queue_id), name)
        walker.walk()
        problems += walker.problems
        jobs += walker.jobs
    for space_id in space_ids(txn):
        problems += [f"space {space_id}: {each}" for each in Entries(space_id).problems(txn)]
    return problems, len(queues), jobs


class _Walker:
    """One queue's walk."""

    def __init__(self, txn: Txn, ledger: Ledger, name: str) -> None:
        self.txn = txn
        self.ledger = ledger
        self.name = name
        self.problems: list[str] = []
        self.jobs = 0
        self._seen: dict[int, State] = {}
        self._recount: Counter[int] = Counter()

    def walk(self) -> None:
        for state in State:
            for key, value in scan(self.txn, _lookup.prefix_of(self.ledger, state)):
                self._job(state, key, value)
        self._entries()
        self._counters()

    def _report(self, problem: str) -> None:
        self.problems.append(f"queue {self.name!r}: {problem}")

    def _job(self, state: State, key: bytes, value: bytes) -> None:
        try:
            job = from_store(state, key, value, self.name, bytes)
        except Exception as error:  # noqa: BLE001 - damage shows as any error of unpacking
            self._report(f"the {state} job at {key.hex()} cannot be read ({error})")
            return
        self.jobs += 1
        self._recount[_lookup.COUNTER[state]] += 1
        if job.job_id in self._seen:
            self._report(f"job {job.job_id} is both {self._seen[job.job_id]} and {state}")
        self._seen[job.job_id] = state
        found = _lookup.find(self.txn, self.ledger, job.job_id)
        if found is None or found.key != key:
            self._report(f"job {job.job_id} ({state}) is not found by its id")
        if state is State.RUNNING and job.deadline is not None:
            self._recount[rows.N_LEASED] += 1
            deadline = keys.ordered_float(rows.Claim.unpack(value).deadline)
            if self.txn.get(self.ledger.lease + deadline + key[3:]) is None:
                self._report(f"the lease of job {job.job_id} is not listed")
        if state is State.FAILED:
            failed_at = keys.ordered_float(rows.END.unpack_from(value)[0])
            if self.txn.get(self.ledger.failed_at + failed_at + key[3:]) is None:
                self._report(f"the failure of job {job.job_id} is not listed by its time")
        self._extras(job.job_id, state, job.unique, job.expires_at)

    def _extras(self, job_id: int, state: State, unique: str | None, expires: float | None) -> None:
        live = state in (State.PENDING, State.SCHEDULED, State.RUNNING)
        if unique is not None and live:
            holder = self.txn.get(self.ledger.unique_key(unique))
            if holder != keys.U64.pack(job_id):
                self._report(f"the unique key of job {job_id} is not reserved for it")
        if expires is not None and state in (State.PENDING, State.SCHEDULED):
            self._recount[rows.N_EXPIRING] += 1
            entry = self.ledger.expiry + keys.ordered_float(expires) + keys.U64.pack(job_id)
            if self.txn.get(entry) is None:
                self._report(f"the expiry of job {job_id} is not listed")

    def _entries(self) -> None:
        """Entries that point to jobs must point to some."""
        for key, value in scan(self.txn, self.ledger.index):
            if self.txn.get(self.ledger.index[:2] + value) is None:
                self._report(f"the index entry of job {keys.U64.unpack(key[3:])[0]} leads nowhere")
        for key, _ in scan(self.txn, self.ledger.lease):
            if self.txn.get(self.ledger.running + key[11:]) is None:
                self._report(f"a lease is listed for a job that does not run ({key[11:].hex()})")
        for key, _ in scan(self.txn, self.ledger.failed_at):
            job = self.txn.get(self.ledger.failed + key[11:], b"")
            if not job.startswith(keys.F64.pack(keys.from_ordered_float(key[3:11]))):
                (job_id,) = keys.U64.unpack(key[11:])
                self._report(f"a failure is listed that job {job_id} does not have")
        for _, value in scan(self.txn, self.ledger.unique):
            (job_id,) = keys.U64.unpack(value)
            if self._seen.get(job_id) not in (State.PENDING, State.SCHEDULED, State.RUNNING):
                self._report(f"a unique key is reserved for job {job_id}, which is not alive")
        for key, _ in scan(self.txn, self.ledger.expiry):
            (job_id,) = keys.U64.unpack(key[11:])
            if self._seen.get(job_id) not in (State.PENDING, State.SCHEDULED):
                self._report(f"an expiry is listed for job {job_id}, which does not wait")

    def _counters(self) -> None:
        counts = load_counts(self.txn, self.ledger)
        names = {index: str(state) for state, index in _lookup.COUNTER.items()}
        names.update({rows.N_LEASED: "leased", rows.N_EXPIRING: "expiring"})
        for index, name in names.items():
            if counts[index] != self._recount[index]:
                self._report(
                    f"the counter of {name} jobs says {counts[index]}, there are {self._recount[index]}"
                )
        if self._seen and max(self._seen) > counts[rows.N_TOTAL]:
            self._report(f"job {max(self._seen)} is above the total {counts[rows.N_TOTAL]}")
