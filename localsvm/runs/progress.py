"""Progress of a run: who is told of it, and the time that its phases take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Observer(Protocol):
    """Is told how a run goes on; the command line draws its progress from it."""

    def phase(self, name: str) -> None:
        """A phase begins: partition, train, write."""

    def cells(self, total: int, done: int) -> None:
        """Training begins: so many cells, of which so many came from an interrupted run."""

    def work(self, share: float, settings: int) -> None:
        """This share of the run's work is done, as far as can be foretold; a part of it are so many settings that are
        scored of cells which are not finished (of few or of large cells alone).
        """

    def cell_done(self, wrong: float, weight: float) -> None:
        """A cell is finished; wrong of its weight was decided wrongly when held out (weight 0: nothing was)."""

    def note(self, text: str) -> None:
        """Something the user should know."""


class Silent:
    """An observer that says nothing."""

    def phase(self, name: str) -> None:
        """Say nothing."""

    def cells(self, total: int, done: int) -> None:
        """Say nothing."""

    def work(self, share: float, settings: int) -> None:
        """Say nothing."""

    def cell_done(self, wrong: float, weight: float) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""


class Work:
    """How much of a run's work is done. The work on a cell is taken to grow with the square of its rows.

    Parameters
    ----------
    sizes : (cells,) rows of each cell.
    settings : how many of a cell's grid the search is expected to score.
    """

    def __init__(self, sizes: NDArray[np.int64], settings: int) -> None:
        squares = sizes.astype(np.float64) ** 2
        self._weights, self._expected = squares / squares.sum(), settings
        self._finished: set[int] = set()
        self._scored: dict[int, set[int]] = {}

    def finished(self, cell: int) -> None:
        """A cell is finished."""
        self._finished.add(cell)
        self._scored.pop(cell, None)

    def scored(self, cell: int, setting: int) -> None:
        """A setting of a cell is scored; not for the first time, maybe."""
        self._scored.setdefault(cell, set()).add(setting)

    @property
    def settings(self) -> int:
        """Settings that are scored, of cells that are not finished."""
        return sum(map(len, self._scored.values()))

    @property
    def share(self) -> float:
        """From 0 to 1. The final models of a cell count as one setting more."""
        done = float(self._weights[list(self._finished)].sum())
        parts = ((cell, len(scored)) for cell, scored in self._scored.items())
        return min(1.0, done + sum(float(self._weights[cell]) * n / (max(self._expected, n) + 1) for cell, n in parts))


class Clock:
    """Wall-clock seconds by phase."""

    def __init__(self, observer: Observer) -> None:
        self.seconds: dict[str, float] = {}
        self._observer = observer

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time a phase; nested phases are taken out of the outer one."""
        self._observer.phase(name)
        started, inner = time.perf_counter(), sum(self.seconds.values())
        yield
        nested = sum(self.seconds.values()) - inner
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started - nested
