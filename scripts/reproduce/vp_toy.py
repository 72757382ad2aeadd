"""Reruns the toy example of the spatial-decomposition paper's section 4: excess error against training rows.

    python scripts/reproduce/vp_toy.py [--quick] [--out docs/results/vp] [--seeds 10] [--global-rows 16000]

Two normal distributions whose Bayes rule is an ellipse (`localsvm.data.synthetic.ellipse`), learned by one SVM on all
rows where that is feasible, in Voronoi cells of fixed size, and in cells that grow with n. Finished runs are kept in
OUT/toy.jsonl and not repeated; OUT/toy.md and OUT/toy.png are written from it. --quick: up to 4 000 rows, three seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.experiment import Experiment, carry_out
from harness.options import integers, parsed, parser
from harness.pictures import BLUE, GREEN, GRID, ORANGE, RED, empty_figure, tick_texts
from harness.runlog import Run
from harness.tables import table, thousands
from localsvm.data.synthetic import ellipse, ellipse_bayes_error, ellipse_score
from localsvm.estimators import LocalSVC

SIZES = tuple(250 * 2**k for k in range(9))
QUICK_ROWS, QUICK_SEEDS = 4000, 3
TEST_ROWS, TEST_SEED = 1 << 17, 1_000_000
FIT_FROM = 1000  # rows from which on the slope is fitted
GROWING = -1  # cell size of GROWTH n^(3/5) rows
GROWTH = 8
PLANS = {
    0: ("one SVM on all rows", "black", "D-"),
    GROWING: (f"cells of at most {GROWTH} n$^{{3/5}}$ rows", BLUE, "o-"),
    2000: ("cells of at most 2 000 rows", GREEN, "o-"),
    500: ("cells of at most 500 rows", RED, "o-"),
}
RATE = 2 / 5
Key = tuple[int, int, int]  # rows, cell size, seed
PAGE = """\
# The toy example: excess error against training rows

Written by `make reproduce-vp` (`scripts/reproduce/vp_toy.py`), after section 4 of the paper on spatial decompositions
(Thomann, Blaschzyk, Meister, Steinwart 2017). Its exact parameters are not known here; these are a choice: two classes,
equally likely, in two dimensions, normal with independent coordinates, class 1 with mean (0.5, 0) and standard
deviations (1, 0.6), class -1 with mean (0, 0) and standard deviations (2, 1.5). The Bayes rule is an ellipse.

Its error is {bayes:.12f}, by quadrature in coordinates in which the ellipse is a circle; with half the nodes a side
{coarse:.12f}; the mean of min(eta, 1 - eta) over the {tests} test rows is {simulated:.5f} +- {noise:.5f}. The
excess of a rule f over it is the mean of |2 eta(x) - 1| over the test rows, counted where f and the Bayes rule differ:
far less noisy than a difference of two error rates.

Standard options: 10 x 10 grid in each cell (adaptive search), 5 folds, fold models voting. {seeds} training samples a
size; points are geometric means, bars reach from the lower to the upper quartile, slopes are fitted from {start} rows
on.

![Excess error against training rows](toy.png)

| | slope of log excess against log n (standard error) | sizes |
|---|---|---|
{slopes}

Theory: with Tsybakov's noise exponent q and margin-noise exponent b, hinge loss and Gaussian kernels learn at the rate
n^-(b (q + 1) / (b (q + 2) + d (q + 1))), up to an arbitrarily small loss in the exponent, and the paper shows that
cells keep it. Here eta crosses 1/2 with a slope: q = 1, b = 2, d = 2, so n^(-2/5), the dotted line (at any height).
It is an upper bound for all distributions with these exponents, on a bounded space; eta is analytic here, so faster
learning is no contradiction. The cells have to shrink slowly: kept as wide as the width n^(-1/5) that belongs to this
rate (our choice), they have n^(3/5) rows each, the growing cells above. Cells with a fixed number of rows never learn
more, however many there are: nothing promises that their excess vanishes.

Geometric mean of the excess error in per cent:

