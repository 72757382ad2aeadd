"""Data and options at the edge cause no traceback, no warning, no NaN, and no answer that cannot be.

The fast tests try a part of the cases, `make test-all` all of them.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke
from edge_cases import METHODS, options, sets

from localsvm.data.blocks.dataset import Dataset, Examples
from localsvm.data.writers.libsvm import write
from localsvm.errors import LocalSVMError
from localsvm.methods import methods
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train

SETS = sets()
RUNS = options()
OWN: dict[str, dict[str, Any]] = {
    "svm": {"gamma": (0.5, 2.0)}, "rbf": {"gamma": (0.5, 2.0)}, "lasvm": {"gamma": (0.5,)},
    "one-class": {"gamma": (0.5, 2.0)},
    "l3-kernel": {"gamma": (0.5,), "clusters": (2.0,)},
    "kmeans-svm": {"clusters": (2.0,)}, "csvm": {"clusters": (2.0,)}, "llsvm": {"clusters": (3.0,)},
    "l3": {"clusters": (2.0,)}, "ml3": {"models": (2.0,)}, "linear": {}, "svml": {},
    "svm-knn": {"neighbours": (5.0,)}, "mkl": {"widths": (0.5, 2.0)},
    "mlsvm": {"clusters": (2.0,), "shrinkage": (0.1,)},
    "mtl": {"clusters": (2.0,), "shrinkage": (0.1,), "coupling": (10.0,)}, "mllkm": {"bank_gammas": (0.1, 1.0)},
}  # fmt: skip
ONE_POINT = ("csvm", "llsvm", "ml3", "svml")  # with one point of the grid there is no cross-validation


def copy(X: Examples) -> Examples:
    return X.copy()


def check(path: Path, X: Examples, y: np.ndarray) -> None:
    """Check that the model gives each row a label of the data, or of a row of one kind, by a finite value."""
    with LocalModel(path) as model:
        values, labels = model.decision_function(copy(X)), model.predict(copy(X))
        kinds = {-1.0, 1.0} if model.method.novel_share else set(y)
    assert np.isfinite(values).all()
    assert set(labels) <= kinds


def check_message(error: LocalSVMError) -> None:
    """Check that a user's mistake is reported in one short line."""
    assert "\n" not in str(error) and len(str(error)) < 400, str(error)


def test_there_are_many() -> None:
    assert len(SETS) * len(METHODS) >= 369 and len(RUNS) >= 550


@pytest.mark.fast(45)
@pytest.mark.parametrize(("name", "method"), list(product(SETS, METHODS)))
def test_sets_at_the_edge(name: str, method: str, tmp_path: Path) -> None:
    X, y = SETS[name]
    given = {} if method == "svml" else {"cost": (1.0,) if method in ONE_POINT else (0.1, 10.0)}
    config = TrainingConfig(method=methods()[method](**given, **OWN[method]), folds=2)
    try:
        summary = train(Dataset(copy(X), y.copy()), config, tmp_path / "m.h5")
    except LocalSVMError as error:
        return check_message(error)
    assert 0.0 <= summary.cv_error <= 1.0 if summary.cv_error is not None else method in ONE_POINT
    assert np.isfinite(summary.largest_gap)
    check(tmp_path / "m.h5", X, y)


@pytest.mark.parametrize("seed", [2**63 - 1, 2**63, 2**200, 10**1000 - 1], ids=lambda seed: f"{seed.bit_length()} bits")
def test_seeds_of_any_size_are_stored(seed: int, tmp_path: Path) -> None:
    X, y = SETS["four classes"]
    config = TrainingConfig(seed=seed, method=methods()["svm"](cost=(1.0,), gamma=(0.5,)), folds=2)
    train(Dataset(copy(X), y.copy()), config, tmp_path / "m.h5")
    check(tmp_path / "m.h5", X, y)
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.file.config["seed"] == seed


@pytest.mark.parametrize("seed", [-1, 10**1000, 10**5000], ids=lambda seed: f"{seed.bit_length()} bits")
def test_other_seeds_are_refused(seed: int) -> None:
    with pytest.raises(LocalSVMError, match="--seed must be"):
        TrainingConfig(seed=seed)


@pytest.fixture(scope="module")
def edge_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of 24 rows of two classes."""
    path = tmp_path_factory.mktemp("edges") / "data"
    X, y = SETS["integers"]
    write(path, X + SETS["offset 1e3"][0][:, :1] - 1e3, y)
    return path


@pytest.mark.fast(40)
@pytest.mark.parametrize("run", RUNS, ids=" ".join)
def test_extreme_options(run: list[str], edge_file: Path, tmp_path: Path) -> None:
    result = invoke("train", *run, "-j", 1, edge_file, tmp_path / "m.h5", code=None)
    assert result.exit_code in (0, 1, 2) and "Traceback" not in result.stderr
    if result.exit_code:
        assert not (tmp_path / "m.h5").exists()
        line = result.stderr.splitlines()[-1]
        assert line.lower().startswith("error: ") and "nan" not in line.split(), result.stderr
        return
    assert "nan" not in result.stderr.split()
    predicted = invoke("predict", "--decision-values", edge_file, tmp_path / "m.h5").stdout.splitlines()
    assert np.isfinite(np.loadtxt(predicted[1:])).all()
