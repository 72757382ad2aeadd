"""Contract that every method keeps, whatever it learns, read from the methods' records.

A method is tried with the tiny grid of its record, and with the lines of VARIANTS, which take its other ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import Field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from selecting import cell_of, examples, fitted, score

from localsvm.cli.method_options import create, options
from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.errors import OptionError
from localsvm.methods import methods, options_of
from localsvm.methods.base import Method
from localsvm.methods.option import kind_of
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.targets.classification import Classification

TINY = [f"{name} {method.tiny}".rstrip() for name, method in methods().items()]
VARIANTS = [
    "svm -t laplacian --offset -g 0.5 -C 1",
    "svm -t manhattan -g 0.5,2 -C 1",
    "svm -t polynomial --degree 2 --coef0 1 -g 0.5 -C 1",
    "svm -t linear -C 0.1,1",
    "svm --loss squared-error -g 0.5,2 -C 1,10",
    "svm --loss squared-hinge -g 0.5,2 -C 1,10",
    "linear --loss squared-hinge -s sag -C 0.1",
    "linear --mean-loss -s primal -C 1",
    "linear -s sgd --passes 5 -C 0.1,1",
    "kmeans-svm -K 2,3 --loss squared-hinge -C 1",
    "csvm -K 3 --lambda 4 -s primal -C 1",
    "llsvm -K 6 --neighbours 3 --coding linear -C 1",
    "llsvm -K 6 --neighbours 3 --coding exponential --loss squared-hinge -C 1",
    "l3 -K 3 -L 5 --landmarks pca -C 1",
    "l3-kernel -K 2 -L 4 --projection rbf --projection-gamma 0.5 -t linear -C 1",
    "ml3 --models 2 -s sgd --passes 5 -C 1",
    "mlsvm -K 2 --start 1,2 --shrinkage 0.1 --loss squared-hinge -C 1",
    "mtl -K 3 --shrinkage 0.1 --groups 2 --coupling 10 --covariance diag --rule hard -C 1",
    "mllkm --componentwise --bank-gammas 0.1,1 -C 0.5",
    "mllkm --anchors kmeans -K 3,6 --bank-gammas 0.1,1 -C 0.5",
    "mllkm --online kernels --map square --bank-gammas 0.1,1 -C 0.5",
    "mllkm -s sdca --epochs 2 --map square --bank-gammas 0.1,1 -C 0.5",
    "mkl --mkl simple --widths 0.5,2 -C 1",
    "mkl --online kernels --widths 0.5,2 -e 0.5 -C 1",
    "svml --form diag",
    "svml --form rank:1",
    "svml -t manhattan",
]
LINES = TINY + VARIANTS
# what is learned once or by random steps ends near the optimum, not at it
HARD = ["kmeans-svm -K 20 -C 100", "csvm -K 20 -C 100", "llsvm -K 20 -C 100", "mtl -K 8 --shrinkage 1e-4 -C 100"]
WARM = ("svm ", "rbf", "lasvm", "one-class", "l3-kernel")  # whose folds begin at the solutions of others
ROUGH = ("--online", "-s sgd", "--epochs", "svml", "mtl", "mlsvm")


def method_of(line: str) -> Method:
    """The method that `lsvm-train -m LINE` trains with."""
    name, *words = line.split()
    given = click.Command("train", params=[*options()]).make_context("train", words).params
    return create(name, given)


def is_linear(line: str) -> bool:
    """True where no model of the line can follow the product of two features."""
    return line.startswith("linear") or "-t linear" in line


def on_lines(lines: list[str]) -> Callable[..., Any]:
    """Mark that repeats a test for each of these lines."""
    return pytest.mark.parametrize("line", lines)


@pytest.mark.fast(20)
@on_lines(LINES)
@pytest.mark.parametrize(("scheme", "select"), [("ova", "refit"), ("ava", "vote")])
def test_a_saved_state_decides_row_by_row(line: str, scheme: str, select: str) -> None:
    X, y = examples(90, classes=3)
    method = method_of(line)
    predictor, state = fitted(method, cell_of(X, y, scheme=scheme), select)
    values = predictor.decision_function(X.copy())
    again = method.predictor(
        {name: array.copy() for name, array in state.items()}, Classification(np.unique(y), scheme), 3
    )
    rows = [again.decision_function(X[i : i + 7].copy()) for i in range(0, len(X), 7)]
    assert_array_equal(np.concatenate(rows), values)
    assert np.isfinite(values).all() and values.shape == (90, 3)
    assert is_linear(line) or np.mean(Classification(np.unique(y), scheme).decide(values) == y) > 0.5


@pytest.mark.fast(20)
@on_lines(LINES)
def test_sparse_rows_give_the_model_of_dense_ones(line: str) -> None:
    X, y = examples(120)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = 0.0
    method = method_of(line)
    if not any(rough in line for rough in ROUGH):
        method = replace(method, tolerance=1e-6)
    thin = as_examples(sparse.csr_array(X))
    dense, _ = fitted(method, cell_of(X, y))
    of_sparse, _ = fitted(method, cell_of(thin, y))
    apart = 2e-2 if line.startswith("ml3") else 1e-3  # not convex: rounding decides in which round it ends
    assert_allclose(of_sparse.decision_function(thin), dense.decision_function(X), atol=apart)


@pytest.mark.fast(16)
@on_lines(LINES + HARD)
@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_labels_of_held_out_rows_say_nothing_about_their_values(line: str, scheme: str) -> None:
    """Labels of held-out rows change no value of theirs, and neither does which of them are in a pair."""
    X, y = examples(90, classes=3)
    cell, method = cell_of(X, y, scheme=scheme), method_of(line)
    if any(field.name == "cost" for field in fields(method)):
        method = replace(method, cost=method.cost[-1:])  # type: ignore[attr-defined] # one point: labels choose none
    out = cell.folds == 1
    kept = [
        score(method, one, method.grid(one, 90.0, 4), [0]).kept
        for one in (cell, replace(cell, y=np.where(out, (cell.y + 1) % 3, cell.y)))
    ]
    first, second = (each.values for each in kept if each is not None)
    assert first is not None and second is not None
    if line.startswith(WARM):
        assert_allclose(first[:, out], second[:, out], atol=1e-4)
    else:
        assert_array_equal(first[:, out], second[:, out])
    assert not np.allclose(first[:, ~out], second[:, ~out])


@pytest.mark.fast(40)
@on_lines(LINES)
def test_few_rows_and_rows_of_one_class_decide(line: str) -> None:
    method, three = method_of(line), Classification(np.arange(3.0))
    for n in (1, 2, 12):
        X, y = examples(n)
        cell = replace(cell_of(X, y, folds=5), target=three)
        assert np.isfinite(fitted(method, cell)[0].decision_function(X)).all()
    one = replace(cell, y=np.ones(12), target=Classification(np.arange(2.0)))
    values = fitted(method, one)[0].decision_function(X)
    assert (values >= 0.0).all() and values.any()  # 0 is a row that no kernel of the model reaches


@pytest.mark.fast(3)
@pytest.mark.parametrize(("line", "partition"), [*product(LINES, ["voronoi"]), *product(TINY, ["none"])])
def test_the_model_is_the_same_for_any_jobs(line: str, partition: str, tmp_path: Path) -> None:
    X, y = examples(150, classes=3)
    config = TrainingConfig(method_of(line), partition, 60, folds=3, metric="none")
    values = []
    for jobs in (1, 2):
        train(Dataset(X.copy(), y), config, tmp_path / f"{jobs}.h5", Resources(jobs=jobs))
        with LocalModel(tmp_path / f"{jobs}.h5") as model:
            values.append(model.decision_function(X.copy()))
            truth = 1.0 if model.method.novel_share else y
            assert is_linear(line) or np.mean(model.predict(X.copy()) == truth) > 0.4
    assert_array_equal(*values)


@pytest.mark.fast(8)
@on_lines(TINY)
@pytest.mark.parametrize("thin", [False, True])
def test_a_row_of_weight_0_is_no_row(line: str, thin: bool, tmp_path: Path) -> None:
    X, y = examples(150, classes=3)
    weight = np.random.default_rng(1).integers(0, 2, 150).astype(np.float64)
    config = TrainingConfig(method_of(line), folds=3, scale="zscore", metric="none")
    values = []
    for rows, labels, weights in ((X, y, weight), (X[weight > 0], y[weight > 0], None)):
        kept = as_examples(sparse.csr_array(rows)) if thin else rows.copy()
        train(Dataset(kept, labels, weight=weights), config, tmp_path / "m.h5", force=True)
        with LocalModel(tmp_path / "m.h5") as model:
            values.append(model.decision_function(X.copy()))
    assert_array_equal(*values)


@pytest.mark.fast(8)
@on_lines(TINY)
@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_rows_far_from_the_origin_train(line: str, offset: float, tmp_path: Path) -> None:
    X, y = examples(90)
    far = (X + offset).astype(np.float32)
    summary = train(Dataset(far.copy(), y), TrainingConfig(method_of(line), folds=3, metric="none"), tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        kinds = {-1.0, 1.0} if model.method.novel_share else set(y)
        assert np.isfinite(model.decision_function(far.copy())).all() and set(model.predict(far.copy())) <= kinds
    assert math.isfinite(summary.largest_gap)


# --- refusals: a value that no method can have


def wrong(field: Field[Any]) -> list[Any]:
    """Values that an option of this kind cannot have."""
    kind = kind_of(field)
    if field.metadata["choices"]:
        return ["no such"]
    numbers = {"int": [-1], "float": [math.nan], "tuple[float, ...]": [(math.nan,), (-1.0,), (math.inf,)]}
    return numbers.get(kind, ["", "no such"] if kind == "str" else [])


def refusals() -> list[tuple[str, str, Any]]:
    """Each option of each method with each value that is wrong."""
    return [
        (name, field.name, value)
        for name, method in methods().items()
        for field in options_of(method)
        for value in wrong(field)
    ]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("svm", {"tolerance": 0.0}, "--tolerance must be"),
    ("svm", {"degree": 0}, "--degree must be"),
    ("svm", {"coef0": math.inf}, "--coef0 must be"),
    ("svm", {"tolerance": math.nan}, "--tolerance must be"),
    ("linear", {"cost": (-1.0,)}, "--cost"),
    ("linear", {"tolerance": 0.0}, "--tolerance"),
    ("linear", {"loss": "logistic"}, "--loss"),
    ("linear", {"solver": "smo"}, "-s/--solver smo: choose one of"),
    ("linear", {"solver": "sgd", "loss": "squared-hinge"}, "--loss hinge"),
    ("linear", {"solver": "sag"}, "--loss squared-hinge"),
    ("linear", {"passes": 0}, "--passes"),
    ("kmeans-svm", {"clusters": (1.5,)}, "--clusters"),
    ("kmeans-svm", {"start": (0.0,)}, "--start"),
    ("csvm", {"common": (0.0,)}, "--lambda"),
    ("llsvm", {"neighbours": (0.5,)}, "--neighbours"),
    ("llsvm", {"coding": "none"}, "--coding"),
    ("l3", {"landmarks_count": (0.0,)}, "landmarks"),
    ("l3", {"landmarks": "all"}, "--landmarks"),
    ("l3", {"projection": "cubic"}, "--projection"),
    ("l3", {"gamma": (-1.0,)}, "--gamma"),
    ("l3-kernel", {"projection_gamma": (1.0,)}, "--projection rbf"),
    ("l3-kernel", {"projection": "rbf", "projection_gamma": (-1.0,)}, "--projection-gamma"),
    ("ml3", {"models": (0.0,)}, "--models"),
    ("ml3", {"models": (2.5,)}, "--models"),
    ("ml3", {"norm": math.inf}, "--norm"),
    ("ml3", {"norm": math.nan}, "--norm"),
    ("ml3", {"cost": (0.0,)}, "--cost"),
    ("ml3", {"passes": 0}, "--passes"),
    ("ml3", {"norm": 0.9}, "--norm"),
    ("ml3", {"solver": "sdca"}, "--solver"),
    ("mlsvm", {"start": (1.5,)}, "--start"),
    ("mlsvm", {"shrinkage": (0.0,)}, "--shrinkage"),
    ("mlsvm", {"covariance": "tied"}, "--covariance"),
    ("mlsvm", {"rule": "mean"}, "--rule"),
    ("mlsvm", {"clusters": (1.5,)}, "--clusters"),
    ("mtl", {"loss": "logistic"}, "--loss"),
    ("mtl", {"groups": (0.0,)}, "--groups"),
    ("mtl", {"coupling": (-1.0,)}, "--coupling"),
    ("mllkm", {"map": "plain", "bank_gammas": (1.0,)}, "--bank-gammas is for maps that fade"),
    ("mllkm", {"map": "cubic"}, "--map"),
    ("mllkm", {"bank_gammas": (0.0,)}, "--bank-gammas"),
    ("mllkm", {"anchors": "all"}, "--anchors"),
    ("mllkm", {"online": "rows"}, "--online"),
    ("mllkm", {"epochs": 0}, "--epochs"),
    ("mllkm", {"clusters": (0.5,)}, "--clusters"),
    ("mllkm", {"cost": (0.0,)}, "--cost"),
    ("mllkm", {"admit": 0}, "--admit"),
    ("mllkm", {"online": "kernels", "solver": "sdca"}, "--online"),
    ("mllkm", {"epochs": 6}, "--epochs of mllkm is for -s sdca"),
    ("mllkm", {"clusters": (5.0,)}, "-K/--clusters of mllkm is for --anchors kmeans"),
    ("mllkm", {"online": "kernels", "kept_rows": 600}, "--kept-rows is for --online full"),
    ("lasvm", {"epochs": 0}, "--epochs"),
    ("lasvm", {"offset": False}, "--no-offset"),
    ("mkl", {"mkl": "simple", "online": "kernels"}, "--online"),
    ("mkl", {"mkl": "best"}, "--mkl"),
    ("mkl", {"cost": (-1.0,)}, "-C"),
    ("mkl", {"bank": "none"}, "--bank"),
    ("mkl", {"widths": (0.0,)}, "--widths"),
    ("svml", {"form": "round"}, "--form"),
    ("svml", {"form": "rank:"}, "--form"),
    ("svml", {"form": "rank:0"}, "--form"),
    ("svml", {"pull": -1.0}, "--pull"),
    ("svml", {"kernel": "laplacian"}, "-t/--kernel laplacian: choose one of gaussian, manhattan"),
    ("svm-knn", {"neighbours": (0.0,)}, "--neighbours"),
]


def test_a_refusal_names_the_option() -> None:
    for name, given, words in REFUSED:
        with pytest.raises(OptionError) as caught:
            methods()[name](**given)
        assert words in str(caught.value)


@pytest.mark.fast(20)
@pytest.mark.parametrize("name", list(methods()))
def test_values_that_make_no_sense_are_refused(name: str) -> None:
    method, taken = methods()[name], []
    known = {field.name: field for field in options_of(method)}
    for _, field, value in (case for case in refusals() if case[0] == name):
        try:
            method(**{field: value})
        except OptionError as error:
            assert "\n" not in str(error) and len(str(error)) < 400, error
            flags = [part for flag in known[field].metadata["flags"] for part in flag.split("/")]
            assert any(flag in str(error) for flag in flags), (flags, error)
        else:
            taken.append((field, value))
    assert not taken
    assert {field.name for field in fields(method)} >= {field for owner, field, _ in refusals() if owner == name}
