"""The page of reproduce/tabular.py: who has the smaller error, in words first; then errors and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from harness.machine import processors, with_article
from harness.tables import number, table, thousands
from reproduce.tabular_peers import MOST_TREES, PATIENCE, PEERS, SEARCH_TREES, XRFM, XRFM_LEAF

CHOSEN = " chosen"
ABOUT = """\
# Tables of many rows: lsvm-train beside boosted trees, forests and other SVMs

Written by `make reproduce-tabular DATA=...` (`scripts/reproduce/tabular.py`) from `tabular.jsonl`; one thread each, on
{machines}. The machine had other work, so all times are processor seconds.

## Who wins
"""
HOW = """\
## How it was measured

- **Test files serve for the errors above and nothing else.** Whatever is chosen is chosen on training rows.
- **Ours** are whole commands on LIBSVM text: `lsvm-train --metric none`, `--metric auto` (the default), and
  `--effort high` ("high"), the rest at defaults. Start-up, reading and writing count, about a second of
  each command and more on large files: it is most of a prediction. A peer's time is training and prediction alone, of
  dense float32 rows in memory.
- **Which times belong together.** `auto` and LightGBM chosen (but for what is over 600 s) were timed on one machine, an
  AMD EPYC with AVX-512, beside one or two other processes. "high" was timed on two Intel Xeons (cod-rna and magic on
  the first machine), and the other columns on other AMD EPYCs. A random forest takes 2.8 s on magic on the first
  machine, 3.0 and 3.7 s on the Xeons, and 4.0 s on the others.
- **"chosen"** (behind the stroke; defaults before it): each of a peer's settings is trained on three quarters of the
  training rows, the one with the fewest wrong rows on the fourth is trained again on all. The time is that of all of
  it. Boosters have the learning rate 0.1 and at most {trees} trees, ended where {patience} more do not lower the
  held-out log loss. Forests are tried with {forest} trees and chosen with 100. SVMs have scaled rows; "width" is gamma
  times the number of features. The settings:
{settings}
- **xRFM** needs held-out rows in its training: that quarter, and is not trained again on all rows. Its leaves have
  {leaf} rows (its default, 60 000, is for GPUs), rows are scaled, and "chosen"
  tries the bandwidths {bandwidths}.
- **RealMLP** is the network of pytabkit at its tuned defaults. It holds out a fifth of the rows by itself. It was
  run on a machine that had other work, with one seed.
- A peer is stopped after ten minutes of processor time, or when the machine's memory (24 GiB) is full, and then
  not begun on sets of no fewer rows, features and classes. The grid of SVC is not begun with more than 25 000 rows.
- covtype is class 2 against the rest, covtype7 the same rows with all seven classes. higgs_like is generated: six
  directions among 28 features tell the classes apart, which is what a metric finds and trees do not; its Bayes error is
  15.86 %. higgs_like_1m has a million of its rows; higgs11k is the real one.
- **Rows that are known.** In some sets the test rows have the values of a training row: in w8a all of them, in
  skin_nonskin 85 %, a9a 34 %, cod-rna 24 %, letter 9 %, elsewhere at most 2 %.
  A memory of the training rows makes 0.56 % errors on w8a, as the forest does; that is no forecast for new rows.
  `auto` and "high" give such rows [the label that was seen](../copies.md) where training rows say that it pays: on
  cod-rna and magic. `lsvm-predict` says how many rows these are, and the accuracy of the others.
- "Even" is a difference of at most one standard error, as of errors on two test files of this size. Errors on the same
  file vary together, so that the difference is worth more than that.
