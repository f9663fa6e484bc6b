"""The async API: many waits in one loop, and cancellation that loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from equeue_core import (
    AsyncQueue,
    ClaimLost,
    JobFailed,
    JoinTimeout,
    Queue,
    QueueClosed,
    QueueEmpty,
    ResultTimeout,
    Store,
)
from tests.contract.helpers import LATER, WATCHDOG, assert_counts
from tests.core.children import child

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end, under the watchdog."""

    async def watched() -> T:
        return await asyncio.wait_for(main, 2 * WATCHDOG)

    return asyncio.run(watched())


async def take(queue: AsyncQueue[Any]) -> Any:
    """The next payload, acknowledged."""
    async with queue.processing(timeout=WATCHDOG) as record:
        return record.payload


async def settle() -> None:
    """Let every task that can go on go on."""
    for _ in range(20):
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)


@pytest.mark.contract("ASY-01")
def test_a_thousand_waits_take_no_thousand_threads(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path, sync="off") as queue:
            waits = [asyncio.create_task(queue.get()) for _ in range(1000)]
            await settle()
            assert not any(wait.done() for wait in waits)
            assert threading.active_count() < 50
            await queue.put_many(range(1000))
            records = await asyncio.gather(*waits)
            assert threading.active_count() < 50
            assert sorted(record.payload for record in records) == list(range(1000))
            assert (await queue.stats())["running"] == 1000
            await queue.ack_many(records)
            assert (await queue.stats())["done"] == 1000

    run(main())


@pytest.mark.contract("ASY-01")
def test_a_thousand_waits_over_many_queues(path: Path) -> None:
    async def main() -> None:
        queues = [AsyncQueue(path, f"q{number}", sync="off") for number in range(50)]
        waits = [asyncio.create_task(queue.get()) for queue in queues for _ in range(20)]
        await settle()
        assert threading.active_count() < 50
        for queue in queues:
            await queue.put_many(range(20))
        records = await asyncio.gather(*waits)
        assert len({(record.queue, record.job_id) for record in records}) == 1000
        for queue in queues:
            await queue.close()

    run(main())


async def cancelled_at_random(
    choose: random.Random, work: Callable[[], Coroutine[Any, Any, Any]]
) -> None:
    """Start the work, and most likely cancel it somewhere in the middle."""
    task = asyncio.create_task(work())
    for _ in range(choose.randrange(12)):
        await asyncio.sleep(0)
    if choose.random() < 0.3:
        await asyncio.sleep(choose.random() * 0.01)
    if choose.random() < 0.6:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError, QueueEmpty):
        await task


