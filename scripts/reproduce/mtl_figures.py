"""Reruns Figures 2 and 3 of the LSVM-MTL paper (Mao, Wu, Hu, O'Donovan, CIKM 2014).

    python scripts/reproduce/mtl_figures.py DATA [--quick] [--out docs/results/mtl] [--sets svmguide1] [--seeds 3]

2: two sines, divided by k-means with an SVM in each cluster, by CSVM, and by LSVM-MTL at its fifth round; generated.
3: accuracy of CSVM and LSVM-MTL against K. DATA is a folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz. Finished
measurements are kept in OUT/figures.jsonl and not repeated; OUT/figures.md and the pictures are written from it.
--quick: Figure 2 alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import train_and_test
from harness.experiment import Experiment, carry_out
from harness.library import MixtureRounds, clustered_svm
from harness.options import parsed, parser
from harness.pictures import BLUE, GRID, ORANGE, empty_figure
from harness.runlog import Run
from harness.tables import mean_and_deviation, table
from localsvm.data.synthetic import two_sines
from reproduce.mtl import SETS, options_of, text_files
from reproduce.mtl_page import NAMES

ROWS, ROUNDS, COST, COMMON = 2000, 5, 50.0, 10.0
SINES = {"K-means+SVM": (5, 5), "CSVM": (5, 5), "LSVM-MTL, K = 5": (5, 5), "LSVM-MTL, K = 10": (10, 5)}  # K, r
REPEATS = 10
CLUSTERS = (2, 5, 8, 11, 14, 17, 20)
COMPARED = ("csvm", "mtl")
SINES_PICTURE, CLUSTERS_PICTURE = "sines.png", "clusters.png"
ABOUT = """\
# The figures of the LSVM-MTL paper

Written by `make reproduce-mtl DATA=...` (`scripts/reproduce/mtl_figures.py`) after Mao, Wu, Hu and O'Donovan (CIKM
2014). The paper shows pictures and curves without numbers.

## Figure 2: two sines

x uniform on [0, 2 pi], y = sin x and sin x + 0.5 with the noise 0.05 (`localsvm.data.synthetic.two_sines`), {rows}
rows, std scaling, C = {cost:g}, lambda of CSVM {common:g}. LSVM-MTL with full covariances, shrinkage 0.001,
coupling 10 and r = 5 groups, begun from k-means and one SVM a cluster, at its fifth round. Training accuracy in per
cent, as in the paper's picture: mean (standard deviation) over {repeats} draws.
"""
FIGURE_3 = """\
## Figure 3: accuracy against K

Test accuracy in per cent, mean (standard deviation) over the seeds, one run where there is no bracket; everything but K
is chosen by cross-validation as in
[the table](table.md).
"""
Key = tuple[int, str, str, int, int]  # figure, set, method, K, seed


@dataclass(frozen=True)
class Measurement(Run):
    """The accuracy of a model, in per cent."""

    KEY = ("figure", "name", "method", "clusters", "seed")
    figure: int
    name: str
    method: str
    clusters: int
    seed: int
    accuracy: float


def main() -> None:
    """Run what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results/mtl"), sets=list(SETS), seeds=3, quick="Figure 2")
    given.set_defaults(sets=["svmguide1", "pendigits"])
    carry_out(Experiment("figures", Measurement, cases, measure, page, progress), parsed(given))


def cases(options: Any) -> list[Key]:
    """Figure 2, then Figure 3 set by set and seed by seed."""
    keys = [(2, "sines", method, K, seed) for seed in range(REPEATS) for method, (K, _) in SINES.items()]
    if options.quick:
        return keys
    return keys + [
        (3, name, method, K, seed)
        for name in options.sets
        for seed in range(options.seeds)
        for K in CLUSTERS
        for method in COMPARED
    ]


def measure(missing: list[Key], _: list[Measurement], options: Any) -> Iterator[Measurement]:
    """The missing ones."""
    for key in (key for key in missing if key[0] == 2):
        X, y = sines(key[4])
        yield Measurement(*key, 100 * float(np.mean(np.sign(values(key[2], X, y, key[4])[0]) == y)))
    for name in dict.fromkeys(key[1] for key in missing if key[0] == 3):
        with text_files(options.data, name) as files:
            for key in (key for key in missing if key[:2] == (3, name)):
                words = options_of(name, key[2], "chosen", key[4], files)
                words[words.index("-K") + 1] = str(key[3])
                yield Measurement(*key, train_and_test(words, files, ["-j", "1"]).accuracy)


def progress(run: Measurement) -> str:
    """The line that the terminal shows of a measurement."""
    return f"{' '.join(map(str, run.key))}: {run.accuracy:.2f} %"


def sines(seed: int) -> tuple[Any, Any]:
    """A draw, scaled."""
    X, y = two_sines(ROWS, np.random.default_rng(seed))
    return X / X.std(axis=0), y


