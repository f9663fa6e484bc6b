"""The seam for adapters: entries, expiry, waiting, and operations among those of a transaction."""

# ruff: noqa: PT012 - a refusal is raised at the end of the block, so the block is what raises

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import pytest

from equeue_core import (
    ClaimLost,
    DiskFull,
    EQueueError,
    Queue,
    QueueClosed,
    Store,
    TransactionError,
    storage,
)
from equeue_core._store import _spaces
from equeue_core._store._ballast import Ballast
from equeue_core.storage import Space, SpaceId, Txn
from tests.contract.clock import Clock
from tests.contract.helpers import WATCHDOG, assert_counts
from tests.core._forked import Line, forked
from tests.core.children import child
from tests.waits import counted_transactions

SPACE = SpaceId.DRAMATIQ_RESULTS
KEYS = [b"", b"k", b"\x00\xff", b"k" * 400, b"k" * 401, b"k" * 100_000]


@pytest.fixture
def space(store: Store) -> Iterator[Space]:
    with Space(store, SPACE) as space:
        yield space


def put(
    space: Space, key: bytes, value: bytes, ttl: float | None = None, announce: bool = True
) -> None:
    def run(txn: Txn) -> None:
        space.put(txn, key, value, None if ttl is None else storage.wall() + ttl)
        if announce:
            space.announce(txn, key)

    space.write(run)


def get(space: Space, key: bytes) -> bytes | None:
    return space.read(partial(space.get, key=key))


def entries(space: Space) -> int:
    """How many keys it has on disk, expiry entries included."""
    return space.read(lambda txn: sum(1 for _ in storage.scan(txn, storage.key_prefix(SPACE))))


class TestEntries:
    @pytest.mark.parametrize("key", KEYS, ids=len)
    def test_a_value_is_found_by_its_key(self, space: Space, key: bytes) -> None:
        for other in KEYS:
            put(space, other, b"of another" + other[:9])
        put(space, key, b"first")
        put(space, key, b"value")
        assert get(space, key) == b"value"
        space.write(partial(space.delete, key=key))
        assert get(space, key) is None
        assert [other for other in KEYS if get(space, other) is None] == [key]

    def test_an_empty_value_is_a_value(self, space: Space) -> None:
        put(space, b"k", b"")
        assert get(space, b"k") == b""

    def test_what_is_not_there_can_be_deleted(self, space: Space) -> None:
        space.write(partial(space.delete, key=b"k"))
        assert get(space, b"k") is None

    def test_spaces_are_apart(self, store: Store, space: Space) -> None:
        put(space, b"k", b"here")
        with Space(store, SpaceId.DRAMATIQ_LIMITS) as other:
            assert get(other, b"k") is None
            put(other, b"k", b"there")
        assert get(space, b"k") == b"here"

    def test_they_are_no_queues(self, store: Store, space: Space) -> None:
        put(space, b"k", b"value")
        assert store.queues() == []
        assert store.check().queues == 0

    def test_they_outlive_the_store_handle(self, path: Path) -> None:
        with Store(path, sync="off") as store:
            put(Space(store, SPACE), b"k", b"value")
        with Store(path) as store:
            assert get(Space(store, SPACE), b"k") == b"value"

    def test_a_refused_operation_leaves_nothing_behind(self, space: Space) -> None:
        def run(txn: Txn) -> None:
            space.put(txn, b"k", b"value")
            raise ClaimLost("no")

        with pytest.raises(ClaimLost, match="no"):
            space.write(run)
        assert get(space, b"k") is None

    @pytest.mark.parametrize("sync", ["full", "off"])
    def test_threads_change_one_entry_in_turns(self, path: Path, sync: Any) -> None:
        with Store(path, sync=sync) as store, Space(store, SPACE) as space:
            put(space, b"k", b"0")

            def add(txn: Txn) -> None:
                space.put(txn, b"k", b"%d" % (int(space.get(txn, b"k") or b"") + 1))

            def work() -> None:
                for _ in range(50):
                    space.write(add)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(WATCHDOG)
            assert get(space, b"k") == b"200"


