"""Figure 4: landmarks at random or by PCA on mnist: test accuracy, and the time of choosing them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from measuring import thousands

from l3_figures import BLUE, RED, Run, table
from localsvm.data.dataset import Examples, as_examples
from localsvm.data.reading import read
from localsvm.data.scaling import Scaling
from localsvm.methods.base import State
from localsvm.methods.l3 import L3SVM
from localsvm.representations.kmeans import find_centres
from localsvm.representations.landmarks import choose_landmarks
from localsvm.solvers.linear import solve

FIGURE, NAME, QUICK_NAME = 4, "mnist", "a part of mnist"
CLUSTERS = 100
LANDMARKS = (10, 20, 50, 100, 200, 400, 780)  # the last is as many as there are features
QUICK_LANDMARKS, QUICK_CLUSTERS, QUICK_ROWS = (10, 50, 200), 20, 4000
SEEDS = 3
CHOICE_ROWS = 10_000  # to choose C on, and as many more to judge it by
COSTS = tuple(10.0**k for k in range(-6, 1))
PATIENCE = 2  # costs beyond the best one, all of them worse, after which larger ones are not tried
METHOD = L3SVM()
KINDS = {"random": ("random rows", BLUE, "o-"), "pca": ("principal axes", RED, "s--")}
PICTURE = "landmarks-mnist.png"
ABOUT = """\
## Figure 4: landmarks at random or by PCA

{name}, {rows} training rows, K = {clusters}, std scaling, products with L landmarks, one-vs-all; means
over the seeds, bars from the least to the largest. The paper finds principal axes better below 100 landmarks only, and
random rows chosen in 0.02 s.

C is chosen from {costs} for each kind and L, trained on {choice} of the training rows and judged by as many others,
with the first seed. That is the paper's grid moved down: for products with many random rows its least cost, 0.001, is
already too much. The most landmarks are {last}: the paper has 784, but pixels that are 0 in all rows are not in the
files. The parts of the method are called one by one, so that clusters are found once a seed. Times are of choosing the
landmarks alone (`localsvm.representations.landmarks.choose_landmarks`), in processor seconds of one core; PCA makes the
sparse rows dense first.

