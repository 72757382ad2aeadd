"""Figure 3: accuracy on four small sets against the number of landmarks, and the best over it against clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from harness.datasets import joined
from harness.pictures import BLUE, GREEN, RED, empty_figure, legend_below, legend_entries, measured_ticks
from harness.tables import mean_and_deviation, table
from localsvm import estimators
from reproduce.l3_measurement import COSTS, Key, Measurement

FIGURE = 3
LANDMARKS = {  # up to the number of features; the one of ionosphere that is always 0 is no feature in the paper either
    "liver-disorders": (1, 2, 3, 4, 6),
    "heart": (1, 2, 4, 8, 13),
    "sonar": (1, 4, 15, 30, 60),
    "ionosphere": (1, 4, 8, 16, 33),
}
CLUSTERS = (1, 2, 4, 8)
SHOWN = {1: BLUE, 2: RED}  # against the number of landmarks
REPEATS, QUICK_REPEATS, FOLDS = 10, 1, 5
QUICK_SETS, QUICK_CLUSTERS = ("liver-disorders", "heart"), (1, 2)
PICTURE = "landmarks-small.png"
ABOUT = """\
## Figure 3: landmarks and clusters on small sets

Stratified 5-fold cross-validation, {repeats};
in each of its training parts C is chosen from 0.001 to 100 by 5-fold cross-validation (adaptive search). Std scaling,
landmarks at random, products. Rows are those of the training and the test file, features the ones that vary. Values are
means over the repeats, bars and brackets the standard deviation between repeats.

"Best over L" is the paper's reading: the L of the best mean outer accuracy, so chosen on the rows that are then
reported; it is optimistic. "L by inner selection" takes in each training part the L of the best inner cross-validated
accuracy, and is what a user gets.

![Accuracy against landmarks and clusters]({picture})
"""


def cases(figure: int, quick: bool) -> list[Key]:
    """A measurement a set, number of clusters and repeat; repeat by repeat."""
    return [
        (figure, name, "random", k, repeat)
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
        for name in (QUICK_SETS if quick else LANDMARKS)
        for k in (QUICK_CLUSTERS if quick else CLUSTERS)
    ]


def measure(missing: list[Key], _: list[Measurement], options: Any) -> Iterator[Measurement]:
    """The missing outer cross-validations."""
    sets = {name: varying(options.data, name) for name in dict.fromkeys(key[1] for key in missing)}
    for _, name, _, clusters, repeat in missing:
        yield repeated(name, *sets[name], clusters, repeat)


def varying(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows of a set, without features that are constant."""
    X, y = joined(data, name)
    return X[:, np.ptp(X, axis=0) > 0].astype(np.float32), y


def repeated(name: str, X: np.ndarray, y: np.ndarray, clusters: int, repeat: int) -> Measurement:
    """One outer cross-validation: per cent of each fold right, outer and inner, for each number of landmarks."""
    counts, outer, inner = LANDMARKS[name], [], []
    for fold, (train, test) in enumerate(StratifiedKFold(FOLDS, shuffle=True, random_state=repeat).split(X, y)):
        models = [fitted(X[train], y[train], clusters, count, FOLDS * repeat + fold) for count in counts]
        outer.append([round(100 * float(np.mean(model.predict(X[test]) == y[test])), 3) for model in models])
        inner.append([round(100 * (1 - model.summary_.cv_error), 3) for model in models])
    figures = {"landmarks": counts, "outer": outer, "inner": inner}
    return Measurement(FIGURE, name, "random", clusters, repeat, figures)


def fitted(X: np.ndarray, y: np.ndarray, clusters: int, landmarks: int, seed: int) -> Any:
    """L3-SVM, C by cross-validation."""
    model = estimators.L3SVMClassifier(clusters=clusters, landmarks_count=landmarks, cost=COSTS, random_state=seed)
    return model.fit(X, y)


def per_landmarks(runs: list[Measurement]) -> np.ndarray:
    """(repeats, landmarks) mean outer accuracy."""
    return np.mean([run.figures["outer"] for run in runs], axis=1)


def best(runs: list[Measurement]) -> np.ndarray:
    """(repeats,) accuracy with the number of landmarks that has the best mean."""
    values = per_landmarks(runs)
    return np.asarray(values[:, values.mean(axis=0).argmax()])


def selected(runs: list[Measurement]) -> np.ndarray:
    """(repeats,) accuracy with the number of landmarks that is best inside each training part."""
    outer, inner = (np.asarray([run.figures[name] for run in runs]) for name in ("outer", "inner"))
    return np.take_along_axis(outer, inner.argmax(axis=2)[..., None], axis=2)[..., 0].mean(axis=1)


def section(runs: list[Measurement], out: Path) -> list[str]:
    """Picture and tables of this figure's runs."""
    names = [name for name in LANDMARKS if any(run.name == name for run in runs)]
    if not names:
        return []
    of = {(r.name, r.clusters): [s for s in runs if (s.name, s.clusters) == (r.name, r.clusters)] for r in runs}
    picture(names, of, out / PICTURE)
    repeats = max(run.seed for run in runs) + 1
    lines = [ABOUT.format(repeats="once" if repeats == 1 else f"{repeats} times with other folds", picture=PICTURE)]
    for name in names:
        lines += [f"{name}, test accuracy in per cent:", "", *tables(name, of), ""]
    return lines


def tables(name: str, of: dict[tuple[str, int], list[Measurement]]) -> list[str]:
    """A row a number of clusters."""
    head = ("K", *(f"L = {count}" for count in LANDMARKS[name]), "best over L", "L by inner selection")
    rows = [
        (k, *(mean_and_deviation(column, 1) for column in (*per_landmarks(runs).T, best(runs), selected(runs))))
        for (n, k), runs in sorted(of.items())
        if n == name
    ]
    return table(head, rows)


def picture(names: list[str], of: dict[tuple[str, int], list[Measurement]], path: Path) -> None:
    """A column a set: above against landmarks, below against clusters."""
    figure = empty_figure(11, 6)
    panels = figure.subplots(2, len(names), sharey="col", squeeze=False)
    for (upper, lower), name in zip(panels.T, names, strict=True):
        for k, colour in SHOWN.items():
            if (name, k) in of:
                curve(upper, LANDMARKS[name], per_landmarks(of[name, k]).T, f"K = {k}", colour, "o-")
        clusters = sorted(k for n, k in of if n == name)
        readings: dict[str, tuple[Callable[[list[Measurement]], np.ndarray], str, str]] = {
            "best over L": (best, "black", "o-"),
            "L by inner selection": (selected, GREEN, "s--"),
        }
        for label, (reading, colour, style) in readings.items():
            curve(lower, clusters, [reading(of[name, k]) for k in clusters], label, colour, style)
        upper.set(title=name, xlabel="landmarks L")
        lower.set(xlabel="clusters K")
        measured_ticks(upper, LANDMARKS[name])
        measured_ticks(lower, clusters)
    for panel in panels[:, 0]:
        panel.set_ylabel("accuracy, %")
    legend_below(figure, legend_entries(panels[:, 0]), 4)
    figure.savefig(path, dpi=100)


def curve(panel: Any, places: Any, values: Any, label: str, colour: str, style: str) -> None:
    """Means with standard deviations."""
    means, deviations = ([f(v) for v in values] for f in (np.mean, np.std))
    panel.errorbar(places, means, deviations, fmt=style, ms=4, color=colour, label=label, capsize=2)
