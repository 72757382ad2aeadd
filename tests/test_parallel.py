"""The pool of worker processes: killed workers, errors in them, and nothing that they leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from localsvm import pulse
from localsvm.errors import DataError, WorkerLost
from localsvm.parallel import local, worker
from localsvm.parallel.local import NO_MEMORY, LocalPool


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
    """Cannot be sent to another process: it does not come out of its own pickle."""

    def __init__(self, first: str, second: str = "") -> None:
        super().__init__(first, second, "third")


def results(jobs: int, work: list[Callable[[Any], Any]], notes: list[str] | None = None) -> list[tuple[int, int]]:
    with LocalPool(jobs, note=None if notes is None else notes.append) as pool:
        return sorted(result for _, result in pool.unordered(deque(work)))


def test_work_is_done_once_by_other_processes(tmp_path: Path) -> None:
    found = results(3, [Number(i, tmp_path) for i in range(20)])
    assert [number for number, _ in found] == list(range(20))
    assert os.getpid() not in {process for _, process in found}
    assert results(1, [Number(0, tmp_path)]) == [(0, os.getpid())]


@dataclass(frozen=True)
class Tells:
    """Work that tells some numbers before its result, in the process that does it."""

    number: int

    def __call__(self, kept: Any) -> Generator[int, None, int]:
        yield self.number
        yield self.number + 1
        return os.getpid()


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_told_comes_before_the_result(jobs: int) -> None:
    told: dict[Any, list[int]] = {}
    with LocalPool(jobs) as pool:
        for piece, content in pool.unordered(deque(Tells(10 * i) for i in range(4))):
            told.setdefault(piece.number, []).append(content)  # type: ignore[attr-defined]
    assert {number: found[:2] for number, found in told.items()} == {10 * i: [10 * i, 10 * i + 1] for i in range(4)}
    assert all(len(found) == 3 and (found[2] == os.getpid()) == (jobs == 1) for found in told.values())


def solve_for_long(kept: Any) -> str:
    pulse.beat(7)
    pulse.beat(8)  # too soon to be told
    return "done"


def test_a_worker_tells_that_a_solver_goes_on() -> None:
    with LocalPool(2) as pool:
        assert [content for _, content in pool.unordered(deque([solve_for_long]))] == [pulse.Beat(7), "done"]


def test_a_killed_worker_costs_one_more_try_with_nothing_beside_it(tmp_path: Path) -> None:
    notes: list[str] = []
    found = results(2, [Number(i, tmp_path, deaths=int(i in (0, 5))) for i in range(8)], notes)
    told = "number {}: the worker process ended by SIGKILL; it is tried once more"
    assert sorted(notes) == [told.format(i) for i in (0, 5)]
    assert [number for number, _ in found] == list(range(8))
    for i in range(8):
        tries = (tmp_path / str(i)).read_text().splitlines()
        assert len(tries) == 1 + (i in (0, 5))
        assert i not in (0, 5) or tries[1] == "[]"


def test_work_that_kills_two_workers_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        WorkerLost, match=r"^number 3: .* twice by SIGKILL, most likely because the memory ran out; use"
    ):
        results(2, [Number(i, tmp_path, deaths=2 * int(i == 3)) for i in range(8)])


@dataclass(frozen=True)
class KillsAll:
    """Work that at its first try kills all workers, the idle ones as well."""

    folder: Path
    workers: frozenset[int]

    def __call__(self, kept: Any) -> str:
        tried = self.folder / "tried"
        if not tried.exists():
            tried.touch()
            others = self.workers - {os.getpid()}
            for worker in others:
                os.kill(worker, signal.SIGKILL)
            while any("Z" not in Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2] for worker in others):
                pass  # until their parent can see that they have ended
            os.kill(os.getpid(), signal.SIGKILL)
        return "done"


def test_workers_that_were_killed_while_idle_cost_no_try(tmp_path: Path) -> None:
    with LocalPool(3) as pool:
        work = KillsAll(tmp_path, frozenset(worker._process.pid for worker in pool._workers))
        assert [result for _, result in pool.unordered(deque([work]))] == ["done"]


def test_a_second_try_is_given_to_a_worker_that_began_after_the_first_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others may be about to end, which cannot be seen: their first thread has ended, another one not yet."""
    monkeypatch.setattr(local._Worker, "ended", lambda worker: False)
    test_workers_that_were_killed_while_idle_cost_no_try(tmp_path)


@dataclass(frozen=True)
class Starved:
    """Work whose worker ends as one does that has no memory for a message."""

    def __call__(self, kept: Any) -> None:
        os._exit(NO_MEMORY)


def test_workers_without_memory_are_told_as_such() -> None:
    with pytest.raises(WorkerLost, match=r"twice by lack of memory, most likely because the memory ran out; use"):
        results(2, [Starved()])


class Large:
    """A connection with a message that there is no memory for."""

    def recv_bytes(self) -> bytes:
        raise MemoryError


def test_a_worker_without_memory_for_a_message_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    worker._receive(Large(), SimpleQueue())  # type: ignore[arg-type]
    assert ended == [NO_MEMORY]


def test_a_worker_without_memory_to_begin_ends_without_a_word(tmp_path: Path) -> None:
    room = tmp_path / "localsvm" / "parallel"
    room.mkdir(parents=True)
    (room / "worker.py").write_text("raise MemoryError")
    code = local._CODE.format(path=[str(tmp_path)], socket=0)
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (NO_MEMORY, b"")


@pytest.mark.parametrize(("error", "raised"), [(DataError, DataError), (Odd, RuntimeError)])
def test_an_error_in_a_worker_is_raised_here(error: type[Exception], raised: type[Exception]) -> None:
    with pytest.raises(raised, match="of the data") as caught:
        results(2, [Raises(error)] * 5)
    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert "in __call__" in told, "the worker's traceback, for --debug"


def test_a_pool_that_is_left_early_ends_its_workers(tmp_path: Path) -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = set(children.read_text().split())  # of other tests
    with pytest.raises(KeyboardInterrupt), LocalPool(2) as pool:
        for _ in pool.unordered(deque(Number(i, tmp_path) for i in range(50))):
            raise KeyboardInterrupt
    assert set(children.read_text().split()) <= before
