"""Output of a training: warnings, and lines on stderr where `verbose` is on."""

from __future__ import annotations

import sys
from collections.abc import Callable

from localsvm.runs.progress import Silent, Standing

TENTHS = 10 + 1e-9  # the whole is reached in spite of rounding


class Warned(Silent):
    """A `runs.progress.Observer` that keeps the warnings, to be given when the training is over."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, text: str) -> None:
        """Keep the warning."""
        self.warnings.append(text)


class ProgressLines(Warned):
    """Printer of a line for each phase, for every tenth of the work, and each note. name: names options in notes."""

    def __init__(self, name: Callable[[str], str]) -> None:
        super().__init__()
        self._standing, self._name = Standing(), name

    def phase(self, name: str) -> None:
        """Print the name of the phase that begins."""
        self._say(name)

    def cells(self, total: int, done: int, what: str = "cells") -> None:
        """Print the number of cells, as training begins."""
        self._standing.cells(total, done, what)
        self._say(f"{total} {what}")

    def work(self, share: float, settings: int) -> None:
        """Print a line if another tenth of the work is done."""
        before = int(TENTHS * self._standing.share)
        self._standing.work(share, settings)
        if int(TENTHS * share) > before:
            self._say(self._standing.text)

    def cell_done(self, wrong: float, weight: float) -> None:
        """Count a cell that is finished."""
        self._standing.cell_done(wrong, weight)

    def solving(self, steps: int) -> None:
        """Say nothing: a line is for a tenth of the work."""

    def note(self, text: str) -> None:
        """Print a note for the user."""
        self._say(f"note: {self._name(text)}")

    def _say(self, text: str) -> None:
        print(f"localsvm: {text}", file=sys.stderr)
