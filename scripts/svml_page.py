"""The page of reproduce_svml: errors beside the paper's, what the metric earns, significance, and times."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.machine import processors
from harness.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, empty_figure, legend_below, legend_entries
from harness.tables import table

Values = np.ndarray[Any, np.dtype[np.float64]]
BASE, OURS, FROZEN, HALF = "Euclidean 5-fold", "SVML", "SVML (L frozen)", "SVML (half of the rows)"
ALLOWED = 0.4  # that our difference may be above the paper's
NAMES = ("Haber", "Credit", "ACredit", "Trans", "Diabts", "Mammo", "CMC", "Page", "Gamma")
PAPER = {  # Tables 1 and 2, test error in per cent
    name: dict(zip(NAMES, values, strict=True))
    for name, values in {
        "Euclidean 5-fold": (27.37, 13.12, 14.11, 20.54, 23.46, 18.17, 26.91, 2.56, 12.62),
        "Euclidean 3-fold": (27.40, 13.10, 14.13, 20.58, 23.39, 18.27, 26.77, 2.55, 12.68),
        "Euclidean 1-fold": (27.16, 13.16, 14.36, 21.05, 23.84, 18.43, 27.12, 2.61, 12.70),
        "SVML": (25.99, 12.83, 13.92, 20.89, 23.25, 17.57, 26.34, 3.41, 12.54),
        "SVML-Diag": (28.15, 13.33, 15.11, 20.46, 24.14, 17.35, 29.51, 2.92, 12.54),
        "SVML-Sphere": (27.42, 13.43, 13.78, 20.26, 23.24, 17.81, 28.23, 3.61, 12.70),
    }.items()
}
ABOUT = """\
# A metric learned by its SVM: Tables 1 and 2 of the SVML paper

Written by `make reproduce-svml DATA=...` (`scripts/reproduce_svml.py`). Random splits, the same for all methods, 80 %
of the rows for training; features have deviation 1. All methods train the SVM with the squared hinge and an offset.
Euclidean: C of 0.1, 1, 10, 100 and sigma^2 of 4d, 2d, d, d/2, d/4 by cross-validation (1-fold: one fifth is held out).
SVML learns L and C on at most 8 000 rows, then solves on all. "L frozen" has `--pull 100`: L stays at I/d and C alone
is learned. Credit has its 46 one-hot columns; CMC is class 1 against 2; Page is text against the rest.
Processor: {processor}.
"""
REMARKS = """\
## What to make of it

- L frozen at I/d with a learned C, and solved on all rows again, already wins most of what SVML wins against
  cross-validation. "SVML minus L frozen" is what the metric adds: it pays on Mammo and CMC, and costs on Credit
  (46 x 46 numbers from 522 rows) and ACredit.
- Credit: the paper counts 15 features and does not say how it made numbers of the nominal ones. Here they are 40
  one-hot columns, scaled like all others. Left at 0 and 1 they give 14.3 (Euclidean 5-fold) and 14.7 % (SVML) on the
  first 40 splits, where scaled ones give 15.1 and 14.4: the scaling is not what keeps us above the paper.
- SVML-Diag and SVML-Sphere are better here than in the paper where a star says so. The paper does not say at which C
  the search begins, how long it waits, or on which rows the last SVM is solved; here it is C = 1, 10 steps, and all.
