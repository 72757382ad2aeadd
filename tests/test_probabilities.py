"""Probabilities: the fit of sigmoids, curve and powers, and what prediction makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from localsvm.data.blocks.dataset import Dataset
from localsvm.data.synthetic import banana
from localsvm.errors import ModelError
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.locally_linear.l3 import L3SVM
from localsvm.methods.locally_linear.ml3 import ML3SVM
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.progress import Silent
from localsvm.runs.train import train
from localsvm.targets.calibrating import calibrate
from localsvm.targets.classification import Classification
from localsvm.targets.probabilities import Calibration, bent, coupled

POINT = KernelSVM(gamma=(1.0,), cost=(1.0,))
GRID = KernelSVM(gamma=(0.3, 3.0), cost=(0.3, 3.0))


class Given:
    """Held-out values of some cells."""

    def __init__(self, cells: list[tuple[Any, Any, Any]]) -> None:
        self._cells, self.sizes = cells, np.asarray([len(y) for _, y, _ in cells])

    def cell(self, index: int) -> tuple[Any, Any, Any]:
        return self._cells[index]


def drawn(n: int, slope: float, intercept: float, seed: int) -> tuple[Any, Any, Any]:
    """A cell whose labels are drawn with the log odds slope f + intercept."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n)
    y = np.where(rng.random(n) < expit(slope * f + intercept), 1.0, -1.0)
    return f[None], y, np.ones(n)


def log_loss(p: Any, codes: Any) -> float:
    return float(-np.log(p[np.arange(len(codes)), codes]).mean())


TWO = Classification(np.asarray([-1.0, 1.0]))


def test_a_cell_keeps_its_sigmoid_and_a_small_one_takes_that_of_the_run() -> None:
    large = [drawn(20_000, 2.0, 0.5, 0), drawn(20_000, 2.0, -1.0, 1)]
    sigmoids = calibrate(TWO, Given([*large, drawn(3, 2.0, 0.0, 2)])).sigmoids
    np.testing.assert_allclose(sigmoids[:2, 0], [[2.0, 0.5], [2.0, -1.0]], atol=0.1)
    run = calibrate(TWO, Given([tuple(np.concatenate(part, axis=-1) for part in zip(*large, strict=True))])).sigmoids
    np.testing.assert_allclose(sigmoids[2], run[0], atol=0.6)


def test_a_row_that_stands_for_several_counts_as_several() -> None:
    f, y, _ = drawn(500, 1.5, 0.0, 3)
    count = np.random.default_rng(4).integers(1, 4, 500)
    once = calibrate(TWO, Given([(f, y, count.astype(float))]))
    often = calibrate(TWO, Given([(np.repeat(f, count, axis=1), np.repeat(y, count), np.ones(count.sum()))]))
    np.testing.assert_allclose(once.sigmoids, often.sigmoids, rtol=1e-6)
    np.testing.assert_allclose(once.curve, often.curve, rtol=1e-5, atol=1e-7)


def test_the_curve_bends_what_no_sigmoid_fits_and_ascends() -> None:
    rng = np.random.default_rng(5)
    f = rng.normal(size=50_000)
    true = np.where(f > 0, 4.0 * f, 0.5 * f)
    y = np.where(rng.random(50_000) < expit(true), 1.0, -1.0)
    calibration = calibrate(TWO, Given([(f[None], y, np.ones(50_000))]))
    grid = np.linspace(-2.0, 1.5, 50)
    z = bent(calibration.curve, calibration.sigmoids[0, 0, 0] * grid + calibration.sigmoids[0, 0, 1])
    assert np.all(np.diff(z) >= 0)
    np.testing.assert_allclose(expit(z), expit(np.where(grid > 0, 4.0 * grid, 0.5 * grid)), atol=0.08)


@pytest.mark.parametrize("values", ["separable", "constant", "one class in a cell"])
def test_values_that_fix_no_sigmoid_give_sane_probabilities(values: str) -> None:
    y = np.repeat([-1.0, 1.0], 50)
    f = {"separable": y * 3.0, "constant": np.zeros(100), "one class in a cell": y * 0.5}[values]
    cells = [(f[None], y, np.ones(100))]
    if values == "one class in a cell":
        cells.append((np.full((1, 40), -1.0), np.full(40, -1.0), np.ones(40)))
    calibration = calibrate(TWO, Given(cells))
    assert all(np.isfinite(array).all() for array in calibration.state().values())
    probabilities = calibration.in_cell(TWO, len(cells) - 1).combine(f[[0, -1], None], np.zeros(1, np.int32))
    p = calibration.of_classes(TWO, probabilities)
    expected = {"separable": [0.01, 0.99], "constant": [0.5, 0.5], "one class in a cell": [0.02, 0.5]}[values]
    assert np.all(np.abs(p[:, 1] - expected) < (0.02 if values != "one class in a cell" else 0.5))


