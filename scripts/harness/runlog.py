"""The log of an experiment: a line of JSON for each finished run, so that a command can be interrupted and goes on.

log = RunLog(Path("docs/results/vp.jsonl"), Run)
log.append(run)       # on disk at once
log.runs              # of several runs with the same key the last
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run, with its machine and commit, which old logs do not name.

    Subclasses add what was run, which KEY names, and its figures.
    """

    KEY: ClassVar[tuple[str, ...]] = ()
    machine: dict[str, Any] | None = None
    commit: str | None = None

    @property
    def key(self) -> Hashable:
        """Key of what was run: a second run of the same key replaces the first."""
        return tuple(getattr(self, name) for name in self.KEY)


AnyRun = TypeVar("AnyRun", bound=Run)


class RunLog(Generic[AnyRun]):
    """The runs in a file; `kind` is their class."""

    def __init__(self, path: Path, kind: type[AnyRun]) -> None:
        self.path = path
        drop_unfinished_line(path)
        lines = path.read_text().splitlines() if path.exists() else []
        self._runs: dict[Hashable, AnyRun] = {}
        for line in lines:
            run = kind(**json.loads(line))
            self._runs[run.key] = run

    @property
    def runs(self) -> list[AnyRun]:
        """All runs, in the order in which they were first run."""
        return list(self._runs.values())

    def find(self, key: Hashable) -> AnyRun | None:
        """The run of this key."""
        return self._runs.get(key)

    def append(self, run: AnyRun) -> None:
        """Keep a run, unless the log ends up the same."""
        if self._runs.get(run.key) == run:
            return
        self._runs[run.key] = run
        with self.path.open("a") as file:
            file.write(json.dumps(entry(run)) + "\n")


def entry(run: Run) -> dict[str, Any]:
    """A run as it is in the log: what was run, its figures, machine and commit."""
    fields = asdict(run)
    return fields | {name: fields.pop(name) for name in ("machine", "commit")}


def drop_unfinished_line(path: Path) -> None:
    """Cut off a last line that an interruption left unfinished."""
    if path.exists() and not (text := path.read_bytes()).endswith(b"\n"):
        path.write_bytes(text[: text.rfind(b"\n") + 1])
