"""What a run tells on stderr while it lasts: a bar on a terminal, notes everywhere."""

from __future__ import annotations

import sys
from typing import Any

import click


class Progress:
    """A `runs.progress.Observer`, and a context manager around the run. resumable: whether the run has a journal."""

    def __init__(self, quiet: bool, resumable: bool = False) -> None:
        self._quiet, self._resumable = quiet, resumable
        self._live = sys.stderr.isatty() and not quiet
        self._bar: Any = None
        self._total = self._done = 0
        self._wrong = self._weight = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self._clear()
        stopped = kind is not None and not issubclass(kind, Exception)
        if stopped and not self._quiet:
            click.echo("stopped" + self._kept(), err=True)

    def phase(self, name: str) -> None:
        """Say on a terminal what goes on."""
        self._clear()
        if self._live:
            click.echo(f"\r\033[K{name} ...", err=True, nl=False)

    def cells(self, total: int, done: int) -> None:
        """Begin the bar."""
        self._total, self._done = total, done
        self._clear()
        if done and not self._quiet:
            click.echo(f"resumed: {done:,} of {total:,} cells were finished before", err=True)
        if self._live:
            from tqdm import tqdm

            self._bar = tqdm(total=total, initial=done, unit="cell", file=sys.stderr, dynamic_ncols=True, leave=False)

    def cell_done(self, wrong: float, weight: float) -> None:
        """Move the bar."""
        self._done += 1
        self._wrong += wrong
        self._weight += weight
        if self._bar is not None:
            if self._weight:
                self._bar.set_postfix_str(f"error {self._wrong / self._weight:.2%}", refresh=False)
            self._bar.update()

    def note(self, text: str) -> None:
        """Say something above the bar."""
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.clear()
        click.echo(f"\r\033[Knote: {text}" if self._live else f"note: {text}", err=True)

    def _kept(self) -> str:
        if not (self._resumable and self._done):
            return ""
        return f" with {self._done:,} of {self._total:,} cells finished; go on with --resume"

    def _clear(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._live:
            click.echo("\r\033[K", err=True, nl=False)
