"""What a run prints on stderr while it lasts: a progress bar if that is a terminal, and notes."""

from __future__ import annotations

import sys
from typing import Any

import click

from localsvm.cli.program import OutOfTime


class Progress:
    """A `runs.progress.Observer`, and a context manager around the run.

    Parameters
    ----------
    quiet : bool
        Print nothing.
    resumable : bool
        Whether the run has a journal, with which it can be resumed.
    """

    def __init__(self, quiet: bool, resumable: bool = False) -> None:
        self._quiet, self._resumable = quiet, resumable
        self._live = sys.stderr.isatty() and not quiet
        self._bar: Any = None
        self._total = self._done = self._settings = 0
        self._wrong = self._weight = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self._clear()
        if kind is OutOfTime:
            kept = self._kept() or ", and nothing is finished yet; give it more time"
            click.echo(f"error: the time limit is over{kept}", err=True)
            return
        stopped = kind is not None and not issubclass(kind, Exception)
        if stopped and not self._quiet:
            click.echo("stopped" + self._kept(), err=True)

    def phase(self, name: str) -> None:
        """Show on a terminal which phase has begun."""
        self._clear()
        if self._live:
            click.echo(f"\r\033[K{name} ...", err=True, nl=False)

    def cells(self, total: int, done: int) -> None:
        """Start the bar, with `done` of `total` cells finished before."""
        self._total, self._done = total, done
        self._clear()
        if done and not self._quiet:
            click.echo(f"resumed: {done:,} of {total:,} cells were finished before", err=True)
        if self._live:
            from tqdm import tqdm

            self._bar = tqdm(total=total, initial=done, unit="cell", file=sys.stderr, dynamic_ncols=True, leave=False)

    def cell_done(self, wrong: float, weight: float) -> None:
        """Move the bar by one cell, and update the mean error: wrong rows over all rows, both weighted."""
        self._done += 1
        self._wrong += wrong
        self._weight += weight
        if self._bar is not None:
            if self._weight:
                self._bar.set_postfix_str(f"error {self._wrong / self._weight:.2%}", refresh=False)
            self._bar.update()

    def work(self, share: float, settings: int) -> None:
        """Note how far the work is."""
        self._settings = settings

    def note(self, text: str) -> None:
        """Print a note, above the bar."""
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.clear()
        click.echo(f"\r\033[Knote: {text}" if self._live else f"note: {text}", err=True)

    def _kept(self) -> str:
        if not (self._resumable and (self._done or self._settings)):
            return ""
        scored = f"{self._settings:,} settings scored and " if self._settings else ""
        return f" with {scored}{self._done:,} of {self._total:,} cells finished; go on with --resume"

    def _clear(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._live:
            click.echo("\r\033[K", err=True, nl=False)
