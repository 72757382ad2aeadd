"""Threads of one process, which work on strips of rows or parts of a tree side by side."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from localsvm.memory import affordable_threads
from localsvm.pulse import as_long_as

Result = TypeVar("Result")
SECONDS = 1.0  # of a wait: Python looks for signals before and after, but not between its look and the wait


class Threads:
    """Runs pieces of work that do not touch each other; idle threads sleep. A context manager.

    The work is cut the same way for any number of threads, and no value depends on who computes it: so results are the
    same bit for bit. The work should release the GIL most of the time, and must not start work on the same threads.
    """

    def __init__(self, count: int) -> None:
        self.count = count = affordable_threads(count)
        self._pool = ThreadPoolExecutor(count) if count > 1 else None
        self._ended = False

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def check(self) -> None:
        """End work that nobody waits for any more, as after Ctrl-C; long work calls it now and then.

        The beats of a solver (`pulse.beat`) call it.
        """
        if self._ended:
            raise InterruptedError("the work of this thread is no longer needed")

    def map(self, work: Callable[[int], Result], n: int) -> list[Result]:
        """Results of work(0), ..., work(n - 1)."""
        if self._pool is None or n <= 1:
            return [work(i) for i in range(n)]
        return [_result(done) for done in [self._pool.submit(as_long_as, self.check, work, i) for i in range(n)]]

    def strips(self, work: Callable[[int, int], None], n: int, step: int) -> None:
        """Call work(first, last) for strips of `step` rows that together cover n rows."""
        self.map(lambda i: work(i * step, min(n, (i + 1) * step)), -(-n // step))


def _result(future: Future[Result]) -> Result:
    """What the work has come to; a signal that arrives just before the wait for it is heard within SECONDS."""
    while not future.done():
        wait([future], SECONDS)
    return future.result()


ALONE = Threads(1)  # runs everything in the calling thread