@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_many_classes_get_the_probabilities_that_they_were_drawn_with(scheme: str) -> None:
    rng = np.random.default_rng(6)
    target = Classification(np.asarray([1.0, 2.0, 5.0, 7.0]), scheme)
    scores = rng.normal(size=(30_000, 4)) * 2.0
    true = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    codes = (rng.random((30_000, 1)) > true.cumsum(axis=1)).sum(axis=1)
    others = np.log(np.exp(scores).sum(axis=1, keepdims=True) - np.exp(scores))
    values = scores - others if scheme == "ova" else np.stack([scores[:, j] - scores[:, i] for i, j in target.pairs], 1)
    calibration = calibrate(target, Given([(values.T / 3.0, target.labels[codes], np.ones(30_000))]))
    probabilities = calibration.in_cell(target, 0).combine(values / 3.0, np.arange(target.n_problems))
    p = calibration.of_classes(target, probabilities)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert log_loss(p, codes) < 1.01 * log_loss(true, codes)


def test_coupling_finds_probabilities_that_agree_with_all_pairs() -> None:
    rng = np.random.default_rng(7)
    target = Classification(np.arange(5.0), "ava")
    p = rng.dirichlet(np.ones(5), size=200) * 0.95 + 0.01
    pairs = np.stack([p[:, j] / (p[:, i] + p[:, j]) for i, j in target.pairs], axis=1)
    np.testing.assert_allclose(coupled(target, pairs), p, rtol=1e-6)


def test_fold_models_are_calibrated_one_by_one() -> None:
    calibration = Calibration(np.asarray([[[2.0, 0.3]]]), np.asarray([[0.0, 0.1], [1.0, 0.3]]), np.ones(2))
    values = np.asarray([[0.2, -0.4, 3.0]])
    z = 2.0 * values + 0.3
    probabilities = calibration.in_cell(TWO, 0).combine(values, np.zeros(3, np.int32))
    expected = expit(z + np.interp(z, [0.0, 1.0], [0.1, 0.3])).mean()
    np.testing.assert_allclose(probabilities, [[expected]])


def test_a_problem_without_a_model_says_nothing() -> None:
    target = Classification(np.arange(3.0), "ava")
    calibration = Calibration(np.ones((1, 3, 2)), np.empty((0, 2)), np.ones(2))
    probabilities = calibration.in_cell(target, 0).combine(np.zeros((2, 2)), np.asarray([0, 2]))
    np.testing.assert_allclose(probabilities[:, 1], 0.5)


def rows_of(n: int, classes: int, seed: int) -> Dataset:
    X, y = banana(n, np.random.default_rng(seed))
    return Dataset(X, y if classes == 2 else np.where(X[:, 0] > 1.0, 3.0, y))


def trained(path: Path, config: TrainingConfig, classes: int = 2, **options: Any) -> Path:
    train(rows_of(600, classes, 0), config, path, force=True, **options)
    return path


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("partition", ["none", "voronoi", "chunks"])
def test_probabilities_are_added_and_nothing_else_is_changed(tmp_path: Path, partition: str, jobs: int) -> None:
    plain = TrainingConfig(method=GRID, partition=partition, cell_size=200, metric="none")
    config = TrainingConfig(method=GRID, partition=partition, cell_size=200, probability=True, metric="none")
    paths = trained(tmp_path / "plain.h5", plain), trained(tmp_path / "with.h5", config, resources=Resources(jobs=jobs))
    manifests = [manifest(path) for path in paths]
    added = {"/calibration", "/calibration@kind", *(f"/calibration/{name}" for name in ("sigmoids", "curve", "powers"))}
    assert manifests[1].keys() - manifests[0].keys() == added
    assert {name for name in manifests[0] if manifests[0][name] != manifests[1][name]} == {"/@config"}


def test_the_calibration_is_the_same_for_any_number_of_jobs(tmp_path: Path) -> None:
    config = TrainingConfig(method=GRID, partition="voronoi", cell_size=150, probability=True, metric="none")
    one, two = (
        manifest(trained(tmp_path / f"{jobs}.h5", config, 3, resources=Resources(jobs=jobs))) for jobs in (1, 2)
    )
    assert one == two


