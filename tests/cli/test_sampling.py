"""Looks at stores, what is told from them, and numbers in few columns."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dramatiq
import pytest
import rq

from equeue_core import Store
from equeue_core._store import Environment
from equeue_core.cli import _figures as figures
from equeue_core.cli import _sampling as sampling
from equeue_core.cli._sampling import Flow, History, Look, QueueLook, flow, take
from equeue_dramatiq import LMDBBroker
from equeue_rq import LMDBRedis
from tests.cli.conftest import KILLED
from tests.cli.counting import Counting
from tests.cli.test_look import content


def look(path: Path) -> Look:
    with Store(path) as store:
        return take(store)


def a_queue(ever_put: int | None = None, **counts: int) -> QueueLook:
    return QueueLook("q", "core", counts, ever_put)


def at(second: float, *found: QueueLook) -> Look:
    return Look(at=second, wall=second, queues=found)


# Flows


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param((5, {"pending": 5}), (8, {"pending": 8}), (3, 0), id="put"),
        pytest.param((5, {"pending": 5}), (5, {"running": 2, "pending": 3}), (0, 0), id="claimed"),
        pytest.param((5, {"running": 2}), (5, {"done": 2}), (0, 2), id="done"),
        pytest.param((5, {"running": 2}), (5, {}), (0, 2), id="done and not kept"),
        pytest.param((5, {"pending": 5}), (9, {"pending": 6, "failed": 3}), (4, 3), id="both"),
        pytest.param((5, {"failed": 3}), (5, {"pending": 3}), (3, 0), id="requeued"),
        pytest.param((5, {"running": 1}), (5, {"scheduled": 1}), (0, 0), id="retried"),
        pytest.param((5, {"done": 3}), (5, {}), (0, 0), id="vacuumed"),
        pytest.param((0, {}), (0, {}), (0, 0), id="nothing"),
    ],
)
def test_what_has_come_and_gone(
    before: tuple[int, dict[str, int]],
    after: tuple[int, dict[str, int]],
    expected: tuple[int, int],
) -> None:
    assert flow(a_queue(before[0], **before[1]), a_queue(after[0], **after[1])) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"pending": 5}, {"pending": 8}, (3, 0), id="put"),
        pytest.param({"running": 2}, {"done": 2}, (0, 2), id="done"),
        pytest.param({"pending": 5, "done": 1}, {"pending": 6, "done": 4}, (4, 3), id="both"),
        pytest.param({"running": 2}, {}, (0, 2), id="done and not kept"),
        pytest.param({"failed": 3}, {"pending": 3}, (3, 0), id="requeued"),
        pytest.param({"done": 3}, {}, (0, 0), id="forgotten"),
    ],
)
def test_without_a_count_of_what_was_put(
    before: dict[str, int], after: dict[str, int], expected: tuple[int, int]
) -> None:
    assert flow(a_queue(**before), a_queue(**after)) == expected


def test_a_queue_that_was_not_there_before() -> None:
    assert flow(None, a_queue(5, pending=3, done=2)) == (5, 2)
    assert flow(None, a_queue(pending=3, done=2)) == (5, 2)


def test_another_store_at_the_same_path() -> None:
    assert flow(a_queue(100, pending=1), a_queue(3, pending=3)) is None
    history = History()
    for second, ever_put in enumerate((0, 50, 100, 3, 5)):
        history.add(at(second, a_queue(ever_put, pending=ever_put)))
    assert list(history.of("q").came) == [2.0]


# Histories


def test_rates_are_per_second_and_a_mean_of_the_latest() -> None:
    history = History()
    assert history.all.rates() is None
    put = 0
    for number in range(10):
        history.add(at(2.0 * number, a_queue(put, pending=put)))
        put += 10 * number
    assert list(history.of("q").came) == [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]
    assert history.of("q").rates() == Flow(30.0, 0.0)
    assert history.all.rates() == Flow(30.0, 0.0)
    assert history.of("another").rates() is None
    assert list(history.pending)[:4] == [0, 0, 10, 30]


def test_queues_that_come_and_go() -> None:
    history = History()
    other = QueueLook("other", "core", {"pending": 7}, 7)
    history.add(at(0, a_queue(0)))
    history.add(at(1, a_queue(2, pending=2), other))
    assert history.of("other").rates() == Flow(7.0, 0.0)
    assert history.all.rates() == Flow(9.0, 0.0)
    history.add(at(2, a_queue(2, pending=2)))
    assert history.of("other").rates() is None


def test_a_history_does_not_grow_for_ever() -> None:
    history = History()
    for number in range(2 * sampling.KEPT):
        history.add(at(number, a_queue(number, pending=number)))
    for values in (history.all.came, history.of("q").went, history.pending):
        assert len(values) == sampling.KEPT


def test_two_looks_at_the_same_moment_tell_no_rate() -> None:
    history = History()
    history.add(at(1, a_queue(0)))
    history.add(at(1, a_queue(5, pending=5)))
    assert history.all.rates() is None


# Looks


def test_a_look_at_queues_of_each_kind(store: Path) -> None:
    broker = LMDBBroker(store, middleware=[])
    broker.enqueue(dramatiq.Message("default", "send", (1,), {}, {}))
    broker.close()
    with LMDBRedis(store) as connection:
        queue = rq.Queue(connection=connection)
        queue.enqueue("os.path.nope", job_id="failed")
        worker = rq.SimpleWorker([queue], connection=connection)
        worker.work(burst=True, logging_level="CRITICAL")
        queue.enqueue("os.getcwd")
        rq.Worker([queue], connection=connection, name="w").register_birth()
    found = look(store)
    kinds = {each.name: each.kind for each in found.queues}
    assert kinds == {"mail": "core", "dramatiq:default": "dramatiq", "rq:default": "rq"}
    assert found.total("pending") == 2 + 1 + 1
    assert found.total("pending", "scheduled") == 5
    assert [(each.queue, each.job_id) for each in found.failed] == [
        ("rq:default", "failed"),
        ("mail", "1"),
    ]
    assert all(each.oldest_at and each.oldest_at <= found.wall for each in found.queues)
    assert found.workers == 1
    assert found.sync == "full"
    assert found.file_bytes == (store / "data.mdb").stat().st_size


def test_who_runs_what(store_path: Path) -> None:
    with Store(store_path) as store:
        for name in ("first", "second", "first"):
            store.queue(name).put(name)
        records = [store.queue(name).get(timeout=0) for name in ("second", "first")]
        found = look(store_path)
        assert [(each.queue, each.job_id) for each in found.running] == [
            ("second", "1"),
            ("first", "1"),
        ]
        for each in found.running:
            assert sampling.owner_of(each, found).startswith(f"{os.getpid()}@")
        shown = sampling.with_owner(found.running[0], store)
        assert f"{os.getpid()}@" in shown.details["owner"]
        assert found.workers == 1
        for record in records:
            record.release()
    found = look(store_path)
    assert (found.running, found.workers) == ([], 0)


def test_a_dead_owner_is_shown_as_such(store: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(store)], check=False)
    found = look(store)
    (job,) = found.running
    assert sampling.owner_of(job, found).endswith(", dead")
    with Store(store) as opened:
        assert sampling.with_owner(job, opened).details["owner"].endswith(", dead")


@pytest.mark.contract("CLI-01")
def test_a_look_changes_nothing(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even what a worker would do first: give back the jobs of one that was killed."""
    subprocess.run([sys.executable, "-c", KILLED, str(store)], check=False)
    with LMDBRedis(store) as connection:
        rq.Queue(connection=connection).enqueue("os.getcwd")
    before = content(store)

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a look that writes")

    monkeypatch.setattr(Environment, "write", refuse)
    assert look(store).total("running") == 1
    assert content(store) == before


