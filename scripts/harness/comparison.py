"""An experiment of contestants: each run in a process of its own with pinned threads, interleaved in rounds.

    COMPARISON = Comparison("cell", "One cell", cases=cases, contestants={"localsvm": ours, "liquidSVM": theirs}, ...)
    main(COMPARISON, __doc__)          # in scripts/bench/cell.py: python scripts/bench/cell.py --sizes 2000

`main` calls the same script again for every run (`--contestant NAME --case JSON`); that process prints what the
contestant's function returns as one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.commands import answer, run_contestant
from harness.experiment import open_log, record
from harness.machine import commit, machine
from harness.options import WORK, integers, names, parsed, parser
from harness.runlog import Run, RunLog
from harness.timing import Figures

OURS = "localsvm"
REPEATS = 3
LONG = 60.0  # seconds of one run after which a case is not repeated
QUICK_OUT, FULL_OUT = Path("build/bench/quick"), Path("docs/results/bench")
HIDDEN = argparse.SUPPRESS


@dataclass(frozen=True)
class Case:
    """One thing to measure, the same for all contestants; `parameters` are a comparison's own."""

    set: str
    rows: int
    cores: int = 1
    parameters: tuple[tuple[str, Any], ...] = ()

    def get(self, name: str, otherwise: Any = None) -> Any:
        """A parameter of the comparison."""
        return dict(self.parameters).get(name, otherwise)

    def key(self) -> str:
        """Text that is the same for equal cases."""
        return json.dumps(
            {"set": self.set, "rows": self.rows, "cores": self.cores, **dict(self.parameters)}, sort_keys=True
        )

    @classmethod
    def from_key(cls, key: str) -> Case:
        """The case of a key."""
        values = json.loads(key)
        return cls(values.pop("set"), values.pop("rows"), values.pop("cores"), tuple(sorted(values.items())))


@dataclass(frozen=True)
class Turn(Run):
    """One run of one contestant in one round. status: ok, failed, timeout or skipped; message: why it is not ok."""

    case: str
    contestant: str
    repeat: int
    status: str
    message: str = ""
    figures: Figures = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        """A case, a contestant and a round, on one machine."""
        return self.case, self.contestant, self.repeat, json.dumps(self.machine, sort_keys=True)


@dataclass(frozen=True)
class Comparison:
    """A page of the benchmark.

    cases: from the options to what is measured. contestants: functions of (case, options) that return the figures of
    one run, `wall` (seconds) among them; those whose names begin with "localsvm" are ours. section: the Markdown of the
    turns of one machine. takes_part: True where a contestant takes part in a case. prepare: makes files before the
    clocks. reuse: comparisons whose turns of equal cases count here. introduction: the first lines of the page. target:
    the target of make that runs it, and the variable with its data.
    """

    name: str
    title: str
    cases: Callable[[argparse.Namespace], list[Case]]
    contestants: dict[str, Callable[[Case, argparse.Namespace], Figures]]
    section: Callable[[list[Turn]], list[str]]
    takes_part: Callable[[str, Case], bool] = lambda contestant, case: True
    prepare: Callable[[Case, argparse.Namespace], None] = lambda case, options: None
    reuse: tuple[str, ...] = ()
    introduction: list[str] = field(default_factory=list)
    target: str = "bench DATA"


def comparison_parser(description: str | None) -> argparse.ArgumentParser:
    """The options of every comparison."""
    given = parser(description, out=None, data="optional", quick=f"the small end, into {QUICK_OUT} (else {FULL_OUT})")
    given.add_argument("--sizes", type=integers, help="rows, as in 2000,5000")
    given.add_argument("--sets", type=names, help="data sets, as in higgs_like,covtype")
    given.add_argument("--peers", type=names, help="peers to run beside ours; 'none' for ours alone")
    given.add_argument("--repeats", type=int, help=f"rounds (default {REPEATS}, 1 with --quick)")
    given.add_argument("--work", type=Path, default=WORK, help="folder of generated data and models")
    given.add_argument("--limit", type=float, default=600.0, help="seconds after which a peer is stopped")
    given.add_argument("--train", default="", help="more options for lsvm-train, as in '--grid full'")
    given.add_argument("--contestant", help=HIDDEN)
    given.add_argument("--draw", type=int, default=0, help=HIDDEN)
    given.add_argument("--case", help=HIDDEN)
    return given


def main(comparison: Comparison, description: str | None, arguments: list[str] | None = None) -> None:
    """Measure what is missing and write the page; or be one contestant."""
    given = sys.argv[1:] if arguments is None else arguments
    options = parsed(comparison_parser(description), given)
    if options.contestant:
        be_contestant(comparison, options)
        return
    options.repeats = options.repeats or (1 if options.quick else REPEATS)
    options.out = options.out or (QUICK_OUT if options.quick else FULL_OUT)
    options.work.mkdir(parents=True, exist_ok=True)
    Rounds(comparison, options, given).carry_out()


