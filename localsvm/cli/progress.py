"""Output of a run on stderr while it lasts: a bar on a terminal, a line now and then elsewhere, notes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import click

from localsvm.cli.program import OutOfTime
from localsvm.naming import on_command_line
from localsvm.runs.progress import Standing

LINE_SECONDS = 30.0
BAR = "{percentage:3.0f}%|{bar}| {desc}"


class Progress:
    """A `runs.progress.Observer`, and a context manager around the run.

    Parameters
    ----------
    quiet : bool
        Print nothing.
    resumable : bool
        Whether the run has a journal, with which it can be resumed.
    clock : callable
        Gives seconds.
    """

    def __init__(self, quiet: bool, resumable: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._quiet, self._resumable, self._clock = quiet, resumable, clock
        self._standing, self._last_line = Standing(clock), clock()
        self._live = sys.stderr.isatty() and not quiet
        self._bar: Any = None

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

    def cells(self, total: int, done: int, what: str = "cells") -> None:
        """Start the bar, with `done` of `total` cells finished before."""
        self._standing.cells(total, done, what)
        self._clear()
        if done and not self._quiet:
            click.echo(f"resumed: {self._standing.counted} were finished before", err=True)
        if self._live:
            from tqdm import tqdm

            self._bar = tqdm(total=1.0, bar_format=BAR, miniters=0, file=sys.stderr, dynamic_ncols=True, leave=False)
            self._bar.set_description_str(self._standing.text)

    def cell_done(self, wrong: float, weight: float) -> None:
        """Count a cell, and its wrong rows over all rows, both weighted."""
        self._standing.cell_done(wrong, weight)

    def work(self, share: float, settings: int) -> None:
        """Move the bar; where there is no terminal, print a line if none was printed for a while."""
        self._standing.work(share, settings)
        self._show()

    def solving(self, steps: int) -> None:
        """Show that a solver goes on, where else nothing would change for long; like `work`, but from any thread."""
        self._standing.solving(steps)
        self._show()

    def _show(self) -> None:
        if (bar := self._bar) is not None:
            bar.set_description_str(self._standing.text, refresh=False)
            bar.n = self._standing.share
            bar.refresh()
        elif not (self._live or self._quiet) and self._clock() - self._last_line >= LINE_SECONDS:
            self._last_line = self._clock()
            click.echo(self._standing.text, err=True)

    def warning(self, text: str) -> None:
        """Print a note."""
        self.note(text)

    def note(self, text: str) -> None:
        """Print a note, above the bar."""
        if self._quiet:
            return
        text = on_command_line(text)
        if self._bar is not None:
            self._bar.clear()
        click.echo(f"\r\033[Knote: {text}" if self._live else f"note: {text}", err=True)

    def _kept(self) -> str:
        done, settings = self._standing.done, self._standing.settings
        if not (self._resumable and (done or settings)):
            return ""
        scored = f"{settings:,} settings scored and " if settings else ""
        return f" with {scored}{self._standing.counted} finished; go on with --resume"

    def _clear(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._live:
            click.echo("\r\033[K", err=True, nl=False)
