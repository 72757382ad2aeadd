"""Times linear SVMs by how many passes of coordinate ascent come before Newton's method: the table ASCENTS, measured.

    python scripts/bench_ascents.py DATA [--sets ijcnn1,usps] [--limit 10] [--quick]

Every row of the table (localsvm/solvers/linear.py) has some problems of its kind. Each is solved to a duality gap of a
thousandth of the objective with several numbers of passes in its row. The solver itself never looks at a clock: this is
where its constants come from. Processor seconds, the median of up to three calls; "over": stopped at --limit.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bench_linear import TOLERANCE
from bench_linear import problem as scaled
from harness.comparison import FULL_OUT, QUICK_OUT, Case
from harness.datasets import GENERATED, available
from harness.experiment import Experiment, carry_out
from harness.library import ASCENTS, Ascent, LinearRows, Solution, always, as_examples, ascent_of, solve, task_rows
from harness.machine import cores_of_processors
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import number, table, thousands
from harness.timing import timed
from threadpoolctl import threadpool_limits

PASSES = (0, 8, 30, 50, 200, None)  # None: as many as the ascent needs, as with -s sdca
UNLIMITED = 10_000
REPEATS = 3
LIMIT = 10.0
COSTS = (0.01, 1.0, 100.0)
QUICK_COST = 1.0  # the first problem of each row has it
START = 0.1  # of the cost, for the solution that is known: the next one in the grid of costs
PAGE = """\
# Passes of coordinate ascent before Newton's method

Written by `make bench-linear DATA=...` (`scripts/bench_ascents.py`) from `linear-choice.jsonl`: processor seconds of
one linear SVM to a duality gap of a thousandth of the objective, the median of up to {repeats} calls, by how many
passes of ascent come first. Bold is what the table ASCENTS (`localsvm/solvers/linear.py`) has; "over" was stopped at
{limits} s. Unlimited is ascent alone, and Newton's method only after {most} passes.

Rows of ASCENTS are counted from 1, and each problem falls under the one beside it. Rows that begin anew after the
ascent do so here for all numbers of passes. Where a solution is known, it is that of a tenth of the cost; where
that ends with the ascent, a hinge counts as new: then its C is not among the problems of that row. Sets are
divided by their standard deviations, but a9a, w8a and mnist (5 against the rest) are in [0, 1].

## Sums over the problems of each row

What is over counts with the limit.

{sums}

## Problems

{problems}

