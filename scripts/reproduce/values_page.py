"""The page of reproduce/values.py: who has the smaller error, in words first; then errors, times and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from harness.machine import processors, with_article
from harness.tables import number, table, thousands
from reproduce import held_out
from reproduce.value_peers import (
    BOOSTERS,
    KERNEL_ROWS,
    LARGEST,
    LEVELS,
    MOST_TREES,
    PEERS,
    PROCESS_ROWS,
    RATE,
    SEARCH_ROWS,
)

CHOSEN, BASE = " chosen", "LightGBM chosen"
OURS = ("localsvm", "localsvm high")
TIMED = {name: columns for name, (_, _, columns, _) in held_out.VALUES.items()}  # whose test rows are later ones
QUANTILES, LATER = ("localsvm quantiles", "LightGBM quantiles"), "localsvm blocks"
METHODS = [*OURS, *(name for name in PEERS if name not in QUANTILES)]
EVEN = 0.01  # of the RMSE, within which it is a draw where answers were not kept
ABOUT = """\
# Values in tables: lsvm-train beside boosted trees, forests and kernel machines

Written by `make reproduce-values TABLES=...` (`scripts/reproduce/values.py`) from `values.jsonl`; one thread each, on
{machines}. The machine had other work, so all times are processor seconds.
"""
HOW = """\
## How it was measured

- **Ours**: `lsvm-train --loss least-squares --label TARGET --ignore ... NAME.train.csv` is all that is said of a table;
  "high" is `--effort high`. Times are those of the whole command, with start-up and reading; a peer's are of training
  alone, of rows in memory.
- **Peers** get the same columns, and the categories in their own way: categories of pandas for LightGBM, XGBoost and
  HistGradientBoosting, text for CatBoost, numbers of levels for forests. SVR, KernelRidge, the Gaussian process and
  xRFM get a column of 0 and 1 for each level, medians for missing numbers, and numbers and target of mean 0 and
  deviation 1. Columns without any value are left out.
- **"chosen"**, behind the stroke: sizes of trees (LightGBM 7, 31 and 127 leaves, XGBoost and CatBoost depths 6 and 8),
  each trained on three quarters of the training rows at the rate {rate:g}, at most {trees} trees, stopped early on the
  fourth; the best is trained again on all. The time is that of all of it.
- **Kernel machines**: settings by three folds of at most {search} rows, then all rows. The Gaussian process has
  at most {process} rows, and its kernel is found on {kernel} of them. xRFM holds out a quarter of the rows and is not
  trained again on all. Not begun with more training rows: {largest}.
- Peers and "high" have one seed. Test rows serve for the errors above and for nothing else.
"""
LATER_TEXT = """## Later rows

All test rows of these sets are later than the training rows. With training rows in the order of time and
`lsvm-train -v blocks`, a fold is a stretch of time, too:
"""
QUANTILE_TEXT = """## Quantiles

