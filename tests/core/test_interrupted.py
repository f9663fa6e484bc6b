"""What is left behind by errors and interruptions in the middle."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from equeue_core import AsyncQueue, Queue, QueueClosed, Store, StoreAccessError
from equeue_core._store import Environment
from tests.contract.helpers import WATCHDOG, assert_counts


@pytest.mark.contract("ASY-11")
@pytest.mark.parametrize("sync", ["off", "full"])
def test_a_foreign_error_reaches_who_waits_and_the_next_put_works(
    store_path: Path, monkeypatch: pytest.MonkeyPatch, sync: Any
) -> None:
    async def main() -> None:
        async with AsyncQueue(store_path, sync=sync) as queue:
            await queue.put("first")
            with monkeypatch.context() as patch:

                def fail(*arguments: Any, **options: Any) -> None:
                    raise OSError(errno.EMFILE, "too many open files")

                patch.setattr(Environment, "run_requests", fail)
                with pytest.raises(OSError, match="too many"):
                    await asyncio.wait_for(queue.put("second"), WATCHDOG)
            assert await asyncio.wait_for(queue.put("third"), WATCHDOG) == 2

    asyncio.run(main())


@pytest.mark.contract("ASY-11")
@pytest.mark.parametrize("sync", ["off", "full"])
def test_an_interrupted_loop_can_go_on(
    store_path: Path, monkeypatch: pytest.MonkeyPatch, sync: Any
) -> None:
    loop = asyncio.new_event_loop()
    queue: AsyncQueue[str] = AsyncQueue(store_path, sync=sync)

    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    try:
        loop.run_until_complete(queue.put("first"))
        task = loop.create_task(queue.put("second"))
        with monkeypatch.context() as patch:
            if sync == "off":
                patch.setattr(Environment, "run_requests", interrupt)
            else:
                patch.setattr(loop, "run_in_executor", interrupt)
            with pytest.raises(KeyboardInterrupt):
                loop.run_until_complete(task)
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        assert loop.run_until_complete(asyncio.wait_for(queue.put("third"), WATCHDOG)) == 2
        loop.run_until_complete(queue.close())
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@pytest.mark.contract("MNT-01")
def test_half_a_backup_is_none(
    store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination = tmp_path / "backup"
    with Store(store_path) as store:
        store.queue().put("x")

        def die_half_way(self: Environment, into: str, name: str) -> None:
            Path(into, "data.mdb").touch()
            raise SystemExit

        with monkeypatch.context() as patch:
            patch.setattr(Environment, "copy", die_half_way)
            # As after SIGKILL, nothing is cleaned up.
            patch.setattr(shutil, "rmtree", lambda *arguments, **options: None)
            with pytest.raises(SystemExit):
                store.backup(destination)
        assert not (destination / "data.mdb").exists()
        store.backup(destination)
        with pytest.raises(StoreAccessError):
            store.backup(destination)
    assert [path.name for path in destination.iterdir()] == ["data.mdb"]
    with Queue(destination) as copy:
        assert_counts(copy, pending=1)


@pytest.mark.contract("ACK-09")
def test_dropped_records_go_back_together(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Queue(store_path, sync="off") as queue:
        queue.put_many(range(500))
        records = queue.get_many(500)
        number = 0
        transact = Environment.transact

        def count(*arguments: Any, **options: Any) -> Any:
            nonlocal number
            number += 1
            return transact(*arguments, **options)

        monkeypatch.setattr(Environment, "transact", count)
        del records
        assert_counts(queue, pending=500)
        assert number < 10


@pytest.mark.contract("HND-07")
def test_an_ack_that_the_close_overtakes_says_that_the_queue_is_closed(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(store_path, sync="off")
    queue.put("x")
    record = queue.get_nowait()
    write = Environment.write

    def overtaken(self: Environment, *arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(Environment, "write", write)
        self.say_farewell()
        queue._closed = True
        return write(self, *arguments, **options)

    monkeypatch.setattr(Environment, "write", overtaken)
    with pytest.raises(QueueClosed):
        record.ack()
    queue.close()


@pytest.mark.timeout(60, method="thread")
def test_an_interrupted_opening_can_be_tried_again(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = threading.Event()
    open_data, close = Environment._open_data, Environment.close

    def interrupt_and_open(self: Environment, lock_fd: int) -> None:
        os.kill(os.getpid(), signal.SIGALRM)
        assert closing.wait(WATCHDOG), "who wanted it open gives up"
        open_data(self, lock_fd)

    def tell_and_close(self: Environment) -> None:
        closing.set()
        close(self)

    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Environment, "_open_data", interrupt_and_open)
            patch.setattr(Environment, "close", tell_and_close)
            with pytest.raises(KeyboardInterrupt):
                Queue(store_path).put("first")
    finally:
        signal.signal(signal.SIGALRM, before)
    with Queue(store_path) as queue:
        assert queue.put("second") == 1
