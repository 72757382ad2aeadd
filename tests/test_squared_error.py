"""--loss squared-error: classes by least squares of -1 and 1."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from overlapping import LABELS, overlapping
from scipy import sparse
from selecting import fit, score
from sklearn.metrics.pairwise import rbf_kernel

from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.writers.libsvm import write
from localsvm.errors import OptionError
from localsvm.estimators import LocalSVC
from localsvm.methods.cell import Cell
from localsvm.methods.cell_size import CellSize
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.targets.classification import MSE
from localsvm.targets.detection import Detection

GAMMA, COST = 0.4, 3.0
SQUARED = KernelSVM(loss="squared-error", gamma=(GAMMA,), cost=(COST,), tolerance=1e-8)
cell_of = partial(overlapping, scoring=MSE)


def noisy(n: int = 600, share: float = 0.2, seed: int = 0, d: int = 2) -> Dataset:
    """Rows in the plane, whose classes a circle divides, and a share of which have the label of the other class."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d)).astype(np.float32)
    y = np.where(np.square(X[:, :2]).sum(axis=1) > 0.6, 1.0, -1.0)
    return Dataset(X, np.where(rng.random(n) < share, -y, y))


def solved(cell: Cell, problem: int, rows: np.ndarray, at: np.ndarray, sloped: bool) -> np.ndarray:
    """Values (k,) at rows `at` of a problem learned from others, by dense systems of numpy (docs/squared-error.md)."""
    part = rows[cell.Y[rows, problem] != 0.0]
    X, y, w = cell.X[part].astype(np.float64), cell.Y[part, problem], cell.weight_of(problem)[part]
    share, slope = w / w.sum(), np.zeros(X.shape[1])
    if sloped:
        centred, left = X - share @ X, y - share @ y
        moments = (centred * share[:, None]).T @ centred
        ridge = max(1e-3, X.shape[1] / (32.0 * max(w.sum(), len(w)))) * np.trace(moments)
        slope = np.linalg.solve(moments + ridge * np.eye(len(slope)), centred.T @ (share * left))
    constant = share @ (y - X @ slope)
    a = np.linalg.solve(rbf_kernel(X, gamma=GAMMA) + np.diag(0.5 / (COST * w)), y - X @ slope - constant)
    Z = cell.X[at].astype(np.float64)
    return np.asarray(constant + Z @ slope + rbf_kernel(Z, X, gamma=GAMMA) @ a)


@pytest.mark.parametrize(
    ("classes", "scheme", "weighted"), [(2, "ova", False), (2, "ova", True), (3, "ova", False), (3, "ava", True)]
)
@pytest.mark.parametrize("trend", ["constant", "linear"])
@pytest.mark.fast(8)
def test_values_are_those_of_dense_systems(classes: int, scheme: str, weighted: bool, trend: str) -> None:
    cell = cell_of(classes, scheme, weighted=weighted)
    method = replace(SQUARED, trend=trend)
    grid, every = method.grid(cell, 200.0, 4), np.arange(len(cell.y))
    scores = score(method, cell, grid, [0])
    assert scores.kept is not None and scores.kept.values is not None
    whole = method.predictor(fit(method, cell, grid, scores, "refit").state, cell.target, 3).decision_function(cell.X)
    for problem in range(cell.target.n_problems):
        for fold in range(4):
            held = cell.held_out(fold)
            others = np.delete(every, every[held])
            expected = solved(cell, problem, others, every[held], trend == "linear")
            np.testing.assert_allclose(scores.kept.values[problem, held], expected, atol=2e-3)
        np.testing.assert_allclose(whole[:, problem], solved(cell, problem, every, every, trend == "linear"), atol=2e-3)


def test_points_are_compared_by_squares_and_the_error_stays_the_share_of_wrong_rows() -> None:
    cell = cell_of(3, n=240)
    method = replace(SQUARED, gamma=(0.02, 0.4, 8.0), cost=(0.01, 0.3, 10.0), trend="linear")
    grid = method.grid(cell, 240.0, 4)
    scores = score(method, cell, grid, range(3))
    assert scores.kept is not None and scores.kept.values is not None
    values = scores.kept.values
    squares = np.square(cell.Y.T - np.clip(values, -1.0, 1.0)).mean(axis=0)
    assert scores.best.loss == scores.loss.min() == pytest.approx(squares.mean(), rel=1e-9)
    decided = cell.target.decide(values.T)
    error = cell.target.error(scores.kept.wrong, cell.target.mass(cell.y, cell.weight))
    assert error == pytest.approx((decided != cell.y).mean())


def test_sparse_rows_and_dense_ones_have_one_model(tmp_path: Path) -> None:
    data, method = noisy(d=4), replace(SQUARED, gamma=(0.5, 2.0), cost=(0.1, 1.0))
    data.X[np.random.default_rng(0).random(data.X.shape) < 0.5] = 0.0
    config, values = TrainingConfig(method, scale="none", metric="none"), []
    for name, X in (("dense", data.X), ("sparse", as_examples(sparse.csr_array(data.X)))):
        train(Dataset(X, data.y), config, tmp_path / name)
        with LocalModel(tmp_path / name) as model:
            values.append(model.decision_function(data.X))
    np.testing.assert_allclose(values[0], values[1], atol=1e-4)