"""
PICTURE = "times.png"
COLOURS = (BLUE, GREEN, GREY, RED, ORANGE, PURPLE)


class Found:
    """Errors and seconds of all splits, by set and method."""

    def __init__(self, runs: list[Any]) -> None:
        self._runs = sorted(runs, key=lambda run: run.block)
        self.sets = [name for name in NAMES if any(run.name == name for run in runs)]
        self.methods = list(dict.fromkeys([*PAPER, FROZEN, HALF, *(run.method for run in runs)]))

    def errors(self, name: str, method: str) -> Values:
        """In per cent; of no split where there was no run."""
        return self._all(name, method, "errors")

    def seconds(self, name: str, method: str) -> Values:
        """Of training."""
        return self._all(name, method, "seconds")

    def differences(self, name: str, method: str, other: str) -> Values:
        """Errors of a method minus those of another one, over the splits that both have."""
        blocks = {run.block for run in self._runs if (run.name, run.method) == (name, method)}
        both = blocks & {run.block for run in self._runs if (run.name, run.method) == (name, other)}
        return np.subtract(*(self._all(name, one, "errors", both) for one in (method, other)))

    def _all(self, name: str, method: str, figure: str, blocks: Any = None) -> Values:
        found = [run for run in self._runs if (run.name, run.method) == (name, method)]
        chosen = [getattr(run, figure) for run in found if blocks is None or run.block in blocks]
        return np.asarray([value for values in chosen for value in values], np.float64)


def page(runs: list[Any], options: Any) -> str:
    """The tables; the picture is drawn into the folder of the results."""
    found = Found(runs)
    draw_times(found).savefig(options.out / PICTURE, dpi=150)
    lines = [ABOUT.format(processor=processors(run.machine for run in runs))]
    for part in (errors, earned, significance, rows_of_gamma, times):
        lines += part(found)
    return "\n".join([*lines, REMARKS])


def errors(found: Found) -> list[str]:
    """Table 2."""
    rows = [[m, *(entry(found, name, m) for name in found.sets)] for m in found.methods if m != HALF]
    return [
        "## Test error in per cent",
        "",
        "Mean (standard error) / the paper's. \\* differs from the paper's by more than two standard errors of a",
        "difference of two means of so many splits. In brackets behind a set: our splits.",
        "",
        *table(("method", *(f"{name} ({len(found.errors(name, BASE))})" for name in found.sets)), rows),
        "",
    ]


def entry(found: Found, name: str, method: str) -> str:
    """An entry of Table 2."""
    values, theirs = found.errors(name, method), PAPER.get(method, {}).get(name)
    if not len(values):
        return "-"
    spread = standard_error(values)
    beyond = theirs is not None and abs(np.mean(values) - theirs) > 2.0 * np.sqrt(2.0) * spread
    ours = f"{np.mean(values):.2f}" + (f" ({spread:.2f})" if np.isfinite(spread) else "")
    return ours + (f" / {theirs:.2f}" if theirs is not None else "") + (" \\*" if beyond else "")


def standard_error(values: Values) -> float:
    """Of the mean; infinite for one value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf


def earned(found: Found) -> list[str]:
    """What SVML wins against Euclidean cross-validation, and how much of it is the learned C."""
    rows, reached, below = [], 0, 0
    for name in found.sets:
        ours, frozen = (found.differences(name, method, BASE) for method in (OURS, FROZEN))
        if not len(ours):
            continue
        theirs = PAPER[OURS][name] - PAPER[BASE][name]
        reached += bool(np.mean(ours) <= theirs + ALLOWED)
        below += bool(np.mean(ours) < 0)
        metric = found.differences(name, OURS, FROZEN)
        rows.append(
            [name, *map(mean, (ours, frozen, metric)), f"{theirs:+.2f}", yes(np.mean(ours) <= theirs + ALLOWED)]
        )
    head = ("set", "SVML", "L frozen", "SVML minus L frozen", "paper's SVML", f"at most {ALLOWED:g} above the paper's")
    return [
        "## Minus Euclidean 5-fold on the same splits",
        "",
        *table(head, rows),
        "",
        f"At most {ALLOWED:g} above the paper's difference on {reached} of {len(rows)} sets, below 0 on {below}.",
        "",
    ]


def mean(values: Values) -> str:
    """+0.31 (0.10), the standard error in brackets."""
    if not len(values):
        return "-"
    spread = standard_error(values)
    return f"{np.mean(values):+.2f}" + (f" ({spread:.2f})" if np.isfinite(spread) else "")


