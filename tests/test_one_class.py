"""Novelty detection: against scikit-learn's OneClassSVM, thresholds and what they promise, and the commands."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import invoke
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from selecting import fit, score
from sklearn.base import clone, is_outlier_detector
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM as Oracle

import localsvm
from localsvm import LocalOneClass
from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.writers.libsvm import write
from localsvm.errors import OptionError
from localsvm.methods.cell import Cell
from localsvm.methods.kernel.one_class import OneClassSVM
from localsvm.methods.kernel.systems.one_class import made_up
from localsvm.methods.random import MADE_UP, stream
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.targets.novelty import Novelty, threshold_of

POINT = OneClassSVM(gamma=(2.0,), cost=(0.05,))


def ring(n: int, seed: int = 0) -> np.ndarray:
    """Rows (n, 2) around a circle."""
    rng = np.random.default_rng(seed)
    angle, radius = 2 * np.pi * rng.random(n), 1.0 + 0.1 * rng.standard_normal(n)
    return (radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)).astype(np.float32)


def cell_of(X: np.ndarray, folds: int = 4) -> Cell:
    ones, held = np.ones(len(X)), np.sort(np.arange(len(X)) % folds)
    return Cell(X, ones, Novelty(nu=0.1), ones, ones, held)


def trained(path: Path, X: np.ndarray, config: TrainingConfig) -> LocalModel:
    train(Dataset(X.copy(), np.zeros(len(X))), config, path, force=True)
    return LocalModel(path)


# --- the problem


@pytest.mark.parametrize("cost", [0.01, 0.05, 0.5])
def test_it_is_the_problem_of_the_one_class_svm(cost: float) -> None:
    """Coefficients a of the hinge, over C: those of LIBSVM for nu = sum a / (C n)."""
    X = ring(80)
    method = replace(POINT, cost=(cost,), tolerance=1e-8)
    cell = cell_of(X)
    state = fit(method, cell, method.grid(cell, 80.0, 4), None, "refit").state
    a = np.zeros(80)
    rows = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in state["support"]]
    a[rows] = state["coef"][np.argsort(state["coef_index"])]
    nu = a.sum() / (cost * len(X))
    assert 0.0 < nu <= 1.0
    oracle = Oracle(gamma=2.0, nu=min(nu, 1.0), tol=1e-9).fit(X)
    theirs = np.zeros(80)
    theirs[oracle.support_] = oracle.dual_coef_[0]
    assert_allclose(a / cost, theirs, atol=2e-3)
    values = method.predictor(state, cell.target, 2).decision_function(X)[:, 0]
    assert_allclose(values / cost, oracle.score_samples(X), rtol=1e-4)


def test_the_values_of_held_out_and_made_up_rows_are_those_of_fold_models() -> None:
    cell = cell_of(ring(60))
    grid = POINT.grid(cell, 60.0, 4)
    kept = score(POINT, cell, grid).kept
    assert kept is not None and kept.values is not None and kept.values.shape == (2, 60)
    oracle, made = np.zeros((2, 60)), made_up(cell.X, stream(cell.random, MADE_UP))
    for fold in range(4):
        held = cell.held_out(fold)
        others = np.setdiff1d(np.arange(60), np.arange(60)[held])
        part = Cell(cell.X[others], cell.y[others], cell.target, *(np.ones(45),) * 2, np.zeros(45, np.int64))
        state = fit(POINT, part, grid, None, "refit").state
        ours = POINT.predictor(state, cell.target, 2)
        oracle[0, held] = ours.decision_function(cell.X[held])[:, 0]
        oracle[1, held] = ours.decision_function(made[held])[:, 0]
    assert_allclose(kept.values, oracle, atol=0.02)


def test_rows_are_made_up_of_the_values_of_columns() -> None:
    X = np.random.default_rng(0).standard_normal((41, 3)).astype(np.float32)
    made = made_up(X, np.random.default_rng(1))
    assert made.shape == X.shape and made.dtype == np.float32
    for j in range(3):
        assert np.isin(made[::2, j], X[:, j]).all() and not np.isin(made[1::2, j], X[:, j]).any()
        assert X[:, j].min() <= made[1::2, j].min() and made[1::2, j].max() <= X[:, j].max()
    assert len({tuple(row) for row in made[::2]} & {tuple(row) for row in X}) == 0
    thin = as_examples(sparse.csr_array(np.where(X > 0, X, 0.0)))
    again = made_up(thin, np.random.default_rng(1))
    assert_array_equal(np.sort(again.toarray(), axis=0), np.sort(thin.toarray(), axis=0))
    assert again.indptr.dtype == np.int64 and again.has_sorted_indices


# --- thresholds


def test_a_level_is_the_order_statistic() -> None:
    f = np.random.default_rng(0).permutation(39).astype(float)
    assert threshold_of(f, np.ones(39), 0.05) == 1.0  # the second smallest of 39: .05 * 40
    assert threshold_of(f, np.ones(39), 0.0499) == 0.0
    assert threshold_of(f, np.ones(39), 1e-6) == 0.0  # too few rows: the smallest
    assert threshold_of(f, np.ones(39), 0.999) == 38.0
    assert threshold_of(f, np.full(39, 7.0), 0.05) == 1.0  # factors on all weights change nothing
    assert threshold_of(f, np.zeros(39), 0.05) == 1.0
    twice = np.where(f < 3, 2.0, 1.0)
    assert threshold_of(f, twice, 0.2) == threshold_of(np.repeat(f, twice.astype(int)), np.ones(42), 0.2)


@pytest.mark.parametrize("partition", ["none", "voronoi", "chunks"])
def test_no_more_new_rows_are_novel_than_nu(partition: str, tmp_path: Path) -> None:
    config = TrainingConfig(OneClassSVM(nu=0.1), partition, 300, folds=3)
    new = ring(4000, seed=9)
    with trained(tmp_path / "m.h5", ring(900), config) as model:
        cells = model.file.n_cells
        rejected = np.mean(model.predict(new) == -1.0)
        assert 0.03 < rejected < 0.125, rejected
        # the middle of the circle, where no row is, and rows far away, are novel in every cell
        far = np.asarray([[0, 0], [3, 3], [-50, 2], [1e4, -1e4]], np.float32)
        assert (model.predict(far) == -1.0).all()
        bound = -model.target.thresholds
        assert (model.decision_function(far[2:])[:, 0] <= max(bound) + 1e-6).all()
        if partition == "voronoi":
            routed = model.partition.route(model.chain.apply(new)).indices
            shares = np.bincount(routed, model.predict(new) == -1.0, cells) / np.bincount(routed, minlength=cells)
            assert cells > 2 and shares.max() < 0.2
    assert cells == (1 if partition == "none" else cells)


def test_where_nothing_is_near_a_row_is_novel(tmp_path: Path) -> None:
    """With a gamma so large that held-out values are 0, no threshold keeps the promise; a note says so."""
    X = ring(60)
    write(tmp_path / "rows", X, np.ones(60))
    told = invoke("train", "-m", "one-class", "-g", "1e7", "-C", 1, tmp_path / "rows", tmp_path / "m.h5").stderr
    assert "more new rows than --nu 0.05 may be called novel in the only cell" in told
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.target.thresholds.tolist() == [1e-30]
        assert (model.predict(ring(40, seed=3)) == -1.0).all()


def test_a_factor_on_all_weights_changes_nothing(tmp_path: Path) -> None:
    X, config = ring(120), TrainingConfig(OneClassSVM(gamma=(2.0,)), "none", folds=3, scale="none")
    weight, thresholds = np.random.default_rng(2).integers(1, 4, 120).astype(float), []
    for factor in (1.0, 8.0):
        train(Dataset(X.copy(), np.ones(120), weight=factor * weight), config, tmp_path / "m.h5", force=True)
        with LocalModel(tmp_path / "m.h5") as model:
            thresholds.append(float(model.target.thresholds[0]))
    assert thresholds[0] == pytest.approx(thresholds[1], rel=1e-5) and thresholds[0] > 0.0


# --- commands


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("novel")
    write(folder / "train", ring(200), np.arange(200) % 3)  # labels say nothing
    new = np.concatenate([ring(50, seed=1), 0.2 * ring(50, seed=2), ring(20, seed=3)])
    write(folder / "test", new, np.repeat([1, -1, 0], [50, 50, 20]))
    invoke("train", "-q", "-m", "one-class", "--nu", ".1", folder / "train", folder / "m.h5")
    return folder


def test_predict_prints_1_and_minus_1_and_the_value(files: Path) -> None:
    done = invoke("predict", files / "test", files / "m.h5")
    labels = done.stdout.split()
    assert set(labels) == {"1", "-1"} and len(labels) == 120
    right = sum(a == b for a, b in zip(labels, ["1"] * 50 + ["-1"] * 50, strict=False))
    assert done.stderr == f"Accuracy = {right}% ({right}/100)\n" and right > 90  # the label 0 says nothing
    header, *lines = invoke("predict", "-q", "--decision-values", files / "test", files / "m.h5").stdout.splitlines()
    assert header == "labels -1/1"
    assert [line.split()[0] for line in lines] == labels
    assert all((float(line.split()[1]) > 0) == (line.split()[0] == "1") for line in lines)


def test_labels_of_the_training_file_say_nothing(files: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", ring(200), np.full(200, 7))
    report = invoke("train", "--json", "-m", "one-class", "--nu", ".1", tmp_path / "other", tmp_path / "m.h5")
    one, other = (invoke("predict", "-q", "--decision-values", files / "test", f / "m.h5") for f in (files, tmp_path))
    assert one.stdout == other.stdout
    assert "200 rows, 2 features, of one kind, of which up to 0.1 may be novel" in report.stderr
    summary = json.loads(report.stdout)["summary"]
    assert summary["nu"] == 0.1 and 0.0 <= summary["cv_error"] < 0.8 and summary["class_rows"] == [200]


def test_a_model_is_described(files: Path) -> None:
    facts = json.loads(invoke("inspect", "--json", files / "m.h5").stdout)
    assert facts["calibration"] is None and 0.0 < facts["thresholds"]["median"] < 1.0
    assert "up to which rows are novel" in invoke("inspect", files / "m.h5").stdout


def test_tables_need_no_second_label(tmp_path: Path) -> None:
    X = ring(120)
    rows = [f"ok,{a:.4f},{b:.4f},{'uv'[i % 2]}" for i, (a, b) in enumerate(X)]
    (tmp_path / "train.csv").write_text("\n".join(["state,a,b,c", *rows]) + "\n")
    (tmp_path / "new.csv").write_text("state,a,b,c\n" + "\n".join([*rows[:5], "broken,0,0,u"]) + "\n")
    told = invoke("train", "-m", "one-class", "--label", "state", tmp_path / "train.csv", tmp_path / "m.h5").stderr
    assert "predicts 'state' alone" not in told
    done = invoke("predict", tmp_path / "new.csv", tmp_path / "m.h5")
    assert done.stdout.split()[-1] == "-1" and done.stdout.split()[:5].count("1") >= 4 and "Accuracy" not in done.stderr


@pytest.mark.fast(1)
@pytest.mark.parametrize("folds", ["5", "blocks"])
def test_a_table_of_one_kind_needs_no_labels(folds: str, tmp_path: Path) -> None:
    """All its columns may be features. New rows are compared with the answers where they have a column `label`."""
    rows = [f"{a:.4f},{b:.4f}" for a, b in ring(120)]
    (tmp_path / "some.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    (tmp_path / "labelled.csv").write_text("a,b,y\n" + "".join(f"{row},ok\n" for row in rows))
    (tmp_path / "new.csv").write_text(
        "b,label,a\n0,-1,0\n" + "".join("{1},1,{0}\n".format(*row.split(",")) for row in rows)
    )
    told = {}
    for name in ("some", "labelled"):
        given = ("train", "-m", "one-class", "-v", folds, tmp_path / f"{name}.csv", tmp_path / f"{name}.h5")
        told[name] = invoke(*given).stderr
        assert "120 rows, 2 features, of one kind" in told[name]
    assert "no column is called label, target, class or y" in told["some"] and "no column" not in told["labelled"]
    answers = [invoke("predict", tmp_path / "some.csv", tmp_path / f"{name}.h5").stdout for name in told]
    assert answers[0] == answers[1] and len(answers[0].split()) == 120
    assert "Accuracy" not in invoke("predict", tmp_path / "some.csv", tmp_path / "some.h5").stderr
    compared = invoke("predict", tmp_path / "new.csv", tmp_path / "some.h5")
    right = 1 + answers[0].split().count("1")
    assert f"({right}/121)" in compared.stderr + compared.stdout


def test_a_table_without_labels_is_refused_where_these_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,5\n")
    for given in ((), ("--loss", "least-squares"), ("-m", "one-class", "--label", "c")):
        told = invoke("train", *given, tmp_path / "t.csv", tmp_path / "m.h5", code=1).stderr
        assert "which column has the labels? Give --label NAME" in told or "no column is called 'c'" in told
    for folds in ("5", "blocks"):
        given = ("-m", "one-class", "-v", folds, "--ignore", "a,b")
        told = invoke("train", *given, tmp_path / "t.csv", tmp_path / "m.h5", code=1).stderr
        assert "no column is a feature: all are ignored" in told
    (tmp_path / "empty.csv").write_text("a,b\n")
    assert "no rows" in invoke("train", "-m", "one-class", tmp_path / "empty.csv", tmp_path / "m.h5", code=1).stderr


REFUSED = [
    {"class_weights": ((1.0, 2.0),)}, {"balanced": True}, {"probability": True}, {"coverage": 0.9},
    {"force_classes": True}, {"scoring": "tpr-tnr"}, {"multiclass": "ava"}, {"metric": "diag"},
]  # fmt: skip


@pytest.mark.fast(8)
@pytest.mark.parametrize("given", REFUSED, ids=lambda given: next(iter(given)))
def test_options_of_classes_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="one-class"):
        TrainingConfig(OneClassSVM(), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("nu", [0.0, 1.0, -0.1, float("nan")])
@pytest.mark.fast(4)
def test_nu_is_a_share(nu: float) -> None:
    with pytest.raises(OptionError, match="--nu must be a number between 0 and 1"):
        OneClassSVM(nu=nu)


def test_what_a_model_does_not_have_is_refused(files: Path) -> None:
    for option in (("-b", 1), ("--coverage", 0.9)):
        done = invoke("predict", *option, files / "test", files / "m.h5", code=2)
        assert "finds novelties" in done.stderr.splitlines()[-1]
    assert "one-class has a threshold" in invoke("train", "-m", "one-class", "--offset", files / "train", code=2).stderr


# --- the estimator


def test_the_estimator_is_a_detector_as_scikit_learn_has_them(files: Path, tmp_path: Path) -> None:
    X, new = ring(200), np.concatenate([ring(40, seed=1), 0.2 * ring(40, seed=2)])
    model = LocalOneClass(nu=0.1, partition="voronoi", cell_size=60, random_state=3)
    answers = model.fit_predict(X)
    assert_array_equal(answers, model.predict(X))
    assert answers.dtype == np.int64 and set(answers) == {-1, 1} and is_outlier_detector(model)
    values = model.decision_function(new)
    assert_array_equal(model.predict(new), np.where(values > 0, 1, -1))
    assert_allclose(model.score_samples(new) - model.offset_, values)
    assert roc_auc_score(np.repeat([1, 0], 40), values) > 0.98
    model.save(tmp_path / "m.h5")
    again = localsvm.load(tmp_path / "m.h5")
    assert isinstance(again, LocalOneClass) and again.nu == 0.1 and again.cell_size == 60
    for other in (again, pickle.loads(pickle.dumps(model)), clone(model).fit(X, np.zeros(200))):
        assert_array_equal(other.decision_function(new), values)


def test_the_estimator_is_the_command(files: Path) -> None:
    X = ring(200)
    ours, theirs = LocalOneClass(nu=0.1).fit(X), localsvm.load(files / "m.h5")
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert not hasattr(ours, "classes_") and "scoring" not in ours.get_params()
    assert theirs.offset_ == pytest.approx(ours.offset_, abs=1e-5)


def test_frames_and_parameters() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ring(100), columns=["a", "b"]).assign(c=list("uv" * 50))
    model = LocalOneClass(folds=3).fit(frame)
    assert model.predict(frame).shape == (100,) and model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"^nu must be a number between 0 and 1, as 0\.05, not 2"):
        LocalOneClass(nu=2).fit(ring(30))
