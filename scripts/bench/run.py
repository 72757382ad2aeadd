"""Times whole training runs, `lsvm-train -P voronoi -c 2000 --metric none` from text to model, on one core and two.

    python scripts/bench/run.py DATA [--sizes 100000] [--sets covtype] [--train "--seed 1"] [--quick]

Peer: liquidSVM with Voronoi cells of 2 000 on rows that are in memory already: training and selection alone are timed.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache, partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness import cell_models, peers
from harness.comparison import Case, Comparison, Turn, main
from harness.datasets import GENERATED, Rows, available
from harness.summaries import Summary, fixed, megabytes, summaries, summary_table, whole
from harness.tables import number
from harness.timing import Figures, timed
from localsvm.data.synthetic import higgs_like_bayes_error

SETS = [GENERATED, "covtype"]
SIZES, QUICK_SIZES = [100_000, 1_000_000, 10_000_000], [10_000]
ALL_ROWS = 0
LONGEST_ON_ONE_CORE, LONGEST_REFITTED = 1_000_000, 1_000_000
PHASES = ("read", "partition", "train", "write")


def cases(options: argparse.Namespace) -> list[Case]:
    """Sizes of the generated set, the whole of covtype (left out by --quick); ten million rows on two cores only."""
    sizes = sorted(options.sizes or (QUICK_SIZES if options.quick else SIZES))
    names = available(options, [GENERATED] if options.quick else SETS)
    rows = [(n, size) for n in names for size in (sizes if n == GENERATED else options.sizes or [ALL_ROWS])]
    return [Case(n, r, cores) for n, r in rows for cores in ((2, 1) if r <= LONGEST_ON_ONE_CORE else (2,))]


def takes_part(contestant: str, case: Case) -> bool:
    """The refitted models are there for their error; one size is enough of very long runs."""
    return contestant != "localsvm, refit" or (case.rows <= LONGEST_REFITTED and case.cores == 2)


def ours(search: str, refit: bool, case: Case, options: argparse.Namespace) -> Figures:
    """`lsvm-train`, and the error of its model."""
    return cell_models.train(case, options, search, refit)


def liquid(case: Case, options: argparse.Namespace) -> Figures:
    """The mcSVM of liquidSVM on arrays, with its own Voronoi partition of the same bound."""
    module = peers.liquid_svm()
    rows = Rows.of(Case(case.set, case.rows or 1 << 40), options, cell_models.TEST_ROWS)
    X, y = peers.rows_for("liquidSVM", rows.X, rows.y)
    models = []
    options_given = {"threads": case.cores, "partition_choice": peers.VORONOI_2000}
    figures = timed(lambda: models.append(module.mcSVM(X, y, **options_given)), most=1)
    return {**figures, "error": peers.liquid_error(models[-1], rows.X_test, rows.y_test), "train_rows": len(y)}


def nanoseconds(s: Summary) -> str:
    """Training seconds per (sum of squared cell sizes x features)."""
    if "squares" not in s.figures:
        return ""
    return f"{1e9 * s.figures['seconds']['train'] / (s.figures['squares'] * s.figures['features']):.2f}"


def phases(s: Summary) -> str:
    """Seconds of each phase."""
    return ", ".join(number(s.figures["seconds"].get(p, 0.0)) for p in PHASES) if "seconds" in s.figures else ""


def partition_share(s: Summary) -> str:
    """Share of the partition in the phases' sum, in per cent."""
    seconds = s.figures.get("seconds")
    return f"{100 * seconds['partition'] / sum(seconds.values()):.1f}" if seconds else ""


@cache
def bayes_error() -> float:
    """The least error possible on the generated set, in per cent."""
    return 100 * higgs_like_bayes_error()


def section(turns: list[Turn]) -> list[str]:
    """The table; then the gain of the second core."""
    rows = summaries(turns)
    more = [
        (f"s: {', '.join(PHASES)}", phases),
        ("partition %", partition_share),
        ("cells", whole("cells")),
        ("balance", fixed("balance", 3)),
        ("ns per s² d", nanoseconds),
        ("error %", fixed("error", 2)),
        ("peak MiB", megabytes()),
        ("with files MiB", megabytes("peak_mapped")),
        ("model MiB", megabytes("model_bytes")),
    ]
    return [
        *summary_table(rows, more),
        "",
        f"Bayes error of higgs_like: {bayes_error():.2f} %.",
        "",
        *second_core(rows),
    ]


def second_core(rows_of_cores: list[Summary]) -> list[str]:
    """One core's seconds over two's."""
    walls = {(s.case.set, s.case.rows, s.contestant, s.case.cores): s.figures.get("wall") for s in rows_of_cores}
    lines = []
    for name, rows, contestant, cores in walls:
        one, two = (walls.get((name, rows, contestant, n)) for n in (1, 2))
        if cores == 2 and one and two:
            lines.append(f"- {name}, {rows or 'all'} rows, {contestant}: two cores are {one / two:.2f} times as fast")
    return lines


COMPARISON = Comparison(
    "run",
    "Whole training runs in cells of 2 000 rows",
    cases,
    {
        "localsvm": partial(ours, "full", False),
        "localsvm, adaptive": partial(ours, "adaptive", False),
        "localsvm, refit": partial(ours, "full", True),
        "liquidSVM": liquid,
    },
    section,
    takes_part,
    cell_models.make_texts,
    introduction=[
        "`lsvm-train -P voronoi -c 2000 --metric none` as a process, text file to model file, start of Python",
        "included; fold models vote unless it says refit. liquidSVM gets arrays: its reading and writing are not in",
        "its time. ns per s² d:",
        "nanoseconds of the training phase per sum of squared cell sizes times features. Balance: the sum of squared",
        "cell sizes over that of equal cells. Peak: of all processes, each page counted once; with files: mapped files",
        "too, which the system may drop.",
    ],
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