def be_contestant(comparison: Comparison, options: argparse.Namespace) -> None:
    """Answer with the figures of one run; where a command fails, its message is on stderr already."""
    try:
        answer(comparison.contestants[options.contestant](Case.from_key(options.case), options))
    except subprocess.CalledProcessError as failure:
        sys.exit(failure.returncode)


class Rounds:
    """The turns of a comparison, in the order: case by case, round by round, contestant by contestant."""

    def __init__(self, comparison: Comparison, options: argparse.Namespace, given: list[str]) -> None:
        self.comparison, self.options, self.given = comparison, options, given
        self.machine, self.commit = machine(), commit()
        self.log = open_log(comparison.name, Turn, options)
        others = [RunLog(self.log.path.with_name(f"{name}.jsonl"), Turn).runs for name in comparison.reuse]
        self.reused = [turn for turns in others for turn in turns]
        self.to_retry = {turn.key for turn in self.turns if turn.status in ("failed", "skipped")}

    @property
    def turns(self) -> list[Turn]:
        """All turns, those of other comparisons first."""
        return list({turn.key: turn for turn in [*self.reused, *self.log.runs]}.values())

    def carry_out(self) -> None:
        """Measure what is missing and write the page."""
        record(self.log, () if self.options.page_only else self.missing(), self.write, self.progress)
        if not self.log.runs and self.reused:
            self.write()

    def missing(self) -> Iterator[Turn]:
        """All rounds of all cases."""
        for case in self.comparison.cases(self.options):
            names = [
                n for n in self.comparison.contestants if self.is_wanted(n) and self.comparison.takes_part(n, case)
            ]
            missing = [(r, n) for r in range(self.options.repeats) for n in names if not self.done(case, n, r)]
            if missing:
                self.comparison.prepare(case, self.options)
            for repeat, name in missing:
                if not self.done(case, name, repeat):  # the round before may have been long, or the last
                    outcome = self.skip(case, name) or self.measure(case, name, repeat)
                    self.to_retry -= {turn.key for turn in self.of(case, name)}
                    yield Turn(case.key(), name, repeat, **outcome, machine=self.machine, commit=self.commit)

    def is_wanted(self, name: str) -> bool:
        """Ours always runs, peers as asked for."""
        return name.startswith(OURS) or self.options.peers is None or name in self.options.peers

    def done(self, case: Case, name: str, repeat: int) -> bool:
        """True where this run is in the log, an earlier one failed, or one round of all contestants was long enough."""
        earlier = [turn for turn in self.of(case, name) if turn.key not in self.to_retry]
        return any(t.status != "ok" or t.repeat == repeat for t in earlier) or (repeat > 0 and self.is_long(case))

    def is_long(self, case: Case) -> bool:
        """True where a contestant took so long that nobody is repeated: errors are of the same draws for all."""
        turns = [turn for turn in self.turns if (turn.case, turn.machine) == (case.key(), self.machine)]
        return any(turn.status == "timeout" or turn.figures.get("process", 0) > LONG for turn in turns)

    def of(self, case: Case, name: str) -> list[Turn]:
        """The turns of a case and contestant on this machine."""
        wanted = case.key(), name, self.machine
        return [turn for turn in self.turns if (turn.case, turn.contestant, turn.machine) == wanted]

    def skip(self, case: Case, name: str) -> dict[str, Any] | None:
        """Reason not to start a run, as its outcome; None if there is none."""
        if case.cores > len(os.sched_getaffinity(0)):
            return {"status": "skipped", "message": f"this process may not use {case.cores} cores"}
        for turn in self.turns:
            other = Case.from_key(turn.case)
            stopped = (turn.contestant, turn.machine, turn.status) == (name, self.machine, "timeout")
            alike = (other.set, other.cores, other.parameters) == (case.set, case.cores, case.parameters)
            if stopped and alike and other.rows <= case.rows:
                return {"status": "skipped", "message": f"over the limit with {other.rows} rows already"}
        return None

    def measure(self, case: Case, name: str, repeat: int) -> dict[str, Any]:
        """One run in a process of its own; each round has its own draw of the data."""
        script = [sys.executable, os.path.abspath(sys.argv[0]), *self.given]
        limit = None if name.startswith(OURS) else self.options.limit
        as_contestant = ["--contestant", name, f"--draw={repeat}", "--case", case.key()]
        return run_contestant([*script, *as_contestant], case.cores, limit)

    def progress(self, turn: Turn) -> str:
        """The line that the terminal shows of a turn."""
        outcome = f"{turn.figures['wall']:.3f} s" if "wall" in turn.figures else turn.message
        return f"{self.comparison.name} {turn.case} {turn.contestant}: {turn.status} {outcome}"

    def write(self) -> None:
        """The page of all turns that there are."""
        from harness.summaries import page

        self.log.path.with_suffix(".md").write_text(page(self.comparison, self.turns))