Measured on {processors}.
"""


@dataclass(frozen=True)
class Problem:
    """Something to solve at several costs.

    row: of ASCENTS that it falls under; set; loss; rows: as many in a random order, 0 for all; method and its
    options: what makes the tasks.
    """

    row: int
    set: str
    loss: str
    rows: int = 0
    method: str = "linear"
    options: tuple[tuple[str, Any], ...] = ()
    costs: tuple[float, ...] = COSTS

    @property
    def name(self) -> str:
        """mnist, kmeans-svm, clusters 90."""
        values = [f"{name.removesuffix('_count')} {value[0]:g}" for name, value in self.options]
        return ", ".join([self.set] if self.method == "linear" else [self.set, self.method, *values])


def clusters(count: int) -> tuple[tuple[str, Any], ...]:
    """The option of a method that makes clusters."""
    return (("clusters", (float(count),)),)


ONE_CLUSTER = (*clusters(1), ("landmarks_count", (100.0,)))
SMALL_COSTS = (1e-6, 1e-4, 1e-2)  # of products with landmarks
PROBLEMS = [
    Problem(0, "covtype", "squared", 60_000),
    Problem(0, "usps", "squared"),
    Problem(0, "mnist", "squared", 10_000, "kmeans-svm", clusters(90)),
    Problem(1, "covtype", "hinge", 60_000, costs=COSTS[1:]),
    Problem(1, "a9a", "hinge", costs=COSTS[1:]),
    Problem(1, "usps", "hinge", costs=COSTS[1:]),
    Problem(1, "usps", "hinge", 0, "kmeans-svm", clusters(30)),
    Problem(1, "mnist", "hinge", 10_000, costs=COSTS[2:]),
    Problem(2, "covtype", "squared", 60_000),
    Problem(2, "ijcnn1", "squared"),
    Problem(2, "skin_nonskin", "squared", 50_000),
    Problem(3, "a9a", "squared"),
    Problem(3, "w8a", "squared"),
    Problem(3, "ijcnn1", "squared", 0, "kmeans-svm", clusters(8)),
    Problem(4, "covtype", "hinge", 60_000),
    Problem(4, "ijcnn1", "hinge"),
    Problem(4, "skin_nonskin", "hinge", 50_000),
    Problem(4, "a9a", "hinge"),
    Problem(4, "ijcnn1", "hinge", 0, "kmeans-svm", clusters(8)),
    Problem(4, "svmguide1", "hinge"),
    Problem(4, GENERATED, "hinge", 200_000),
    Problem(4, "mnist", "squared", 30_000, "l3", ONE_CLUSTER, SMALL_COSTS),
    Problem(4, "mnist", "hinge", 30_000, "l3", ONE_CLUSTER, SMALL_COSTS),
    Problem(5, "mnist", "squared", 20_000),
    Problem(5, "usps", "squared"),
    Problem(5, "usps", "squared", 0, "kmeans-svm", clusters(30)),
    Problem(5, "mnist", "squared", 10_000, "kmeans-svm", clusters(90)),
    Problem(6, "usps", "squared", 0, "llsvm", clusters(8)),
    Problem(6, "ijcnn1", "squared", 20_000, "llsvm", clusters(8)),
    Problem(6, "w8a", "squared", 0, "kmeans-svm", clusters(90)),
    Problem(7, "mnist", "hinge", 20_000),
    Problem(7, "usps", "hinge"),
    Problem(7, "usps", "hinge", 0, "kmeans-svm", clusters(30)),
    Problem(7, "mnist", "hinge", 10_000, "kmeans-svm", clusters(90)),
    Problem(8, "w8a", "hinge"),
    Problem(8, "letter", "hinge", 0, "kmeans-svm", clusters(30)),
    Problem(8, "usps", "hinge", 0, "llsvm", clusters(8)),
    Problem(8, "ijcnn1", "hinge", 20_000, "llsvm", clusters(8)),
    Problem(8, "w8a", "hinge", 0, "kmeans-svm", clusters(90)),
]
Key = tuple[int, str, str, float, int | None]  # row, name, loss, cost, passes


@dataclass(frozen=True)
class Timing(Run):
    """One number of passes on one problem. kind: the row of ASCENTS, chosen its passes; seconds: None if over."""

    row: int
    kind: str
    chosen: int
    problem: str
    loss: str
    cost: float
    rows: int
    features: int
    passes: int | None
    seconds: float | None
    limit: float

    @property
    def key(self) -> Key:
        """What was run."""
        return self.row, self.problem, self.loss, self.cost, self.passes


class Task(NamedTuple):
    """What `solve` is given."""

    rows: LinearRows
    y: Any
    cost: Any
    squared: bool
    one_task_each: bool
    start: Solution | None


def main() -> None:
    """Run what is missing, then write the page."""
    sets = list(dict.fromkeys(problem.set for problem in PROBLEMS))
    quick = f"one problem a row at one cost, into {QUICK_OUT} (else {FULL_OUT})"
    given = parser(__doc__, out=None, data="optional", sets=sets, quick=quick)
    given.add_argument("--limit", type=float, default=LIMIT, help="processor seconds of one call (default %(default)g)")
    options = parsed(given)
    options.out = options.out or (QUICK_OUT if options.quick else FULL_OUT)
    with threadpool_limits(1):
        carry_out(Experiment("linear-choice", Timing, cases, measure, page, progress, good), options)


def cases(options: argparse.Namespace) -> Iterator[Key]:
    """Every problem at its costs with all numbers of passes."""
    there, seen = available(options, options.sets), set()
    for problem in PROBLEMS:
        if problem.set in there and not (options.quick and problem.row in seen):
            seen.add(problem.row)
            for cost in [QUICK_COST] if options.quick else problem.costs:
                yield from ((problem.row, problem.name, problem.loss, cost, passes) for passes in PASSES)


def good(run: Timing, options: argparse.Namespace) -> bool:
    """What was over a smaller limit does not count."""
    return run.seconds is not None or run.limit >= options.limit


def measure(missing: list[Any], _: list[Timing], options: argparse.Namespace) -> Iterator[Timing]:
    """The missing runs, those on the same rows after one another."""
    known = {(problem.row, problem.name, problem.loss): problem for problem in PROBLEMS}
    keys = sorted(missing, key=lambda key: known[key[:3]].set + key[1])
    for (row, name, loss, cost), part in groupby(keys, key=lambda key: key[:4]):
        problem = known[row, name, loss]
        rows, y, one_task_each = loaded(options.data, problem.set, problem.rows, problem.method, problem.options)
        task = posed(rows, y, one_task_each, loss == "squared", cost, ASCENTS[row])
        for key in part:
            seconds = seconds_of(task, ASCENTS[row], key[-1], options.limit)
            yield Timing(
                row, described(ASCENTS[row]), ASCENTS[row].passes, name, loss, cost, rows.n, rows.X.shape[1],
                key[-1], seconds, options.limit,
            )  # fmt: skip


@lru_cache(maxsize=1)
def loaded(
    data: Path, name: str, rows: int, method: str, options: tuple[tuple[str, Any], ...]
) -> tuple[LinearRows, Any, bool]:
    """Rows and their tasks, targets, and whether each row has one task."""
    X, y = scaled(Case(name, rows), argparse.Namespace(data=data))
    if 0 < rows < len(y):
        chosen = np.random.default_rng(0).permutation(len(y))[:rows]
        X, y = as_examples(X[chosen]), y[chosen]
    return (made := task_rows(method, X, dict(options)))[0], np.ascontiguousarray(y, np.float64), made[1]


def posed(rows: LinearRows, y: Any, one_task_each: bool, squared: bool, cost: float, ascent: Ascent) -> Task:
    """A problem, with a solution to start from if the row of ASCENTS wants one; ValueError if it is another row's."""
    task = Task(rows, y, np.full(len(y), cost), squared, one_task_each, None)
    if ascent.known:
        before = solve(rows, y, START * task.cost, squared, TOLERANCE, one_task_each=one_task_each)
        task = task._replace(start=before)
    if (found := ascent_of(rows, one_task_each, squared, task.start)) != ascent:
        raise ValueError(f"this problem falls under {found}, not {ascent}")
    return task


