"""MLLKM in one pass over a file: the rows that stay, the objective reached with them, and the options refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from selecting import examples
from test_mllkm import certificate
from test_streaming import manifest, written

from localsvm.cli.reporting import summary_text
from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.errors import OptionError, RunError
from localsvm.estimators import LocallyLinearKernelsClassifier
from localsvm.methods.locally_linear.mllkm import LocallyLinearKernels
from localsvm.methods.locally_linear.systems.mllkm_online import KeptRows, OnePass, probabilities
from localsvm.representations.local_kernels import LocalBank
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.streams.train import train_stream
from localsvm.runs.train import train
from localsvm.solvers.feature_mkl import Found, feature_mkl

GAMMAS = (0.1, 1.0)
ONCE = LocallyLinearKernels(cost=(2.0,), bank_gammas=GAMMAS, online="full", kept_rows=60)


def problem(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 2) and labels (n,) of two classes along a bent line, some on the wrong side."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    side = X[:, 1] - np.sin(2.0 * X[:, 0])
    return X - X.mean(axis=0), np.where(side + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)


def learned(X: np.ndarray, y: np.ndarray, cost: float, kept: int, part: int, seed: int = 0) -> OnePass:
    method = LocallyLinearKernels(bank_gammas=GAMMAS, online="full", kept_rows=kept, tolerance=1e-3)
    one = OnePass(method, GAMMAS, X.shape[1], np.random.default_rng(seed))
    for first in range(0, len(y), part):
        rows = np.arange(first, min(len(y), first + part))
        one.learn(KeptRows(X[rows], y[rows], np.full(len(rows), cost), np.zeros(len(rows)), rows))
    one.finish()
    return one


def whole(X: np.ndarray, y: np.ndarray, cost: float) -> tuple[LocalBank, Found]:
    bank = LocalBank(X, X, np.arange(len(X)), "gaussian", GAMMAS)
    return bank, feature_mkl(bank, y, np.full(len(y), cost), 1e-3)


def primal(one: OnePass, X: np.ndarray, y: np.ndarray, cost: float) -> float:
    """Primal objective over all rows."""
    hinge = np.maximum(0.0, 1.0 - y * one.values(X))
    return 0.5 * float(one.solution.norms.sum()) ** 2 + cost * float(hinge.sum())


def test_probabilities_are_in_proportion_up_to_one() -> None:
    rng = np.random.default_rng(0)
    for count in (1, 7, 49):
        size = rng.random(50) ** 4 + 1e-9
        p = probabilities(size, count)
        assert p.sum() == pytest.approx(count) and p.max() <= 1.0
        drawn = p < 1.0
        assert drawn.any() and np.ptp(p[drawn] / size[drawn]) < 1e-9 * (p[drawn] / size[drawn]).max()
        assert size[~drawn].min(initial=np.inf) >= size[drawn].max()


@pytest.mark.whole
def test_rows_that_stay_stand_for_those_that_leave() -> None:
    X, y = problem(400)
    ones = [learned(X, y, 2.0, 80, 40, seed) for seed in range(20)]
    for one in ones:
        assert len(one.rows.y) <= 80 and one.rows.cost.min() >= 2.0
        assert_array_equal(one.rows.y, y[one.rows.number])
    assert np.mean([one.rows.cost.sum() for one in ones]) == pytest.approx(800.0, rel=0.1)
    of_any_model = np.maximum(0.0, 1.0 - y * (X @ [0.3, 0.8]))
    sums = [float(one.rows.cost @ of_any_model[one.rows.number]) for one in ones]
    assert np.mean(sums) == pytest.approx(2.0 * of_any_model.sum(), rel=0.1)


def test_with_room_for_all_rows_the_optimum_is_reached_and_certified() -> None:
    X, y = problem(150)
    one, (bank, best) = learned(X, y, 2.0, 1000, 30), whole(X, y, 2.0)
    solution = one.solution
    assert solution.converged and solution.primal == pytest.approx(best.primal, rel=2e-3)
    assert primal(one, X, y, 2.0) == pytest.approx(solution.primal, rel=1e-9)
    assert_array_equal(one.rows.number, np.arange(150))
    bank_of_anchors = LocalBank(X, one.anchors, np.arange(len(one.anchors)), "gaussian", GAMMAS)
    upper, _ = certificate(bank_of_anchors, y, 2.0, solution)
    assert upper == pytest.approx(solution.primal, rel=1e-9)
    scores = bank.scores(solution.coef)
    assert np.abs(solution.coef).sum() - scores.max() == pytest.approx(solution.dual, rel=1e-4)


@pytest.mark.whole
@pytest.mark.parametrize("cost", [2.0, 20.0])
def test_with_a_tenth_of_the_rows_the_objective_of_all_comes_near(cost: float) -> None:
    X, y = problem(1200)
    Z, t = problem(2000, seed=1)
    one, best = learned(X, y, cost, 120, 60), whole(X, y, cost)[1]
    sample = whole(X[:120], y[:120], 10.0 * cost)[1]
    of_sample = LocalBank(X, X[:120], np.arange(120), "gaussian", GAMMAS).features(sample.names).values(sample.w)
    drawn = 0.5 * sample.norms.sum() ** 2 + cost * np.maximum(0.0, 1.0 - y * of_sample).sum()
    reached = primal(one, X, y, cost)
    assert best.primal * 0.999 <= reached <= 1.1 * best.primal
    assert reached < drawn  # of as many random rows
    at = LocalBank(Z, X, np.arange(len(X)), "gaussian", GAMMAS)
    right = np.mean(np.sign(at.features(best.names).values(best.w)) == t)
    assert np.mean(np.sign(one.values(Z)) == t) > right - 0.02


def config_of(**options: Any) -> TrainingConfig:
    shared = {key: options.pop(key) for key in ("multiclass", "class_weights", "scale") if key in options}
    defaults = {"cost": (2.0,), "bank_gammas": GAMMAS, "online": "full", "kept_rows": 60}
    return TrainingConfig(LocallyLinearKernels(**(defaults | options)), **({"scale": "none"} | shared))


@pytest.mark.fast(1)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_a_model_does_not_depend_on_the_jobs(tmp_path: Path, kind: str, scheme: str) -> None:
    X, y = examples(600, classes=3)
    rows: Any = X
    if kind == "sparse":
        wide = np.zeros((600, 31), np.float32)
        wide[:, ::15] = X
        rows = as_examples(sparse.csr_array(wide))
    file = written(tmp_path / "rows", rows, y)
    for jobs in (1, 2):
        config = config_of(multiclass=scheme, cost=(0.001, 2.0))
        summary = train_stream(file, config, tmp_path / f"{jobs}.h5", block_bytes=4000, resources=Resources(jobs=jobs))
    assert manifest(tmp_path / "1.h5") == manifest(tmp_path / "2.h5")
    assert summary.points == 2 and summary.models == 3 and summary.support_vectors <= 3 * 60
    with LocalModel(tmp_path / "1.h5") as model:
        error = np.mean(model.predict(rows) != y)
    assert error < 0.35 and summary.progressive_error == pytest.approx(error, abs=0.15)
    assert summary.cv_error is None and summary_text(summary, config.method, "").count("progressive error") == 1
    with h5py.File(tmp_path / "1.h5") as stored:
        assert set(stored["cells/model_cost"]) == {2.0}
        assert set(stored["cells/model_converged"]) == {1}


def test_anchors_are_rows_of_the_file(tmp_path: Path) -> None:
    X, y = examples(300)
    X += np.float32(3.0)
    train_stream(written(tmp_path / "rows", X, y), config_of(), tmp_path / "m.h5", block_bytes=4000)
    with h5py.File(tmp_path / "m.h5") as stored:
        anchors = stored["cells/anchors"][...]
    assert len(anchors) and {*map(bytes, anchors)} <= {*map(bytes, X)}


def test_weights_count_as_rows(tmp_path: Path) -> None:
    X, y = examples(200)
    weight = np.random.default_rng(0).integers(0, 3, 200)
    file, many = written(tmp_path / "rows", X, y), np.repeat(np.arange(200), weight)
    repeated = written(tmp_path / "repeated", X[many], y[many])
    (tmp_path / "weights").write_text("".join(f"{w}\n" for w in weight))
    config = config_of(kept_rows=1000, tolerance=1e-4)
    train_stream(file, config, tmp_path / "w.h5", weights=tmp_path / "weights")
    train_stream(repeated, config, tmp_path / "r.h5")
    with LocalModel(tmp_path / "w.h5") as one, LocalModel(tmp_path / "r.h5") as other:
        assert_allclose(one.decision_function(X), other.decision_function(X), atol=0.05)


def test_rows_in_memory_are_refused(tmp_path: Path) -> None:
    X, y = examples(60)
    with pytest.raises(OptionError, match="as a stream"):
        train(Dataset(X, y), config_of(), tmp_path / "m.h5")
    with pytest.raises(OptionError, match="as a stream"):
        LocallyLinearKernelsClassifier(online="full").fit(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"partition": "voronoi"}, "-P"), ({"metric": "diag"}, "--metric"), ({"probability": True}, "-b 1")],
)
def test_what_a_pass_cannot_do_is_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    X, y = examples(60)
    file = written(tmp_path / "rows", X, y)
    with pytest.raises(OptionError, match=f"--online full.*{words}"):
        train_stream(file, TrainingConfig(ONCE, **options), tmp_path / "m.h5")
    with pytest.raises(RunError, match="fewer --kept-rows"):
        train_stream(file, config_of(kept_rows=10**8), tmp_path / "m.h5", resources=Resources(memory=1 << 30))


@pytest.mark.parametrize("options", [{"kept_rows": 9}, {"anchors": "kmeans"}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"--kept-rows|--anchors"):
        LocallyLinearKernels(online="full", **options)
