"""The threads of one process: strips of rows, or parts of a tree, side by side."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class Threads:
    """Runs pieces of work that do not touch each other; threads sleep where there is nothing to do. A context manager.

    The pieces do not depend on the number of threads, and no value depends on who computes it: bits are the same for
    any. The work should spend its time outside Python's lock, and start no work on the same threads.
    """

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def map(self, work: Callable[[int], Result], n: int) -> list[Result]:
        """[work(0), ..., work(n - 1)]."""
        if self._pool is None or n <= 1:
            return [work(i) for i in range(n)]
        return [done.result() for done in [self._pool.submit(work, i) for i in range(n)]]

    def strips(self, work: Callable[[int, int], None], n: int, step: int) -> None:
        """work(first, last) for strips of `step` rows that cover n rows."""
        self.map(lambda i: work(i * step, min(n, (i + 1) * step)), -(-n // step))


ALONE = Threads(1)  # does everything in the thread that asks
