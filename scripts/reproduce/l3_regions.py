"""Figures 1 and 2: decision regions and support vectors of four models on XOR and a Swiss roll."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap

from harness.pictures import BLUE, ORANGE, empty_figure, legend_below, legend_entries
from harness.tables import table, thousands
from localsvm import estimators
from localsvm.data.synthetic import (
    Floats,
    Labelled,
    swiss_roll,
    swiss_roll_bayes_error,
    swiss_roll_score,
    xor,
    xor_bayes_error,
    xor_score,
)
from reproduce.l3_measurement import Key, Measurement

TEST_ROWS, TEST_SEED = 20_000, 1
MARGIN = 1 + 1e-2  # rows with y f(x) up to here count as support vectors; the solvers leave the last digits open
SIDE = 300  # points of the grid along each axis
CLUSTERS = [2, 4, 8, 16, 32, 64]
GAUSSIANS = {"projection": "rbf", "gamma": [0.1, 1.0, 10.0]}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {  # title, estimator and the lists that it chooses from
    "linear SVM": ("LinearSVMClassifier", {}),
    "RBF-SVM": ("GlobalSVMClassifier", {}),
    "CSVM": ("ClusteredSVMClassifier", {"clusters": CLUSTERS}),
    "L3-SVM, products": ("L3SVMClassifier", {"clusters": CLUSTERS, "landmarks_count": [2, 10]}),
    "L3-SVM, Gaussians": ("L3SVMClassifier", {"clusters": CLUSTERS, "landmarks_count": [2, 10], **GAUSSIANS}),
}
L3 = tuple(title for title in MODELS if title.startswith("L3"))


@dataclass(frozen=True)
class Plane:
    """A distribution in the plane."""

    title: str
    rows: int
    width: float  # of the picture, from -width to width
    draw: Callable[[int, np.random.Generator], Labelled]
    score: Callable[[np.ndarray], Floats]
    bayes_error: Callable[[], float]


PLANES = {
    1: Plane("xor", 400, 2.4, xor, xor_score, xor_bayes_error),
    2: Plane("swiss-roll", 800, 1.1, swiss_roll, swiss_roll_score, swiss_roll_bayes_error),
}
ABOUT = """\
## Figures {figures}: decision regions

Generated (`localsvm.data.synthetic`), {tests} test rows; training rows: {sizes}.
Std scaling. Chosen by 5-fold cross-validation over the whole grid: C, gamma of the RBF-SVM, K from 2 to 64, lambda of
the CSVM, L of 2 or 10, gamma of the L3-SVM with Gaussians. The picture has the L3-SVM, with products or with Gaussians,
that cross-validation prefers.

Colours are the predicted classes, the black line is the Bayes rule. Support vectors are the rows on the margin or
beyond it, y f(x) <= {margin:g}: a linear model keeps weights, not rows. CSVM, and L3-SVM with products, share one bias
among all clusters, so that the lines of all clusters have the origin on the same side: on a roll around the origin many
of them cannot follow the rule, and Gaussians can.
"""


def cases(figure: int, quick: bool) -> list[Key]:
    """All models; it is a matter of seconds."""
    return [(figure, PLANES[figure].title, title, 0, 0) for title in MODELS]


def measure(missing: list[Key], _: list[Measurement], options: Any) -> Iterator[Measurement]:
    """Fit all models, because the picture shows them together."""
    figure = missing[0][0]
    plane = PLANES[figure]
    X, y = plane.draw(plane.rows, np.random.default_rng(0))
    tests = plane.draw(TEST_ROWS, np.random.default_rng(TEST_SEED))
    models = {title: fitted(*MODELS[title], X, y) for title in MODELS}
    runs = {title: described(figure, title, model, X, y, tests) for title, model in models.items()}
    dropped = min(L3, key=lambda title: runs[title].figures["cv_accuracy"])
    drawn = {title: models[title] for title in MODELS if title != dropped}
    picture(plane, drawn, runs, X, y, picture_path(plane.title, options.out))
    yield from (run for run in runs.values() if run.key in missing)


def picture_path(title: str, out: Path) -> Path:
    """Path of the picture of a distribution."""
    return out / f"{title}.png"


def fitted(estimator: str, lists: dict[str, Any], X: np.ndarray, y: np.ndarray) -> Any:
    """The model whose parameters cross-validation prefers."""
    return getattr(estimators, estimator)(grid="full", **lists).fit(X, y)


def described(figure: int, title: str, model: Any, X: np.ndarray, y: np.ndarray, tests: Labelled) -> Measurement:
    """Measurement that the table shows of a model."""
    figures = {
        "accuracy": 100 * float(np.mean(model.predict(tests[0]) == tests[1])),
        "cv_accuracy": 100 * (1 - model.summary_.cv_error),
        "support_vectors": int(support(model, X, y).sum()),
    }
    return Measurement(figure, PLANES[figure].title, title, 0, 0, figures)


def support(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n,) whether a row is on the margin or beyond it."""
    return np.asarray(y * model.decision_function(X) <= MARGIN)