{table}
"""


@dataclass(frozen=True)
class Fit(Run):
    """One training sample; cell_size is 0 for one SVM on all rows."""

    KEY = ("rows", "cell_size", "seed")
    rows: int
    cell_size: int
    seed: int
    cells: int
    excess: float


def main() -> None:
    """Run what is missing, then write the page."""
    quick = f"at most {thousands(QUICK_ROWS)} rows and {QUICK_SEEDS} seeds"
    given = parser(__doc__, out=Path("docs/results/vp"), data="none", seeds=10, quick=quick)
    given.add_argument("--global-rows", type=int, default=16_000, help="most rows for one SVM on all of them")
    given.add_argument("--sizes", type=integers, default=list(SIZES), help="training rows (default %(default)s)")
    carry_out(Experiment("toy", Fit, plans, measure, page, progress), parsed(given))


def plans(options: Any) -> Iterator[Key]:
    """(rows, cell size, seed) of what is to be run: cells only where there are several."""
    seeds = min(options.seeds, QUICK_SEEDS) if options.quick else options.seeds
    for rows in options.sizes:
        if rows <= QUICK_ROWS or not options.quick:
            for cell_size in PLANS:
                if (rows > size_of(cell_size, rows)) if cell_size else (rows <= options.global_rows):
                    yield from ((rows, cell_size, seed) for seed in range(seeds))


def size_of(cell_size: int, rows: int) -> int:
    """The cell size in rows."""
    return round(GROWTH * rows**0.6) if cell_size == GROWING else cell_size


def measure(missing: list[Key], _: list[Fit], options: Any) -> Iterator[Fit]:
    """The missing runs."""
    test = test_rows()
    for rows, cell_size, seed in missing:
        yield fit(rows, cell_size, seed, test)


def test_rows() -> np.ndarray:
    """The rows on which the excess error is measured."""
    return ellipse(TEST_ROWS, np.random.default_rng(TEST_SEED))[0]


def fit(rows: int, cell_size: int, seed: int, test: np.ndarray) -> Fit:
    """Train on one sample; the same sample for all cell sizes."""
    X, y = ellipse(rows, np.random.default_rng([seed, rows]))
    cells = {"partition": "voronoi", "cell_size": size_of(cell_size, rows)} if cell_size else {"partition": "none"}
    model = LocalSVC(**cells, metric="none", n_jobs=-1, random_state=seed).fit(X, y)
    return Fit(rows, cell_size, seed, model.summary_.cells, excess_error(model.predict(test), ellipse_score(test)))


def progress(run: Fit) -> str:
    """The line that the terminal shows of a run."""
    return f"{run.key}: excess {100 * run.excess:.4f} %"


def excess_error(predicted: np.ndarray, score: np.ndarray) -> float:
    """Error above Bayes of labels (n,): the mean of |2 eta - 1| = |tanh(score / 2)| where they differ from Bayes."""
    return float(np.where(predicted != np.sign(score), np.abs(np.tanh(score / 2)), 0).mean())


def curve(runs: list[Fit], cell_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Sizes (s,) and log10 of the excess (s, seeds), of the seeds that all sizes have."""
    excesses = {(run.rows, run.seed): run.excess for run in runs if run.cell_size == cell_size}
    rows = sorted({r for r, _ in excesses})
    seeds = [seed for seed in sorted({s for _, s in excesses}) if all((r, seed) in excesses for r in rows)]
    excess = np.array([[excesses[r, seed] for seed in seeds] for r in rows]).reshape(len(rows), len(seeds))
    return np.array(rows), np.log10(np.maximum(excess, 1e-7))


def slope(rows: np.ndarray, excess: np.ndarray) -> str:
    """Mean and standard error over the seeds of the least-squares slope."""
    far = rows >= FIT_FROM
    if far.sum() < 2 or excess.shape[1] < 2:
        return "too few runs"
    slopes = np.polyfit(np.log10(rows[far]), excess[far], 1)[0]
    return f"{slopes.mean():.2f} ({slopes.std(ddof=1) / np.sqrt(len(slopes)):.2f})"


