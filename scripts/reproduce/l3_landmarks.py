"""Figure 4: landmarks at random or by PCA on mnist: test accuracy, and the time of choosing them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator

from harness.library import (
    L3SVM,
    Examples,
    LinearProblem,
    State,
    as_examples,
    choose_landmarks,
    find_centres,
    read,
    scaling_of,
    solve,
)
from harness.pictures import BLUE, RED, empty_figure, legend_below, legend_entries, measured_ticks, tick_texts
from harness.tables import table, thousands
from reproduce.l3_measurement import Key, Measurement

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


def cases(figure: int, quick: bool) -> list[Key]:
    """A measurement a seed, kind and number of landmarks."""
    name, counts, clusters = (QUICK_NAME, QUICK_LANDMARKS, QUICK_CLUSTERS) if quick else (NAME, LANDMARKS, CLUSTERS)
    return [
        (figure, name, f"{kind} {count}", clusters, seed)
        for seed in range(1 if quick else SEEDS)
        for count in counts
        for kind in KINDS
    ]


def measure(missing: list[Key], known: list[Measurement], options: Any) -> Iterator[Measurement]:
    """The missing ones, seed by seed, which share the clusters; C is chosen once for each kind and number."""
    train, test = prepared(options.data, QUICK_ROWS if options.quick else None)
    costs = {run.variant: run.figures["cost"] for run in known if run.key[:2] == missing[0][:2]}
    centres: dict[int, np.ndarray] = {}
    for key in missing:
        _, _, variant, clusters, seed = key
        kind, count = variant.split()
        if seed not in centres:
            centres[seed] = find_centres(train.X, clusters, np.random.default_rng([seed, 0]))
        landmarks, seconds = timed_choice(train, kind, int(count), seed)
        state = {"centres": centres[seed], "landmarks": landmarks, "gamma": np.zeros(1)}
        if variant not in costs:
            costs[variant] = chosen_cost(train, state)
        accuracy, converged = score(train, test, state, costs[variant])
        figures = {"landmarks": int(count), "rows": len(train.y), "cost": costs[variant], "accuracy": accuracy}
        yield Measurement(*key, figures | {"converged": converged, "seconds": round(seconds, 4)})


def timed_choice(train: Rows, kind: str, count: int, seed: int) -> tuple[np.ndarray, float]:
    """Landmarks, and the processor seconds of choosing them."""
    started = time.process_time()
    landmarks = choose_landmarks(train.X, count, kind, np.random.default_rng([seed, 1]))
    return landmarks, time.process_time() - started


def prepared(data: Path, rows: int | None) -> tuple[Rows, Rows]:
    """Training and test rows, scaled by the training rows; only so many of the first ones."""
    train = read(data / f"{NAME}.train.libsvm.xz")
    test = read(data / f"{NAME}.test.libsvm.xz", n_features=train.X.shape[1])
    X = as_examples(train.X[:rows])
    scaling = scaling_of(X, "std")
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
    """Per cent of the test rows right by one-vs-all, and True where all problems were solved to the tolerance."""
    rows, answering = (METHOD.rows(part.X, state) for part in (train, test))
    labels = np.unique(train.y)
    costs = np.full(len(train.y), cost)
    problems = [LinearProblem(rows, np.where(train.y == label, 1.0, -1.0), costs) for label in labels]
    solutions = [solve(problem, METHOD.tolerance) for problem in problems]
    values = np.stack([answering.values(solution.w) for solution in solutions])
    right = float(np.mean(labels[values.argmax(axis=0)] == test.y))
    return round(100 * right, 3), all(solution.report.converged for solution in solutions)


def section(runs: list[Measurement], out: Path) -> list[str]:
    """Picture and table of this figure's runs: those on all rows where there are any."""
    runs = [run for run in runs if run.name == NAME] or runs
    if not runs:
        return []
    picture(runs, out / PICTURE)
    counts = landmarks_of(runs)
    introduction = ABOUT.format(
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
    return [introduction, *table(head, rows)]


def landmarks_of(runs: list[Measurement]) -> list[int]:
    """The numbers of landmarks that were measured."""
    return sorted({run.figures["landmarks"] for run in runs})


def seeds_of(runs: list[Measurement], count: int) -> int:
    """Number of seeds that stand behind a row."""
    return len({run.seed for run in runs if run.figures["landmarks"] == count})


def values(runs: list[Measurement], kind: str, count: int, figure: str) -> list[float]:
    """A figure for each seed."""
    return [run.figures[figure] for run in runs if run.variant == f"{kind} {count}"]


def entries(runs: list[Measurement], kind: str, count: int) -> tuple[str, str, str]:
    """Accuracy, cost and time."""
    accuracy, cost, seconds = (values(runs, kind, count, figure) for figure in ("accuracy", "cost", "seconds"))
    if not accuracy:
        return "", "", ""
    return f"{np.mean(accuracy):.2f}", f"{cost[0]:g}", f"{np.mean(seconds):.2g}"


def picture(runs: list[Measurement], path: Path) -> None:
    """Accuracy on the left, time on the right, against landmarks."""
    figure = empty_figure(10, 4.4)
    panels = figure.subplots(1, 2)
    for panel, name in zip(panels, ("accuracy", "seconds"), strict=True):
        for kind, (text, colour, style) in KINDS.items():
            by_count = {count: values(runs, kind, count, name) for count in landmarks_of(runs)}
            curve(panel, {count: v for count, v in by_count.items() if v}, style, colour, text)
        panel.set_xlabel("landmarks L")
        measured_ticks(panel, landmarks_of(runs))
    panels[0].set_ylabel("test accuracy, %")
    panels[1].set(yscale="log", ylabel="choosing the landmarks, processor s")
    panels[1].yaxis.set_major_locator(LogLocator())
    tick_texts(panels[1].yaxis, "{:g}".format)
    legend_below(figure, legend_entries(panels[:1]), 2)
    figure.savefig(path, dpi=100)


def curve(panel: Any, by_count: dict[int, list[float]], style: str, colour: str, text: str) -> None:
    """Means, with bars to the extremes."""
    means = [np.mean(v) for v in by_count.values()]
    bars = [[m - min(v), max(v) - m] for m, v in zip(means, by_count.values(), strict=True)]
    panel.errorbar(list(by_count), means, np.transpose(bars), fmt=style, ms=4, color=colour, label=text, capsize=2)
