from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp import _single_flight
from pytest_ctxfp._locks import LockFile, ProcessLock, make_lock, remove_stale_locks
from pytest_ctxfp._loop import may_wait, run_without_loop
from pytest_ctxfp._single_flight import SingleFlight
from pytest_ctxfp._store import TraceStore

if TYPE_CHECKING:
    from pathlib import Path

NAME = "a" * 40
HOLDER = """
import sys, time
from pathlib import Path
from pytest_ctxfp._locks import LockFile
lock = LockFile(Path(sys.argv[1]))
assert lock.try_acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def flights(tmp_path: Path) -> SingleFlight:
    """Return what lets one call at a time be made, over a folder."""
    return SingleFlight(TraceStore(tmp_path, "auto"))


def lock_files(folder: Path) -> list[str]:
    """Return the names of the lock files."""
    return sorted(path.name for path in (folder / ".locks").iterdir())


def test_a_lock_is_had_by_one(tmp_path):
    """A second lock of the same file, in this process too, is refused until the first is released."""
    first, second = LockFile(tmp_path / "x.lock"), LockFile(tmp_path / "x.lock")
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()
    second.release()
    assert list(tmp_path.iterdir()) == []


def test_a_waiter_gets_no_lock_of_a_removed_file(tmp_path):
    """Of many threads that take a lock and remove its file in turn never two have it at once."""
    path, running, overlaps = tmp_path / "x.lock", [], []

    def take_turns() -> None:
        for _ in range(200):
            lock = LockFile(path)
            while not lock.try_acquire():
                pass
            overlaps.extend(running)
            running.append(1)
            running.pop()
            lock.release()

    threads = [threading.Thread(target=take_turns) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert overlaps == []
    assert list(tmp_path.iterdir()) == []


def test_a_killed_holder_lets_go(tmp_path, flights):
    """The lock of a killed process is free at once, and its file is used again and removed."""
    (tmp_path / ".locks").mkdir()
    command = [sys.executable, "-c", HOLDER, str(tmp_path / ".locks" / f"{NAME}.lock")]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    killer = threading.Timer(0.2, os.kill, (holder.pid, signal.SIGKILL))
    killer.start()

    async def ask() -> bool:
        async with flights.hold(NAME, 30) as flight:
            return flight.is_sole

    started = time.monotonic()
    assert run_without_loop(ask())
    assert 0.1 < time.monotonic() - started < 10
    holder.communicate()
    assert lock_files(tmp_path) == []


def test_stale_lock_files_are_removed(tmp_path):
    """Files of locks that nobody has are removed; one that is held stays, and so does any other file."""
    for name in ("old.lock", "notes"):
        (tmp_path / name).touch()
    held = LockFile(tmp_path / "held.lock")
    assert held.try_acquire()
    remove_stale_locks(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held.lock", "notes"]
    assert not LockFile(tmp_path / "held.lock").try_acquire()
    held.release()


def test_a_file_system_without_locks_is_an_error_of_the_system(tmp_path, monkeypatch):
    """However filelock says that no lock can be had, the caller learns of it as of a disk that fails."""
    lock = LockFile(tmp_path / "x.lock")
    for error in (NotImplementedError("no flock"), UserWarning("no flock"), OSError("no flock")):
        monkeypatch.setattr(type(lock._lock), "acquire", lambda *_, error=error, **__: _raise(error))
        with pytest.raises(OSError, match="no flock"):
            lock.try_acquire()


def _raise(error: Exception) -> None:
    raise error


def test_without_filelock_one_process_keeps_its_tasks_apart(tmp_path, flights, monkeypatch):
    """Where filelock is not installed, tasks still take turns, and no folder of locks is made."""
    monkeypatch.setitem(sys.modules, "filelock", None)
    first, second = make_lock(tmp_path / ".locks", NAME), make_lock(tmp_path / ".locks", NAME)
    assert isinstance(first, ProcessLock)
    assert first.try_acquire()
    assert not second.try_acquire()
    second.release()
    assert not second.try_acquire()
    first.release()
    seen = []

    async def ask() -> bool:
        async with flights.hold(NAME) as flight:
            seen.append("in")
            await asyncio.sleep(0.01)
            seen.append("out")
            return flight.is_sole

    async def ask_all() -> list[bool]:
        return await asyncio.wait_for(asyncio.gather(*(ask() for _ in range(3))), 30)

    assert asyncio.run(ask_all()) == [True] * 3
    assert seen == ["in", "out"] * 3
    assert list(tmp_path.iterdir()) == []


def test_filelock_waits_until_the_first_miss(tmp_path):
    """Importing what resolves cases loads no filelock."""
    code = "import sys, pytest_ctxfp._runner; assert 'filelock' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


@pytest.mark.parametrize("mode", ["refresh", "replay", "off"])
def test_other_modes_take_no_lock(tmp_path, mode):
    """Where no stored answer is used, or no call made, nothing is locked and no folder made."""
    flights = SingleFlight(TraceStore(tmp_path / "x", mode))

    async def ask() -> bool:
        async with flights.hold(NAME) as flight:
            return flight.is_sole

    assert not run_without_loop(ask())
    assert list(tmp_path.iterdir()) == []


def test_tasks_of_one_loop_take_turns(flights):
    """Tasks that ask at once in one loop neither overlap nor deadlock."""
    running, most = 0, 0

    async def ask() -> bool:
        nonlocal running, most
        async with flights.hold(NAME) as flight:
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return flight.is_sole

    async def ask_all() -> list[bool]:
        return await asyncio.wait_for(asyncio.gather(*(ask() for _ in range(8))), 30)

    assert asyncio.run(ask_all()) == [True] * 8
    assert most == 1


def test_threads_take_turns(flights):
    """Threads that call a sync helper at once take turns too."""
    running, overlaps = [], []

    async def ask() -> None:
        async with flights.hold(NAME):
            overlaps.extend(running)
            running.append(1)
            time.sleep(0.01)
            running.pop()

    threads = [threading.Thread(target=lambda: run_without_loop(ask())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert overlaps == []


def test_a_call_does_not_wait_for_itself(flights):
    """A call made within the same call, in a task of it as well, goes on at once."""

    async def ask(depth: int) -> bool:
        async with flights.hold(NAME, 20) as flight:
            if depth:
                [inner] = await asyncio.gather(ask(depth - 1))
                return flight.is_sole and not inner
            return flight.is_sole

    started = time.monotonic()
    assert asyncio.run(ask(1))
    assert time.monotonic() - started < 5


def test_a_hanging_holder_is_waited_for_so_long_only(tmp_path, flights):
    """After the timeout of the case the call is made all the same, and a note says why."""
    (tmp_path / ".locks").mkdir()
    holder = LockFile(tmp_path / ".locks" / f"{NAME}.lock")
    assert holder.try_acquire()

    async def ask() -> _single_flight.Flight:
        async with flights.hold(NAME, 0.1) as flight:
            return flight

    flight = run_without_loop(ask())
    assert not flight.is_sole
    assert flight.note == (
        "another process has been asking the same for 0.1 s: it was not waited for any longer"
    )
    assert not LockFile(tmp_path / ".locks" / f"{NAME}.lock").try_acquire()
    holder.release()


def test_without_a_timeout_ten_minutes_are_waited(tmp_path, flights, monkeypatch):
    """A call without a timeout waits for ten minutes and then says so."""
    (tmp_path / ".locks").mkdir()
    holder = LockFile(tmp_path / ".locks" / f"{NAME}.lock")
    assert holder.try_acquire()
    now = [0.0]
    monkeypatch.setattr(_single_flight.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(_single_flight.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    async def ask() -> str | None:
        async with flights.hold(NAME) as flight:
            return flight.note

    assert "for 10 minutes" in run_without_loop(ask())
    assert 600 <= now[0] < 601
    holder.release()


def test_a_folder_that_takes_no_lock_is_no_error(tmp_path):
    """Where the folder can't be made, or a file can't be locked, calls go on side by side."""
    (tmp_path / "file").touch()

    async def ask(flights: SingleFlight) -> bool:
        async with flights.hold(NAME) as flight:
            return flight.is_sole

    assert not run_without_loop(ask(SingleFlight(TraceStore(tmp_path / "file", "auto"))))
    (tmp_path / "traces" / ".locks" / f"{NAME}.lock").mkdir(parents=True)
    assert not run_without_loop(ask(SingleFlight(TraceStore(tmp_path / "traces", "auto"))))


def test_an_error_releases_the_lock(tmp_path, flights):
    """A call that fails lets the next one have its turn."""

    async def fail() -> None:
        async with flights.hold(NAME):
            raise RuntimeError("busy")

    with pytest.raises(RuntimeError, match="busy"):
        run_without_loop(fail())
    assert lock_files(tmp_path) == []


def test_where_a_coroutine_may_wait():
    """It may in a running loop, and not where it is driven to its end at once, inside of a loop or not."""

    async def tell() -> bool:
        return may_wait()

    async def tell_all() -> tuple[bool, bool, bool]:
        return await tell(), run_without_loop(tell()), await asyncio.create_task(tell())

    assert not run_without_loop(tell())
    assert asyncio.run(tell_all()) == (True, False, True)

    async def start_a_loop() -> bool:
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(tell())
        finally:
            loop.close()

    assert run_without_loop(start_a_loop())
