"""The pool of worker processes survives killed workers, passes errors on, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsvm import pulse
from localsvm.data.blocks.shared import SharedArray
from localsvm.errors import DataError, WorkerLost
from localsvm.parallel.local import LocalPool
from localsvm.parallel.messages import Log, LogWriter


@dataclass(frozen=True)
class Number:
    """Work that gives its number; its worker is killed at the first `deaths` tries."""

    number: int
    folder: Path
    deaths: int = 0

    def __str__(self) -> str:
        return f"number {self.number}"

    def __call__(self, kept: dict[str, int]) -> tuple[int, int]:
        tries = self.folder / f"{self.number}"
        with tries.open("a") as file:
            file.write(f"{sorted(path.name for path in self.folder.glob('*.now'))}\n")
        if len(tries.read_text().splitlines()) <= self.deaths:
            os.kill(os.getpid(), signal.SIGKILL)
        now = self.folder / f"{self.number}.now"
        now.touch()
        kept["done"] = kept.get("done", 0) + 1
        now.unlink()
        return self.number, os.getpid()


@dataclass(frozen=True)
class Raises:
    """Work that fails."""

    error: type[Exception]

    def __call__(self, kept: Any) -> None:
        raise self.error("of the data")


class Odd(Exception):
    """An exception that cannot be sent to another process: it does not come out of its own pickle."""

    def __init__(self, first: str, second: str = "") -> None:
        super().__init__(first, second, "third")


def results(jobs: int, work: list[Callable[[Any], Any]], notes: list[str] | None = None) -> list[tuple[int, int]]:
    with LocalPool(jobs, note=None if notes is None else notes.append) as pool:
        return sorted(result for _, result in pool.unordered(deque(work)))


def test_work_is_done_once_by_other_processes(tmp_path: Path) -> None:
    outcomes = results(3, [Number(i, tmp_path) for i in range(20)])
    assert [number for number, _ in outcomes] == list(range(20))
    assert os.getpid() not in {process for _, process in outcomes}
    assert results(1, [Number(0, tmp_path)]) == [(0, os.getpid())]


@dataclass(frozen=True)
class Tells:
    """Work that yields two numbers before its result, the number of the process that does it."""

    number: int

    def __call__(self, kept: Any) -> Generator[int, None, int]:
        yield self.number
        yield self.number + 1
        return os.getpid()


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_told_comes_before_the_result(jobs: int) -> None:
    events: dict[Any, list[int]] = {}
    with LocalPool(jobs) as pool:
        for piece, content in pool.unordered(deque(Tells(10 * i) for i in range(4))):
            events.setdefault(piece.number, []).append(content)  # type: ignore[attr-defined]
    assert {number: values[:2] for number, values in events.items()} == {10 * i: [10 * i, 10 * i + 1] for i in range(4)}
    assert all(len(values) == 3 and (values[2] == os.getpid()) == (jobs == 1) for values in events.values())


def solve_for_long(kept: Any) -> str:
    pulse.beat(7)
    pulse.beat(8)  # too soon to be told
    return "done"


def test_a_worker_tells_that_a_solver_goes_on() -> None:
    with LocalPool(2) as pool:
        assert [content for _, content in pool.unordered(deque([solve_for_long]))] == [pulse.Beat(7), "done"]


def test_a_killed_worker_costs_one_more_try_with_nothing_beside_it(tmp_path: Path) -> None:
    notes: list[str] = []
    work = deque(Number(i, tmp_path, deaths=int(i == 0)) for i in range(4))
    outcomes = []
    with LocalPool(2, note=notes.append) as pool:
        for _, (number, _) in pool.unordered(work):  # type: ignore[arg-type]
            outcomes.append(number)
            if number == 0:  # else the death of 5 could end the first try of 0 before it kills its worker
                work.extend(Number(i, tmp_path, deaths=int(i == 5)) for i in range(4, 8))
    assert sorted(outcomes) == list(range(8))
    assert notes and all(": a worker process ended by SIGKILL; what it may have done is tried" in n for n in notes)
    for i in range(8):
        tries = (tmp_path / str(i)).read_text().splitlines()
        assert len(tries) == 2 if i in (0, 5) else len(tries) <= 1 + len(notes)
        assert i not in (0, 5) or tries[1] == "[]"


def test_no_worker_is_left_that_could_write_when_a_log_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a closed file is given away: a worker that opened it then would write into another file."""
    workers: list[int] = []
    left: list[list[int]] = []

    def close(log: Log, really: Any = Log.close) -> None:
        if log.end is None:
            left.append([pid for pid in workers if os.path.exists(f"/proc/{pid}")])
        really(log)

    monkeypatch.setattr(Log, "close", close)
    with LocalPool(2) as pool:
        workers += [each.pid for each in pool._executor._processes.values()]
        work = deque(Number(i, tmp_path, deaths=int(i == 0)) for i in range(4))
        assert sorted(number for _, (number, _) in pool.unordered(work)) == list(range(4))  # type: ignore[arg-type]
    assert left and not any(left)