class TestExpiry:
    def test_an_entry_is_there_until_its_time(self, space: Space, clock: Clock) -> None:
        put(space, b"k", b"value", ttl=10)
        clock.advance(9.9)
        assert get(space, b"k") == b"value"
        clock.advance(0.2)
        assert get(space, b"k") is None

    def test_a_new_value_has_a_new_time(self, space: Space, clock: Clock) -> None:
        put(space, b"longer", b"value", ttl=10)
        put(space, b"longer", b"value", ttl=30)
        put(space, b"for ever", b"value", ttl=10)
        put(space, b"for ever", b"value")
        put(space, b"shorter", b"value", ttl=30)
        put(space, b"shorter", b"value", ttl=10)
        clock.advance(20)
        put(space, b"another", b"", ttl=10)  # removes what it can
        assert get(space, b"longer") == b"value"
        assert get(space, b"for ever") == b"value"
        assert get(space, b"shorter") is None
        assert space.store.check().ok

    def test_no_time_in_the_past_is_for_ever(self, space: Space) -> None:
        for expires in (0.0, -1.0, -1e300):
            space.write(partial(space.put, key=b"k", value=b"value", expires=expires))
            assert get(space, b"k") is None

    def test_expired_entries_are_removed_as_work_goes_on(
        self, store: Store, space: Space, clock: Clock
    ) -> None:
        for number in range(100):
            put(space, b"old %d" % number, b"x" * 1000, ttl=10)
        put(space, b"kept", b"value")
        clock.advance(11)
        assert entries(space) == 201
        for number in range(50):
            put(space, b"new %d" % number, b"x", ttl=10)
        assert entries(space) == 101
        assert get(space, b"kept") == b"value"
        assert store.check().ok

    def test_one_put_removes_a_few_of_them(self, space: Space, clock: Clock) -> None:
        for number in range(1000):
            put(space, b"old %d" % number, b"x", ttl=10)
        clock.advance(11)
        before = entries(space)
        put(space, b"new", b"x")
        removed = before + 2 - entries(space)
        assert 2 <= removed <= 20  # each has two keys

    def test_a_put_back_in_time_is_found_again(self, space: Space, clock: Clock) -> None:
        put(space, b"k", b"value", ttl=10)
        clock.step(3600)
        assert get(space, b"k") is None
        clock.step(-3600)
        assert get(space, b"k") == b"value"


class TestCheck:
    def tamper(self, path: Path, change: Callable[[Any], None]) -> list[str]:
        with Store(path, sync="off") as store:
            space = Space(store, SPACE)
            put(space, b"k", b"value", ttl=100)
            put(space, b"k" * 500, b"value", ttl=100)
            put(space, b"for ever", b"value")
            assert store.check().ok
        with lmdb.open(str(path), lock=False) as env, env.begin(write=True) as txn:
            change(txn)
        with Store(path) as store:
            return store.check().problems

    def test_an_expiry_that_is_not_listed_is_found(self, path: Path) -> None:
        def change(txn: Any) -> None:
            for key, _ in list(txn.cursor()):
                if key.startswith(storage.key_prefix(SPACE) + _spaces.EXPIRY):
                    txn.delete(key)

        problems = self.tamper(path, change)
        assert len(problems) == 2
        assert all("is not listed" in problem for problem in problems)

    def test_an_expiry_without_an_entry_is_found(self, path: Path) -> None:
        problems = self.tamper(
            path, lambda txn: txn.delete(storage.key_prefix(SPACE) + _spaces.VALUE + b"=k")
        )
        assert len(problems) == 1
        assert "no entry" in problems[0]

    def test_an_entry_with_another_time_is_found(self, path: Path) -> None:
        def change(txn: Any) -> None:
            key = storage.key_prefix(SPACE) + _spaces.VALUE + b"=k"
            txn.put(key, _spaces.HEAD.pack(1e9) + txn.get(key)[_spaces.HEAD.size :])

        assert len(self.tamper(path, change)) == 2

    def test_an_entry_that_is_cut_short_is_found(self, path: Path) -> None:
        problems = self.tamper(
            path, lambda txn: txn.put(storage.key_prefix(SPACE) + _spaces.VALUE + b"=new", b"x")
        )
        assert len(problems) == 1
        assert "cut short" in problems[0]

    def test_every_space_is_looked_at(self, path: Path) -> None:
        with Store(path, sync="off") as store:
            for space_id in SpaceId:
                put(Space(store, space_id), b"k", b"value", ttl=100)
        with lmdb.open(str(path), lock=False) as env, env.begin(write=True) as txn:
            for space_id in SpaceId:
                txn.delete(storage.key_prefix(space_id) + _spaces.VALUE + b"=k")
        with Store(path) as store:
            assert len(store.check().problems) == len(SpaceId)