def picture(
    plane: Plane, models: dict[str, Any], runs: dict[str, Measurement], X: np.ndarray, y: np.ndarray, path: Path
) -> None:
    """A panel a model."""
    figure = empty_figure(9, 9.4)
    side = np.linspace(-plane.width, plane.width, SIDE)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(np.float32)
    rule = plane.score(grid).reshape(SIDE, SIDE)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for panel, (title, model) in zip(panels.ravel(), models.items(), strict=True):
        regions = model.decision_function(grid).reshape(SIDE, SIDE) > 0
        panel.pcolormesh(side, side, regions, cmap=ListedColormap(["#fbe6b8", "#cdd8f0"]), vmin=0, vmax=1)
        panel.contour(side, side, rule, [0], colors="black", linewidths=1)
        kept = support(model, X, y)
        for label, colour in ((-1, ORANGE), (1, BLUE)):
            panel.plot(*X[(y == label) & ~kept].T, "o", ms=2.5, mew=0, color=colour, label=f"class {label}")
            panel.plot(*X[(y == label) & kept].T, "o", ms=4.5, mec="black", mew=0.6, color=colour)
        panel.set(aspect="equal", title=heading(title, runs[title]))
    panels[0, 0].set(xlim=(-plane.width, plane.width), ylim=(-plane.width, plane.width))
    panels[0, 0].locator_params(nbins=5)
    for panel in panels[1]:
        panel.set_xlabel("x1")
    for panel in panels[:, 0]:
        panel.set_ylabel("x2")
    panels[0, 0].plot([], [], "o", ms=4.5, mec="black", mew=0.6, mfc="white", label="support vectors")
    panels[0, 0].plot([], [], color="black", linewidth=1, label="Bayes rule")
    legend_below(figure, legend_entries([panels[0, 0]]), 4)
    figure.savefig(path, dpi=72)


def heading(title: str, run: Measurement) -> str:
    """A panel's."""
    return f"{title}: {run.figures['accuracy']:.1f} %, {run.figures['support_vectors']} support vectors"


def section(runs: list[Measurement], out: Path) -> list[str]:
    """Pictures and tables."""
    present = [f for f in PLANES if any(run.figure == f for run in runs)]
    if not present:
        return []
    sizes = ", ".join(f"{PLANES[f].title} {PLANES[f].rows}" for f in present)
    lines = [
        ABOUT.format(figures=" and ".join(map(str, present)), sizes=sizes, tests=thousands(TEST_ROWS), margin=MARGIN)
    ]
    for figure in present:
        plane = PLANES[figure]
        lines += [f"![Decision regions, {plane.title}]({plane.title}.png)", ""]
        lines += [f"{plane.title}: the Bayes rule has an accuracy of {100 * (1 - plane.bayes_error()):.2f} %.", ""]
        lines += table(
            ("model", "test accuracy, %", "cross-validated, %", "support vectors"),
            (
                (f"{r.variant}", f"{r.figures['accuracy']:.2f}", f"{r.figures['cv_accuracy']:.2f}",
                 r.figures["support_vectors"])
                for r in runs if r.figure == figure
            ),
        )  # fmt: skip
        lines.append("")
    return lines