def test_work_that_kills_two_workers_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        WorkerLost, match=r"^number 3: .* twice by SIGKILL, most likely because the memory ran out; use"
    ):
        results(2, [Number(i, tmp_path, deaths=2 * int(i == 3)) for i in range(8)])


@dataclass(frozen=True)
class Deadly:
    """Work that kills the worker that reads it."""

    def __reduce__(self) -> Any:
        return os.kill, (WorkerPid(), signal.SIGKILL)


class WorkerPid:
    """An object whose pickle is read as the number of the process that reads it."""

    def __reduce__(self) -> Any:
        return os.getpid, ()


def test_workers_that_die_before_they_begin_are_not_started_for_ever() -> None:
    with pytest.raises(WorkerLost, match=r"^Deadly\(\): the worker process ended twice by SIGKILL"):
        results(2, [Deadly()])  # type: ignore[list-item]


@dataclass(frozen=True)
class Sends:
    """Work with a large result, whose worker is killed so many seconds later, while it sends the result."""

    seconds: float

    def __call__(self, kept: Any) -> bytes:
        content = bytes(1 << 28)
        threading.Timer(self.seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return content


@pytest.mark.fast(1)
@pytest.mark.parametrize("seconds", [0.1, 0.15, 0.2, 0.25])
def test_a_worker_that_is_killed_while_it_sends_a_result_holds_up_nobody(seconds: float) -> None:
    with suppress(WorkerLost), LocalPool(2) as pool:  # a quick machine has sent it before
        assert [len(content) for _, content in pool.unordered(deque([Sends(seconds)]))] == [1 << 28]


def test_idle_workers_that_were_killed_are_replaced(tmp_path: Path) -> None:
    with LocalPool(2) as pool:
        for round in range(2):
            work: Any = deque(Number(10 * round + i, tmp_path) for i in range(4))
            pids = {pid for _, (_, pid) in pool.unordered(work)}
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
    assert {len((tmp_path / f"{i}").read_text().splitlines()) for i in (0, 3, 10, 13)} <= {1, 2}


def test_a_message_that_is_not_whole_waits() -> None:
    log = Log("work")
    assert not log.begun
    with LogWriter(log.path) as writer:
        assert log.begun and writer.work() == "work"
        writer.write("first")
        with open(log.path, "ab", 0) as file:
            file.write(b"\x05\0\0\0\0\0\0\0" + b"abc")
        assert [list(log.news()), list(log.news())] == [["first"], []]
    log.close()


def test_workers_print_and_read_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with LocalPool(2) as pool:
        assert [result for _, result in pool.unordered(deque([prints]))] == [0]
    assert capfd.readouterr().out == ""


def prints(kept: Any) -> int:
    return os.write(1, b"text") - len(os.read(0, 1)) - 4


@pytest.mark.parametrize(("error", "raised"), [(DataError, DataError), (Odd, RuntimeError)])
def test_an_error_in_a_worker_is_raised_here(error: type[Exception], raised: type[Exception]) -> None:
    with pytest.raises(raised, match="of the data") as caught:
        results(2, [Raises(error)] * 5)
    message = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert "in __call__" in message, "the worker's traceback, for --debug"


def test_a_process_maps_its_own_array_once() -> None:
    """A handle opened where the array was made gives the same memory, read-only; a second map would count it twice."""
    shared = SharedArray.copy(np.arange(6.0).reshape(2, 3))
    view = shared.handle().open()
    assert np.shares_memory(view, shared.array) and not view.flags.writeable
    shared.array[1, 2] = 7.0
    assert view[1, 2] == 7.0


def test_a_pool_that_is_left_early_ends_its_workers(tmp_path: Path) -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = set(children.read_text().split())  # of other tests
    with pytest.raises(KeyboardInterrupt), LocalPool(2) as pool:
        for _ in pool.unordered(deque(Number(i, tmp_path) for i in range(50))):
            raise KeyboardInterrupt
    assert set(children.read_text().split()) <= before
