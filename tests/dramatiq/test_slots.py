"""How many messages a worker has in hand, and what becomes of those that it does not start."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import dramatiq
import pytest
from dramatiq import Worker
from dramatiq.common import current_millis

from equeue_dramatiq import LMDBBroker
from equeue_dramatiq import _slots as slots_module
from equeue_dramatiq._slots import Slots
from tests.contract.helpers import wait_until

WATCHDOG = 20  # seconds


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(slots_module, "_now", clock)
    return clock


def room(slots: Slots) -> int:
    return slots.wait(0)[0]


def end(slots: Slots, clock: Clock, number: int, interval: float) -> None:
    for _ in range(number):
        clock.now += interval
        slots.end()


def never() -> None:
    raise AssertionError("nothing is stuck")


def test_there_are_as_many_as_threads(clock: Clock) -> None:
    slots = Slots(4, never)
    assert room(slots) == 4
    assert slots.take(3)
    assert room(slots) == 1
    assert slots.take(1)
    assert room(slots) == 0
    slots.give_back(2)
    assert room(slots) == 2


def test_slow_messages_are_not_claimed_ahead(clock: Clock) -> None:
    slots = Slots(4, never)
    slots.take(4)
    for _ in range(50):
        end(slots, clock, 1, 1.0)
        slots.take(1)
    assert room(slots) == 0


def test_fast_ones_are_and_in_batches(clock: Clock) -> None:
    slots = Slots(4, never)
    for _ in range(50):
        slots.take(4)
        end(slots, clock, 4, 0.00005)
    assert room(slots) == 4 + slots_module._AHEAD
    slots.take(room(slots))
    end(slots, clock, slots_module._AHEAD // 2, 0.00005)
    assert room(slots) == 0  # half of those that were claimed ahead are left: time enough
    end(slots, clock, 1, 0.00005)
    assert room(slots) == slots_module._AHEAD // 2 + 1


def test_nothing_is_claimed_ahead_without_a_way_back(clock: Clock) -> None:
    slots = Slots(4)
    for _ in range(50):
        slots.take(4)
        end(slots, clock, 4, 0.00005)
    assert room(slots) == 4


def test_what_is_stuck_goes_back_and_no_more_is_claimed_ahead(clock: Clock) -> None:
    unloaded = []

    def unload() -> None:
        unloaded.append(clock.now)
        slots.give_back(20)

    slots = Slots(4, unload)
    for _ in range(50):
        slots.take(4)
        end(slots, clock, 4, 0.00005)
    slots.take(24)
    clock.now += 0.001
    slots.wait(0)
    assert unloaded == []
    clock.now += 1.0
    assert room(slots) == 0
    assert len(unloaded) == 1
    slots.end()
    assert room(slots) == 1


def test_what_was_taken_too_much_is_not_looked_for_again_at_once(clock: Clock) -> None:
    """Messages above the number that no thread's queue holds: there is nothing to give back."""
    unloaded: list[float] = []
    slots = Slots(1, lambda: unloaded.append(clock.now))
    slots.take(3)
    clock.now += 1.0
    assert room(slots) == 0
    assert len(unloaded) == 1


def test_none_are_given_once_it_is_closed() -> None:
    slots = Slots(4, never)
    slots.close()
    assert room(slots) == 0
    assert not slots.take(1)


def test_slots_of_a_consumers_own_are_closed_too() -> None:
    slots = Slots(4, never)
    own = slots.offshoot(9)
    assert own.wait(0)[0] == 9
    slots.close()
    assert not own.take(1)
    assert not slots.offshoot(9).take(1), "nor those of a consumer that is started anew"


def test_each_worker_has_turns_of_its_own() -> None:
    """So those of a child's worker are free, in whatever moment of its parent's worker it was forked."""
    one, other = Slots(4, never), Slots(4, never)
    assert one.turns is not other.turns
    assert one.offshoot(9).turns is one.turns


def test_a_free_slot_wakes_a_waiting_consumer() -> None:
    slots = Slots(1)
    slots.take(1)
    got: list[int] = []
    thread = threading.Thread(target=lambda: got.append(slots.wait(WATCHDOG)[0]))
    thread.start()
    slots.end()
    thread.join(WATCHDOG)
    assert got == [1]


