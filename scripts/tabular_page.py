"""The page of reproduce_tabular.py: who has the smaller error, in words first; then errors and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from harness.machine import cores_of_processors
from harness.tables import number, table, thousands
from tabular_peers import MOST_TREES, PATIENCE, PEERS, SEARCH_TREES, XRFM, XRFM_LEAF

ABOUT = """\
# Tables of many rows: lsvm-train beside boosted trees, forests and other SVMs

Written by `make reproduce-tabular DATA=...` (`scripts/reproduce_tabular.py`) from `tabular.jsonl`. {machines}, one
thread each.

"""
HOW = """\
## How it was measured

- **Test files serve for the errors below and nothing else.** Whatever is chosen is chosen on training rows.
- **Ours** are whole commands on LIBSVM text, `lsvm-train --metric none`, `--metric auto`, and `--metric auto --repeats 3`
  ("x3"), the rest at defaults; start-up, reading and writing count, about half a second and more on large files. A
  peer's time is training and prediction alone, of dense float32 rows that lie in memory.
- **"chosen"**: each of a peer's settings is trained on three quarters of the training rows; the one with the fewest
  wrong rows on the fourth is trained again on all. The time is that of all of it. Boosters have the learning rate 0.1
  and at most {trees} trees, ended where {patience} more do not lower the held-out log loss. The settings: {settings}.
  Forests are tried with {forest} trees and chosen with 100. SVMs have scaled rows, and "width" is gamma times the number of features.
- **xRFM** needs held-out rows in its training: that quarter. Its leaves have {leaf} rows (its default of 60 000 takes
  far more than ten minutes on one core), rows are scaled, and "chosen" tries the bandwidths {bandwidths}.
- A peer is stopped after ten minutes of processor time.
- covtype is class 2 against the rest. higgs_like is generated: six directions among 28 features tell the classes apart,
  which is what a metric finds and trees do not; its Bayes error is 15.86 %. higgs11k is the real one.
