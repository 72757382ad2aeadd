"""The page of reproduce/coverage.py: how many sets keep the promise, in words; then coverages, widths and times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from harness.machine import processors, with_article
from harness.tables import number, table, thousands
from reproduce import tabular_peers, value_peers
from reproduce.coverage_peers import BLOCKS, CLASS_RATE, CLASSES, VALUES, names
from reproduce.values_page import TIMED, Done, by_set, missing, row_counts

PROMISES = {VALUES: (0.9,), CLASSES: (0.9, 0.99)}  # the first is that of training
POINT = 0.01
PLAIN = ("localsvm", "LightGBM", "MAPIE")
METHODS = ("localsvm", "localsvm" + BLOCKS, "LightGBM", "LightGBM" + BLOCKS, "MAPIE")
UNITS = {VALUES: "width", CLASSES: "labels"}
SPOKEN = {
    "localsvm": "`lsvm-train` with folds at random",
    "localsvm" + BLOCKS: "`lsvm-train -v blocks`",
    "LightGBM": "LightGBM with a quarter at random",
    "LightGBM" + BLOCKS: "LightGBM with the last quarter",
    "MAPIE": "MAPIE with a quarter at random",
}
ABOUT = """\
# Intervals and sets of labels: what they hold, and how wide they are

Written by `make reproduce-coverage TABLES=... DATA=...` (`scripts/reproduce/coverage.py`) from `{log}.jsonl`; one
thread each, on {machines}. The machine had other work, so all times are processor seconds. [The page on
coverage](../coverage.md) says what is promised, and to whom.
"""
QUICK = "**An eighth of the rows** of each set was taken: the figures are those of `--quick`.\n"
VALUE_TEXT = """## Values

The share of test values in their intervals, in per cent, where {promise} was promised; the mean width of the intervals,
and in parentheses the same in standard deviations of the test values. The smallest width of a set is in bold, among
methods that cover at most a point less than was promised.
"""
CLASS_TEXT = """## Classes

The share of test rows whose label is in its set, in per cent, and the mean number of labels of a set. No set of
localsvm or LightGBM is empty; so more is covered than promised where the most probable label is right more often than
that. A set of MAPIE may be empty. adult is without its categories, and covtype7 is covtype with its seven classes.
"""
TIME_TEXT = """## Processor seconds

Training / prediction of the test rows for the first promise; medians over the seeds.
"""
HOW = """\
## How it was measured

- **Ours**: `lsvm-train --coverage {promise}`, of values with `--loss least-squares`, then `lsvm-predict --coverage`;
  all else is at its default. Times are those of the whole commands, with start-up and reading; a peer's are of rows in
  memory.
- **Peers** see three quarters of the training rows. The fourth, drawn at random, stops them, and then says how wide an
  interval or a set has to be: trees of 31 leaves, of values at most {trees} at the rate {rate:g}, of classes at most
  {class_trees} rounds at the rate {class_rate:g}.
- **LightGBM** has two quantiles of values, conformalised, and 1 - p as the score of classes. **MAPIE** has LightGBM
  inside: its `SplitConformalRegressor` with the absolute error, so that all intervals have one width, and its
  `SplitConformalClassifier` with 1 - p.
