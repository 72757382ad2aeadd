"""Reruns Figures 1 and 2 of the MLLKM paper (Picard 2024), and two comparisons: gammas, and kernels admitted a round.

    python scripts/reproduce/mllkm_figures.py DATA [--quick] [--out docs/results/mllkm] [--sets sonar,heart]

1: what the maps make of a cloud of points. 2: decision values, support vectors and anchors of the eight maps on a
synthetic set, C = 1000. Then a bank of gammas against one gamma by cross-validation (Section 4.3), and training time
by `--admit`. DATA is as for reproduce/mllkm.py. Measurements are kept in OUT/figures.jsonl and not repeated;
OUT/figures.md and the pictures are written from it. --quick: the figures alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.datasets import examples
from harness.experiment import Experiment, carry_out
from harness.library import (
    TARGET,
    Search,
    fit_at_one_point,
    methods,
    parse_values,
    predicted,
    selection_of,
    transformed,
)
from harness.machine import processors
from harness.options import parsed, parser
from harness.pictures import BLUE, ORANGE, empty_figure
from harness.runlog import Run
from harness.tables import table, thousands
from localsvm.data.synthetic import banana
from reproduce.mllkm import COST, FOLDS, GAMMAS, divided, rows_of, scaled
from reproduce.mllkm_page import PAPER, against, mean

KINDS = ("exponential", "gaussian", "linear", "square")
ALL_MAPS = {f"{'component ' if c else ''}{kind}": (kind, c) for c in (False, True) for kind in KINDS}
ROWS, TEST_ROWS, FIGURE_COST = 300, 10_000, 1000.0
COMPARED = ("gaussian", "square")
BANK_SPLITS = 5
ADMITTED, ADMITTED_ROWS, ADMITTED_SETS = (2, 8, 32, 128), 2000, ("ijcnn1", "magic")
PIXELS = 101
CLOUD_PICTURE, MODELS_PICTURE = "maps.png", "synthetic.png"
ABOUT = f"""\
# The figures of the MLLKM paper, gammas and rounds

Written by `make reproduce-mllkm DATA=folder` (`scripts/reproduce/mllkm_figures.py`), after Picard (Multiple locally
linear kernel machines, 2024). The paper shows pictures without numbers; its synthetic set is not described, so ours is
another.

## Figure 1: the maps

A grid of points in [-2, 2] x [-2, 2] (left), and h(x) (x - c) of them for the anchor c = 0 and g = 0.5. Points are
coloured by their place. Those near the anchor stay about where they are, those far away fall back to it; the maps
`linear` and `square` put all on it from a distance on. A component-wise map does so in each feature. The images are
drawn larger than the grid.

![What the maps make of a grid of points]({CLOUD_PICTURE})

## Figure 2: a synthetic set

`localsvm.data.synthetic.banana`, {ROWS} rows, C = {FIGURE_COST:g}, ten gammas from 0.01 to 10. Colours are decision
values, lines those of 0 (solid) and 1 and -1 (dashed). Circles are support vectors (rows whose margin is not above 1),
stars the anchors of kernels with a weight, larger for larger weights. Errors are of {thousands(TEST_ROWS)} other rows.
With a component-wise map f is a sum of functions of one feature each: no such sum follows this crescent.

![Decision values of the eight maps]({MODELS_PICTURE})
"""
BANK = f"""
## A bank of gammas, or one gamma

Section 4.3 of the paper. Test accuracy on the first {BANK_SPLITS} splits of [Table 2](table.md), C = {COST:g}: all ten
gammas from 0.01 to 10 as one bank, and one of them by {FOLDS}-fold cross-validation; p is that of their difference, as
there. Kernels with a weight, on average, and processor seconds of training, with the selection.
"""
ADMIT = f"""
## Kernels admitted a round

`--admit` on {thousands(ADMITTED_ROWS)} random rows of a training file in [0, 1], ten gammas from 0.01 to 10, C =
{COST:g}, to a gap of 1 %: processor seconds, Newton steps and kernels with a weight. {{processor}}, with other work
beside.
"""
Key = tuple[str, str, str, int]  # what, set, map, split or number


@dataclass(frozen=True)
class Measured(Run):
    """Measured values, by name."""

    KEY = ("what", "name", "map", "number")
    what: str
    name: str
    map: str
    number: int
    values: dict[str, float]


def main() -> None:
    """Run what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results/mllkm"), sets=list(PAPER), quick="the figures alone")
    with threadpool_limits(1):
        carry_out(Experiment("figures", Measured, cases, measure, page, progress), parsed(given))


def cases(options: Any) -> list[Key]:
    """Figure 2, then both tables."""
    keys: list[Key] = [("figure", "banana", kind, 2) for kind in ALL_MAPS]
    if options.quick:
        return keys
    keys += [("bank", name, kind, i) for i, name, kind in product(range(BANK_SPLITS), options.sets, COMPARED)]
    return keys + [("admit", name, kind, n) for n, name, kind in product(ADMITTED, ADMITTED_SETS, COMPARED)]


