"""Worker processes of this machine."""

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
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


Work = Callable[[Any], Any]  # called with what its worker keeps
_kept: dict[Callable[[], Any], Any] = {}  # by this worker process, from piece to piece of its work


class LocalPool:
    """Does work in `jobs` processes (in this one if it is 1); a context manager.

    keep: makes what each worker keeps from piece to piece of its work, with which each piece is called.
    """

    def __init__(self, jobs: int, keep: Callable[[], Any] = dict) -> None:
        self.jobs, self._keep = jobs, keep
        self._executor: Any = None

    def __enter__(self) -> LocalPool:
        if self.jobs > 1:
            from multiprocessing import resource_tracker

            from joblib.externals.loky import ProcessPoolExecutor

            resource_tracker.ensure_running()  # by now, as it would undo _signals_blocked
            self._executor = ProcessPoolExecutor(self.jobs, initializer=_start_worker, env=THREAD_LIMITS)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._executor is None:
            return
        if kind is not None:
            # tasks not yet handed on: loky drops them and then fails to find them (KeyError in its thread)
            with suppress(queue.Empty):
                while True:
                    self._executor._work_ids.get_nowait()
        self._executor.shutdown(wait=True, kill_workers=kind is not None)

    def unordered(self, work: deque[Work]) -> Iterator[tuple[Work, Any]]:
        """(work, result) as they finish. The caller may append to `work` while it iterates."""
        if self._executor is None:
            kept = self._keep()
            while work:
                piece = work.popleft()
                with threadpool_limits(1):  # as in workers: sums of several threads round differently
                    result = piece(kept)
                yield piece, result
            return
        pending: dict[Any, Work] = {}
        while work or pending:
            with _killed_workers_told():
                while work and len(pending) < 2 * self.jobs:
                    piece = work.popleft()
                    with signals_held(), _signals_blocked():  # a worker is started whole or not at all
                        pending[self._executor.submit(_do, piece, self._keep)] = piece
                done = [(pending.pop(f), f.result()) for f in wait(pending, return_when=FIRST_COMPLETED).done]
            yield from done


def _do(piece: Work, keep: Callable[[], Any]) -> Any:
    """In a worker."""
    if keep not in _kept:
        _kept[keep] = keep()
    return piece(_kept[keep])


@contextmanager
def _killed_workers_told() -> Iterator[None]:
    try:
        yield
    except BrokenExecutor as error:
        raise RunError(
            "a worker process was killed, most likely because the memory ran out; use fewer jobs (-j), smaller cells "
            "(-c) or a bound (--memory), and go on from the finished cells with --resume"
        ) from error


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """For processes that are started meanwhile: they inherit the mask, and to end a run is the parent's business."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker() -> None:
    """A worker does not outlive its parent."""
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
