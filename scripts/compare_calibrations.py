"""Compares ways to make probabilities of decision values on hold-outs of training files; test files are never touched.

    python scripts/compare_calibrations.py DATA two [--sets magic,ijcnn1] [--cell-size 200]
    python scripts/compare_calibrations.py DATA many
    python scripts/compare_calibrations.py DATA repeats
    python scripts/compare_calibrations.py DATA votes [--metric auto]

DATA is a folder with NAME.train.libsvm.xz. For each set and seed a random quarter of the rows is held out, a model
trains on the rest, and each way is fitted to the same held-out values of its selection. Two Markdown tables go to
stdout for the rows held out, means over the seeds: the log loss of what -b 1 does and that of the others as ratios to
it, and the expected calibration error of each.
two: of two classes. many: of more, one against all others (ova) and all pairs (ava). repeats: five of them. votes: what
is made of the values of the fold models of a cell, of two classes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from bench_probabilities import scores
from compare_options import rows_of, split
from harness.datasets import examples
from harness.library import (
    Dataset,
    LocalModel,
    TrainingConfig,
    as_examples,
    calibrating,
    probabilities,
    train,
    training,
)
from harness.machine import cores
from harness.tables import table
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

SETS = {
    "two": "svmguide1,magic,a9a,susy30k,cod-rna,ijcnn1,covtype",
    "many": "cmc,page-blocks,satimage,pendigits,usps",
    "repeats": "svmguide1,magic,a9a,susy30k,cod-rna,ijcnn1,covtype,satimage,pendigits",
    "votes": "svmguide1,magic,a9a,susy30k,cod-rna,ijcnn1,covtype",
}
FAR = 1e6  # beyond all decision values
Calibration, Examples, HeldOut = probabilities.Calibration, calibrating.Examples, calibrating.HeldOut
Classification, CellProbabilities = probabilities.Classification, probabilities.CellProbabilities
Way = Callable[[Classification, HeldOut], Calibration]


@dataclass(frozen=True)
class Kept:
    """The held-out values of a run, in memory."""

    sizes: Any
    repeats: int
    cells: list[Any]
    places: list[Any]

    @classmethod
    def of(cls, found: HeldOut) -> Kept:
        """A copy."""
        cells = range(len(found.sizes))
        return cls(
            found.sizes,
            found.repeats,
            [tuple(map(np.copy, found.cell(i))) for i in cells],
            list(map(found.rows, cells)),
        )

    def cell(self, index: int) -> Any:
        """Values, labels and counts."""
        return self.cells[index]

    def rows(self, index: int) -> Any:
        """Numbers."""
        return self.places[index]


@dataclass(frozen=True)
class Isotonic(Calibration):
    """A curve for each cell, in place of its sigmoid."""

    curves: list[Any]

    def in_cell(self, target: Classification, cell: int) -> CellProbabilities:
        """What a cell's predictor is given in place of the target."""
        return replace(super().in_cell(target, cell), curve=self.curves[cell])


def rows(target: Classification, kept: HeldOut) -> list[Examples]:
    """The held-out values, cell by cell."""
    return [Examples.of(target, kept, i) for i in range(len(kept.sizes))]


def isotonic(parts: list[Examples]) -> Any:
    """A curve that makes log odds of the first problem's values as isotonic regression of softened targets says."""
    values, targets, weight = (
        np.concatenate([part.ravel() for part in column])
        for column in zip(*((p.values, calibrating.softened(p), p.weight) for p in parts), strict=True)
    )
    at, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weight)
    found = isotonic_regression(np.bincount(place, weight * targets) / mass, weights=mass)
    edges = np.unique(np.concatenate([found.blocks[:-1], found.blocks[1:] - 1]))
    z, at = logit(found.x[edges]), at[edges]
    at, z = np.concatenate([[-FAR], at, [FAR]]), np.concatenate([z[:1], z, z[-1:]])
    return np.column_stack([at, z - at])


def isotonic_of_run(target: Classification, kept: HeldOut) -> Calibration:
    """One isotonic regression of all cells."""
    plain = np.tile([1.0, 0.0], (len(kept.sizes), target.n_problems, 1))
    return Calibration(plain, isotonic(rows(target, kept)), np.ones(2))


def isotonic_of_cells(target: Classification, kept: HeldOut) -> Calibration:
    """An isotonic regression in each cell."""
    plain = np.tile([1.0, 0.0], (len(kept.sizes), target.n_problems, 1))
    return Isotonic(plain, np.empty((0, 2)), np.ones(2), [isotonic([part]) for part in rows(target, kept)])