def picture(runs: list[Fit], path: Path) -> None:
    """The sample on the left, excess error against rows on the right."""
    figure = empty_figure(11, 5)
    left, right = figure.subplots(1, 2, width_ratios=(4, 6))
    sample(left)
    for cell_size, (label, colour, style) in PLANS.items():
        rows, excess = curve(runs, cell_size)
        if excess.size:
            middle, (low, high) = 10 ** excess.mean(axis=1), 10 ** np.quantile(excess, (0.25, 0.75), axis=1)
            bars = np.maximum((middle - low, high - middle), 0)
            text = f"{label}, slope {slope(rows, excess)}"
            right.errorbar(rows, middle, bars, fmt=style, ms=4, color=colour, label=text, capsize=2)
    rows, excess = curve(runs, GROWING)
    if excess.size:
        height = 1.3 * 10 ** excess[0].mean()
        right.plot(rows, height * (rows / rows[0]) ** -RATE, ":", color="0.4", label="theory's rate, slope -0.40")
    right.set(xscale="log", yscale="log", xlabel="training rows n", ylabel="excess error over the Bayes error")
    right.set_xticks(sorted({run.rows for run in runs}), minor=False)
    tick_texts(right.xaxis, lambda value: thousands(round(value)))
    right.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    tick_texts(right.yaxis, "{:g}".format)
    right.minorticks_off()
    right.tick_params(axis="x", labelrotation=30)
    right.grid(color=GRID)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=2)
    figure.savefig(path, dpi=120)


def sample(axes: Any) -> None:
    """500 rows and the Bayes rule."""
    X, y = ellipse(500, np.random.default_rng(0))
    for label, colour in ((-1, ORANGE), (1, BLUE)):
        axes.plot(*X[y == label].T, ".", ms=4, color=colour, label=f"class {label}")
    side = np.linspace(-6, 6, 241)
    grid = np.stack(np.meshgrid(side, side), axis=-1)
    axes.contour(side, side, ellipse_score(grid.reshape(-1, 2)).reshape(241, 241), [0], colors="black")
    axes.set(aspect="equal", xlim=(-6, 6), ylim=(-6, 6), xlabel="x1", ylabel="x2", title="500 rows and the Bayes rule")
    axes.legend(loc="upper right", fontsize="small")


def page(runs: list[Fit], options: Any) -> str:
    """The text in Markdown; draws toy.png."""
    picture(runs, options.out / "toy.png")
    test = test_rows()
    curves = {cell_size: curve(runs, cell_size) for cell_size in PLANS}
    risk = 1 / (1 + np.exp(np.abs(ellipse_score(test))))
    slopes = [
        f"| {plain_title(cell_size)} | {slope(rows, excess)} | {len(rows)} |"
        for cell_size, (rows, excess) in curves.items()
    ]
    return PAGE.format(
        bayes=ellipse_bayes_error(), coarse=ellipse_bayes_error(32), tests=thousands(len(test)),
        simulated=risk.mean(), noise=risk.std() / np.sqrt(len(risk)), seeds=len({run.seed for run in runs}),
        start=thousands(FIT_FROM), slopes="\n".join(slopes), table="\n".join(excess_table(runs, curves)),
    )  # fmt: skip


def excess_table(runs: list[Fit], curves: dict[int, tuple[np.ndarray, np.ndarray]]) -> list[str]:
    """A row for each size."""
    heads = [plain_title(cell_size) for cell_size in curves]
    means = {c: dict(zip(rows, 100 * 10 ** e.mean(axis=1), strict=True)) for c, (rows, e) in curves.items() if e.size}
    rows = [
        [thousands(n), *(f"{means[c][n]:.4f}" if n in means.get(c, {}) else "" for c in curves)]
        for n in sorted({run.rows for run in runs})
    ]
    return table(("n", *heads), rows)


def plain_title(cell_size: int) -> str:
    """A plan's title without TeX."""
    return PLANS[cell_size][0].replace("$^{3/5}$", "^(3/5)")


if __name__ == "__main__":
    main()
