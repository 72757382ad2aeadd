"""Points of the grid are chosen by the product of the recalls of all classes under --score tpr-tnr."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import recall_score

from localsvm import LocalSVC
from localsvm.data.blocks.dataset import Dataset
from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write
from localsvm.errors import OptionError
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.methods.linear.linear import LinearSVM
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.predict import LocalModel
from localsvm.runs.streams.train import train_stream
from localsvm.runs.train import train
from localsvm.selection.tally import Tally
from localsvm.targets.classification import Classification

GRID = KernelSVM(gamma=(0.1, 1.0, 10.0), cost=(0.01, 0.1, 1.0, 10.0))


def rare(rows: int = 600, every: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of two classes: one in `every` rows of the larger label, all rows of the other."""
    X, y = banana(rows, np.random.default_rng(seed))
    keep = y < 0
    keep[np.flatnonzero(y > 0)[::every]] = True
    return X[keep], y[keep]


def brute(target: Classification, values: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Loss of each point: 1 - the product of scikit-learn's recalls of the classes that occur."""
    losses = []
    for point in values:
        decided = target.decide(point.T)
        recalls = recall_score(y, decided, labels=np.unique(y), average=None, sample_weight=weight)
        losses.append(1.0 - math.prod(recalls))
    return np.asarray(losses)


@given(k=st.integers(2, 5), scheme=st.sampled_from(["ova", "ava"]), seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=50)
def test_the_loss_is_that_of_scikit_learns_recalls(k: int, scheme: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = Classification(np.arange(float(k)), scheme, "tpr-tnr")
    y, weight = rng.integers(0, rng.integers(1, k + 1), 30).astype(float), rng.integers(1, 4, 30).astype(float)
    values = rng.normal(size=(4, target.n_problems, 30)) + target.encode(y).T
    tally = Tally(target)
    for rows in (slice(0, 7), slice(7, 30)):  # in blocks, as a stream has them
        tally.add(values[:, :, rows], y[rows], target.encode(y[rows]), weight[rows])
    np.testing.assert_allclose([loss for loss, _ in tally.losses()], brute(target, values, y, weight), atol=1e-12)


def test_a_class_without_rows_has_no_part() -> None:
    target = Classification(np.asarray([-1.0, 1.0]), scoring="tpr-tnr")
    tally, y = Tally(target), np.full(4, -1.0)
    tally.add(np.asarray([[[-1.0, -1.0, -1.0, 1.0]], [[1.0, 1.0, 1.0, 1.0]]]), y, target.encode(y), np.ones(4))
    assert [loss for loss, _ in tally.losses()] == [0.25, 1.0]


def test_a_factor_on_a_class_changes_nothing_but_a_row_does() -> None:
    """Class weights are costs of errors: the score is of each class by itself."""
    target = Classification(np.asarray([0.0, 1.0]), scoring="tpr-tnr")
    rng, y = np.random.default_rng(0), np.arange(40) % 4 // 3.0
    values = rng.normal(size=(3, 1, 40))

    def losses(weight: np.ndarray) -> list[float]:
        tally = Tally(target)
        tally.add(values, y, target.encode(y), weight)
        return [loss for loss, _ in tally.losses()]

    assert losses(np.where(y > 0, 8.0, 1.0)) == losses(np.ones(40))
    assert losses(np.where(np.arange(40) < 20, 8.0, 1.0)) != losses(np.ones(40))


def test_ties_go_to_the_smaller_hinge_loss() -> None:
    """Points whose costs are so small that no row is positive all score 0; the hinge loss decides between them."""
    X, y = rare()
    method = KernelSVM(gamma=(0.1, 1.0), cost=(1e-6, 1e-5))
    by_recalls = cross_validate(Dataset(X, y), TrainingConfig(method, "none", metric="none", scoring="tpr-tnr"))
    assert {point.loss for point in by_recalls.points} == {1.0}
    by_accuracy = cross_validate(Dataset(*rare()), TrainingConfig(method, "none", metric="none"))
    (best,), (other,) = ([p for p in table.points if p.best] for table in (by_recalls, by_accuracy))
    assert (best.setting, best.cost) == (other.setting, other.cost) == ((0.1,), 1e-5)


@pytest.mark.parametrize("partition", ["none", "voronoi"])
def test_the_best_points_score(partition: str, tmp_path: Path) -> None:
    """Recalls in the summary are those of the held-out values that the journal keeps for the probabilities."""
    X, y = rare()
    config = TrainingConfig(GRID, partition, 150, metric="none", scoring="tpr-tnr", grid="full")
    table = cross_validate(Dataset(X.copy(), y), config)
    summary = train(Dataset(X.copy(), y), config, tmp_path / "m.h5", resources=Resources(jobs=2))
    plain = train(Dataset(X.copy(), y), TrainingConfig(GRID, partition, 150, metric="none"), tmp_path / "a.h5")
    assert summary.cv_recalls == table.recalls and plain.cv_recalls is None
    assert summary.cv_recalls is not None and summary.cv_error is not None and plain.cv_error is not None
    tnr, tpr = (recall or 0.0 for recall in summary.cv_recalls)
    share = float((y > 0).mean())
    assert summary.cv_error == pytest.approx(share * (1.0 - tpr) + (1.0 - share) * (1.0 - tnr))
    for cell in range(table.cells):
        points = [point for point in table.points if point.cell == cell]
        assert next(point for point in points if point.best).loss == min(point.loss for point in points)
    if partition == "none":  # the loss of the one cell is that of the whole
        assert 1.0 - tpr * tnr == pytest.approx(min(point.loss for point in table.points))
        assert summary.cv_error >= plain.cv_error


def test_models_do_not_depend_on_the_jobs_and_an_accurate_one_is_as_before(tmp_path: Path) -> None:
    X, y = rare()
    files = []
    for jobs in (1, 2):
        config = TrainingConfig(GRID, "voronoi", 150, metric="none", scoring="tpr-tnr")
        train(Dataset(X.copy(), y), config, tmp_path / f"{jobs}.h5", resources=Resources(jobs=jobs))
        with LocalModel(tmp_path / f"{jobs}.h5") as model:
            assert model.target.scoring == "tpr-tnr"
            files.append(model.decision_function(X))
    np.testing.assert_array_equal(*files)
    assert "scoring" not in TrainingConfig().as_dict()


def test_streams_choose_by_it(tmp_path: Path) -> None:
    X, y = rare(1200)
    write(tmp_path / "rows", X, y)
    method = LinearSVM(solver="sgd", cost=(1e-4, 1.0), passes=3)
    summaries = {}
    for scoring in ("accuracy", "tpr-tnr"):
        config = TrainingConfig(method, scoring=scoring, class_weights=((1.0, 8.0),))
        summaries[scoring] = train_stream(tmp_path / "rows", config, tmp_path / f"{scoring}.h5")
    assert summaries["accuracy"].cv_recalls is None
    summary, weight = summaries["tpr-tnr"], np.where(y > 0, 8.0, 1.0)
    assert summary.cv_recalls is not None
    tnr, tpr = (recall or 0.0 for recall in summary.cv_recalls)
    share = float(weight[y > 0].sum() / weight.sum())
    assert summary.cv_error == pytest.approx(share * (1.0 - tpr) + (1.0 - share) * (1.0 - tnr))


def test_in_python() -> None:
    X, y = rare()
    model = LocalSVC(gamma=[0.1, 1.0], cost=[0.1, 10.0], scoring="tpr-tnr", metric="none").fit(X, y)
    assert model.summary_.cv_recalls is not None and 0.0 < model.score(X, y) <= 1.0
    with pytest.raises(ValueError, match=r"^scoring='f1': choose one of accuracy, tpr-tnr"):
        LocalSVC(scoring="f1").fit(X, y)
    with pytest.raises(OptionError, match="--score f1"):
        TrainingConfig(scoring="f1")


def commands(tmp_path: Path, *options: Any) -> tuple[Any, Any, Any]:
    """Results of lsvm-train, lsvm-predict and lsvm-cv."""
    write(tmp_path / "rows", *rare())
    write(tmp_path / "test", *rare(seed=1))
    some = ("-g", "0.1,1", "-C", "0.1,10", "--metric", "none", *options)
    trained = invoke("train", *some, tmp_path / "rows", tmp_path / "m.h5")
    predicted = invoke("predict", "--json", tmp_path / "test", tmp_path / "m.h5", tmp_path / "out")
    return trained, predicted, invoke("cv", *some, tmp_path / "rows")


@pytest.mark.whole
def test_what_the_commands_say(tmp_path: Path) -> None:
    trained, predicted, table = commands(tmp_path, "--score", "tpr-tnr")
    assert "; TPR x TNR = 0." in trained.stderr and table.stdout.startswith("cell,rows,gamma,cost,loss,best\n")
    assert "score   TPR x TNR = 0." in table.stderr and "--score tpr-tnr" in table.stderr
    X, y = rare(seed=1)
    tnr, tpr = json.loads(predicted.stdout)["recalls"]
    np.testing.assert_allclose([tnr, tpr], recall_score(y, np.loadtxt(tmp_path / "out"), average=None))
    assert f"TPR x TNR = {tpr * tnr:.4f} (TPR {tpr:.4f}, TNR {tnr:.4f})" in predicted.stderr
    assert "scored by TPR x TNR" in invoke("inspect", tmp_path / "m.h5").stdout
    write(tmp_path / "negative", X[y < 0], y[y < 0])
    stderr = invoke("predict", tmp_path / "negative", tmp_path / "m.h5", tmp_path / "out", "--force").stderr
    assert f"TPR x TNR = {tnr:.4f} (TPR no rows, TNR {tnr:.4f})" in stderr
    write(tmp_path / "unknown", X, np.zeros(len(y)))
    stderr = invoke("predict", tmp_path / "unknown", tmp_path / "m.h5", tmp_path / "out", "--force").stderr
    assert "Accuracy = 0%" in stderr and "TPR" not in stderr


@pytest.mark.whole
def test_what_the_commands_say_of_accuracy(tmp_path: Path) -> None:
    trained, predicted, table = commands(tmp_path)
    assert "TPR" not in trained.stderr + predicted.stderr + table.stderr and "error" in table.stdout.splitlines()[0]