- Seeds of each entry: {seeds}. Errors are means, times medians.
"""
NONE, AUTO, HIGH = "localsvm none", "localsvm auto", "localsvm high"
BOOSTERS = ("LightGBM", "XGBoost", "CatBoost")
SIDES = {
    "theirs": "**A peer wins**",
    "ours": "**`lsvm-train --metric auto` wins** against every peer that ended in time",
    "even": "**Even** within a standard error",
    "open": "**No verdict yet**, as no booster with chosen settings was run,",
}


def page(runs: list[Any], _: Any, *, sets: Sequence[str], methods: Sequence[str], ours: Sequence[str]) -> str:
    """The Markdown."""
    done = Found(runs, sets, methods, ours)
    lines = [
        ABOUT.format(machines=with_article(processors(run.machine for run in runs))),
        *verdict(done),
        *gains(done),
        *prices(done),
    ]
    lines += ["", "## Test error, per cent", "", "The smallest of a set in bold.", "", *done.table_of(done.error), ""]
    for title, figure in (("Training", "train_cpu"), ("Prediction of the test file", "predict_cpu")):
        lines += [f"## {title}, processor seconds", "", *done.table_of(done.seconds(figure)), ""]
    return "\n".join([*lines, *missing(done), how(done)])


class Found:
    """The runs by set and method; `ours` are the methods that are ours."""

    def __init__(self, runs: list[Any], sets: Sequence[str], methods: Sequence[str], ours: Sequence[str]) -> None:
        self.runs, self.ours = runs, ours
        self.sets = [name for name in sets if any(run.name == name for run in runs)]
        self.methods = [method for method in methods if any(run.method == method for run in runs)]
        self.absent = [each for each in (*sets, *methods) if each not in (*self.sets, *self.methods)]

    def good(self, name: str, method: str) -> list[Any]:
        """The runs that ended well."""
        return [run for run in self.runs if (run.name, run.method, run.status) == (name, method, "ok")]

    def mean(self, name: str, method: str) -> float | None:
        """The mean error in per cent."""
        good = self.good(name, method)
        return float(np.mean([run.figures["error"] for run in good])) if good else None

    def median(self, name: str, method: str, figure: str) -> float | None:
        """The median of a time."""
        good = self.good(name, method)
        return float(np.median([run.figures[figure] for run in good])) if good else None

    def rows(self, name: str) -> tuple[int, int]:
        """Numbers of rows for training and test."""
        return next((tuple(run.rows) for run in self.runs if run.name == name and run.rows[0]), (0, 0))

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

    def table_of(self, entry: Callable[[str, str], str]) -> list[str]:
        """A line for each set; defaults and what is chosen in one column, with a stroke between."""
        columns = list(dict.fromkeys(method.removesuffix(CHOSEN) for method in self.methods))
        head = ["set", "training / test rows", *(column.removeprefix("localsvm ") for column in columns)]
        lines = []
        for name in self.sets:
            pairs = ([entry(name, method) for method in self.of(column)] for column in columns)
            cells = [pair[0] if pair[-1] == pair[0] == "not begun" else " / ".join(pair) for pair in pairs]
            lines.append([name, " / ".join(map(thousands, self.rows(name))), *cells])
        return table(head, lines)

    def of(self, column: str) -> list[str]:
        """The methods of a column."""
        return [method for method in (column, column + CHOSEN) if method in self.methods]

    def error(self, name: str, method: str) -> str:
        """An entry: the mean, the least of a set in bold."""
        error, least = self.mean(name, method), self.best(name, self.methods)
        if error is None or least is None:
            return self.briefly(name, method)
        return f"**{shown(error)}**" if error == least[1] else shown(error)

    def seconds(self, figure: str) -> Callable[[str, str], str]:
        """Entries: medians."""

        def entry(name: str, method: str) -> str:
            median = self.median(name, method, figure)
            return self.briefly(name, method) if median is None else number(median)

        return entry

    def reason(self, name: str, method: str) -> str:
        """Reason for which there is no figure."""
        run = next((run for run in self.runs if (run.name, run.method) == (name, method)), None)
        return "-" if run is None else run.message if run.status in ("timeout", "not begun") else run.status

    def briefly(self, name: str, method: str) -> str:
        """Reason in few words; see `reason`."""
        runs = [run.status for run in self.runs if (run.name, run.method) == (name, method)]
        return "not begun" if "not begun" in runs else self.reason(name, method)


def verdict(runs: Found) -> list[str]:
    """Lists of the sets on which our command or the best peer wins, with the noise of the test file."""
    sides = divided(runs, AUTO)
    judged = [pair for side, pairs in sides.items() if side != "open" for pair in pairs]
    smaller = sum(theirs < mine for _, mine, theirs, _ in judged)
    intro = "`lsvm-train --metric auto` beside the best peer of each set, picked by its test error, which flatters it."
    words = f"By the figure alone a peer is better on {smaller} of them."
    lines = []
    for side, pairs in sides.items():
        texts = [f"{name} ({shown(mine)} and {shown(theirs)}, {peer})" for name, mine, theirs, peer in pairs]
        lines += [f"- {SIDES[side]} on {len(texts)}: {', '.join(texts)}."] if texts else []
    return [intro, f"Errors in per cent, ours first; {len(judged)} sets. {words}", "", *lines, "", *efforts(runs)]


def divided(runs: Found, ours: str) -> dict[str, list[tuple[str, float, float, str]]]:
    """Sets by who wins: (set, error of `ours`, error of the best peer, that peer)."""
    sides: dict[str, list[tuple[str, float, float, str]]] = {side: [] for side in SIDES}
    for name in runs.sets:
        mine, best = runs.mean(name, ours), runs.best(name, runs.peers())
        if mine is None or best is None:
            continue
        peer, error = best
        clear = abs(mine - error) > runs.noise(name, mine, error)
        if clear and error < mine:
            side = "theirs"
        elif all(runs.reason(name, booster + CHOSEN) == "-" for booster in BOOSTERS):
            side = "open"  # a booster with chosen settings could still win
        else:
            side = "ours" if clear else "even"
        sides[side].append((name, mine, error, peer))
    return sides


def efforts(runs: Found) -> list[str]:
    """Sentence on who wins with a high effort."""
    sides = {side: [pair[0] for pair in pairs] for side, pairs in divided(runs, HIGH).items() if side != "open"}
    verbs = {"ours": "it wins", "theirs": "it loses", "even": "it is even"}
    parts = [f"{verb} on {len(sides[side])} ({', '.join(sides[side])})" for side, verb in verbs.items() if sides[side]]
    total = sum(map(len, sides.values()))
    return [f"With `--effort high` {', '.join(parts)} of the {total} sets where that was run.", ""] if parts else []


def gains(runs: Found) -> list[str]:
    """Sentence on the sets where the learned metric changes the error by more than the noise of the test file."""
    fewer, more = [], []
    for name in runs.sets:
        mine, without = runs.mean(name, AUTO), runs.mean(name, NONE)
        if mine is not None and without is not None and abs(mine - without) > runs.noise(name, mine, without):
            (fewer if mine < without else more).append(f"{name} ({shown(mine)} and {shown(without)})")
    parts = [f"{side} errors on {', '.join(sets)}" for side, sets in (("fewer", fewer), ("more", more)) if sets]
    said = "Beside `--metric none`, by more than a standard error, `--metric auto` makes"
    return [f"{said} {'; '.join(parts)}.", ""] if parts else []


def prices(runs: Found) -> list[str]:
    """Our time of training over those of the peers: medians over the sets."""
    words = []
    for peer in runs.peers():
        pairs = [(runs.median(name, AUTO, "train_cpu"), runs.median(name, peer, "train_cpu")) for name in runs.sets]
        ratios = [mine / theirs for mine, theirs in pairs if mine is not None and theirs]
        if ratios:
            words.append(f"{peer} {number(float(np.median(ratios)), 2)} ({len(ratios)})")
    said = "Its processor seconds of training, whole command, over a peer's; medians over the sets, (number of sets)"
    machine = "LightGBM chosen alone was timed on the same machine."
    return [f"{said}: {', '.join(words)}. {machine}"] if words else []


def shown(error: float) -> str:
    """Two digits, three of small ones."""
    return f"{error:.{3 if error < 0.1 else 2}f}"


def missing(runs: Found) -> list[str]:
    """Section on what was not run, and what did not end well."""
    holes: dict[str, dict[str, list[str]]] = {}
    for method in runs.methods:
        for name in runs.sets:
            if not runs.good(name, method):
                holes.setdefault(method, {}).setdefault(runs.reason(name, method), []).append(name)
    lines = [f"- Not run at all, so far: {', '.join(runs.absent)}."] if runs.absent else []
    for method, reasons in holes.items():
        said = "; ".join(f"{'not run' if r == '-' else r}: {', '.join(names)}" for r, names in reasons.items())
        lines.append(f"- {method}: {said}.")
    failures = {run.method: run.message for run in runs.runs if run.status == "failed"}
    lines += [f"- {method} failed with the message: {message}" for method, message in failures.items()]
    return ["## Without a figure", "", *lines, ""] if lines else []


def how(runs: Found) -> str:
    """The protocol."""
    counts = {len(runs.good(name, method)) for name in runs.sets for method in runs.methods} - {0}
    tried = [(name.removesuffix(CHOSEN), grid(peer.settings)) for name, peer in PEERS.items() if peer.settings[1:]]
    return HOW.format(
        trees=MOST_TREES, patience=PATIENCE, forest=SEARCH_TREES, leaf=thousands(XRFM_LEAF),
        settings="\n".join(f"  - {name}: {values}" for name, values in tried),
        bandwidths=", ".join(f"{value:g}" for value in XRFM["xRFM" + CHOSEN]),
        seeds=" to ".join(map(str, sorted({min(counts), max(counts)}))) if counts else "none",
    )  # fmt: skip


def grid(settings: list[dict[str, Any]]) -> str:
    """The values of each name that has several."""
    values = {name: list(dict.fromkeys(each[name] for each in settings)) for name in settings[0]}
    return " x ".join(f"{name} {', '.join(map(str, v))}" for name, v in values.items() if len(v) > 1)
