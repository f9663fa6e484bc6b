"""The places of an adapter's clients: who has one, what it shows, and that nobody outlives its process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from equeue_core import QueueClosed, Store, _watch
from equeue_core._store import _roster
from equeue_core.storage import Place, Roster, Space, SpaceId, Txn, in_operation
from tests.contract.helpers import WATCHDOG
from tests.core._forked import Line, forked

SPACE = SpaceId.RQ


@pytest.fixture
def roster(path: Path) -> Iterator[Roster]:
    path.mkdir()
    roster = Roster(str(path / "clients"))
    yield roster
    roster.close()


@pytest.fixture
def other(roster: Roster) -> Iterator[Roster]:
    """The same places, as another process sees them."""
    other = Roster(roster.path)
    yield other
    other.close()


class TestPlaces:
    def test_what_is_shown_is_seen_by_others(self, roster: Roster, other: Roster) -> None:
        place = roster.take()
        place.write(b"first")
        place.write(b"second")
        assert other.present() == [(place.number, b"second")]
        assert roster.present() == other.present()

    def test_nobody_gets_a_place_that_is_taken(self, roster: Roster, other: Roster) -> None:
        places = [roster.take(), other.take(), roster.take(), other.take()]
        assert sorted(place.number for place in places) == [0, 1, 2, 3]

    def test_a_place_that_was_left_is_given_again(self, roster: Roster, other: Roster) -> None:
        first, second = roster.take(), roster.take()
        first.write(b"gone")
        first.give_back()
        first.give_back()
        first.write(b"too late")
        assert not other.is_alive(first.number)
        second.write(b"")
        assert other.present() == [(second.number, b"")]
        again = other.take()
        assert again.number == first.number
        assert other.record(again.number) == b"gone"

    def test_a_place_that_is_forgotten_is_left(self, roster: Roster, other: Roster) -> None:
        roster.take()
        assert other.present() == []

    def test_the_longest_record_leaves_the_call_alone(self, roster: Roster, other: Roster) -> None:
        place = roster.take()
        other.call(place.number, 7)
        place.write(b"x" * _roster.RECORD)
        assert other.record(place.number) == b"x" * _roster.RECORD
        assert place.called() == 7

    def test_all_can_be_taken(self, roster: Roster, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_roster, "PLACES", 3)
        places = [roster.take() for _ in range(3)]
        with pytest.raises(BlockingIOError):
            roster.take()
        places.pop()
        assert roster.take().number == 2

    def test_threads_get_places_of_their_own(self, roster: Roster) -> None:
        places: list[Place] = []
        start = threading.Barrier(4)

        def take() -> None:
            start.wait()
            places.extend(roster.take() for _ in range(50))

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(place.number for place in places) == list(range(200))

    def test_a_torn_record_is_not_shown(self, roster: Roster, other: Roster) -> None:
        place = roster.take()
        place.write(b"a record")
        with open(roster.path, "r+b") as file:
            file.seek(_roster._HEADER + 8)
            file.write(b"A")
        assert other.present() == [(place.number, b"")]


class TestCalls:
    def test_a_call_is_heard_by_its_client_and_noticed_by_all(
        self, roster: Roster, other: Roster
    ) -> None:
        place, beside = roster.take(), roster.take()
        assert place.calls == beside.calls == 0
        other.call(place.number, 123456789012345)
        assert place.calls == beside.calls == other.take().calls == 1
        assert place.called() == 123456789012345
        assert beside.called() == 0


class TestProcesses:
    def test_a_process_that_is_killed_has_left(self, path: Path) -> None:
        def child(line: Line) -> None:
            with Store(path, sync="off") as store:
                place = Space(store, SPACE).roster.take()
                place.write(b"the child")
                line.say("seated")
                line.hear()

        with Store(path, sync="off") as store, forked(child) as process:
            assert process.hear() == "seated"
            roster = Space(store, SPACE).roster
            assert [record for _, record in roster.present()] == [b"the child"]
            process.kill()
            assert roster.present() == []

    def test_a_forked_child_has_none_of_its_parents_places(self, path: Path) -> None:
        with Store(path, sync="off") as store:
            space = Space(store, SPACE)
            place = space.roster.take()
            place.write(b"the parent")

            def child(line: Line) -> None:
                mine = space.roster.take()
                mine.write(b"the child")
                place.write(b"not mine")
                place.give_back()
                line.say(str(mine.number))
                line.hear()

            with forked(child) as process:
                assert process.hear() != str(place.number)
                present = [record for _, record in space.roster.present()]
                assert sorted(present) == [b"the child", b"the parent"]

    def test_a_parents_place_does_not_live_on_in_its_child(self, path: Path) -> None:
        def parent(line: Line) -> None:
            with Store(path, sync="off") as store:
                place = Space(store, SPACE).roster.take()
                place.write(b"the parent")

                def child(inner: Line) -> None:
                    line.say("seated")
                    os.read(line.reading, 1)

                with forked(child):
                    os.kill(os.getpid(), 9)

        with forked(parent) as process:
            assert process.hear() == "seated"
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            with Store(path, sync="off") as store:
                assert Space(store, SPACE).roster.present() == []


class TestSpace:
    def test_a_claim_takes_what_it_finds(self, store: Store) -> None:
        space = Space(store, SPACE)

        def take(txn: Txn) -> bytes | None:
            found = space.get(txn, b"k")
            if found is not None:
                space.delete(txn, b"k")
            return found

        def put(txn: Txn) -> None:
            space.put(txn, b"k", b"value")
            space.announce(txn, b"k")

        assert space.claim([b"k"], take, 0.0) is None
        space.write(put)
        assert space.claim([b"k"], take) == b"value"
        taken: list[bytes | None] = []
        threads = [
            threading.Thread(target=lambda: taken.append(space.claim([b"k"], take, WATCHDOG)))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for _ in range(3):
            while space.read(lambda txn: space.get(txn, b"k")) is not None:
                pass
            space.write(put)
        for thread in threads:
            thread.join()
        assert taken == [b"value"] * 3

    def test_all_that_wait_can_be_woken(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_watch, "BACKSTOP", WATCHDOG)  # it would look by itself
        space = Space(store, SPACE)
        looks: list[str] = []

        def wait() -> None:
            with pytest.raises(QueueClosed):
                space.wait([b"k"], lambda txn: looks.append("look"), WATCHDOG)

        waits = threading.Thread(target=wait)
        waits.start()
        while len(looks) < 2:  # the second one is made with the waiter registered
            pass
        before = len(looks)
        space.write(space.announce_to_all)
        while len(looks) == before:
            pass
        space.close()
        waits.join()

    def test_an_operation_is_in_hand_while_it_runs(self, store: Store) -> None:
        space = Space(store, SPACE)
        assert not in_operation()
        assert space.read(lambda txn: in_operation())
        assert space.write(lambda txn: in_operation())
        elsewhere: list[bool] = []

        def ask(txn: Txn) -> None:
            thread = threading.Thread(target=lambda: elsewhere.append(in_operation()))
            thread.start()
            thread.join()

        space.read(ask)
        assert elsewhere == [False]
        assert not in_operation()