![Accuracy and time of choosing landmarks]({picture})
"""


@dataclass(frozen=True)
class Rows:
    """Scaled rows X (n, d) and labels y (n,)."""

    X: Examples
    y: np.ndarray

    def part(self, rows: np.ndarray) -> Rows:
        """Some of them."""
        return Rows(as_examples(self.X[rows]), self.y[rows])


def measured(data: Path, done: Mapping[Any, Run], quick: bool) -> Iterator[Run]:
    """A run a seed, kind and number of landmarks."""
    name, counts, clusters = (QUICK_NAME, QUICK_LANDMARKS, QUICK_CLUSTERS) if quick else (NAME, LANDMARKS, CLUSTERS)
    here = [run for run in done.values() if (run.figure, run.name) == (FIGURE, name)]
    costs = {run.variant: run.figures["cost"] for run in here}
    for seed in range(1 if quick else SEEDS):
        known = {run.variant for run in here if run.seed == seed}
        plans = [(kind, count) for count in counts for kind in KINDS if f"{kind} {count}" not in known]
        if not plans:
            continue
        train, test = prepared(data, QUICK_ROWS if quick else None)
        centres = find_centres(train.X, clusters, np.random.default_rng([seed, 0]))
        for kind, count in plans:
            variant = f"{kind} {count}"
            started = time.process_time()
            landmarks = choose_landmarks(train.X, count, kind, np.random.default_rng([seed, 1]))
            seconds = time.process_time() - started
            state = {"centres": centres, "landmarks": landmarks, "gamma": np.zeros(1)}
            if variant not in costs:
                costs[variant] = chosen_cost(train, state)
            accuracy, converged = score(train, test, state, costs[variant])
            figures = {"landmarks": count, "rows": len(train.y), "cost": costs[variant], "accuracy": accuracy}
            figures |= {"converged": converged, "seconds": round(seconds, 4)}
            yield Run(FIGURE, name, variant, clusters, seed, figures)


def prepared(data: Path, rows: int | None) -> tuple[Rows, Rows]:
    """Training and test rows, scaled by the training rows; only so many of the first ones."""
    train = read(data / f"{NAME}.train.libsvm.xz")
    test = read(data / f"{NAME}.test.libsvm.xz", n_features=train.X.shape[1])
    X = as_examples(train.X[:rows])
    scaling = Scaling.fit(X, "std")
    return Rows(scaling.apply(X), train.y[:rows]), Rows(scaling.apply(test.X), test.y)


def chosen_cost(train: Rows, state: State) -> float:
    """The C that is best on rows that it was not trained on, the smaller of equals."""
    order = np.random.default_rng(0).permutation(len(train.y))[: 2 * CHOICE_ROWS]
    learned, judged = (train.part(np.sort(half)) for half in np.array_split(order, 2))
    accuracies: list[float] = []
    for cost in COSTS:
        accuracies.append(score(learned, judged, state, cost)[0])
        best = int(np.argmax(accuracies))
        if len(accuracies) - 1 - best >= PATIENCE and max(accuracies[best + 1 :]) < accuracies[best]:
            break
    return COSTS[best]


def score(train: Rows, test: Rows, state: State, cost: float) -> tuple[float, bool]:
    """Per cent of the test rows right by one-vs-all, and whether all problems were solved to the tolerance."""
    rows, answering = (METHOD.rows(part.X, state) for part in (train, test))
    labels = np.unique(train.y)
    costs = np.full(len(train.y), cost)
    found = [solve(rows, np.where(train.y == label, 1.0, -1.0), costs, False, METHOD.tolerance) for label in labels]
    values = np.stack([answering.values(solution.w) for solution in found])
    right = float(np.mean(labels[values.argmax(axis=0)] == test.y))
    return round(100 * right, 3), all(solution.report.converged for solution in found)


def section(runs: list[Run], out: Path) -> list[str]:
    """Picture and table of this figure's runs: those on all rows where there are any."""
    runs = [run for run in runs if run.name == NAME] or runs
    if not runs:
        return []
    picture(runs, out / PICTURE)
    counts = landmarks_of(runs)
    about = ABOUT.format(
        name=runs[0].name, rows=thousands(runs[0].figures["rows"]), clusters=runs[0].clusters,
        costs=f"{COSTS[0]:g} to {COSTS[-1]:g}",
        choice=thousands(min(CHOICE_ROWS, runs[0].figures["rows"] // 2)), last=LANDMARKS[-1], picture=PICTURE,
    )  # fmt: skip
    head = [
        "L",
        "seeds",
        *(f"{text}: {what}" for text, _, _ in KINDS.values() for what in ("accuracy, %", "C", "choosing, s")),
    ]
    rows = [
        [count, seeds_of(runs, count), *(entry for kind in KINDS for entry in entries(runs, kind, count))]
        for count in counts
    ]
    return [about, *table(head, rows)]


def landmarks_of(runs: list[Run]) -> list[int]:
    """The numbers of landmarks that were measured."""
    return sorted({run.figures["landmarks"] for run in runs})


def seeds_of(runs: list[Run], count: int) -> int:
    """How many seeds stand behind a row."""
    return len({run.seed for run in runs if run.figures["landmarks"] == count})


def values(runs: list[Run], kind: str, count: int, figure: str) -> list[float]:
    """A figure for each seed."""
    return [run.figures[figure] for run in runs if run.variant == f"{kind} {count}"]


def entries(runs: list[Run], kind: str, count: int) -> tuple[str, str, str]:
    """Accuracy, cost and time."""
    accuracy, cost, seconds = (values(runs, kind, count, figure) for figure in ("accuracy", "cost", "seconds"))
    if not accuracy:
        return "", "", ""
    return f"{np.mean(accuracy):.2f}", f"{cost[0]:g}", f"{np.mean(seconds):.2g}"


def picture(runs: list[Run], path: Path) -> None:
    """Accuracy on the left, time on the right, against landmarks."""
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, name in zip(panels, ("accuracy", "seconds"), strict=True):
        for kind, (text, colour, style) in KINDS.items():
            found = {count: values(runs, kind, count, name) for count in landmarks_of(runs)}
            curve(panel, {count: v for count, v in found.items() if v}, style, colour, text)
        panel.set(xscale="log", xlabel="landmarks L")
        panel.set_xticks(landmarks_of(runs), [str(count) for count in landmarks_of(runs)])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.grid(color="0.9")
    panels[0].set_ylabel("test accuracy, %")
    panels[1].set(yscale="log", ylabel="choosing the landmarks, processor s")
    panels[1].yaxis.set_major_locator(LogLocator())
    panels[1].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=100)


def curve(panel: Any, found: dict[int, list[float]], style: str, colour: str, text: str) -> None:
    """Means, with bars to the extremes."""
    means = [np.mean(v) for v in found.values()]
    bars = [[m - min(v), max(v) - m] for m, v in zip(means, found.values(), strict=True)]
    panel.errorbar(list(found), means, np.transpose(bars), fmt=style, ms=4, color=colour, label=text, capsize=2)