def test_a_free_slot_wakes_the_consumers_of_all_queues() -> None:
    """One may find its queue empty, and the slot must not be kept from the others meanwhile."""
    slots = Slots(1)
    slots.take(1)
    got: list[int] = []
    threads = [
        threading.Thread(target=lambda: got.append(slots.wait(WATCHDOG)[0])) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(slots._changed._waiters) == 3, "all three wait")  # type: ignore[attr-defined]
    slots.end()
    for thread in threads:
        thread.join(WATCHDOG / 2)
    assert got == [1, 1, 1]


# With workers


@pytest.fixture
def start(broker: LMDBBroker) -> Iterator[Callable[..., Worker]]:
    workers: list[Worker] = []

    def start(threads: int) -> Worker:
        worker = Worker(broker, worker_threads=threads, worker_timeout=50)
        worker.start()
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        if worker.workers[0].is_alive():
            worker.stop()


@pytest.mark.contract("DRW-04")
def test_a_message_waits_in_the_store_and_not_in_a_busy_worker(
    broker: LMDBBroker, start: Callable[..., Worker]
) -> None:
    entered = threading.Semaphore(0)
    leave = threading.Event()

    @dramatiq.actor
    def work() -> None:
        entered.release()
        leave.wait(WATCHDOG)

    for _ in range(5):
        work.send()
    start(2)
    assert entered.acquire(timeout=WATCHDOG)
    assert entered.acquire(timeout=WATCHDOG)
    counts = broker.stats("default")
    leave.set()
    assert (counts["running"], counts["pending"]) == (2, 3)
    broker.join("default", timeout=WATCHDOG * 1000)


@pytest.mark.contract("DRW-04")
def test_what_got_stuck_behind_a_long_message_goes_back(
    broker: LMDBBroker, start: Callable[..., Worker]
) -> None:
    """Fast messages are claimed ahead; then a long one comes, and others must not wait for it."""
    entered = threading.Event()
    leave = threading.Event()
    done = 0

    @dramatiq.actor
    def work(long: bool) -> None:
        nonlocal done
        if long:
            entered.set()
            leave.wait(WATCHDOG)
        done += 1

    broker.enqueue_many([work.message(long=number == 500) for number in range(1000)])
    start(1)
    assert entered.wait(WATCHDOG)
    with broker.queue("default").processing(timeout=WATCHDOG) as record:  # as another worker would
        assert record.retries == 0
    counts = {}
    until = current_millis() + WATCHDOG * 1000
    while current_millis() < until:
        counts = broker.stats("default")
        if counts["running"] == 1:
            break
    assert counts["running"] == 1
    assert counts["pending"] == 1000 - done - 2
    leave.set()
    broker.join("default", timeout=WATCHDOG * 1000)
    assert done == 999


@pytest.mark.contract("DRW-05")
def test_a_worker_that_stops_gives_unstarted_messages_back_at_once(
    broker: LMDBBroker, start: Callable[..., Worker]
) -> None:
    entered = threading.Event()
    leave = threading.Event()

    @dramatiq.actor
    def work() -> None:
        entered.set()
        leave.wait(WATCHDOG)

    @dramatiq.actor(queue_name="other")
    def other() -> None: ...

    worker = start(1)
    work.send()
    assert entered.wait(WATCHDOG)
    # Claimed for the same single thread, as it may happen to a worker of several queues.
    other.send()
    thread = threading.Thread(target=worker.stop)
    thread.start()
    try:
        record = broker.queue("other").get(timeout=WATCHDOG)  # while the long message still runs
        assert record.retries == 0
        assert broker.stats("default")["running"] == 1
        record.ack()
    finally:
        leave.set()
        thread.join(WATCHDOG)
    assert broker.stats("default")["running"] == 0


@pytest.mark.contract("DRW-05")
def test_nothing_more_is_claimed_by_a_worker_that_stops(
    broker: LMDBBroker, start: Callable[..., Worker]
) -> None:
    entered = threading.Event()
    leave = threading.Event()

    @dramatiq.actor
    def work() -> None:
        entered.set()
        leave.wait(WATCHDOG)

    worker = start(2)
    work.send()
    assert entered.wait(WATCHDOG)
    thread = threading.Thread(target=worker.stop)
    thread.start()
    try:
        while all(each.is_alive() for each in worker.workers):
            worker.workers[0].join(0.01)  # the idle one of the two ends
        work.send()
        assert broker.queue("default").get(timeout=WATCHDOG).retries == 0
    finally:
        leave.set()
        thread.join(WATCHDOG)
    assert broker.stats("default")["pending"] == 1