@pytest.mark.contract("CLI-10")
def test_a_look_takes_as_many_steps_for_any_number_of_jobs(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    read = Environment.read

    def counted(self: Environment, operation: Callable[[Any], Any]) -> Any:
        return read(self, lambda txn: operation(Counting(txn, steps)))

    monkeypatch.setattr(Environment, "read", counted)
    taken = []
    with Store(store_path) as store, LMDBRedis(store_path) as connection:
        mail, broken = store.queue("mail"), store.queue("broken")
        waiting = rq.Queue(connection=connection)
        waiting.enqueue("os.getcwd")
        for number in (2 * sampling.FAILED, 20 * sampling.FAILED):
            mail.put_many(range(number))
            broken.put_many(range(number))
            for record in broken.get_many(number, timeout=0):
                record.fail("bad")
            connection.rpush(waiting.key, *range(number))
            del steps[:]
            found = take(store)
            assert (found.total("pending") > number, len(found.failed)) == (True, sampling.FAILED)
            taken.append(len(steps))
    assert taken[0] > 0
    assert taken[1] == taken[0]


# Numbers


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (9999, "9,999"),
        (12345, "12.3k"),
        (99999, "99.9k"),
        (999999, "999k"),
        (1234567, "1.23M"),
        (10**9, "1.00G"),
        (9.9e12, "9.90T"),
    ],
)
def test_counts(number: float, text: str) -> None:
    assert figures.count(number) == text


def test_counts_where_there_is_more_room() -> None:
    assert figures.count(1_234_567, 9) == "1,234,567"
    assert figures.count(12_345_678, 9) == "12.3M"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.001, "<0.01"),
        (0.25, "0.25"),
        (9.99, "9.99"),
        (9.996, "10.0"),
        (99.96, "100"),
        (999.6, "1,000"),
        (9999.6, "9.99k"),
        (123456, "123k"),
    ],
)
def test_rates(number: float, text: str) -> None:
    assert figures.rate(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (-5, "0.0s"),
        (9.99, "9.9s"),
        (59.9, "59s"),
        (60, "1.0m"),
        (3599, "59m"),
        (86399, "23h"),
        (864000, "10d"),
        (1e9, "31y"),
    ],
)
def test_spans(seconds: float | None, text: str) -> None:
    assert figures.span(seconds) == text


def test_no_figure_is_wider_than_its_column() -> None:
    for exponent in range(-4, 15):
        for factor in (1.0, 1.2345, 9.9949, 9.9951, 9.99999):
            number = factor * 10.0**exponent
            assert len(figures.rate(number)) <= 5, number
            assert len(figures.count(number)) <= 5, number
            assert len(figures.span(min(number, 3e10))) <= 5, number


def test_bars() -> None:
    assert figures.bars([], 3) == "   "
    assert figures.bars([0.0, 0.0], 3) == " ▁▁"
    assert figures.bars([9.0, 1.0, 8.0, 0.0], 3) == "▂█▁"
    assert figures.bars([0.001, 100.0], 2) == "▂█", "what is not 0 is seen"


@pytest.mark.contract("CLI-06")
def test_text_that_does_not_fit() -> None:
    assert figures.fitted("abcdef", 6) == "abcdef"
    assert figures.fitted("abcdefg", 6) == "abcde…"
    assert figures.fitted("\x1b[2J", 20) == "\\x1b[2J"
    assert figures.fitted("中文中文", 6) == "中文 …"
    assert "\x1b" not in figures.fitted("\x1b" * 100, 6)