def without_curve(target: Classification, kept: HeldOut) -> Calibration:
    """Sigmoids only; one against all others with powers."""
    with patch.object(calibrating, "curve_of", lambda rows: np.empty((0, 2))):
        return calibrating.calibrate(target, kept)


def normalised(target: Classification, kept: HeldOut) -> Calibration:
    """Without powers."""
    return replace(calibrating.calibrate(target, kept), powers=np.asarray([1.0, 0.0]))


def each_alone(target: Classification, kept: HeldOut) -> Calibration:
    """Repeats as sharp as each of them should be alone."""
    with patch.object(calibrating, "sharpened", lambda calibration, *others: calibration):
        return calibrating.calibrate(target, kept)


def with_curve(target: Classification, kept: HeldOut) -> Calibration:
    """All pairs with a curve, and powers that know it."""
    found, parts = calibrating.calibrate(target, kept), rows(target, kept)
    for part, sigmoids in zip(parts, found.sigmoids, strict=True):
        part.values[:] = sigmoids[:, :1] * part.values + sigmoids[:, 1:]
    sample = Examples(*(np.concatenate([getattr(p, f) for p in parts], axis=-1) for f in Examples.__annotations__))
    curve = calibrating.curve_of(sample)
    powers = calibrating.powers_of(target, expit(probabilities.bent(curve, sample.values)).T, sample)
    return replace(found, curve=curve, powers=powers)


def prior(rows: float, name: str = "PRIOR_ROWS") -> Way:
    """What -b 1 does, with a prior of so many rows."""

    def way(target: Classification, kept: HeldOut) -> Calibration:
        with patch.object(calibrating, name, rows):
            return calibrating.calibrate(target, kept)

    return way


def mean_of_pairs(target: Classification, p: Any) -> Any:
    """(n, classes), the sums over the pairs of each class, normalised."""
    out = np.zeros((len(p), len(target.labels)))
    for (low, high), own in zip(target.pairs, p.T, strict=True):
        out[:, high] += own
        out[:, low] += 1.0 - own
    return out / len(target.pairs)


TWO: Mapping[str, Way] = {
    "-b 1": calibrating.calibrate,
    "isotonic, of the run": isotonic_of_run,
    "isotonic, of each cell": isotonic_of_cells,
    **{f"shrunk by {n} rows": prior(float(n)) for n in (0, 1, 100)},
    "one sigmoid": prior(1e12),
    "no curve": without_curve,
    **{f"curve's prior {n}": prior(float(n), "CURVE_PRIOR_ROWS") for n in (1, 100)},
}
OVA: Mapping[str, Way] = {
    "-b 1": calibrating.calibrate,
    "normalised": normalised,
    "no curve": without_curve,
    **{f"prior {n}": prior(float(n)) for n in (0, 100)},
}
AVA: Mapping[str, Way] = {
    "-b 1": calibrating.calibrate,
    "no powers": normalised,
    "with a curve": with_curve,
    "mean of pairs": normalised,
    "mean of pairs, powers": calibrating.calibrate,
}

LOG_ODDS, VALUES, AGREEING = "mean of log odds", "log odds of the mean value", "as sharp as the votes agree"
VOTES: Mapping[str, Way] = dict.fromkeys(("-b 1", LOG_ODDS, VALUES, AGREEING), calibrating.calibrate)
TABLES = {  # scheme and ways
    "two": [("ova", TWO)],
    "many": [("ova", OVA), ("ava", AVA)],
    "repeats": [("ova", {"-b 1": calibrating.calibrate, "not sharper": each_alone})],
    "votes": [("ova", VOTES)],
}


