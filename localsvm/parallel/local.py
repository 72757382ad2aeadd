"""Worker processes on this machine: joblib's loky, with what a run of hours needs beside it.

A worker ends with its parent, however that ends. A worker that was killed costs another try of the units that had
begun, not the run. A unit may yield things before its result.
"""

from __future__ import annotations

import os
import re
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from localsvm.blas import ONE_THREAD, one_thread
from localsvm.errors import RunError, WorkerLost
from localsvm.naming import opt
from localsvm.parallel import worker
from localsvm.parallel.messages import Log
from localsvm.store.outputs import signals_held

# A worker computes with one thread, and imports nothing from the folder in which the user is
ENVIRONMENT = ONE_THREAD | {"PYTHONSAFEPATH": "1"}
SECONDS = 0.1  # between two looks at what units yield


def cpu_count() -> int:
    """The number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


Work = Callable[[Any], Any]  # a work unit, called with the object that its worker keeps


@dataclass(frozen=True)
class _Try:
    work: Work
    log: Log


class LocalPool:
    """Runs work units in `jobs` processes, or in this one if jobs is 1. A context manager.

    Parameters
    ----------
    jobs : int
    keep : callable
        Makes an object that a worker keeps from one work unit to the next, such as its buffers. Each work unit is
        called with it.
    note : callable, optional
        Called with a text on work units that are tried once more.

    Raises
    ------
    RunError
        No process can be started.
    """

    def __init__(self, jobs: int, keep: Callable[[], Any] = dict, note: Callable[[str], None] | None = None) -> None:
        self.jobs, self._keep, self._note = jobs, keep, note
        self._executor: Any = None
        self._tries: dict[Future[None], _Try] = {}
        self._suspects: deque[Work] = deque()  # had begun when a worker was killed

    def __enter__(self) -> LocalPool:
        if self.jobs > 1:
            self._executor = _started(self.jobs)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._executor is not None:
            _end(self._executor, kill=kind is not None)
        while self._tries:
            self._tries.popitem()[1].log.close()

    def unordered(self, work: deque[Work]) -> Iterator[tuple[Work, Any]]:
        """Pairs (work unit, result), as they finish. The caller may append to `work` meanwhile.

        What a unit yields comes before its result, as (work unit, what it yields). Where a worker was killed, the units
        that had begun are tried once more, one after the other with nothing beside it, and yield all of it again.

        Raises
        ------
        WorkerLost
            A worker was killed in the second try, too.
        RunError
            No process can be started.
        """
        if self._executor is None:
            yield from self._done_here(work)
            return
        while work or self._tries or self._suspects:
            self._fill(work)
            done, _ = wait(self._tries, SECONDS, FIRST_COMPLETED)
            if any(isinstance(each.exception(), BrokenProcessPool) for each in done):
                done, _ = wait(self._tries)  # all that have no result end with this error
            for each in list(self._tries.values()):
                yield from ((each.work, message) for message in each.log.news())
            for future in done:
                if not isinstance(future.exception(), BrokenProcessPool):
                    yield self._taken(future)
            if done & self._tries.keys():
                self._lost(str(next(iter(self._tries)).exception()), work)

    def _done_here(self, work: deque[Work]) -> Iterator[tuple[Work, Any]]:
        kept = self._keep()
        while work:
            piece = work.popleft()
            steps, more = worker.steps(piece, kept), True
            while more:
                with one_thread():  # as in workers: sums by several threads round differently
                    content, more = next(steps)
                yield piece, content

    def _fill(self, work: deque[Work]) -> None:
        """Hand over as many work units as workers have room for."""
        try:
            while work and not self._suspects and len(self._tries) < 2 * self.jobs:
                self._submit(work[0])
                work.popleft()
            if self._suspects and not self._tries:
                self._submit(self._suspects[0])
        except BrokenProcessPool:  # a worker was killed; if it was idle, nobody waits for it
            if not self._tries:
                _end(self._executor, kill=True)
                self._executor = _started(self.jobs)

    def _submit(self, piece: Work) -> None:
        begun = _Try(piece, Log((piece, self._keep)))
        try:
            self._tries[self._executor.submit(worker.do, begun.log.path)] = begun
        except BaseException:
            begun.log.close()
            raise

    def _taken(self, future: Future[None]) -> tuple[Work, Any]:
        done = self._tries.pop(future)
        done.log.close()
        if self._suspects and self._suspects[0] is done.work:
            self._suspects.popleft()
        future.result()
        assert done.log.end is not None
        if done.log.end.error is not None:
            raise done.log.end.error
        return done.work, done.log.end.result

    def _lost(self, how: str, work: deque[Work]) -> None:
        """Plan the second tries after a worker was killed, and begin anew. how: the error, as loky reports it."""
        if self._suspects:
            raise WorkerLost(_explained(self._suspects[0], _cause(how)))
        # before logs are closed: the number of a closed file goes to the next one, and a worker would write into that
        _end(self._executor, kill=True)
        tries = list(self._tries.values())
        begun = [each.log.begun for each in tries]
        while self._tries:
            self._tries.popitem()[1].log.close()
        if not any(begun):
            begun[0] = True  # workers that end before they begin must not be started for ever
        for each, suspect in zip(reversed(tries), reversed(begun), strict=True):
            (self._suspects if suspect else work).appendleft(each.work)
        if self._note is not None:
            names = ", ".join(map(str, self._suspects))
            self._note(f"{names}: a worker process ended by {_cause(how)}; what it may have done is tried once more")
        self._executor = _started(self.jobs)


def _started(jobs: int) -> Any:
    """An executor whose workers have been started."""
    warnings.filterwarnings("ignore", ".*joblib will operate in serial mode", UserWarning)  # it does not: see below
    warnings.filterwarnings("ignore", "Failed to kill subprocesses", UserWarning)  # of workers, where pgrep is missing
    from joblib.externals.loky import ProcessPoolExecutor

    executor = None
    try:
        with signals_held():  # no signal may interrupt the start of a worker
            executor = ProcessPoolExecutor(jobs, initializer=worker.begin, initargs=(os.getpid(),), env=ENVIRONMENT)
            executor._call_queue._start_thread()  # else loky's own thread starts it, and dies unseen where it cannot
            with _signals_blocked():
                executor.submit(os.getpid)
    except BaseException as error:
        if executor is not None:
            _give_up(executor)
        if not isinstance(error, OSError | ImportError | NotImplementedError):  # the latter two: no semaphores
            raise
        what = f"worker processes cannot be started ({getattr(error, 'strerror', None) or error})"
        remedy = f"use fewer jobs ({opt.jobs(1)} needs none), or raise the limits of the shell or of /dev/shm"
        raise RunError(f"{what}; {remedy}") from error
    return executor


def _give_up(executor: Any) -> None:
    """End an executor that cannot start all of its workers."""
    for process in executor._processes.values():
        _kill(process)
        process.join()
    # at the end of this process its thread could be stopped amid the removal of a semaphore: loky would warn of a leak
    executor._call_queue.close()
    executor._call_queue.join_thread()


def _end(executor: Any, kill: bool) -> None:
    """End the workers.

    loky's own kill_workers fails in a thread of its own if work was handed over just before; workers that are killed
    here are to it like any that were killed.
    """
    for process in list(executor._processes.values()) if kill else ():
        _kill(process)
    executor.shutdown(wait=True)


def _kill(process: Any) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)


def _cause(text: str) -> str:
    """Signal or exit code by which a worker ended, as loky reports it."""
    if match := re.search(r"\{.*?(?:(SIG\w+)|EXIT)\((-?\d+)\)", text):
        return match[1] or f"exit code {match[2]}"
    return text.splitlines()[0]


def _explained(piece: Work, how: str) -> str:
    what = f"{piece}: the worker process ended twice by {how}"
    if how == signal.SIGKILL.name:
        return (
            f"{what}, most likely because the memory ran out; use smaller cells ({opt.cell_size}), fewer jobs "
            f"({opt.jobs}) or {opt.memory}"
        )
    return f"{what}, a mistake of localsvm or of a library, or too little memory; please report it"


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, SIGTERM and SIGALRM: they inherit the mask. Only the parent ends a run."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