def measure(missing: list[Key], _: list[Measured], options: Any) -> Iterator[Measured]:
    """One by one."""
    for key in missing:
        what, name, kind, number = key
        if what == "figure":
            values = errors(kind)
        elif what == "bank":
            X, y = rows_of(options.data, name)
            seen, out = divided(y, number)
            values = bank_and_one(kind, scaled(name, X, seen), y, seen, out)
        else:
            values = admitted(kind, number, *some_rows(options.data, name))
        yield Measured(*key, values)


def progress(run: Measured) -> str:
    """The line that the terminal shows of a measurement."""
    return f"{' '.join(map(str, run.key))}: {', '.join(f'{name} {value:.4g}' for name, value in run.values.items())}"


def method_of(kind: str, cost: float, **more: Any) -> Any:
    """MLLKM with one of the eight maps."""
    name, componentwise = ALL_MAPS[kind]
    gammas = {"bank_gammas": parse_values(GAMMAS)}
    return methods()["mllkm"](map=name, componentwise=componentwise, cost=(cost,), **gammas | more)


def errors(kind: str) -> dict[str, float]:
    """Test error of a model of Figure 2, in per cent; and its numbers of anchors, kernels and support vectors."""
    X, y, fitted, method = model_of_figure(kind)
    Z, z = banana(TEST_ROWS, np.random.default_rng(1))
    state = fitted.state
    return {
        "error": 100 * float(np.mean(predicted(fitted, Z, method) != z)),
        "anchors": len(state["anchors"]),
        "kernels": len(state["kernel_share"]),
        "vectors": int(np.count_nonzero(margins(X, y, fitted, method) <= 1.0)),
    }


def model_of_figure(kind: str) -> tuple[Any, Any, Any, Any]:
    """Rows, labels, the model and its method."""
    X, y = banana(ROWS, np.random.default_rng(0))
    method = method_of(kind, FIGURE_COST)
    return X, y, fit_at_one_point(method, X, y), method


def margins(X: Any, y: Any, fitted: Any, method: Any) -> Any:
    """Margins y f(x), rounded, as they are exact to the tolerance only."""
    return np.round(y * decisions(X, fitted, method), 2)


def decisions(X: Any, fitted: Any, method: Any) -> Any:
    """Decision values f(x)."""
    return method.predictor(fitted.state, TARGET, 2).decision_function(X)[:, 0]


def bank_and_one(kind: str, X: Any, y: Any, seen: Any, out: Any) -> dict[str, float]:
    """Both accuracies in per cent, kernels and seconds; and the gamma."""
    begun = time.process_time()
    bank = fit_at_one_point(method_of(kind, COST), X[seen], y[seen])
    with_bank = time.process_time()
    gammas = parse_values(GAMMAS)
    alone = [method_of(kind, COST, bank_gammas=(g,)) for g in gammas]
    losses = [selection_of(one, X[seen], y[seen], FOLDS).search(Search("full")).best for one in alone]
    best = min(range(len(alone)), key=lambda i: losses[i][:2])
    one = fit_at_one_point(alone[best], X[seen], y[seen])
    seconds = {"bank seconds": with_bank - begun, "one seconds": time.process_time() - with_bank}
    values: dict[str, float] = {"gamma": gammas[best], **seconds}
    for name, fitted in (("bank", bank), ("one", one)):
        values[f"{name} accuracy"] = 100 * float(np.mean(predicted(fitted, X[out], alone[best]) == y[out]))
        values[f"{name} kernels"] = len(fitted.state["kernel_share"])
    return values


def some_rows(data: Path, name: str) -> tuple[Any, Any]:
    """Random rows of a training file, in [0, 1]."""
    part = examples(data, name, "train")
    rows = np.sort(np.random.default_rng(0).choice(len(part.y), ADMITTED_ROWS, replace=False))
    X = part.X[rows] if isinstance(part.X, np.ndarray) else part.X[rows].toarray()
    y = np.where(part.y == part.y.max(), 1.0, -1.0)[rows]
    return scaled(name, X.astype(np.float64), np.arange(len(y))), y


def admitted(kind: str, number: int, X: Any, y: Any) -> dict[str, float]:
    """Time, steps, kernels and the gap."""
    begun = time.process_time()
    fitted = fit_at_one_point(method_of(kind, COST, admit=number), X, y)
    seconds = time.process_time() - begun
    steps, kernels = int(fitted.state["model_iterations"][0]), len(fitted.state["kernel_share"])
    return {"seconds": seconds, "steps": steps, "kernels": kernels, "gap": fitted.report.largest_gap}