def values(method: str, X: Any, y: Any, seed: int) -> tuple[Any, Any]:
    """Decision values (or labels) of a method on its rows, and the cluster or component that each row belongs to."""
    K, r = SINES[method]
    if method == "CSVM":
        return clustered_svm(X, y, K, COMMON, COST)
    rounds = MixtureRounds(X, y, K, r, COST, ROUNDS, seed)
    if method == "K-means+SVM":
        return rounds.clustered, rounds.clusters
    return rounds.values, rounds.components


def page(runs: Sequence[Measurement], options: Any) -> str:
    """The text in Markdown; the pictures are drawn."""
    lines = [ABOUT.format(rows=ROWS, cost=COST, common=COMMON, repeats=REPEATS)]
    of = {method: [run.accuracy for run in runs if (run.figure, run.method) == (2, method)] for method in SINES}
    lines += table(("", "accuracy"), [[method, mean_and_deviation(v, 2)] for method, v in of.items() if v])
    draw_sines().savefig(options.out / SINES_PICTURE, dpi=110)
    lines += ["", f"![Two sines and their linear pieces]({SINES_PICTURE})", "", ABOUT_PICTURE, ""]
    sets = [name for name in SETS if any(run.name == name for run in runs)]
    if sets:
        draw_clusters(runs, sets).savefig(options.out / CLUSTERS_PICTURE, dpi=110)
        lines += [FIGURE_3, f"![Accuracy against K]({CLUSTERS_PICTURE})", ""]
        rows = [
            [f"{name}, {NAMES[m]}", *(entry(of_clusters(runs, name, m, K)) for K in CLUSTERS)]
            for name in sets
            for m in COMPARED
        ]
        lines += table(("K", *CLUSTERS), rows)
    return "\n".join(lines)


ABOUT_PICTURE = """\
Rows are coloured by their cluster, or by the component that answers most for them (at K = 10 by the group of its task:
the tasks are put together whose rows of M are most alike). Crosses are rows on the wrong side."""


def of_clusters(runs: Sequence[Measurement], name: str, method: str, K: int) -> list[float]:
    """The accuracies of one entry of Figure 3."""
    return [run.accuracy for run in runs if run.key[:4] == (3, name, method, K)]


def entry(accuracies: list[float]) -> str:
    """An entry of the table of Figure 3; one run has no deviation."""
    return (mean_and_deviation(accuracies, 2) if len(accuracies) > 1 else f"{accuracies[0]:.2f}") if accuracies else "-"


def draw_sines() -> Any:
    """The four divisions of the first draw."""
    figure = empty_figure(10.0, 6.0)
    X, y = sines(0)
    for panel, method in zip(figure.subplots(2, 2, sharex=True, sharey=True).ravel(), SINES, strict=True):
        decisions, cluster = values(method, X, y, 0)
        colour = grouped(X, y, cluster) if SINES[method][0] > SINES[method][1] else cluster
        wrong = np.sign(decisions) != y
        panel.scatter(*X[~wrong].T, c=colour[~wrong], cmap="tab10", s=3, vmin=0, vmax=9)
        panel.scatter(*X[wrong].T, c="black", marker="x", s=18, linewidths=0.8)
        panel.set_title(f"{method}: {100 * np.mean(~wrong):.1f} %", fontsize=10)
    return figure


def grouped(X: Any, y: Any, component: Any) -> Any:
    """(n,) the group of each row's component: components by the likeness of their rows of M."""
    from scipy.cluster.hierarchy import fcluster, linkage

    K, r = SINES["LSVM-MTL, K = 10"]
    M = MixtureRounds(X, y, K, r, COST, ROUNDS, 0).M
    return fcluster(linkage(M, "average"), r, "maxclust")[component]


def draw_clusters(runs: Sequence[Measurement], sets: list[str]) -> Any:
    """A panel a set."""
    figure = empty_figure(5.0 * len(sets), 3.4)
    for panel, name in zip(figure.subplots(1, len(sets), squeeze=False)[0], sets, strict=True):
        for method, colour in zip(COMPARED, (ORANGE, BLUE), strict=True):
            known = [K for K in CLUSTERS if of_clusters(runs, name, method, K)]
            means = [np.mean(of_clusters(runs, name, method, K)) for K in known]
            spread = [np.std(of_clusters(runs, name, method, K)) for K in known]
            panel.errorbar(known, means, spread, color=colour, marker="o", markersize=3, label=NAMES[method])
        panel.set_title(name, fontsize=10)
        panel.set_xlabel("K")
        panel.set_xticks(CLUSTERS)
        panel.set_ylabel("test accuracy, %")
        panel.grid(color=GRID)
        panel.legend(fontsize=8)
    return figure


if __name__ == "__main__":
    main()