- {seeds}
"""
AUTO = "localsvm auto"


def page(runs: list[Any], _: Any, *, sets: Sequence[str], methods: Sequence[str], ours: Sequence[str]) -> str:
    """The Markdown."""
    found = Found(runs, sets, methods, ours)
    about = ABOUT.format(machines=cores_of_processors(run.machine for run in runs).capitalize())
    lines = [about, *verdict(found), "", "## Test error, per cent", "", *found.table_of(found.error), ""]
    for title, figure in (("Training", "train_cpu"), ("Prediction of the test file", "predict_cpu")):
        entry = lambda name, method, figure=figure: found.seconds(name, method, figure)  # noqa: E731
        lines += [f"## {title}, processor seconds", "", *found.table_of(entry), ""]
    return "\n".join([*lines, *missing(found), how(found)])


class Found:
    """The runs by set and method. ours: the methods that are ours, best first where errors are equal."""

    def __init__(self, runs: list[Any], sets: Sequence[str], methods: Sequence[str], ours: Sequence[str]) -> None:
        self.runs, self.ours = runs, ours
        self.sets = [name for name in sets if any(run.name == name for run in runs)]
        self.methods = [method for method in methods if any(run.method == method for run in runs)]

    def good(self, name: str, method: str) -> list[Any]:
        """The runs that ended well."""
        return [run for run in self.runs if (run.name, run.method, run.status) == (name, method, "ok")]

    def mean(self, name: str, method: str) -> float | None:
        """The mean error in per cent."""
        good = self.good(name, method)
        return float(np.mean([run.figures["error"] for run in good])) if good else None

    def rows(self, name: str) -> tuple[int, int]:
        """For training and test."""
        return next((run.rows for run in self.runs if run.name == name and run.rows[0]), (0, 0))

    def noise(self, name: str, *errors: float) -> float:
        """The standard error of a difference of errors on the test file, as if of different rows."""
        return float(np.sqrt(sum(error * (100 - error) for error in errors) / self.rows(name)[1]))

    def best(self, name: str, methods: Iterable[str]) -> tuple[str, float] | None:
        """The method with the smallest error, and the error."""
        errors = [(error, method) for method in methods if (error := self.mean(name, method)) is not None]
        return min(errors)[::-1] if errors else None

    def peers(self) -> list[str]:
        """All but ours."""
        return [method for method in self.methods if method not in self.ours]

    def table_of(self, entry: Any) -> list[str]:
        """Sets across, methods down."""
        head = ["method", *(f"{name} ({thousands(self.rows(name)[0])})" for name in self.sets)]
        return table(head, [[m, *(entry(name, m) for name in self.sets)] for m in self.methods])

    def error(self, name: str, method: str) -> str:
        """An entry: the mean, the least of a set in bold."""
        error = self.mean(name, method)
        if error is None:
            return self.reason(name, method)
        digits = 3 if error < 0.1 else 2
        least = self.best(name, self.methods)
        return f"**{error:.{digits}f}**" if least and error == least[1] else f"{error:.{digits}f}"

    def seconds(self, name: str, method: str, figure: str) -> str:
        """An entry: the median."""
        good = self.good(name, method)
        return number(float(np.median([run.figures[figure] for run in good]))) if good else self.reason(name, method)

    def reason(self, name: str, method: str) -> str:
        """Why there is no figure."""
        run = next((run for run in self.runs if (run.name, run.method) == (name, method)), None)
        return "-" if run is None else run.message if run.status == "timeout" else run.status


def verdict(found: Found) -> list[str]:
    """Who wins where, of one command of ours and the best peer, with the noise of the test file."""
    lists: dict[str, list[str]] = {"theirs": [], "ours": [], "even": []}
    for name in found.sets:
        mine, best = found.mean(name, AUTO), found.best(name, found.peers())
        if mine is None or best is None:
            continue
        peer, error = best
        noise = found.noise(name, mine, error)
        side = "even" if abs(mine - error) <= 2 * noise else "ours" if mine < error else "theirs"
        lists[side].append(f"{name} ({shown(mine)}; {peer} {shown(error)})")
    what = {
        "theirs": "**Peers win** against `lsvm-train --metric auto`",
        "ours": "**`lsvm-train --metric auto` wins** against every peer that was run",
        "even": "**No difference** beyond the noise",
    }
    ends = " (errors in per cent, ours first; more than two standard errors of the difference)"
    found_any = [f"- {what[side]} on {len(sets)}: {', '.join(sets)}." for side, sets in lists.items() if sets]
    total = sum(map(len, lists.values()))
    return [f"Of {total} sets{ends}, the best peer being picked by its test error, which flatters it:", "", *found_any]


def shown(error: float) -> str:
    """Two digits, three of small ones."""
    return f"{error:.{3 if error < 0.1 else 2}f}"


def missing(found: Found) -> list[str]:
    """What was not run, and what did not end well."""
    holes: dict[str, list[str]] = {}
    for method in found.methods:
        for name in found.sets:
            if not found.good(name, method):
                holes.setdefault(method, []).append(f"{name} ({found.reason(name, method).replace('-', 'not run')})")
    failures = {run.method: run.message for run in found.runs if run.status == "failed"}
    lines = [f"- {method}: {', '.join(names)}." for method, names in holes.items()]
    lines += [f"- {method} failed: {message}" for method, message in failures.items()]
    return ["## Without a figure", "", *lines, ""] if lines else []


def how(found: Found) -> str:
    """The protocol."""
    counts = sorted({len(found.good(name, m)) for name in found.sets for m in found.methods} - {0})
    seeds = f"Runs of an entry: {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}; errors are means, times medians."
    lists = "; ".join(f"{name.removesuffix(' chosen')}: {grid(p.settings)}" for name, p in PEERS.items() if p.settings[1:])
    bandwidths = ", ".join(f"{value:g}" for value in XRFM["xRFM chosen"])
    return HOW.format(
        trees=MOST_TREES, patience=PATIENCE, settings=lists, forest=SEARCH_TREES, leaf=thousands(XRFM_LEAF),
        bandwidths=bandwidths, seeds=seeds,
    )  # fmt: skip


def grid(settings: list[dict[str, Any]]) -> str:
    """The values of each name that has several."""
    values = {name: list(dict.fromkeys(made[name] for made in settings)) for name in settings[0]}
    return " x ".join(f"{name} {', '.join(map(str, v))}" for name, v in values.items() if len(v) > 1)