def test_a_cell_of_one_class_says_that_class(tmp_path: Path) -> None:
    X = (
        np.repeat(np.asarray([[0.0], [100.0]], np.float32), 50, axis=0)
        + np.linspace(0, 1, 100, dtype=np.float32)[:, None]
    )
    y = np.repeat([1.0, 2.0], 50)
    config = TrainingConfig(replace(SQUARED, gamma=(1.0, 2.0)), partition="voronoi", cell_size=60, metric="none")
    train(Dataset(X.copy(), y), config, tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.partition.n_cells == 2
        np.testing.assert_array_equal(model.predict(X), y)


def test_the_user_says_how_many_models_a_cell_keeps(tmp_path: Path) -> None:
    models = {}
    for select in (None, "vote", "refit"):
        train(noisy(), TrainingConfig(KernelSVM(loss="squared-error"), select=select), tmp_path / "m.h5", force=True)
        with LocalModel(tmp_path / "m.h5") as model:
            models[select] = len(model.file.column("model_problem")), model.file.config["select"]
    assert models == {None: (1, "refit"), "vote": (5, "vote"), "refit": (1, "refit")}


def test_a_partition_and_then_training_is_training(tmp_path: Path) -> None:
    from localsvm.runs.partition import partition_only

    data, config = noisy(900), TrainingConfig(KernelSVM(loss="squared-error"), partition="voronoi", cell_size=300)
    partition_only(noisy(900), config, tmp_path / "p.h5")
    train(noisy(900), config, tmp_path / "of_file.h5", partition_file=tmp_path / "p.h5")
    train(noisy(900), config, tmp_path / "m.h5")
    found = []
    for name in ("m.h5", "of_file.h5"):
        with LocalModel(tmp_path / name) as model:
            found.append((model.file.config["method"], model.decision_function(data.X)))
    assert found[0][0] == found[1][0] and found[0][0]["loss"] == "squared-error"
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_the_table_of_points_has_their_squares() -> None:
    result = cross_validate(noisy(), TrainingConfig(replace(SQUARED, gamma=(0.5, 2.0))))
    assert result.compared == "mse" and min(point.loss for point in result.points) > result.error > 0.15
    clean = cross_validate(noisy(), TrainingConfig(KernelSVM(gamma=(0.5, 2.0), cost=(1.0,)), scoring="tpr-tnr"))
    assert clean.compared == "loss"


def test_a_detection_weighs_squares_class_by_class() -> None:
    cell = cell_of()
    target = Detection(LABELS[:2], weights=(0.25, 1.0, 4.0), alarm=1)
    cell = replace(cell, target=target)
    grid = SQUARED.grid(cell, 200.0, 4)
    state = fit(SQUARED, cell, grid, None, "refit").state
    values, every = SQUARED.predictor(state, target, 3).decision_function(cell.X), np.arange(len(cell.y))
    for problem in range(3):
        np.testing.assert_allclose(values[:, problem], solved(cell, problem, every, every, False), atol=2e-3)


def test_probabilities_of_squares_are_those_of_the_noise() -> None:
    data = noisy(1500)
    fitted = LocalSVC(loss="squared-error", probability=True).fit(data.X, data.y)
    fresh = noisy(1500, share=0.0, seed=1)
    given = fitted.predict_proba(fresh.X)[np.arange(1500), (fresh.y > 0).astype(int)]
    assert 0.72 < given.mean() < 0.84


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"offset": True}, "--offset is for classes by --loss hinge"),
        ({"quantile": (0.5,)}, "--quantile is for"),
        ({"epsilon": (0.5,)}, "-p/--epsilon is for"),
    ],
)
def test_options_of_other_losses_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        KernelSVM(loss="squared-error", **options)


def test_the_trends_of_all_problems_count_in_memory() -> None:
    one, ten = (CellSize(1000, 50, 1.0, 5 * problems, 0, problems=problems) for problems in (1, 10))
    sloped = replace(KernelSVM(loss="squared-error"), trend="linear")
    of_trend = [sloped.memory(size) - replace(sloped, trend="constant").memory(size) for size in (one, ten)]
    assert of_trend[1] == 10 * of_trend[0] > 0


def test_large_cells_go_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    from localsvm.methods.kernel import value_options

    cell = cell_of(3)
    grid = SQUARED.grid(cell, 200.0, 4)
    whole = fit(SQUARED, cell, grid, None, "refit").state
    monkeypatch.setattr(value_options, "WHOLE_ROWS", 100)
    SQUARED.check(CellSize(200, 3, 1.0, 12, 0, problems=3))
    blocks = fit(SQUARED, cell, grid, None, "refit").state
    values = [SQUARED.predictor(state, cell.target, 3).decision_function(cell.X) for state in (whole, blocks)]
    np.testing.assert_allclose(*values, atol=1e-3)


def test_rows_of_a_file_are_classes(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from localsvm.cli.group import lsvm

    data = noisy()
    write(tmp_path / "train", as_examples(data.X), data.y)
    words = ["train", "--loss", "squared-error", str(tmp_path / "train"), str(tmp_path / "m.h5")]
    trained = CliRunner().invoke(lsvm, words)
    assert trained.exit_code == 0 and "cross-validated error 2" in trained.output
    predicted = CliRunner().invoke(
        lsvm, ["predict", str(tmp_path / "train"), str(tmp_path / "m.h5"), str(tmp_path / "p")]
    )
    assert "Accuracy = " in predicted.output and "TPR" not in predicted.output
    assert set((tmp_path / "p").read_text().split()) == {"-1", "1"}