def main() -> None:
    """Print the table, as the last run ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("classes", choices=list(SETS))
    parser.add_argument("--sets", help="default: some that fit")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=12_000, help="at most so many rows of a set, drawn at random")
    parser.add_argument("--cell-size", type=int, default=2000)
    parser.add_argument("--metric", choices=["none", "auto"], default="none")
    parser.add_argument("-j", "--jobs", type=int, default=cores())
    options = parser.parse_args()
    for scheme, ways in TABLES[options.classes]:
        lines = [line(name, scheme, ways, options) for name in (options.sets or SETS[options.classes]).split(",")]
        found = np.asarray([score for _, _, score in lines])
        ratios = found[:, 1:, 0] / found[:, :1, 0]
        ratios = np.vstack([ratios, np.exp(np.log(ratios).mean(axis=0))])
        about = [(name, n, f"{score[0, 0]:.4f}") for name, n, score in lines] + [("geometric mean", "", "")]
        losses = [[*first, *(f"{x:.3f}" for x in ratio)] for first, ratio in zip(about, ratios, strict=True)]
        errors = [[name, n, *(f"{x:.4f}" for x in score[:, 1])] for name, n, score in lines]
        for shown in (losses, errors):
            print("\n".join(table([scheme if options.classes == "many" else "set", "rows", *ways], shown)) + "\n")


def line(name: str, scheme: str, ways: Mapping[str, Way], options: Any) -> tuple[str, int, Any]:
    """The set, its rows to train on, and (ways, 2) mean log loss and calibration error on the rows held out."""
    data, found = examples(options.data, name, "train"), []
    for seed in range(options.seeds):
        rest, held = split(len(data.y), seed, options.rows)
        config = TrainingConfig(
            partition="voronoi", cell_size=options.cell_size, metric=options.metric, multiclass=scheme, seed=seed,
            probability=True, repeats=5 if options.classes == "repeats" else 1,
        )  # fmt: skip
        found.append(run(data, rest, held, config, ways, options.jobs))
        print(f"{name} {scheme} seed {seed}: {np.round(found[-1], 4).tolist()}", file=sys.stderr)
    return name, len(rest), np.mean(found, axis=0)


def run(data: Dataset, rest: Any, held: Any, config: TrainingConfig, ways: Mapping[str, Way], jobs: int) -> Any:
    """Log loss and calibration error on the rows held out, for each way."""
    kept: list[Kept] = []

    def keep(target: Classification, found: HeldOut) -> Calibration:
        kept.append(Kept.of(found))
        return calibrating.calibrate(target, found)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.h5"
        with patch.object(training, "calibrate", keep):
            train(rows_of(data.X[rest], data.y[rest], config), config, path, jobs=jobs)
        X = data.X[held] if isinstance(data.X, np.ndarray) else as_examples(data.X[held])
        found = [scores(*probabilities_of(path, X, data.y[held], kept[0], name, way)) for name, way in ways.items()]
    return [(score["log_loss"], score["calibration_error"]) for score in found]


def probabilities_of(path: Path, X: Any, y: Any, kept: Kept, name: str, way: Way) -> tuple[Any, Any]:
    """(n, classes) probabilities of rows by a model that is calibrated in this way, and (n,) their classes."""
    factor = 1 / agreement(path, X, way, kept) if name == AGREEING else 1.0
    with ExitStack() as stack, LocalModel(path) as model:
        if name.startswith("mean of pairs"):
            stack.enter_context(of_pairs())
        if name in COMBINED:
            stack.enter_context(patch.object(CellProbabilities, "combine", COMBINED[name]))
        model.calibration = way(model.target, kept).sharpened(model.target, factor)
        return model.probabilities(X), model.target.codes(y)


def agreement(path: Path, X: Any, way: Way, kept: Kept) -> float:
    """The variance over rows of the mean log odds of a cell's fold models, as a share of that of each."""
    found: list[Any] = []
    combine = CellProbabilities.combine

    def keep(cell: CellProbabilities, values: Any, problem: Any) -> Any:
        if values.shape[1] > 1:  # a cell of one class has one model
            found.append(log_odds(cell, values))
        return combine(cell, values, problem)

    with patch.object(CellProbabilities, "combine", keep), LocalModel(path) as model:
        model.calibration = way(model.target, kept)
        model.probabilities(X)
    z = np.concatenate(found)
    return float(z.mean(axis=1).var() / z.var(axis=0).mean())


def log_odds(cell: CellProbabilities, values: Any) -> Any:
    """Of the decision values of a cell's models for two classes."""
    slope, intercept = cell.sigmoids[0]
    return probabilities.bent(cell.curve, slope * values + intercept)


def mean_of_log_odds(cell: CellProbabilities, values: Any, problem: Any) -> Any:
    """(n, 1) probabilities, in place of the mean of those of each model."""
    return expit(log_odds(cell, values).mean(axis=1, keepdims=True))


def log_odds_of_mean(cell: CellProbabilities, values: Any, problem: Any) -> Any:
    """(n, 1) probabilities, in place of the mean of those of each model."""
    return expit(log_odds(cell, values.mean(axis=1, keepdims=True)))


COMBINED = {LOG_ODDS: mean_of_log_odds, VALUES: log_odds_of_mean}


def of_pairs() -> AbstractContextManager[Any]:
    """Within this context, the probabilities of pairs are averaged, not coupled."""
    return patch.object(probabilities, "coupled", mean_of_pairs)


if __name__ == "__main__":
    main()