class Stopped(Silent):
    """Interrupts a run after its third cell."""

    def __init__(self) -> None:
        self._done = 0

    def cell_done(self, wrong: float, weight: float) -> None:
        self._done += 1
        if self._done == 3:
            raise KeyboardInterrupt


def test_a_resumed_run_has_the_same_calibration(tmp_path: Path) -> None:
    config = TrainingConfig(method=GRID, partition="voronoi", cell_size=100, probability=True, metric="none")
    whole, resumed = trained(tmp_path / "whole.h5", config), tmp_path / "resumed.h5"
    with pytest.raises(KeyboardInterrupt):
        train(rows_of(600, 2, 0), config, resumed, resources=Resources(observer=Stopped()))
    train(rows_of(600, 2, 0), config, resumed, resume=True)
    assert manifest(resumed) == manifest(whole)


def test_one_point_is_cross_validated_and_its_model_stays(tmp_path: Path) -> None:
    plain = trained(tmp_path / "plain.h5", TrainingConfig(method=POINT, metric="none"))
    summary = train(
        rows_of(600, 2, 0), TrainingConfig(method=POINT, probability=True, metric="none"), tmp_path / "with.h5"
    )
    manifests = [manifest(path) for path in (plain, tmp_path / "with.h5")]
    assert {name for name in manifests[0] if manifests[0][name] != manifests[1][name]} == {"/@config"}
    assert summary.points == 1 and summary.cv_error is not None and summary.calibration is not None


@pytest.mark.fast(1)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "method, options",
    [
        (GRID, {}),
        (GRID, {"multiclass": "ava"}),
        (GRID, {"select": "vote"}),
        (GRID, {"partition": "voronoi", "cell_size": 100}),
        (GRID, {"partition": "chunks", "cell_size": 200}),
        (GRID, {"partition": "voronoi", "cell_size": 200, "repeats": 2}),
        (L3SVM(), {}),
        (ML3SVM(), {"select": "vote"}),
        (ML3SVM(), {"multiclass": "ava"}),
    ],
)
def test_probabilities_of_new_rows(tmp_path: Path, method: Any, options: dict[str, Any], classes: int) -> None:
    path = trained(
        tmp_path / "model.h5", TrainingConfig(method=method, probability=True, **options, metric="none"), classes
    )
    test = rows_of(2000, classes, 1)
    with LocalModel(path) as model:
        p = model.probabilities(test.X)
        labels = model.predict(test.X)
        strips = np.concatenate([model.probabilities(test.X[i : i + 7]) for i in range(0, 70, 7)])
        codes = model.target.codes(test.y)
    assert p.shape == (2000, classes) and np.all(p >= 0)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(strips, p[:70])
    shares = np.bincount(codes) / len(codes)
    assert log_loss(p, codes) < 0.75 * -(shares @ np.log(shares))
    assert np.mean(model.file.labels[p.argmax(axis=1)] == labels) > 0.9


def test_a_model_without_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = trained(tmp_path / "model.h5", TrainingConfig(method=POINT, metric="none"))
    with LocalModel(path) as model, pytest.raises(ModelError, match=r"model.h5: no probabilities .* -b 1"):
        model.probabilities(rows_of(5, 2, 1).X)


def test_the_calibration_of_a_file_is_checked(tmp_path: Path) -> None:
    from localsvm.runs.preparation.stored import calibration_of
    from localsvm.store.model import load_model

    path = trained(tmp_path / "model.h5", TrainingConfig(method=POINT, probability=True, metric="none"))
    with load_model(path) as model:
        kind, arrays = model.calibration or ("", {})
        good = dict(arrays)
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("beta", good),
            (kind, good | {"sigmoids": good["sigmoids"][:, :, :1]}),
            (kind, good | {"sigmoids": good["sigmoids"] * np.nan}),
            (kind, good | {"powers": -good["powers"]}),
            (kind, good | {"curve": good["curve"][::-1]}),
            (kind, {name: good[name] for name in ("sigmoids", "powers")}),
        ]
        for model.calibration in wrong:
            with pytest.raises(ModelError, match="calibration"):
                calibration_of(model, 1)


def manifest(path: Path) -> dict[str, Any]:
    """The checksums of a file's contents."""
    import json

    import h5py

    with h5py.File(path) as file:
        return dict(json.loads(file.attrs["manifest"]))
