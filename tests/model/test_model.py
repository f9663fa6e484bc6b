"""Random operations on a store and on the model of it: the same results, states, counts and listings."""

from __future__ import annotations

import contextlib
import copy
import gc
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from equeue_core import Queue, QueueClosed, Record, Store, Transaction
from tests.contract.clock import Clock
from tests.model.model import (
    ENDED,
    KEEP,
    KEEP_FAILED,
    STATES,
    WAITING,
    ModelJob,
    ModelQueue,
    ModelRecord,
)

pytestmark = pytest.mark.once

LEASE = 100.0

names = st.sampled_from(["one", "one", "one", "two"])
priorities = st.sampled_from([0, 0, 0, -1, 2, 0.5])
delays = st.sampled_from([None, None, 0, 50.0, 500.0])
lifetimes = st.sampled_from([None, None, 30.0, 300.0])
keys = st.sampled_from([None, None, "k", "k", "k" * 600])
limits = st.sampled_from([None, None, 0, 4])
errors = st.sampled_from([None, "broken", "still broken"])
results = st.sampled_from([None, 1, "done", [1, {"a": None}]])
picks = st.integers(min_value=0, max_value=10_000)
"""Chooses one of what is there, modulo how many that are."""

FIELDS = [
    *("job_id", "payload", "priority", "unique", "enqueued_at", "due_at", "expires_at"),
    *("attempts", "retries", "max_retries", "claimed_at", "finished_at", "result"),
]

ONE_OPERATION = st.one_of(
    st.tuples(
        st.just("put"), names, st.fixed_dictionaries({"priority": priorities, "unique": keys})
    ),
    st.tuples(st.sampled_from(["ack", "nack", "fail", "release"]), picks),
    st.tuples(st.just("cancel"), names, picks),
)


