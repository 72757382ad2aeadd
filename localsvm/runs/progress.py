"""Progress of a run: who is told of it, and the time that its phases take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Observer(Protocol):
    """Is told how a run goes on; the command line draws its progress from it."""

    def phase(self, name: str) -> None:
        """A phase begins: partition, train, write."""

    def cells(self, total: int, done: int) -> None:
        """Training begins: so many cells, of which so many came from an interrupted run."""

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

    def cell_done(self, wrong: float, weight: float) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""


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