def page(runs: list[Measured], options: Any) -> str:
    """The text in Markdown; the pictures are drawn."""
    draw_cloud().savefig(options.out / CLOUD_PICTURE, dpi=75)
    draw_models().savefig(options.out / MODELS_PICTURE, dpi=75)
    figure = {run.map: run.values for run in runs if run.what == "figure"}
    lines = [ABOUT, *table(("map", "error %", "kernels with a weight", "their anchors", "support vectors"), [
        (kind, f"{v['error']:.1f}", *(f"{v[name]:g}" for name in ("kernels", "anchors", "vectors")))
        for kind, v in figure.items()
    ])]  # fmt: skip
    of = {what: [run for run in runs if run.what == what] for what in ("bank", "admit")}
    if of["bank"]:
        lines += [BANK, *bank_table(of["bank"])]
    if of["admit"]:
        lines += [ADMIT.format(processor=processors(run.machine for run in of["admit"])), *admit_table(of["admit"])]
    return "\n".join(lines)


def bank_table(runs: Sequence[Measured]) -> list[str]:
    """A line a set and map."""
    head = ("set", "map", "bank", "one gamma", "p", "kernels", "of one gamma", "s", "of one gamma", "the gamma, median")

    def line(name: str, kind: str) -> list[str]:
        values = [run.values for run in runs if (run.name, run.map) == (name, kind)]
        bank, one = ([v[f"{which} accuracy"] for v in values] for which in ("bank", "one"))
        sizes = [f"{np.mean([v[f'{which} kernels'] for v in values]):.1f}" for which in ("bank", "one")]
        spent = [f"{np.mean([v[f'{which} seconds'] for v in values]):.2f}" for which in ("bank", "one")]
        return [name, kind, mean(bank), mean(one), against(bank, one), *sizes, *spent,
                f"{np.median([v['gamma'] for v in values]):.3g}"]  # fmt: skip

    return table(head, [line(*row) for row in dict.fromkeys((run.name, run.map) for run in runs)])


def admit_table(runs: Sequence[Measured]) -> list[str]:
    """A line a number."""
    columns = list(dict.fromkeys((run.name, run.map) for run in runs))
    of = {run.key: run.values for run in runs}

    def entry(name: str, kind: str, number: int) -> str:
        v = of.get(("admit", name, kind, number))
        return f"{v['seconds']:.2f}; {v['steps']:.0f}; {v['kernels']:.0f}" if v else "-"

    numbers = sorted({run.number for run in runs})
    head = ("--admit", *(f"{name}, {kind}" for name, kind in columns))
    return table(head, [(n, *(entry(*column, n) for column in columns)) for n in numbers])


def draw_cloud() -> Any:
    """A grid of points, and what the eight maps make of it."""
    gamma, side = 0.5, np.linspace(-2.0, 2.0, 33)
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    colours = np.column_stack([(X + 2.0) / 4.0, np.full(len(X), 0.45)])
    figure = empty_figure(11.5, 4.8)
    panels = figure.subplots(2, 5)
    panels[1, 0].set_axis_off()
    for panel, kind in [(panels[0, 0], "plain"), *zip(panels[:, 1:].ravel(), ALL_MAPS, strict=True)]:
        name, componentwise = ALL_MAPS.get(kind, (kind, False))
        h = np.square(X) if componentwise else np.square(X).sum(axis=1, keepdims=True)
        transformed(name, gamma, h, h)
        panel.scatter(*(h * X).T, c=colours, s=3, linewidths=0)
        limit = 2.1 if kind == "plain" else 0.85
        panel.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
        panel.set_title("the points" if kind == "plain" else kind, fontsize=10)
    return figure


def draw_models() -> Any:
    """A panel a map: decision values, support vectors and anchors."""
    figure, side = empty_figure(12.0, 6.2), np.linspace(-2.0, 2.0, PIXELS)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(np.float32)
    image = None
    for panel, kind in zip(figure.subplots(2, 4, sharex=True, sharey=True).ravel(), ALL_MAPS, strict=True):
        X, y, fitted, method = model_of_figure(kind)
        values = decisions(grid, fitted, method).reshape(len(side), len(side))
        image = panel.contourf(side, side, values, np.linspace(-3, 3, 13), cmap="RdBu", extend="both", alpha=0.7)
        panel.contour(side, side, values, [-1, 0, 1], colors="black", linestyles=["--", "-", "--"], linewidths=0.8)
        for label, colour in ((1.0, BLUE), (-1.0, ORANGE)):
            panel.scatter(*X[y == label].T, color=colour, s=5)
        near = margins(X, y, fitted, method) <= 1.0
        panel.scatter(*X[near].T, facecolors="none", edgecolors="black", s=30, linewidths=0.7)
        state = fitted.state
        share = np.bincount(state["kernel_anchor"], state["kernel_share"])
        panel.scatter(*state["anchors"].T, marker="*", color="black", s=20 + 400 * share, edgecolors="white", lw=0.5)
        panel.set_title(f"{kind}\n{len(share)} anchors, {np.count_nonzero(near)} support vectors", fontsize=9)
    figure.colorbar(image, ax=figure.axes, shrink=0.6, label="f(x)")
    return figure


if __name__ == "__main__":
    main()
