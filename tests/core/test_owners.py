"""Owners: kernel locks and life FIFOs, between real processes."""

from __future__ import annotations

import fcntl
import gc
import os
import random
import select
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from equeue_core._store import _owner_locks
from equeue_core._store._bells import Bells
from equeue_core._store._owners import WATCHED, Owners
from equeue_core._store._wait_poller import EpollPoller, NapPoller, Poller, SelectorPoller
from tests.contract.helpers import WATCHDOG
from tests.core._forked import Forked, Line, forked

POLLERS: dict[str, Callable[[], Poller]] = {
    "poll": partial(SelectorPoller, selectors.PollSelector),
    "naps": NapPoller,
}
if hasattr(select, "epoll"):
    POLLERS["epoll"] = EpollPoller

FIFO_POLLERS = [name for name in POLLERS if name != "naps"]

needs_fifos = pytest.mark.parametrize("make", FIFO_POLLERS, indirect=True)
only_epoll = pytest.mark.parametrize(
    "make", [name for name in POLLERS if name == "epoll"], indirect=True
)

Make = Callable[[], Owners]


@pytest.fixture(params=["ofd", "posix"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of lock. POSIX locks belong to the process, which then opens the file once."""
    kind: str = request.param
    if kind == "posix":
        monkeypatch.setattr(_owner_locks, "_SETLK", fcntl.F_SETLK)
        monkeypatch.setattr(_owner_locks, "_GETLK", fcntl.F_GETLK)
    elif not hasattr(fcntl, "F_OFD_SETLK"):
        pytest.skip("no open file description locks")
    return kind


@pytest.fixture(params=POLLERS)
def make(request: pytest.FixtureRequest, tmp_path: Path, locks: str) -> Make:
    """Makes the owners of one store, as a process that opens it does."""

    def new() -> Owners:
        owners = Owners(
            os.fspath(tmp_path / "owners"), os.fspath(tmp_path / "bell"), POLLERS[request.param]
        )
        owners.open()
        return owners

    return new


@pytest.fixture
def owners(make: Make) -> Iterator[Owners]:
    owners = make()
    yield owners
    owners.close()


def live(line: Line, make: Make, owner_id: int) -> None:
    """Be an owner until told to end."""
    owners = make()
    owners.become(owner_id)
    line.say("alive")
    assert line.hear() == "close"
    owners.close()
    line.say("closed")
    line.hear()


def started(child: Forked) -> Forked:
    assert child.hear() == "alive"
    return child


def until_dead(owners: Owners, owner_id: int) -> None:
    """Wait for the event, where there is one."""
    if owners.watch_fd >= 0:
        ready, _, _ = select.select([owners.watch_fd], [], [], WATCHDOG)
        assert ready, "nothing told of the death"
    found = owners.dead()
    if owners.is_alive(owner_id):  # its descriptors are still being closed
        assert found == [owner_id]
        while owners.is_alive(owner_id):
            os.sched_yield()
        found = owners.dead()
    assert found == [owner_id]
    assert owners.dead() == []


class TestAlive:
    def test_nobody(self, owners: Owners) -> None:
        assert owners.owner_id is None
        assert not owners.is_alive(1)

    def test_oneself(self, owners: Owners) -> None:
        owners.become(7)
        assert owners.owner_id == 7
        assert owners.is_alive(7)
        assert not owners.is_alive(6)
        assert not owners.is_alive(8)

    @pytest.mark.parametrize("owner_id", [1, 2, 1 << 40, 1 << 62])
    def test_another_process_until_it_is_killed(
        self, owners: Owners, make: Make, owner_id: int
    ) -> None:
        with forked(live, make, owner_id) as child:
            started(child)
            assert owners.is_alive(owner_id)
            child.kill()
            assert not owners.is_alive(owner_id)

    def test_another_process_until_it_closes(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            child.say("close")
            assert child.hear() == "closed"
            assert not owners.is_alive(5)

    def test_a_stopped_process_is_alive(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            os.kill(child.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, child.pid, os.WSTOPPED)
            assert owners.is_alive(5)
            owners.watch([5])
            assert owners.dead() == []

    def test_a_number_that_is_taken_is_refused(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            with pytest.raises(BlockingIOError):
                owners.become(5)
            assert owners.owner_id is None
            owners.become(6)
            assert owners.is_alive(5)
            owners.watch([5])
            assert owners.dead() == []
            child.kill()
            until_dead(owners, 5)

    @pytest.mark.parametrize("owner_id", [0, -1, (1 << 62) + 1])
    def test_a_number_out_of_range(self, owners: Owners, owner_id: int) -> None:
        with pytest.raises(ValueError, match="between 1 and"):
            owners.become(owner_id)

    def test_only_one_number(self, owners: Owners) -> None:
        owners.become(5)
        with pytest.raises(ValueError, match="owner 5 already"):
            owners.become(6)

    @needs_fifos
    def test_a_full_disk_is_no_obstacle(
        self, owners: Owners, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "mkfifo", full)
            owners.become(5)
        assert owners.owner_id == 5

    @needs_fifos
    def test_files_are_private(self, owners: Owners) -> None:
        owners.become(5)
        life = os.path.join(owners.directory, "life-5")
        for path, mode in ((owners.path, 0o600), (life, 0o600), (owners.directory, 0o700)):
            assert stat.S_IMODE(os.stat(path).st_mode) == mode

    @needs_fifos
    def test_the_lock_outlasts_no_hang_up(self, owners: Owners, locks: str) -> None:
        owners.become(5)
        if locks == "posix":
            assert owners._outlasting is None
        else:
            assert owners._outlasting is not None
            assert owners._life is not None
            assert owners._outlasting.fileno() > owners._life.fileno()
        owners.close()
        assert owners._outlasting is None


class TestPresence:
    def test_alone(self, owners: Owners) -> None:
        assert not owners.others_present()
        with owners.exclusive_presence():
            assert not owners.others_present()

    def test_with_another(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            assert owners.others_present()
            with pytest.raises(BlockingIOError), owners.exclusive_presence():
                pytest.fail("another process is present")
            child.kill()
            assert not owners.others_present()
            with owners.exclusive_presence():
                pass

    def test_a_refused_request_gives_nothing_up(self, owners: Owners, make: Make) -> None:
        def look(line: Line) -> None:
            other = make()
            line.say(str(other.others_present()))
            line.hear()
            with pytest.raises(BlockingIOError), other.exclusive_presence():
                pass
            line.say(str(other.others_present()))

        with forked(look) as child:
            assert child.hear() == "True"
            with pytest.raises(BlockingIOError), owners.exclusive_presence():
                pass
            child.say("go on")
            assert child.hear() == "True"

    def test_others_are_kept_out_meanwhile(self, owners: Owners, make: Make) -> None:
        def try_to_open(line: Line) -> None:
            line.hear()
            with pytest.raises(BlockingIOError):
                make()
            line.say("refused")
            line.hear()
            _here = make()
            line.say("opened")
            line.hear()

        with forked(try_to_open) as child:
            with owners.exclusive_presence():
                child.say("try")
                assert child.hear() == "refused"
            child.say("again")
            assert child.hear() == "opened"
            assert owners.others_present()

    def test_opening_again_changes_nothing(self, owners: Owners) -> None:
        owners.open()
        assert not owners.others_present()


class TestWatch:
    def test_a_kill(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            owners.watch([5])
            assert owners.dead() == []
            child.kill()
            until_dead(owners, 5)

    @only_epoll
    def test_the_event_comes_once(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            owners.watch([5])
            assert not select.select([owners.watch_fd], [], [], 0)[0]
            child.kill()
            until_dead(owners, 5)
            assert not select.select([owners.watch_fd], [], [], 0)[0]

    def test_closing_is_told_as_well(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            owners.watch([5])
            child.say("close")
            assert child.hear() == "closed"
            assert owners.dead() == [5]

    def test_who_was_dead_before(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            child.kill()
        owners.watch([5, 6])
        assert sorted(owners.dead()) == [5, 6]
        assert owners.dead() == []

    def test_who_is_not_watched_any_more(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as first, forked(live, make, 6) as second:
            started(first)
            started(second)
            owners.watch([5, 6])
            owners.watch([6])
            first.kill()
            assert owners.dead() == []
            second.kill()
            until_dead(owners, 6)

    def test_oneself_is_not_watched(self, owners: Owners) -> None:
        owners.become(5)
        owners.watch([5])
        assert owners.dead() == []

    @needs_fifos
    def test_without_a_life_fifo_the_lock_tells(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            os.unlink(os.path.join(owners.directory, "life-5"))
            owners.watch([5])
            for _ in range(3):
                assert owners.dead() == []
            child.kill()
            assert owners.dead() == [5]

    @needs_fifos
    def test_a_life_fifo_that_nobody_writes_does_not_spin(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            life = os.path.join(owners.directory, "life-5")
            os.unlink(life)
            os.mkfifo(life)
            owners.watch([5])
            if owners.watch_fd >= 0:
                assert not select.select([owners.watch_fd], [], [], 0)[0]
            assert owners.dead() == []
            child.kill()
            assert not owners.is_alive(5)

    @needs_fifos
    def test_a_hang_up_with_the_lock_held_is_told_now_and_again(
        self, owners: Owners, make: Make
    ) -> None:
        def hang_up(line: Line) -> None:
            other = make()
            other.become(5)
            line.say("alive")
            line.hear()
            assert other._life is not None
            other._life.close()
            line.say("hung up")
            line.hear()

        with forked(hang_up) as child:
            started(child)
            owners.watch([5])
            child.say("hang up")
            assert child.hear() == "hung up"
            assert owners.dead() == [5]
            assert owners.is_alive(5)
            assert owners.dead() == []
            child.kill()
            assert owners.dead() == [5]

    @needs_fifos
    def test_more_than_can_be_watched(self, owners: Owners, make: Make) -> None:
        def live_many(line: Line) -> None:
            mine = [make() for _ in range(WATCHED + 2)]
            for owner_id, one in enumerate(mine, 1):
                one.become(owner_id)
            line.say("alive")
            line.hear()

        if _owner_locks._SETLK == fcntl.F_SETLK:
            pytest.skip("such locks would all be one process's")
        with forked(live_many) as child:
            started(child)
            everyone = list(range(1, WATCHED + 3))
            owners.watch(everyone)
            assert len(owners._watched) == WATCHED
            assert owners.dead() == []
            child.kill()
            assert [owner_id for owner_id in everyone if owners.is_alive(owner_id)] == []
            found = set(owners.dead())
            while len(found) < WATCHED:  # an event at a time, or a few
                found.update(owners.dead())
            owners.watch(everyone[WATCHED:])
            assert owners.dead() == everyone[WATCHED:]

    @only_epoll
    def test_a_death_wakes_a_waiter(self, owners: Owners, make: Make) -> None:
        bells = Bells(owners.directory)
        with forked(live, make, 5) as child:
            started(child)
            owners.watch([5])
            with bells.waiter(jobs=(1,), extra_fd=owners.watch_fd) as waiter:
                waiter.register()
                assert not waiter.wait(0)
                child.kill()
                assert waiter.wait(WATCHDOG)
                until_dead(owners, 5)
                assert not waiter.wait(0)
                waiter.leave()
        bells.close()

    @needs_fifos
    def test_forgetting_removes_the_fifo(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as child:
            started(child)
            owners.watch([5])
            child.kill()
        assert os.listdir(owners.directory) == ["life-5"]
        owners.forget(5)
        owners.forget(5)
        assert os.listdir(owners.directory) == []
        assert owners.dead() == []

    @needs_fifos
    def test_closing_removes_ones_own(self, owners: Owners) -> None:
        owners.become(5)
        owners.close()
        owners.close()
        assert os.listdir(owners.directory) == []


class TestFork:
    def test_the_lock_stays_with_the_parent(self, owners: Owners, make: Make, locks: str) -> None:
        owners.become(5)

        def child(line: Line) -> None:
            owners.drop()
            assert owners.owner_id is None
            fresh = make()
            assert fresh.is_alive(5)
            assert fresh.others_present()
            fresh.become(6)
            line.say("dropped")
            line.hear()

        with forked(child) as process:
            assert process.hear() == "dropped"
            assert owners.is_alive(6)
        assert not owners.is_alive(6)

        def look(line: Line) -> None:
            owners.drop()
            line.say(str(make().is_alive(5)))

        with forked(look) as process:
            assert process.hear() == "True"

    def test_a_child_that_dropped_does_not_keep_its_parent_alive(
        self, owners: Owners, make: Make
    ) -> None:
        def parent(line: Line) -> None:
            mine = make()
            mine.become(5)
            with forked(child, mine) as process:
                assert process.hear() == "dropped"
                line.say(str(process.pid))
                line.hear()

        def child(line: Line, inherited: Owners) -> None:
            inherited.drop()
            line.say("dropped")
            line.hear()

        with forked(parent) as process:
            grandchild = int(process.hear())
            owners.watch([5])
            assert owners.is_alive(5)
            process.kill()
            until_dead(owners, 5)
            os.kill(grandchild, signal.SIGKILL)

    def test_the_parents_watch_goes_on(self, owners: Owners, make: Make) -> None:
        with forked(live, make, 5) as other:
            started(other)
            owners.watch([5])

            def child(line: Line) -> None:
                owners.drop()
                line.say("dropped")

            with forked(child) as process:
                assert process.hear() == "dropped"
                process.wait()
            assert owners.dead() == []
            other.kill()
            until_dead(owners, 5)


class InterruptedHereError(Exception):
    pass


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise InterruptedHereError


class TestAsyncExceptions:
    """A signal handler that raises, at any point of becoming an owner, watching and closing."""

    ROUNDS = 1500

    def test_no_owner_without_its_lock(self, make: Make, owners: Owners) -> None:
        with forked(live, make, 1) as other:
            started(other)
            with forked(self._bombarded, make, owners) as child:
                assert child.hear() == "done"
                assert child.wait() == 0
            assert owners.is_alive(1)

    @classmethod
    def _bombarded(cls, line: Line, make: Make, parents: Owners) -> None:
        sys.unraisablehook = lambda _: None  # its record would keep what it saw alive
        parents.drop()
        gc.collect()
        before = os.listdir("/proc/self/fd")
        signal.signal(signal.SIGALRM, _interrupt)
        chance = random.Random(5)
        hits, number = 0, 10
        owners: Owners | None = None
        while hits < cls.ROUNDS:
            owners = None
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.random() * 0.0003 + 1e-6)
                    for _ in range(20):
                        number += 1
                        owners = make()
                        owners.become(number)
                        owners.watch([1, 2])
                        assert owners.dead() == [2]
                        owners.close()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except InterruptedHereError:
                hits += 1
                if owners is not None and owners.owner_id is not None:
                    cls._prove(owners)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        del owners
        gc.collect()
        assert os.listdir("/proc/self/fd") == before
        line.say("done")

    @staticmethod
    def _prove(owners: Owners) -> None:
        """Whoever thinks that it is an owner holds the lock."""
        assert owners.owner_id is not None
        number = os.open(owners.path, os.O_RDWR)
        try:
            if _owner_locks._SETLK != fcntl.F_SETLK:
                assert _owner_locks.is_locked(number, owners.owner_id)
        finally:
            os.close(number)


UNSHARE = ("unshare", "--pid", "--fork", "--kill-child")


def _can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not _can_unshare(), reason="may not make pid namespaces")
class TestPidNamespaces:
    SCRIPT = textwrap.dedent(
        """
        import os, sys
        from equeue_core._store._bells import Bells
        from equeue_core._store._owners import Owners
        path, directory, own, other = sys.argv[1:]
        owners = Owners(path, directory)
        owners.open()
        owners.become(int(own))
        assert os.getpid() == 1
        print("alive", flush=True)
        sys.stdin.readline()
        assert owners.is_alive(int(other)) and owners.others_present()
        owners.watch([int(other)])
        with Bells(directory).waiter(jobs=(1,), extra_fd=owners.watch_fd) as waiter:
            waiter.register()
            print("watching", flush=True)
            while int(other) not in owners.dead():
                waiter.wait(None)
        print("dead", flush=True)
        """
    )

    def test_each_sees_the_others_death(self, tmp_path: Path) -> None:
        first, second = self._start(tmp_path, 1, 2), self._start(tmp_path, 2, 1)
        try:
            for process in (first, second):
                assert self._hear(process) == "alive"
            for process in (first, second):
                assert process.stdin is not None
                process.stdin.write("look\n")
                process.stdin.flush()
                assert self._hear(process) == "watching"
            # --kill-child takes the namespace's own first process along.
            first.kill()
            assert self._hear(second) == "dead"
            assert second.wait(WATCHDOG) == 0
        finally:
            for process in (first, second):
                process.kill()
                process.communicate()

    def _start(self, directory: Path, own: int, other: int) -> subprocess.Popen[str]:
        arguments = map(str, (directory / "owners", directory / "bell", own, other))
        return subprocess.Popen(
            [*UNSHARE, sys.executable, "-c", self.SCRIPT, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=os.fspath(Path(__file__).parents[2]),
        )

    @staticmethod
    def _hear(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], WATCHDOG)
        assert ready, "nothing was said"
        return process.stdout.readline().strip()