@pytest.mark.contract("ASY-02")
@pytest.mark.parametrize("sync", ["off", "normal"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_cancellation_loses_nothing(path: Path, sync: str, seed: int) -> None:
    """200 tasks put, get and acknowledge, and are cancelled wherever they are."""
    known: set[int] = set()
    acked: list[int] = []

    async def main() -> None:
        async with AsyncQueue(path, sync=sync, max_retries=1000) as queue:

            async def produce(number: int) -> None:
                known.add(await queue.put(number))

            async def consume() -> None:
                record = await queue.get(timeout=0.05)
                await asyncio.sleep(0)
                await record.ack()
                acked.append(record.job_id)

            async def worker(number: int) -> None:
                choose = random.Random(1000 * seed + number)
                for step in range(4):
                    await cancelled_at_random(choose, partial(produce, number * 10 + step))
                    await cancelled_at_random(choose, consume)

            await asyncio.gather(*(worker(number) for number in range(200)))
            stats = await queue.stats()
            assert stats["total"] == sum(stats.values()) - stats["total"]
            assert stats["total"] >= len(known)
            assert stats["done"] >= len(acked)
            assert len(acked) == len(set(acked))
            assert stats["failed"] == stats["cancelled"] == stats["scheduled"] == 0

            while True:
                try:
                    async with queue.processing(timeout=0.2):
                        pass
                except QueueEmpty:
                    break
            stats = await queue.stats()
            assert stats["done"] == stats["total"], "a job was left in no one's hand"
        with Store(path) as store:
            assert store.check().ok
            done = set()
            after = None
            while page := store.queue().jobs("done", limit=500, after=after):
                done |= {job.job_id for job in page}
                after = page[-1]
            assert known <= done
            assert set(acked) <= done

    run(main())


@pytest.mark.contract("ASY-02")
def test_a_cancelled_get_takes_no_job_with_it(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path, sync="off") as queue:
            for round_number in range(100):
                wait = asyncio.create_task(queue.get())
                for _ in range(round_number % 5):
                    await asyncio.sleep(0)
                await queue.put(round_number)
                for _ in range(round_number % 7):
                    await asyncio.sleep(0)
                wait.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await (await wait).release()
                del wait
                record = await queue.get(timeout=WATCHDOG)
                assert (record.payload, record.retries) == (round_number, 0)
                await record.ack()

    run(main())


@pytest.mark.contract("ASY-02")
@pytest.mark.parametrize("turns", [1, 2, 3, 5])
def test_a_get_that_ends_with_its_loop_takes_no_job_with_it(path: Path, turns: int) -> None:
    queue: AsyncQueue[str] = AsyncQueue(path)

    async def main() -> None:
        await queue.put("x")
        wait = asyncio.create_task(queue.get())  # its claim may end after the loop's executor
        for _ in range(turns):
            await asyncio.sleep(0)
        del wait

    async def rest() -> tuple[str, int]:
        async with queue:
            record = await queue.get(timeout=WATCHDOG)
            await record.ack()
            return record.payload, record.retries

    run(main())
    assert run(rest()) == ("x", 0)


@pytest.mark.contract("ASY-02")
def test_a_wait_under_wait_for_takes_no_job_with_it(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path, sync="off") as queue:
            for _ in range(20):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(queue.get(), 0.001)
            await queue.put("x")
            assert (await queue.get(timeout=WATCHDOG)).payload == "x"

    run(main())


@pytest.mark.contract("ASY-02")
def test_a_cancelled_wait_spoils_no_put(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path, sync="full") as queue:
            for round_number in range(60):
                job_id = await queue.put("x")
                waits: list[asyncio.Task[Any]] = [
                    asyncio.create_task(queue.result(job_id)),
                    asyncio.create_task(queue.join()),
                ]
                puts = [asyncio.create_task(queue.put(number)) for number in range(3)]
                for _ in range(round_number % 6):
                    await asyncio.sleep(0)
                for wait in waits:
                    wait.cancel()  # its look may be under way, in one commit with the puts
                await asyncio.gather(*puts)
                ended = await asyncio.gather(*waits, return_exceptions=True)
                assert [type(each) for each in ended] == [asyncio.CancelledError] * 2

    run(main())


@pytest.mark.contract("ASY-03")
def test_the_loop_goes_on_while_waiting(path: Path) -> None:
    """A heartbeat beats again and again during each kind of wait."""

    async def main() -> None:
        async with AsyncQueue(path, sync="off") as queue:
            later = await queue.put("later", delay=LATER)
            waits: list[Awaitable[Any]] = [
                queue.get(),
                queue.get_many(3),
                queue.result(later),
                queue.join(),
                queue.processing().__aenter__(),
            ]
            tasks = [asyncio.ensure_future(wait) for wait in waits]
            beats = 0
            while beats < 200:
                await asyncio.sleep(0)
                beats += 1
            assert not any(task.done() for task in tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert all(task.cancelled() for task in tasks)

    run(main())


@pytest.mark.contract("ASY-03")
@pytest.mark.parametrize("sync", ["normal", "off"])
def test_the_loop_goes_on_while_another_process_holds_the_store(path: Path, sync: str) -> None:
    """Somebody else's long transaction holds the operation up, not the loop."""
    with Queue(path, sync=sync) as queue:
        queue.put("x")
    hold = """
    import fcntl, select
    file = open(os.path.join(path, "lock"), "r+b")
    fcntl.flock(file, fcntl.LOCK_EX)
    say("held")
    select.select([sys.stdin], [], [], 5)
    fcntl.flock(file, fcntl.LOCK_UN)
    hear()
    """

    async def main() -> None:
        async with AsyncQueue(path) as queue:
            await queue.stats()
            with child(hold, path) as other:
                assert other.hear() == "held"
                tasks = [
                    asyncio.ensure_future(queue.put("y")),
                    asyncio.ensure_future(queue.stats()),
                    asyncio.ensure_future(queue.get()),
                ]
                for _ in range(100):
                    await asyncio.sleep(0.001)
                waited = not any(task.done() for task in tasks)
                other.say("go")
                await asyncio.gather(*tasks)
                assert waited

    run(main())


@pytest.mark.contract("ASY-04")
@pytest.mark.parametrize("wait", ["get", "get_many", "join", "result"])
def test_closing_wakes_who_waits(path: Path, wait: str) -> None:
    async def main() -> None:
        queue: AsyncQueue[Any] = AsyncQueue(path, sync="off")
        await queue.put("later", delay=LATER)
        arguments = {"get_many": (2,), "result": (1,)}.get(wait, ())
        tasks = [asyncio.create_task(getattr(queue, wait)(*arguments)) for _ in range(20)]
        await settle()
        await queue.close()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [QueueClosed] * 20
        await queue.close()
        with pytest.raises(QueueClosed):
            await queue.put("x")

    run(main())


@pytest.mark.contract("ASY-05")
@pytest.mark.parametrize("timeout", [0, 0.001, 0.1])
def test_waits_time_out(path: Path, timeout: float) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with AsyncQueue(path, sync="off") as queue:
            job_id = await queue.put("later", delay=LATER)
            for wait, error in (
                (lambda: queue.get(timeout=timeout), QueueEmpty),
                (lambda: queue.get(timeout), QueueEmpty),
                (lambda: queue.get_many(2, timeout=timeout), QueueEmpty),
                (lambda: queue.join(timeout=timeout), JoinTimeout),
                (lambda: queue.result(job_id, timeout=timeout), ResultTimeout),
                (lambda: queue.processing(timeout=timeout).__aenter__(), QueueEmpty),
            ):
                start = loop.time()
                with pytest.raises(error):
                    await wait()
                assert loop.time() - start >= timeout * 0.99  # the loop's own granularity
            with pytest.raises(QueueEmpty):
                await queue.get_nowait()

    run(main())


@pytest.mark.contract("ASY-06")
def test_processing_completes_as_the_block_ends(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path, sync="off") as queue:
            await queue.put_many(["fine", "broken", "stopped"])
            async with queue.processing() as record:
                assert record.payload == "fine"
            with pytest.raises(ZeroDivisionError):
                async with queue.processing(timeout=1) as record:
                    raise ZeroDivisionError
            assert (await queue.job(record.job_id)).retries == 1

            inside = asyncio.Event()

            async def work() -> None:
                async with queue.processing():
                    inside.set()
                    await asyncio.sleep(LATER)

            task = asyncio.create_task(work())
            await inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            stopped = await queue.job(3)
            assert (stopped.state, stopped.retries) == ("pending", 0)
            stats = await queue.stats()
            assert (stats["pending"], stats["running"], stats["done"]) == (2, 0, 1)

    run(main())


@pytest.mark.contract("ASY-07")
def test_a_put_by_an_ordinary_queue_wakes_an_async_get(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path, sync="off") as queue:
            with Queue(path) as plain:
                wait = asyncio.create_task(take(queue))
                await settle()
                plain.put("from this thread")
                assert await wait == "from this thread"
                wait = asyncio.create_task(take(queue))
                await settle()
                await asyncio.to_thread(plain.put, "from another thread")
                assert await wait == "from another thread"
                wait = asyncio.create_task(take(queue))
                await settle()
                with child("Queue(path).put('from another process'); hear()", path):
                    assert await wait == "from another process"

    run(main())


@pytest.mark.contract("ASY-07")
def test_an_async_put_wakes_an_ordinary_get(path: Path) -> None:
    async def main() -> None:
        with Queue(path, sync="off") as plain:
            async with AsyncQueue(path) as queue:
                wait = asyncio.create_task(asyncio.to_thread(plain.get, WATCHDOG))
                await settle()
                await queue.put("x")
                assert (await wait).payload == "x"

    run(main())


@pytest.mark.contract("ASY-07", "DEL-03")
def test_a_job_that_comes_due_wakes_an_async_get(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path, sync="off") as queue:
            await queue.put("x", delay=0.1)
            assert await take(queue) == "x"
            wait = asyncio.create_task(take(queue))
            await settle()
            await queue.put("y", delay=0.05)
            assert await wait == "y"

    run(main())


@pytest.mark.contract("ASY-07", "RES-07")
def test_an_end_wakes_async_results_and_joins(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path, sync="off") as queue:
            first, second = await queue.put_many(["x", "y"])
            results = [asyncio.create_task(queue.result(first)) for _ in range(5)]
            failing = asyncio.create_task(queue.result(second))
            joined = asyncio.create_task(queue.join())
            await settle()
            await (await queue.get()).ack(result=42)
            assert await asyncio.gather(*results) == [42] * 5
            assert not joined.done()
            await (await queue.get()).fail("why")
            with pytest.raises(JobFailed):
                await failing
            await joined

    run(main())


@pytest.mark.contract("ASY-07", "OWN-01")
def test_a_killed_workers_job_wakes_an_async_get(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path, sync="off") as queue:
            await queue.put("x")
            script = "r = Queue(path).get(); say('holding'); hear()"
            with child(script, path) as worker:
                worker.hear()
                wait = asyncio.create_task(queue.get(timeout=WATCHDOG))
                await settle()
                worker.kill()
                record = await wait
                assert (record.payload, record.retries) == ("x", 1)

    run(main())


@pytest.mark.contract("ASY-08")
def test_concurrent_puts_keep_their_order_and_each_gets_its_id(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path) as queue:
            ids = await asyncio.gather(*(queue.put(number) for number in range(500)))
            assert sorted(ids) == list(range(1, 501))
            records = await queue.get_many(500)
            assert {record.job_id: record.payload for record in records} == {
                job_id: number for number, job_id in enumerate(ids)
            }
            with pytest.raises(ClaimLost):
                await asyncio.gather(*(records[0].ack() for _ in range(2)))
            await asyncio.gather(*(record.ack() for record in records[1:]))
            assert (await queue.stats())["done"] == 500

    run(main())


@pytest.mark.contract("ASY-08")
def test_one_refused_operation_does_not_fail_its_neighbours(path: Path) -> None:
    async def main() -> None:
        async with AsyncQueue(path) as queue:
            outcomes = await asyncio.gather(
                *(queue.put(n, unique=f"key {n % 50}") for n in range(100)),
                *(queue.put(n) for n in range(100)),
                *(queue.cancel(999) for _ in range(20)),
                return_exceptions=True,
            )
            kinds = [type(outcome).__name__ for outcome in outcomes]
            assert kinds.count("int") == 150
            assert kinds.count("DuplicateJob") == 50
            assert kinds.count("JobNotFound") == 20
            assert (await queue.stats())["pending"] == 150

    run(main())


@pytest.mark.parametrize("sync", ["off", "full"])
def test_what_cannot_be_meant_fails_nobody_beside_it(path: Path, sync: Any) -> None:
    async def main() -> None:
        async with AsyncQueue(path, sync=sync) as queue:
            await queue.put("x")
            for wrong in (queue.cancel("1"), queue.result("1")):  # type: ignore[arg-type]
                one, refused, other = await asyncio.gather(
                    queue.put("a"), wrong, queue.put("b"), return_exceptions=True
                )
                assert isinstance(refused, TypeError)
                assert isinstance(one, int)
                assert isinstance(other, int)

    run(main())


@pytest.mark.contract("ASY-09")
def test_one_store_through_several_loops_one_after_the_other(path: Path) -> None:
    async def put() -> None:
        async with AsyncQueue(path, sync="off") as queue:
            await queue.put("x")

    async def get() -> Any:
        async with AsyncQueue(path) as queue:
            async with queue.processing(timeout=WATCHDOG) as record:
                return record.payload

    for _ in range(3):
        run(put())
        assert run(get()) == "x"


@pytest.mark.contract("ASY-09")
def test_loops_in_several_threads(path: Path) -> None:
    seen: list[Any] = []

    async def main(number: int) -> None:
        async with AsyncQueue(path, sync="off") as queue:
            for step in range(25):
                await queue.put([number, step])
            for _ in range(25):
                async with queue.processing() as record:
                    seen.append(tuple(record.payload))

    threads = [threading.Thread(target=lambda n=n: run(main(n))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * WATCHDOG)
    assert sorted(seen) == [(number, step) for number in range(4) for step in range(25)]
    with Queue(path) as queue:
        assert_counts(queue, done=100)


@pytest.mark.contract("ASY-10")
def test_it_has_every_verb_of_the_ordinary_queue() -> None:
    verbs = {name for name in dir(Queue) if not name.startswith("_")}
    assert verbs <= {name for name in dir(AsyncQueue) if not name.startswith("_")}