def seconds_of(task: Task, ascent: Ascent, passes: int | None, limit: float) -> float | None:
    """Processor seconds of a solution with so many passes first; None over the limit."""

    def call() -> None:
        with stopped_after(limit):
            solve(
                task.rows, task.y, task.cost, task.squared, TOLERANCE,
                one_task_each=task.one_task_each, start=task.start,
            )  # fmt: skip

    with always(ascent._replace(passes=UNLIMITED if passes is None else passes)):
        try:
            return float(timed(call, REPEATS)["cpu"])
        except TimeoutError:
            return None


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """TimeoutError once this process has used so many processor seconds: the solvers ask for signals as they go."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def described(ascent: Ascent) -> str:
    """A row of ASCENTS in words."""
    low, high = ascent.entries
    words = [
        {"squared": "squared hinge", "any": "any loss"}.get(ascent.loss, ascent.loss),
        ", ".join(ascent.systems),
        f"from {thousands(int(ascent.rows))} rows a weight" if ascent.rows else "",
        f"from {low:g} entries a row" if low else "",
        f"below {high:g} entries a row" if np.isfinite(high) else "",
        "solution known" if ascent.known else "",
        "begins anew" if ascent.afresh else "",
    ]
    return "; ".join(word for word in words if word)


def progress(run: Timing) -> str:
    """What the terminal shows of a run."""
    return f"{run.row + 1} {run.problem}, {run.loss}, C = {run.cost:g}, {heading(run.passes)}: {cell(run)} s"


def page(runs: list[Timing], options: argparse.Namespace) -> str:
    """Both tables."""
    return PAGE.format(
        repeats=REPEATS,
        limits=" or ".join(dict.fromkeys(f"{run.limit:g}" for run in runs)),
        most=thousands(UNLIMITED),
        sums="\n".join(sums(runs)),
        problems="\n".join(each(runs)),
        processors=cores_of_processors(run.machine for run in runs),
    )


def sums(runs: list[Timing]) -> list[str]:
    """For each row of ASCENTS."""
    lines = []
    for row in sorted({run.row for run in runs}):
        mine = [run for run in runs if run.row == row]
        cells = []
        for passes in PASSES:
            timings = [run for run in mine if run.passes == passes]
            total = number(sum(run.limit if run.seconds is None else run.seconds for run in timings))
            over = sum(run.seconds is None for run in timings)
            cells.append(marked(f"{total}{f' ({over} over)' if over else ''}", passes == mine[0].chosen))
        problems = len({run.key[:-1] for run in mine})
        lines.append([row + 1, mine[0].kind, problems, *cells])
    return table(["row", "kind", "problems", *map(heading, PASSES)], lines)


def each(runs: list[Timing]) -> list[str]:
    """Problem by problem."""
    found: dict[Any, dict[int | None, Timing]] = {}
    for run in sorted(runs, key=lambda run: (run.row, run.problem, run.loss, run.cost)):
        found.setdefault(run.key[:-1], {})[run.passes] = run
    lines = []
    for row, name, loss, cost in found:
        timings = found[row, name, loss, cost]
        one = next(iter(timings.values()))
        cells = [marked(cell(timings[p]), p == one.chosen) if p in timings else "" for p in PASSES]
        lines.append([row + 1, name, loss, f"{cost:g}", thousands(one.rows), thousands(one.features), *cells])
    return table(["row", "problem", "loss", "C", "rows", "features", *map(heading, PASSES)], lines)


def heading(passes: int | None) -> str:
    """A column."""
    return "unlimited" if passes is None else f"{passes} passes"


def cell(run: Timing) -> str:
    """Seconds."""
    return "over" if run.seconds is None else number(run.seconds)


def marked(text: str, chosen: bool) -> str:
    """Bold."""
    return f"**{text}**" if chosen else text


if __name__ == "__main__":
    main()