class Wait:
    """A thread that waits, and what came of it."""

    def __init__(self, wait: Callable[[], Any]) -> None:
        self._outcome: list[Any] = []

        def run() -> None:
            try:
                self._outcome.append(wait())
            except EQueueError as error:
                self._outcome.append(type(error))

        self._thread = threading.Thread(target=run)
        self._thread.start()
        self._thread.join(0.05)  # let it fall asleep; it must make no difference

    def outcome(self) -> Any:
        self._thread.join(WATCHDOG)
        assert not self._thread.is_alive(), "the wait did not end"
        return self._outcome[0]


def wait(space: Space, *keys: bytes, timeout: float | None = WATCHDOG) -> bytes | None:
    def look(txn: Txn) -> bytes | None:
        return next((found for key in keys if (found := space.get(txn, key)) is not None), None)

    return space.wait(keys, look, timeout)


class TestWaiting:
    def test_what_is_there_is_not_waited_for(self, space: Space) -> None:
        put(space, b"k", b"value")
        assert wait(space, b"k", timeout=0) == b"value"
        assert wait(space, b"k", timeout=None) == b"value"

    @pytest.mark.parametrize("timeout", [0, 0.001, 0.05, 1.2])
    def test_a_wait_in_vain_lasts_as_long_as_asked(self, space: Space, timeout: float) -> None:
        start = time.monotonic()
        assert wait(space, b"k", timeout=timeout) is None
        assert timeout <= time.monotonic() - start < timeout + WATCHDOG

    def test_a_negative_timeout_is_refused(self, space: Space) -> None:
        with pytest.raises(ValueError, match="timeout"):
            wait(space, b"k", timeout=-1)

    def test_an_announcement_ends_it(self, space: Space) -> None:
        waiting = Wait(partial(wait, space, b"k", timeout=None))
        put(space, b"other", b"no")
        put(space, b"k", b"value")
        assert waiting.outcome() == b"value"

    def test_it_may_be_for_one_of_several(self, space: Space) -> None:
        keys = [b"key %d" % number for number in range(40)]
        waiting = Wait(partial(wait, space, *keys))
        put(space, keys[33], b"value")
        assert waiting.outcome() == b"value"

    def test_many_wait_for_many(self, space: Space) -> None:
        keys = [b"key %d" % number for number in range(30)]
        waits = [Wait(partial(wait, space, key)) for key in keys for _ in range(2)]
        for key in keys:
            put(space, key, b"of " + key)
        expected = [b"of " + key for key in keys for _ in range(2)]
        assert [waiting.outcome() for waiting in waits] == expected

    def test_another_process_ends_it(self, space: Space, path: Path) -> None:
        code = """
            from equeue_core.storage import Space, SpaceId
            space = Space(Store(path), SpaceId.DRAMATIQ_RESULTS)
            say(space.wait([b"to"], lambda txn: space.get(txn, b"to"), 60).decode())
            def run(txn):
                space.put(txn, b"from", b"child")
                space.announce(txn, b"from")
            space.write(run)
        """
        waiting = Wait(partial(wait, space, b"from"))
        with child(code, path) as other:
            put(space, b"to", b"child")
            assert other.hear() == "child"
            assert waiting.outcome() == b"child"

    def test_an_announcement_in_a_collected_transaction_ends_it(
        self, store: Store, space: Space
    ) -> None:
        waiting = Wait(partial(wait, space, b"k"))
        with store.transaction() as transaction:
            space.collect(transaction, partial(store_and_tell, space, b"k"))
        assert waiting.outcome() == b"value"

    @pytest.mark.parametrize(
        "close", [lambda store, space: space.close(), lambda store, _: store.close()]
    )
    def test_closing_ends_it(self, store: Store, space: Space, close: Any) -> None:
        waiting = Wait(partial(wait, space, b"k", timeout=None))
        close(store, space)
        assert waiting.outcome() is QueueClosed

    def test_it_costs_no_poll(self, space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
        get(space, b"k")
        environment = space.store._environment
        looks = counted_transactions(environment, monkeypatch)
        start = time.monotonic()
        assert wait(space, b"k", timeout=0.9) is None
        # One before, one that registers, and one at the end, or more if the machine slept meanwhile.
        assert len(looks) <= 3 + (time.monotonic() - start - 0.9)

    def test_an_announcement_wakes_a_part_of_the_waiters(self, space: Space) -> None:
        bells = {_spaces.bell(SPACE, b"key %d" % number) for number in range(200)}
        assert len(bells) == _spaces.BELLS
        assert bells.isdisjoint(
            _spaces.bell(SpaceId.DRAMATIQ_LIMITS, b"key %d" % number) for number in range(200)
        )

    def test_its_bells_take_one_page(self, space: Space, path: Path) -> None:
        with Space(space.store, SpaceId.RQ) as last:
            for number in range(40):
                assert wait(last, b"key %d" % number, timeout=0.001) is None
        queue = space.store.queue()
        queue.put("x")
        assert queue._ledger.id not in {_spaces.bell(SpaceId.RQ, b"%d" % n) for n in range(200)}
        assert os.stat(path / "bell" / "sleepers").st_blocks * 512 <= 4096

    def test_idle_waiters_are_few(self, space: Space) -> None:
        before = len(os.listdir("/dev/fd"))
        for number in range(200):
            wait(space, *(b"%d" % (number * key) for key in range(3)), timeout=0.0001)
        assert len(os.listdir("/dev/fd")) - before < 100


def store_and_tell(space: Space, key: bytes, txn: Txn) -> None:
    space.put(txn, key, b"value")
    space.announce(txn, key)


class TestTransactions:
    def test_an_operation_shares_the_commit(self, store: Store, space: Space) -> None:
        queue = store.queue()
        queue.put("x")
        record = queue.get_nowait()
        with store.transaction() as transaction:
            transaction.ack(record)
            space.collect(transaction, partial(store_and_tell, space, b"k"))
            transaction.put(queue, "next")
            assert get(space, b"k") is None
        assert get(space, b"k") == b"value"
        assert_counts(queue, done=1, pending=1)

    @pytest.mark.parametrize("sync", ["full", "off"])
    def test_nothing_is_applied_when_one_is_refused(self, path: Path, sync: Any) -> None:
        with Store(path, sync=sync) as store, Space(store, SPACE) as space:
            queue = store.queue()
            queue.put("x")
            record = queue.get_nowait()
            record.ack()
            with pytest.raises(ClaimLost) as caught, store.transaction() as transaction:
                space.collect(transaction, partial(store_and_tell, space, b"k"))
                transaction.ack(record)
            assert type(caught.value) is ClaimLost
            assert get(space, b"k") is None

    def test_another_stores_space_is_refused(self, store: Store, tmp_path: Path) -> None:
        with Store(tmp_path / "other", sync="off") as other:
            foreign = Space(other, SPACE)
            with pytest.raises(TransactionError), store.transaction() as transaction:
                foreign.collect(transaction, partial(store_and_tell, foreign, b"k"))

    def test_another_handle_on_the_store_is_accepted(self, store: Store, path: Path) -> None:
        store.queues()
        with Store(path) as same, Space(same, SPACE) as space:
            with store.transaction() as transaction:
                space.collect(transaction, partial(store_and_tell, space, b"k"))
            assert get(space, b"k") == b"value"

    def test_only_within_its_block(self, store: Store, space: Space) -> None:
        with store.transaction() as transaction:
            pass
        with pytest.raises(TransactionError):
            space.collect(transaction, partial(store_and_tell, space, b"k"))

    def test_refusals_in_a_shared_commit_undo_their_own_transaction_only(self, path: Path) -> None:
        """Threads commit transactions, of which every third is refused after it has written."""
        with Store(path, sync="normal") as store, Space(store, SPACE) as space:
            queue: Queue[Any] = store.queue()
            queue.put("taken", unique="k")
            refused: list[EQueueError] = []

            def work(thread: int) -> None:
                for number in range(60):
                    name = b"%d.%d" % (thread, number)
                    try:
                        with store.transaction() as transaction:
                            space.collect(transaction, partial(store_and_tell, space, name))
                            pending = transaction.put(
                                queue, name, unique=None if number % 3 else "k"
                            )
                        assert pending.job_id
                    except EQueueError as error:
                        refused.append(error)
                        assert pending.job_id == 0

            threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(WATCHDOG)
            assert {type(error).__name__ for error in refused} == {"DuplicateJob"}
            assert len(refused) == 6 * 20
            for thread in range(6):
                for number in range(60):
                    kept = get(space, b"%d.%d" % (thread, number)) is not None
                    assert kept == bool(number % 3)
            assert_counts(queue, pending=1 + 6 * 40)
            assert store.check().ok

    def test_collected_transactions_share_a_commit(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Store(path, sync="full") as store, Space(store, SPACE) as space:
            get(space, b"k")
            environment = store._environment
            commits: list[int] = []
            transact = environment.transact
            first, released = threading.Event(), threading.Event()

            def counted(*arguments: Any, **options: Any) -> Any:
                commits.append(1)
                if len(commits) == 1:
                    first.set()
                    assert released.wait(WATCHDOG)
                return transact(*arguments, **options)

            monkeypatch.setattr(environment, "transact", counted)

            def work(number: int) -> None:
                with store.transaction() as transaction:
                    space.collect(transaction, partial(store_and_tell, space, b"%d" % number))

            threads = [threading.Thread(target=work, args=(number,)) for number in range(9)]
            threads[0].start()
            assert first.wait(WATCHDOG)
            for thread in threads[1:]:
                thread.start()
            combiner = environment._combiner
            assert combiner is not None
            end = time.monotonic() + WATCHDOG
            while len(combiner._queue) < 8 and time.monotonic() < end:
                time.sleep(0.001)
            released.set()
            for thread in threads:
                thread.join(WATCHDOG)
            assert len(commits) == 2
            assert [get(space, b"%d" % number) for number in range(9)] == [b"value"] * 9


class TestHandles:
    def test_making_one_touches_no_disk(self, path: Path) -> None:
        with Store(path) as store, Space(store, SPACE):
            pass
        assert not path.exists()

    def test_every_use_of_a_closed_one_is_refused(self, store: Store, space: Space) -> None:
        space.close()
        space.close()
        for use in (
            lambda: put(space, b"k", b"value"),
            lambda: get(space, b"k"),
            lambda: wait(space, b"k"),
        ):
            with pytest.raises(QueueClosed):
                use()
        with pytest.raises(QueueClosed), store.transaction() as transaction:
            space.collect(transaction, partial(store_and_tell, space, b"k"))
        assert store.queues() == []

    def test_it_can_be_pickled(self, space: Space) -> None:
        put(space, b"k", b"value")
        copy = pickle.loads(pickle.dumps(space))
        assert get(copy, b"k") == b"value"
        copy.store.close()

    def test_its_repr_names_it(self, space: Space) -> None:
        assert "DRAMATIQ_RESULTS" in repr(space)
        assert space.store.path in repr(space)
        space.close()
        assert "closed" in repr(space)

    def test_it_goes_on_in_a_forked_child(self, space: Space) -> None:
        put(space, b"k", b"before")
        waiting = Wait(partial(wait, space, b"from"))

        def use(line: Line) -> None:
            line.say((get(space, b"k") or b"").decode())
            line.say((wait(space, b"to") or b"").decode())
            put(space, b"from", b"child")

        with forked(use) as other:
            assert other.hear() == "before"
            put(space, b"to", b"parent")
            assert other.hear() == "parent"
            assert waiting.outcome() == b"child"
            assert other.wait() == 0

    def test_closing_in_a_forked_child_leaves_the_parents_waits(self, space: Space) -> None:
        waiting = Wait(partial(wait, space, b"k"))

        def use(line: Line) -> None:
            space.close()
            space.store.close()

        with forked(use) as other:
            assert other.wait() == 0
        put(space, b"k", b"value")
        assert waiting.outcome() == b"value"


def test_the_last_room_is_for_completing_jobs(
    store: Store, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(space, b"k", b"value")
    environment = store._environment
    monkeypatch.setattr(Ballast, "_look", lambda self: None)
    environment._ballast.spent = True

    def run(txn: Txn) -> None:
        space.require_room(txn, 100)
        space.put(txn, b"k", b"another")

    with pytest.raises(DiskFull):
        space.write(run)
    with pytest.raises(DiskFull):
        space.write(partial(space.put, key=b"k", value=b"another"), adds=100)
    assert get(space, b"k") == b"value"
    space.write(partial(space.put, key=b"k", value=b"another"))
    assert get(space, b"k") == b"another"


@pytest.mark.parametrize("mode", ["full", "off"])
def test_a_mistake_in_an_operation_is_its_own_threads(path: Path, mode: Any) -> None:
    """Operations of other threads may be in the same commit."""

    def mistake(txn: Txn) -> None:
        space.put(txn, b"k", b"v")  # which is undone
        raise LookupError("mine")

    with Store(path, sync=mode) as store, Space(store, SPACE) as space:
        queue = store.queue()
        stop = threading.Event()

        def put() -> int:
            count = 0
            while not stop.is_set():
                queue.put("x")
                count += 1
            return count

        with ThreadPoolExecutor(3) as threads:
            putters = [threads.submit(put) for _ in range(3)]
            for _ in range(100):
                with pytest.raises(LookupError, match="mine"):
                    space.write(mistake)
            stop.set()
            counts = [putter.result(WATCHDOG) for putter in putters]
        assert queue.stats()["pending"] == sum(counts)
        assert min(counts) > 0
        assert space.read(lambda txn: space.get(txn, b"k")) is None
