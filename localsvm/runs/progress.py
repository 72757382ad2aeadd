"""Progress of a run: the observer that follows it, and the time that its phases take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # programs show their help without numpy
    import numpy as np
    from numpy.typing import NDArray

SURE = 0.01  # share of the work that has to be done before the time left is shown


class Observer(Protocol):
    """Receiver of the events of a run; the command line draws its progress from them."""

    def phase(self, name: str) -> None:
        """Report that a phase begins: metric, partition, train, write."""

    def cells(self, total: int, done: int, what: str = "cells") -> None:
        """Report that training begins.

        There are `total` cells, of which `done` came from an interrupted run; or so many coarse cells (`what`).
        """

    def work(self, share: float, settings: int) -> None:
        """Report the share of the run's work that is done, as far as can be foretold.

        settings : a part of it are so many settings that are scored, of cells that are not finished (of few or of large
        cells alone).
        """

    def solving(self, steps: int) -> None:
        """Report that a solver has made so many steps, in units of its own; from any thread, about once a second."""

    def cell_done(self, wrong: float, weight: float) -> None:
        """Report that a cell is finished.

        weight, wrong : the weight of its rows that were held out (0: none were), and how much of it was decided wrong.
        """

    def note(self, text: str) -> None:
        """Report something that the user should know."""

    def warning(self, text: str) -> None:
        """Report what may make a poor model."""


class Silent:
    """An observer that says nothing."""

    def phase(self, name: str) -> None:
        """Say nothing."""

    def cells(self, total: int, done: int, what: str = "cells") -> None:
        """Say nothing."""

    def work(self, share: float, settings: int) -> None:
        """Say nothing."""

    def solving(self, steps: int) -> None:
        """Say nothing."""

    def cell_done(self, wrong: float, weight: float) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def warning(self, text: str) -> None:
        """Say nothing."""


class Work:
    """Share of a run's work that is done.

    The work on a cell is taken to grow with the square of its rows, and that on all coarse cells to be the same.

    Parameters
    ----------
    coarse, complete : how many coarse cells there are, and how many of them need no work.
    """

    def __init__(self, coarse: int = 1, complete: int = 0) -> None:
        self._coarse, self._expected = coarse, 1
        self._weights: dict[int, NDArray[np.float64]] = {}
        self._scored: dict[tuple[int, int], set[int]] = {}
        self._done = complete / coarse

    def begin(self, coarse: int, sizes: NDArray[np.int64], settings: int) -> None:
        """Record that a coarse cell is divided into cells of these sizes.

        settings : how many settings may be scored in each of them.
        """
        squares = sizes.astype("float64") ** 2
        self._weights[coarse], self._expected = squares / squares.sum() / self._coarse, settings

    def record(self, coarse: int, name: str) -> None:
        """Count a record by its name (`cells.records`): of a cell, of one of its settings, or of a coarse cell."""
        cell, _, setting = name.partition("/setting/")
        if setting:
            self._scored.setdefault((coarse, int(cell)), set()).add(int(setting))
        elif cell.isdecimal() and coarse in self._weights:
            self._done += float(self._weights[coarse][int(cell)])
            self._scored.pop((coarse, int(cell)), None)
        elif not cell.isdecimal() and coarse not in self._weights:  # it was divided elsewhere
            self._done += 1.0 / self._coarse

    @property
    def settings(self) -> int:
        """Number of settings that are scored, of cells that are not finished."""
        return sum(map(len, self._scored.values()))

    @property
    def share(self) -> float:
        """Share of the work that is done, from 0 to 1. The final models of a cell count as one setting more."""
        parts = ((float(self._weights[coarse][cell]), len(scored)) for (coarse, cell), scored in self._scored.items())
        return min(1.0, self._done + sum(weight * n / (max(self._expected, n) + 1) for weight, n in parts))


class Standing:
    """Progress of a run in words; an observer adds its own. All work until now foretells the time that is left.

    Parameters
    ----------
    clock : seconds, as time.monotonic gives them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.total = self.done = self.settings = self.steps = 0
        self.share, self._what = 0.0, "cells"
        self._wrong = self._weight = 0.0
        self._began: tuple[float, float] | None = None  # when, and the share then

    def cells(self, total: int, done: int, what: str = "cells") -> None:
        """Record that training begins; see `Observer.cells`."""
        self.total, self.done, self._what = total, done, what

    def cell_done(self, wrong: float, weight: float) -> None:
        """Record that a cell is finished; see `Observer.cell_done`."""
        self.done += 1
        self._wrong += wrong
        self._weight += weight

    def work(self, share: float, settings: int) -> None:
        """Record the share that is done; see `Observer.work`. The first call is when the work begins."""
        self.share, self.settings, self.steps = share, settings, 0
        self._began = self._began or (self._clock(), share)

    def solving(self, steps: int) -> None:
        """Record the steps of a solver; see `Observer.solving`."""
        self.steps = steps

    @property
    def counted(self) -> str:
        """Text such as "12 of 50 cells"."""
        return f"{self.done:,} of {self.total:,} {self._what}"

    @property
    def text(self) -> str:
        """Text such as "12 of 50 cells, 3 settings of others, error 12.34%, about 4 min left".

        Between two such events it has the steps of a solver that is at work, as in "0 of 1 cells, a solver at 81,920
        steps".
        """
        parts = [self.counted]
        if self.settings:
            parts.append(f"{self.settings:,} settings" + (" of others" if self.done else ""))
        if self.steps:
            parts.append(f"a solver at {self.steps:,} steps")
        if self._weight:
            parts.append(f"error {self._wrong / self._weight:.2%}")
        if self._began and (gained := self.share - self._began[1]) > SURE and self.done < self.total:
            parts.append(f"about {_rounded((self._clock() - self._began[0]) * (1.0 - self.share) / gained)} left")
        return ", ".join(parts)


def _rounded(seconds: float) -> str:
    if seconds < 60.0:
        return f"{10 * max(1, round(seconds / 10))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400.0 else f"{seconds / 3600:.1f} h"


class Clock:
    """Wall-clock seconds by phase."""

    def __init__(self, observer: Observer) -> None:
        self.seconds: dict[str, float] = {}
        self._observer = observer

    def note(self, text: str) -> None:
        """Pass a note on to the observer."""
        self._observer.note(text)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time a phase; nested phases are taken out of the outer one."""
        self._observer.phase(name)
        started, inner = time.perf_counter(), sum(self.seconds.values())
        yield
        nested = sum(self.seconds.values()) - inner
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started - nested