def yes(value: Any) -> str:
    """In words."""
    return "yes" if value else "no"


def significance(found: Found) -> list[str]:
    """On how many sets a method is the best one or not clearly worse."""
    compared = [m for m in found.methods if m in PAPER]
    rows, whole = [], [name for name in found.sets if all(len(found.errors(name, m)) for m in compared)]
    for method in compared:
        good = [name for name in whole if is_good(found, name, method, compared)]
        rows.append((method, len(good), ", ".join(good)))
    return [
        "## Best up to significance",
        "",
        "Sets on which a method has the smallest mean, or one that is above it by less than 1.96 standard errors of",
        "the difference on the same splits; the splits overlap, so these are too small. Gamma, with one split, counts",
        "where a method is the best one. The paper, with its other baselines in the comparison: SVML 6, SVML-Diag 2,",
        f"SVML-Sphere 2. Counted are the {len(whole)} sets on which all of these methods have run.",
        "",
        *table(("method", "sets", ""), rows),
        "",
    ]


def is_good(found: Found, name: str, method: str, compared: list[str]) -> bool:
    """Whether a method is the best one of a set, or not clearly worse."""
    there = [m for m in compared if len(found.errors(name, m))]
    if method not in there:
        return False
    best = min(there, key=lambda m: float(np.mean(found.errors(name, m))))
    behind = found.differences(name, method, best)
    if len(behind) < 2:
        return bool(len(behind)) and float(behind[0]) == 0.0
    return bool(np.mean(behind) <= 1.96 * standard_error(behind))


def rows_of_gamma(found: Found) -> list[str]:
    """What 8 000 rows cost against the paper's half, where there was a run."""
    half, usual = found.errors("Gamma", HALF), found.errors("Gamma", OURS)
    if not len(half) or not len(usual):
        return []
    seconds = [np.mean(found.seconds("Gamma", method)) for method in (OURS, HALF)]
    return [
        "## Fewer rows for the metric",
        "",
        f"On Gamma (15 216 training rows), L and C learned on 8 000 rows: {usual[0]:.2f} % in {seconds[0]:.0f} s; on",
        f"all of them, half for the SVM as in the paper: {half[0]:.2f} % in {seconds[1]:.0f} s.",
        "",
    ]


def times(found: Found) -> list[str]:
    """Figure 3."""
    rows = []
    for method in (m for m in found.methods if m != HALF):
        own = [found.seconds(name, method) for name in found.sets]
        rows.append([method, *(f"{np.mean(values):.3g}" if len(values) else "-" for values in own)])
    ratios = []
    for name in found.sets:
        ours, base = found.seconds(name, OURS), found.seconds(name, BASE)
        ratios.append(f"{np.mean(ours) / np.mean(base):.2f}" if len(ours) and len(base) else "-")
    return [
        "## Training: processor seconds of a split",
        "",
        *table(("method", *found.sets), [*rows, ["SVML / Euclidean 5-fold", *ratios]]),
        "",
        f"![Processor seconds of training]({PICTURE})",
        "",
    ]


def draw_times(found: Found) -> Any:
    """Bars for each set."""
    figure = empty_figure(10.0, 4.0)
    panel = figure.subplots()
    shown = [m for m in PAPER if any(len(found.seconds(name, m)) for name in found.sets)]
    places, width = np.arange(len(found.sets)), 0.8 / max(1, len(shown))
    for i, method in enumerate(shown):
        own = [found.seconds(name, method) for name in found.sets]
        heights = [np.mean(values) if len(values) else np.nan for values in own]
        panel.bar(places + (i - (len(shown) - 1) / 2) * width, heights, width, label=method, color=COLOURS[i])
    panel.set_yscale("log")
    panel.set_xticks(places, found.sets)
    panel.set_ylabel("processor seconds of training")
    legend_below(figure, legend_entries([panel]), columns=3)
    return figure
