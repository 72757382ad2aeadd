"""What `verbose` tells of a training: lines on stderr."""

from __future__ import annotations

import sys


class Lines:
    """A `runs.progress.Observer` that prints a line for each phase, for every tenth of the cells, and each note."""

    def __init__(self) -> None:
        self._total = self._done = 0
        self._wrong = self._weight = 0.0

    def phase(self, name: str) -> None:
        """A phase begins."""
        self._say(name)

    def cells(self, total: int, done: int) -> None:
        """Training begins."""
        self._total, self._done = total, done
        self._say(f"{total} cells")

    def work(self, share: float, settings: int) -> None:
        """Say nothing: the lines are of cells."""

    def cell_done(self, wrong: float, weight: float) -> None:
        """A cell is finished."""
        self._done += 1
        self._wrong += wrong
        self._weight += weight
        if 10 * self._done // self._total > 10 * (self._done - 1) // self._total:
            error = f", held-out error {self._wrong / self._weight:.2%}" if self._weight else ""
            self._say(f"{self._done} of {self._total} cells{error}")

    def note(self, text: str) -> None:
        """Something the user should know."""
        self._say(f"note: {text}")

    def _say(self, text: str) -> None:
        print(f"localsvm: {text}", file=sys.stderr)
