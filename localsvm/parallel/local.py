"""Worker processes on this machine."""

from __future__ import annotations

import os
import queue
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any

from threadpoolctl import threadpool_limits

from localsvm.errors import RunError
from localsvm.store.outputs import signals_held

THREAD_LIMITS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def cpu_count() -> int:
    """The number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


Work = Callable[[Any], Any]  # a work unit, called with the object that its worker keeps
_kept: dict[Callable[[], Any], Any] = {}  # what this worker process keeps between work units, by its maker


class LocalPool:
    """Runs work units in `jobs` processes, or in this one if jobs is 1. A context manager.

    Parameters
    ----------
    jobs : int
    keep : callable
        Makes an object that a worker keeps from one work unit to the next, such as its buffers. Each work unit is
        called with it.
    """

    def __init__(self, jobs: int, keep: Callable[[], Any] = dict) -> None:
        self.jobs, self._keep = jobs, keep
        self._executor: Any = None

    def __enter__(self) -> LocalPool:
        if self.jobs > 1:
            from multiprocessing import resource_tracker

            from joblib.externals.loky import ProcessPoolExecutor

            resource_tracker.ensure_running()  # before any worker, because its start would undo _signals_blocked
            self._executor = ProcessPoolExecutor(self.jobs, initializer=_start_worker, env=THREAD_LIMITS)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._executor is None:
            return
        if kind is not None:
            # loky drops work that no worker has yet and then fails to find it (KeyError in its thread)
            with suppress(queue.Empty):
                while True:
                    self._executor._work_ids.get_nowait()
        self._executor.shutdown(wait=True, kill_workers=kind is not None)

    def unordered(self, work: deque[Work]) -> Iterator[tuple[Work, Any]]:
        """Pairs (work unit, result), as they finish. The caller may append to `work` meanwhile.

        Raises
        ------
        RunError
            A worker process was killed.
        """
        if self._executor is None:
            kept = self._keep()
            while work:
                piece = work.popleft()
                with threadpool_limits(1):  # as in workers: sums by several threads round differently
                    result = piece(kept)
                yield piece, result
            return
        pending: dict[Any, Work] = {}
        while work or pending:
            with _killed_workers_told():
                while work and len(pending) < 2 * self.jobs:
                    piece = work.popleft()
                    with signals_held(), _signals_blocked():  # no signal may interrupt the start of a worker
                        pending[self._executor.submit(_do, piece, self._keep)] = piece
                done = [(pending.pop(f), f.result()) for f in wait(pending, return_when=FIRST_COMPLETED).done]
            yield from done


def _do(piece: Work, keep: Callable[[], Any]) -> Any:
    """Run a work unit in a worker."""
    if keep not in _kept:
        _kept[keep] = keep()
    return piece(_kept[keep])


@contextmanager
def _killed_workers_told() -> Iterator[None]:
    """Explain the death of a worker process."""
    try:
        yield
    except BrokenExecutor as error:
        raise RunError(
            "a worker process was killed, most likely because the memory ran out; use fewer jobs (-j), smaller cells "
            "(-c) or a bound (--memory), and go on from the finished cells with --resume"
        ) from error


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Start processes that ignore Ctrl-C and SIGTERM: they inherit the mask. Only the parent ends a run."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker() -> None:
    """Have the kernel kill this worker when its parent dies."""
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