- By chance alone, a share of 90 % has a standard error of .5 points with 3 500 test rows, and of .1 with 90 000.
- Test rows serve for the figures above and for nothing else.
"""


def page(runs: list[Any], options: Any) -> str:
    """The Markdown."""
    done, rows = by_set(runs)
    log = "coverage-quick" if options.quick else "coverage"
    lines = [ABOUT.format(log=log, machines=with_article(processors(run.machine for run in runs)))]
    lines += [QUICK] if options.quick else []
    lines += [*verdicts([name for name in rows if name not in TIMED], done)]
    for kind, text in ((VALUES, VALUE_TEXT.format(promise=promised(PROMISES[VALUES][0]))), (CLASSES, CLASS_TEXT)):
        if out := figures([name for name in rows if kind_of(name, done) == kind], rows, kind, done):
            lines += [text, *out, ""]
    for name in TIMED:
        lines += in_time(name, done)
    return "\n".join([*lines, TIME_TEXT, *seconds(rows, done), "", how(), *missing(runs)])


def how() -> str:
    """Text on the measurement."""
    trees, classes = thousands(value_peers.MOST_TREES), thousands(tabular_peers.MOST_TREES)
    rates = {"rate": value_peers.RATE, "class_rate": CLASS_RATE}
    return HOW.format(promise=f"{PROMISES[VALUES][0]:g}", trees=trees, class_trees=classes, **rates)


def kind_of(name: str, done: Done) -> str | None:
    """Values or classes, as the runs of a set say; None where there are none."""
    runs = [run for (other, _), runs in done.items() if other == name for run in runs]
    return (VALUES if "deviation" in runs[0].figures else CLASSES) if runs else None


def promised(level: float) -> str:
    """A promise in per cent."""
    return f"{100 * level:g} %"


def percent(share: float) -> str:
    """A share that was found, in per cent."""
    return f"{100 * share:.1f} %"


def found(runs: list[Any], level: float) -> tuple[float, float]:
    """The share that is covered, and the width: means over the seeds."""
    covered, width = (float(np.mean([run.figures[name] for run in runs])) for name in names(level))
    return covered, width


def verdicts(sets: list[str], done: Done) -> list[str]:
    """How many sets each method covers as promised: a paragraph a method and promise."""
    levels = dict.fromkeys(level for kind in PROMISES.values() for level in kind)
    lines = []
    for level in levels:
        for method in PLAIN:
            of = {
                name: found(done[name, method], level)
                for name in sets
                if (name, method) in done and level in PROMISES[kind_of(name, done) or VALUES]
            }
            lines += [verdict(method, level, of, done), ""] if of else []
    return lines


def verdict(method: str, level: float, of: dict[str, tuple[float, float]], done: Done) -> str:
    """How many sets a method covers as promised, and which it covers more or less."""
    more = [name for name in of if of[name][0] > level + POINT + 1e-9]
    less = [name for name in of if of[name][0] < level - POINT - 1e-9]
    near = len(of) - len(more) - len(less)
    text = f"**{method}** is within one point of the promised {promised(level)} on {near} of {len(of)} sets"
    text += "." if VALUES in {kind_of(name, done) for name in of} else " of classes."
    for word, some in (("more", more), ("less", less)):
        shown = (f"{name} ({percent(of[name][0])}{one_label(name, of, done)})" for name in some)
        text += f" It covers {word} on {', '.join(shown)}." if some else ""
    return text


def one_label(name: str, of: dict[str, tuple[float, float]], done: Done) -> str:
    """What explains a share that is above the promise: nearly all sets have one label, and none has fewer."""
    few = kind_of(name, done) == CLASSES and of[name][1] < 1 + POINT
    return f" with {of[name][1]:.2f} labels a set" if few else ""


def figures(sets: Iterable[str], rows: dict[str, Any], kind: str, done: Done) -> list[str]:
    """The table of coverages and widths: a row a set and promise."""
    sets = [name for name in sets if name not in TIMED]
    methods = [method for method in PLAIN if any((name, method) in done for name in sets)]
    several = len(PROMISES[kind]) > 1
    out = []
    for name in sets:
        for level in PROMISES[kind]:
            of = {method: found(done[name, method], level) for method in methods if (name, method) in done}
            kept = [width for covered, width in of.values() if covered >= level - POINT]
            cells = [cell for m in methods for cell in shown(of.get(m), min(kept, default=None), done.get((name, m)))]
            out.append([name, row_counts(rows[name]), *([promised(level)] if several else []), *cells])
    heads = [head for method in methods for head in (f"{method}, %", UNITS[kind])]
    return table(["set", "training / test rows", *(["promise"] if several else []), *heads], out) if out else []


def shown(of: tuple[float, float] | None, least: float | None, runs: list[Any] | None) -> tuple[str, str]:
    """Cells of a coverage and a width."""
    if of is None or not runs:
        return "-", "-"
    covered, width = of
    text = f"**{number(width)}**" if number(width) == number(least) else number(width)
    deviation = runs[0].figures.get("deviation")
    return f"{100 * covered:.1f}", text + (f" ({number(width / deviation)})" if deviation else "")


def in_time(name: str, done: Done) -> list[str]:
    """The section on a set whose test rows are later than those of training."""
    level = PROMISES[VALUES][0]
    runs = {method: done[name, method] for method in METHODS if (name, method) in done}
    if not runs:
        return []
    rows = row_counts(next(iter(runs.values()))[0].rows)
    text = (
        f"The test rows of {name} are later than all training rows, which are in the order of time ({rows} rows). Such"
    )
    text += f" rows are not exchangeable, so no method promises anything here; {promised(level)} was asked for."
    for method, some in runs.items():
        covered, width = found(some, level)
        wide = f"{number(width)}, {number(width / some[0].figures['deviation'])} standard deviations"
        text += f" {SPOKEN[method]} covers {percent(covered)} of the test rows, with a mean width of {wide}."
    return [f"## Later rows: {name}", "", text, ""]


def seconds(rows: dict[str, Any], done: Done) -> list[str]:
    """The table of processor seconds."""
    methods = [method for method in METHODS if any((name, method) in done for name in rows)]

    def text(runs: list[Any]) -> str:
        both = ("train_cpu", "predict_cpu")
        return " / ".join(number(float(np.median([run.figures[each] for run in runs]))) for each in both)

    out = [[name, *(text(done[name, m]) if (name, m) in done else "-" for m in methods)] for name in rows]
    return table(["set", *methods], out)