`--loss quantile --quantile {levels}`, seed 0, beside three models of LightGBM, each with leaves and trees
chosen by the pinball loss at its level. The mean pinball losses of the test rows, the smallest in bold; how many of
these lie between the outer levels, of which {right:g} % is right; and processor seconds of training.
"""
Done = dict[tuple[str, str], list[Any]]  # runs that are ok, by set and method


def by_set(runs: list[Any]) -> tuple[Done, dict[str, Any]]:
    """Runs that are ok, and the rows of each set, small ones first."""
    done: Done = {}
    for run in runs:
        if run.status == "ok":
            done.setdefault((run.name, run.method), []).append(run)
    return done, {run.name: run.rows for run in sorted(runs, key=lambda run: tuple(run.rows))}


def page(runs: list[Any], _: Any) -> str:
    """The Markdown."""
    done, rows = by_set(runs)
    lines = [ABOUT.format(machines=with_article(processors(run.machine for run in runs)))]
    for method in OURS:
        lines += verdict(method, rows, done)
    lines += ["## Test error, RMSE", "", "The smallest of a set in bold. Means over the seeds (deviations).", ""]
    lines += [*errors(rows, done), "", "## Training, processor seconds", "", "Medians over the seeds.", ""]
    lines += [*seconds(rows, done), "", *later(rows, done), *quantiles(rows, done), how(), *missing(runs)]
    return "\n".join(lines)


def how() -> str:
    """Text on the measurement."""
    largest = ", ".join(f"{name} {thousands(most)}" for name, most in LARGEST.items())
    counts = {"trees": MOST_TREES, "search": SEARCH_ROWS, "process": PROCESS_ROWS, "kernel": KERNEL_ROWS}
    return HOW.format(rate=RATE, largest=largest, **{name: thousands(count) for name, count in counts.items()})


def verdict(method: str, sets: Iterable[str], done: Done) -> list[str]:
    """Wins, draws and losses of a method of ours beside the best booster."""
    sides: dict[str, list[str]] = {"wins": [], "draws": [], "losses": []}
    rough = []
    for name in sets:
        mine = done.get((name, method), [])
        known = {booster: error(done[name, booster]) for booster in BOOSTERS if (name, booster) in done}
        if not mine or not known:
            continue
        best = min(known, key=lambda booster: known[booster])
        side, paired = judged(mine, done[name, best][0])
        sides[side].append(f"{name} ({number(error(mine), 4)} and {number(known[best], 4)}, {best})")
        rough += [] if paired else [name]
    if not any(sides.values()):
        return []
    head = [
        f"**{method}** beside the best booster of each set, picked by its test error; a draw is within one standard",
        "error of the mean difference of the squared errors, paired by test row:",
    ]
    lines = [f"- {side}: {len(names)}{': ' + ', '.join(names) if names else ''}." for side, names in sides.items()]
    by_percent = [f"Without paired rows, a draw within {100 * EVEN:g} % of the RMSE: {', '.join(rough)}.", ""]
    return [*head, "", *lines, "", *(by_percent if rough else [])]


def judged(ours: list[Any], theirs: Any) -> tuple[str, bool]:
    """Wins, draws or losses; and whether by paired rows.

    The difference is a mean over our seeds. So is its standard error, since seeds have the test rows in common: it is
    at least that of the mean.
    """
    found = [pair(run, theirs) for run in ours]
    if all(found):
        more, within = np.mean(np.array(found), axis=0)
    else:
        more, within = error(ours) - error([theirs]), EVEN * error([theirs])
    return "draws" if abs(more) <= within else "wins" if more < 0 else "losses", all(found)


def pair(ours: Any, theirs: Any) -> tuple[float, float] | None:
    """Our mean squared error less theirs, and its standard error, as one of both runs has it.

    None where neither has, or has it of an earlier run of the other.
    """
    difference = ours.figures["rmse"] ** 2 - theirs.figures["rmse"] ** 2
    for one, other, sign in ((ours, theirs, 1), (theirs, ours, -1)):
        more, within = one.figures.get("pairs", {}).get(f"{other.method} {other.seed}", (np.nan, np.nan))
        if abs(sign * more - difference) <= 1e-6 * theirs.figures["rmse"] ** 2:
            return difference, within
    return None


def error(runs: list[Any]) -> float:
    """Mean RMSE of some runs."""
    return float(np.mean([run.figures["rmse"] for run in runs]))


def errors(rows: dict[str, tuple[int, int]], done: Done) -> list[str]:
    """The table of errors."""

    def shown(runs: list[Any], least: bool) -> str:
        spread = [run.figures["rmse"] for run in runs]
        text = f"**{number(error(runs), 4)}**" if least else number(error(runs), 4)
        return f"{text} ({np.std(spread):.2g})" if len(spread) > 1 else text

    return table_of(rows, done, error, shown)


def seconds(rows: dict[str, tuple[int, int]], done: Done) -> list[str]:
    """The table of times, and the medians of the ratios to LightGBM with chosen settings."""
    lines = table_of(rows, done, time, lambda runs, _: number(time(runs)))
    ratios = []
    for method in METHODS:
        both = [name for name in rows if (name, method) in done and (name, BASE) in done]
        some = [time(done[name, method]) / time(done[name, BASE]) for name in both]
        if some and method != BASE:
            ratios.append(f"{method} {number(float(np.median(some)), 2)} ({len(some)})")
    head = f"Over the time of {BASE}, medians over the sets (number of sets): "
    return [*lines, "", head + ", ".join(ratios) + "."] if ratios else lines


def time(runs: list[Any]) -> float:
    """Median processor seconds of training."""
    return float(np.median([run.figures["train_cpu"] for run in runs]))


def table_of(
    rows: dict[str, tuple[int, int]],
    done: Done,
    figure: Callable[[list[Any]], float],
    shown: Callable[[list[Any], bool], str],
) -> list[str]:
    """A table with a row a set; `shown` is told whether the figure is the smallest of the row."""
    methods = [method for method in METHODS if any((name, method) in done for name in rows)]
    names = list(dict.fromkeys(method.removesuffix(CHOSEN) for method in methods))
    out = []
    for name in (name for name in rows if any((name, method) in done for method in methods)):
        values = {method: figure(done[name, method]) for method in methods if (name, method) in done}
        least = min(values.values())
        cells = {m: shown(done[name, m], values[m] == least) if m in values else "-" for m in methods}
        joined = [" / ".join(cells[m] for m in (each, each + CHOSEN) if m in cells) for each in names]
        out.append([name, row_counts(rows[name]), *joined])
    head = [each if each in methods else each + CHOSEN for each in names]
    return table(["set", "training / test rows", *head], out)


def row_counts(rows: Sequence[int]) -> str:
    """Rows for training and test."""
    return " / ".join(map(thousands, rows))


def later(rows: dict[str, tuple[int, int]], done: Done) -> list[str]:
    """The section on sets whose test rows are later ones."""
    lines = [
        f"- {name}: RMSE {number(error(done[name, LATER]), 4)} in {number(time(done[name, LATER]))} s."
        for name in rows
        if (name, LATER) in done
    ]
    return [LATER_TEXT, *lines, ""] if lines else []


def quantiles(rows: dict[str, tuple[int, int]], done: Done) -> list[str]:
    """The section on quantiles."""
    out = []
    for name in rows:
        runs = {method: done[name, method][0] for method in QUANTILES if (name, method) in done}
        best = np.min([run.figures["pinball"] for run in runs.values()], axis=0) if runs else []
        for method, run in runs.items():
            losses = zip(run.figures["pinball"], best, strict=True)
            texts = [f"**{number(loss, 4)}**" if loss == least else number(loss, 4) for loss, least in losses]
            inside = f"{100 * run.figures['inside']:.1f}"
            out.append([name, method.removesuffix(" quantiles"), *texts, inside, number(run.figures["train_cpu"])])
    if not out:
        return []
    head = ["set", "method", *(f"at {level:g}" for level in LEVELS), "inside, %", "processor s"]
    levels, right = ",".join(f"{level:g}" for level in LEVELS), 100 * (LEVELS[-1] - LEVELS[0])
    return [QUANTILE_TEXT.format(levels=levels, right=right), *table(head, out), ""]


def missing(runs: list[Any]) -> list[str]:
    """The section of runs without a figure, those of one method and reason together."""
    why: dict[str, list[str]] = {}
    for run in runs:
        if run.status != "ok":
            why.setdefault(f"{run.method}, {run.message}", []).append(run.name)
    lines = [f"- {reason}: {', '.join(dict.fromkeys(names))}." for reason, names in why.items()]
    return ["## Without a figure", "", *lines, ""] if lines else []