class StoreMachine(RuleBasedStateMachine):
    """Handles of one store, a clock that only `advance` moves, and the model beside them."""

    def __init__(self) -> None:
        super().__init__()
        self._patch = pytest.MonkeyPatch()
        self._clock = Clock(frozen=True)
        self._clock.install(self._patch)
        self._path = Path(tempfile.mkdtemp(prefix="equeue-model-"))
        self._model = {name: ModelQueue(name) for name in ("one", "two")}
        self._records: list[tuple[ModelRecord, Record[Any]]] = []
        self._removed = False
        self._highest = {"one": 0, "two": 0}
        self._payload = 0

    @initialize()
    def open(self) -> None:
        self._store = Store(self._path / "store", sync="off")
        self._plain: dict[str, Queue[Any]] = {}
        self._leased: dict[str, Queue[Any]] = {}
        for name in self._model:
            kept = {"vacuum_interval": KEEP, "keep_failed": KEEP_FAILED}
            self._plain[name] = self._store.queue(name, max_retries=2, **kept)
            self._leased[name] = self._store.queue(name, max_retries=1, lease_time=LEASE, **kept)

    def teardown(self) -> None:
        try:
            if hasattr(self, "_store"):
                report = self._store.check()
                assert report.ok, report.problems
                self._store.close()
        finally:
            self._patch.undo()
            self._records.clear()
            shutil.rmtree(self._path)

    # Comparing

    def _same(self, model: Callable[[], Any], real: Callable[[], Any]) -> Any:
        """Both return the same, or raise the same kind of error; returns what they returned."""
        try:
            expected = model()
        except Exception as error:
            with pytest.raises(type(error)) as caught:
                real()
            refused = error
        else:
            found = real()
            assert found == expected
            return found
        assert getattr(caught.value, "job_id", None) == getattr(refused, "job_id", None)
        return None

    @property
    def _now(self) -> float:
        return self._clock.wall()

    @invariant()
    def counts_are_the_models(self) -> None:
        if not hasattr(self, "_store"):
            return
        for name, model in self._model.items():
            counts = self._plain[name].stats()
            assert counts == model.stats()
            assert min(counts.values()) >= 0
            held = sum(counts[state] for state in STATES)
            assert held <= counts["total"]
            assert self._removed or held == counts["total"]
            assert counts["total"] >= self._highest[name]
            self._highest[name] = counts["total"]

    def _assert_same_job(self, job: Any, model: ModelJob) -> None:
        assert job.state.value == model.state
        for field in FIELDS:
            assert getattr(job, field) == getattr(model, field), field
        assert [(error.attempt, error.message) for error in job.errors] == model.errors
        if model.deadline is None:
            assert job.deadline is None
        else:
            in_wall_time = self._now + model.deadline - self._clock.monotonic()
            assert job.deadline == pytest.approx(in_wall_time, abs=0.01)

    # Putting

    def _next_payload(self) -> int:
        self._payload += 1
        return self._payload

    @rule(
        name=names,
        priority=priorities,
        delay=delays,
        expires_in=lifetimes,
        unique=keys,
        max_retries=limits,
    )
    def put(self, name: str, **options: Any) -> None:
        payload = self._next_payload()
        self._same(
            lambda: self._model[name].put(self._now, payload, **options),
            lambda: self._plain[name].put(payload, **options),
        )

    @rule(name=names, number=st.integers(0, 5), priority=priorities, delay=delays)
    def put_many(self, name: str, number: int, **options: Any) -> None:
        payloads = [self._next_payload() for _ in range(number)]
        self._same(
            lambda: [self._model[name].put(self._now, each, **options) for each in payloads],
            lambda: self._plain[name].put_many(payloads, **options),
        )

    # Getting

    @rule(name=names, n=st.integers(1, 4), leased=st.booleans(), many=st.booleans())
    def get(self, name: str, n: int, leased: bool, many: bool) -> None:
        queue = (self._leased if leased else self._plain)[name]
        found: list[Record[Any]] = []

        def model() -> list[tuple[Any, ...]]:
            lease, max_retries = (LEASE, 1) if leased else (None, 2)
            limit = n if many else 1
            taken = self._model[name].get(
                self._now, self._clock.monotonic(), limit, lease, max_retries
            )
            return [
                (job.job_id, job.payload, job.attempts, job.retries, job.priority, job.enqueued_at)
                for job in taken
            ]

        def real() -> list[tuple[Any, ...]]:
            found.extend(queue.get_many(n, timeout=0) if many else [queue.get_nowait()])
            return [
                (
                    each.job_id,
                    each.payload,
                    each.attempt,
                    each.retries,
                    each.priority,
                    each.enqueued_at,
                )
                for each in found
            ]

        self._same(model, real)
        self._records += [(ModelRecord(name, each.job_id, each.attempt), each) for each in found]

    # Completing: any record that ever was, held or not

    def _pick(self, pick: int) -> tuple[ModelRecord, Record[Any]]:
        # The newest are the likeliest to be held still.
        return self._records[-1 - pick % min(len(self._records), 6)]

    def _complete(
        self, pick: int, verb: str, model: tuple[Any, ...], real: tuple[Any, ...]
    ) -> None:
        claim, record = self._pick(pick)
        complete = getattr(self._model[claim.queue], verb)
        self._same(lambda: complete(self._now, claim, *model), lambda: getattr(record, verb)(*real))

    @precondition(lambda self: self._records)
    @rule(pick=picks, result=results)
    def ack(self, pick: int, result: Any) -> None:
        self._complete(pick, "ack", (result,), (result,))

    @precondition(lambda self: self._records)
    @rule(pick=picks, error=errors, delay=delays)
    def nack(self, pick: int, error: str | None, delay: float | None) -> None:
        self._complete(pick, "nack", (error, delay), (error, delay))

    @precondition(lambda self: self._records)
    @rule(pick=picks, error=errors)
    def fail(self, pick: int, error: str | None) -> None:
        self._complete(pick, "fail", (error,), (error,))

    @precondition(lambda self: self._records)
    @rule(pick=picks, delay=delays)
    def release(self, pick: int, delay: float | None) -> None:
        self._complete(pick, "release", (delay,), (delay,))

    @precondition(lambda self: self._records)
    @rule(pick=picks, seconds=st.sampled_from([5.0, 150.0]))
    def extend(self, pick: int, seconds: float) -> None:
        claim, record = self._pick(pick)
        self._same(
            lambda: self._model[claim.queue].extend(self._clock.monotonic(), claim, seconds),
            lambda: record.extend(seconds),
        )

    @precondition(lambda self: self._records)
    @rule(chosen=st.sets(picks, min_size=1, max_size=4))
    def ack_many(self, chosen: set[int]) -> None:
        found = {id(self._pick(pick)[1]): self._pick(pick) for pick in chosen}
        name = next(iter(found.values()))[0].queue
        pairs = [pair for pair in found.values() if pair[0].queue == name]
        trial = copy.deepcopy(self._model)

        def model() -> None:
            for claim, _ in pairs:
                trial[name].ack(self._now, claim)
            self._model = trial

        self._same(model, lambda: self._plain[name].ack_many([record for _, record in pairs]))

    @precondition(lambda self: self._records)
    @rule(pick=picks)
    def drop(self, pick: int) -> None:
        """Forget a record, held or not."""
        claim, record = self._pick(pick)
        self._records = [pair for pair in self._records if pair[1] is not record]
        del record
        gc.collect()
        with contextlib.suppress(Exception):
            self._model[claim.queue].release(self._now, claim, None)
        self._plain[claim.queue].recover()

    # Managing

    @rule(name=names, pick=picks, verb=st.sampled_from(["cancel", "requeue"]))
    def cancel_or_requeue(self, name: str, pick: int, verb: str) -> None:
        model = self._model[name]
        job_id = self._pick_job(name, pick, WAITING if verb == "cancel" else ENDED)
        before = (self._now,) if verb == "cancel" else ()
        self._same(
            lambda: getattr(model, verb)(*before, job_id),
            lambda: getattr(self._plain[name], verb)(job_id),
        )

    def _pick_job(self, name: str, pick: int, states: tuple[str, ...]) -> int:
        """Every other time a job in one of the states, if there is one; else any, or none."""
        model = self._model[name]
        fitting = [job_id for job_id, job in model.jobs.items() if job.state in states]
        if pick % 2 and fitting:
            return fitting[pick // 2 % len(fitting)]
        return pick % (model.total + 2)

    @rule(name=names)
    def requeue_failed(self, name: str) -> None:
        self._same(self._model[name].requeue_failed, self._plain[name].requeue_failed)

    @rule(name=names, state=st.sampled_from(STATES))
    def purge(self, name: str, state: str) -> None:
        removed = self._same(
            lambda: self._model[name].purge(state), lambda: self._plain[name].purge(state)
        )
        self._removed = self._removed or bool(removed)

    @rule(name=names, paused=st.booleans())
    def pause(self, name: str, paused: bool) -> None:
        self._model[name].paused = paused
        (self._plain[name].pause if paused else self._plain[name].resume)()
        assert self._leased[name].paused is paused

    @rule(seconds=st.sampled_from([10.0, 60.0, 200.0]))
    def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)
        for model in self._model.values():
            before = len(model.jobs)
            model.tick(self._now, self._clock.monotonic())
            self._removed = self._removed or len(model.jobs) < before

    # Transactions

    @rule(
        operations=st.lists(ONE_OPERATION, max_size=5), fails=st.sampled_from([False] * 4 + [True])
    )
    def transaction(self, operations: list[tuple[Any, ...]], fails: bool) -> None:
        trial = copy.deepcopy(self._model)
        planned = [self._plan(trial, operation) for operation in operations]
        planned = [pair for pair in planned if pair is not None]

        def model() -> list[Any]:
            if fails:
                raise ZeroDivisionError
            answers = [apply() for apply, _ in planned]
            self._model = trial
            return [answer for answer in answers if answer is not None]

        def real() -> list[Any]:
            with self._store.transaction() as tx:
                answers = [collect(tx) for _, collect in planned]
                if fails:
                    raise ZeroDivisionError
            return [answer.job_id for answer in answers if answer is not None]

        self._same(model, real)

    def _plan(
        self, trial: dict[str, ModelQueue], operation: tuple[Any, ...]
    ) -> tuple[Callable[[], Any], Callable[[Transaction], Any]] | None:
        """One operation, for the model and for a transaction."""
        verb, *arguments = operation
        if verb == "put":
            name, options = arguments
            payload = self._next_payload()
            return (
                lambda: trial[name].put(self._now, payload, **options),
                lambda tx: tx.put(self._plain[name], payload, **options),
            )
        if verb == "cancel":
            name, pick = arguments
            job_id = self._pick_job(name, pick, WAITING)
            return (
                lambda: trial[name].cancel(self._now, job_id),
                lambda tx: tx.cancel(self._plain[name], job_id),
            )
        if not self._records:
            return None
        claim, record = self._pick(arguments[0])
        extra = {"nack": (None, None), "fail": (None,), "release": (None,)}.get(verb, ())
        return (
            lambda: getattr(trial[claim.queue], verb)(self._now, claim, *extra),
            lambda tx: getattr(tx, verb)(record),
        )

    # Looking

    @rule(name=names, state=st.sampled_from([None, *STATES]), limit=st.integers(1, 5))
    def list_jobs(self, name: str, state: str | None, limit: int) -> None:
        found: list[Any] = []
        after = None
        while page := self._plain[name].jobs(state, limit=limit, after=after):
            assert len(page) <= limit
            found += page
            after = page[-1]
        model = self._model[name]
        expected = [job for each in ([state] if state else STATES) for job in model.listed(each)]
        assert [job.job_id for job in found] == [job.job_id for job in expected]
        for job, same in zip(found, expected, strict=True):
            self._assert_same_job(job, same)

    @rule(name=names, pick=picks)
    def look(self, name: str, pick: int) -> None:
        model = self._model[name]
        job_id = pick % (model.total + 2)
        self._same(lambda: model.job(job_id) and True, lambda: bool(self._plain[name].job(job_id)))
        if job_id in model.jobs:
            self._assert_same_job(self._plain[name].job(job_id), model.jobs[job_id])

    @rule()
    def check(self) -> None:
        report = self._store.check()
        assert report.ok, report.problems
        assert report.jobs == sum(len(model.jobs) for model in self._model.values())

    # Closing and opening

    @rule(compact=st.booleans())
    def reopen(self, compact: bool) -> None:
        if compact:
            self._store.compact()
        old, self._records = self._records, []
        self._store.close()
        for model in self._model.values():
            model.give_everything_back()
        self.open()
        for _, record in old[-3:]:
            with pytest.raises(QueueClosed):
                record.ack()


@pytest.mark.contract(
    "CNT-01", "CNT-02", "CNT-03", "CNT-04", "CNT-05", "ORD-01", "ACK-07", "TXN-01"
)
def test_the_store_does_what_the_model_does() -> None:
    run_state_machine_as_test(
        StoreMachine, settings=settings(max_examples=300, stateful_step_count=50)
    )


@pytest.mark.torture
@pytest.mark.contract("CNT-01", "CNT-02", "CNT-03", "CNT-04", "CNT-05")
def test_the_store_does_what_the_model_does_for_long() -> None:
    run_state_machine_as_test(
        StoreMachine, settings=settings(max_examples=1500, stateful_step_count=80)
    )
