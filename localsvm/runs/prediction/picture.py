"""Content of pictures: a metric, and what is decided in a plane, that of the metric or that of two features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.columns import dense_copy
from localsvm.data.blocks.dataset import Dense, Examples
from localsvm.data.readers.libsvm import read
from localsvm.engines.memory import Memory
from localsvm.errors import DataError, ModelError
from localsvm.features.encoding import Encoding
from localsvm.features.joint import Joint
from localsvm.features.metric import MATRIX, Metric
from localsvm.methods import method_called
from localsvm.naming import opt
from localsvm.partition.chunks import Chunks
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation.given import Given, read_given
from localsvm.runs.preparation.stored import features_of
from localsvm.store.container import MODEL
from localsvm.store.metric_file import load_metric
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
AnyFloat = TypeVar("AnyFloat", np.float32, np.float64)
Labelled = tuple[Dense, Floats]  # scaled rows (n, d), and their labels (n,)


@dataclass(frozen=True)
class Shown:
    """A metric, and what can be shown of its file.

    Attributes
    ----------
    metric : of d features, and of their ranks; or those of members.
    numbers : (d,) int64, the numbers of the features in data files.
    rows : reads a data file, in scaled rows.
    support : (s, r) float32, mapped support vectors; None where there are several cells, or none are kept, or
        nearly all rows are.
    decide : decision values (n, problems) of mapped rows (n, r); None for a partition file.
    target : what they mean.
    encoding : of the table that the model was trained on; None for LIBSVM text.
    ranked : (r,) places of the features that have ranks, behind all features in the metric.
    """

    metric: Metric | Joint
    numbers: NDArray[np.int64]
    rows: Callable[[str | Path], Iterator[Labelled]]
    support: Dense | None = None
    decide: Callable[[Dense], Floats] | None = None
    target: Target | None = None
    encoding: Encoding | None = None
    ranked: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class FeaturePlane:
    """A model of two features, in the plane of these.

    Attributes
    ----------
    names : of the two.
    rows : reads a data file, in rows (n, 2).
    decide : decision values (n, problems) of rows (n, 2).
    cells : numbers (n,) of the cells that answer for rows (n, 2); None where several answer together.
    target : what decision values mean.
    """

    names: tuple[str, str]
    rows: Callable[[str | Path], Iterator[tuple[Floats, Floats]]]
    decide: Callable[[Floats], Floats]
    cells: Callable[[Floats], NDArray[np.int32]] | None
    target: Target


@contextmanager
def feature_plane(path: str | Path) -> Iterator[FeaturePlane | None]:
    """Yield a model in the plane of its two features; None for a model of other features, or a partition file."""
    file = load_metric(path)
    if file.kind != MODEL or file.config.get("features") != 2:
        yield None
        return
    with LocalModel(path) as model:
        yield _of_features(model)


@contextmanager
def shown(path: str | Path) -> Iterator[Shown]:
    """Yield what can be shown of a model or partition file; ModelError where it has none, or -m svml several."""
    file = load_metric(path)
    method = method_called(str(dict(file.config.get("method", {})).get("name")))
    learned_by_method = file.kind == MODEL and file.metric is None and method is not None and method.learns_metric
    if file.kind != MODEL or (file.metric is None and not learned_by_method):
        yield _of_given(read_given(path))
        return
    with LocalModel(path) as model:
        yield _of_learned(model) if learned_by_method else _of_model(model)


def sampled(
    blocks: Iterable[tuple[NDArray[AnyFloat], Floats]], most: int, rng: np.random.Generator
) -> tuple[NDArray[AnyFloat], Floats]:
    """Sample of at most so many of all rows, at random and in their order."""
    kept: tuple[NDArray[AnyFloat], Floats, Floats] | None = None
    for X, y in blocks:
        key = rng.random(len(y))
        if kept is not None:
            X, y = np.concatenate([kept[0], X]), np.concatenate([kept[1], y])
            key = np.concatenate([kept[2], key])
        chosen = np.sort(np.argsort(key, kind="stable")[:most])
        kept = X[chosen], y[chosen], key[chosen]
    assert kept is not None, "a data file has rows"
    return kept[:2]


def principal_plane(X: Dense) -> tuple[Floats, Floats]:
    """Rows (n, 2) on their two leading principal axes, and (2,) the shares of the variance."""
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    _, size, axes = np.linalg.svd(centred, full_matrices=False)
    total = float(np.square(size).sum()) or 1.0
    plane = np.zeros((len(X), 2))
    plane[:, : len(axes[:2])] = centred @ axes[:2].T
    share = np.zeros(2)
    share[: len(size[:2])] = np.square(size[:2]) / total
    return plane, share


def _of_features(model: LocalModel) -> FeaturePlane:
    chain = model.chain
    origin = np.zeros(2) if chain.origin.values is None else chain.origin.values

    def seen(X: Floats) -> Examples:
        near = (X - origin).astype(np.float32)
        return chain.apply(near if chain.columns.dense else sparse.csr_array(near), read=True)

    def rows(path: str | Path) -> Iterator[tuple[Floats, Floats]]:
        for block in model.read(path, zero_based=model.zero_based):
            X = block.X if isinstance(block.X, np.ndarray) else dense_copy(block.X)
            if model.table is None:
                yield X.astype(np.float64) + origin, block.y
            else:  # with all columns, and from no origin
                yield np.asarray(X if chain.columns.kept is None else X[:, chain.columns.kept], np.float64), block.y

    alone = len(model.partition.cells_by_repeat) == 1 and model.partition.name != Chunks.name
    cells = (lambda X: model.partition.assign(seen(X))) if alone else None
    names = _names(_numbers(model), _encoding(model))
    return FeaturePlane(names, rows, lambda X: model.values_of_mapped(seen(X)), cells, model.target)


def _names(numbers: NDArray[np.int64], encoding: Encoding | None) -> tuple[str, str]:
    """Names of two features by their numbers."""
    of = {} if encoding is None else {place + 1: name for name, places in encoding.weighed for place in places}
    first, second = (of.get(number, f"feature {number}") for number in numbers.tolist())
    return first, second


def _of_given(given: Given) -> Shown:
    config = given.fix(TrainingConfig())

    def rows(path: str | Path) -> Iterator[Labelled]:
        data = read(path, zero_based=config.zero_based, shifts=config.shifts)
        chain = given.chain_of(Memory(data).head(given.chain.columns))
        yield _dense(chain.viewed(chain.scaled(data.X, read=True, in_place=True)), path), data.y

    metric = given.chain.metric
    assert isinstance(metric, Metric), "read_given has one"
    return Shown(metric, features_of(given.chain.columns.known, given.options), rows, ranked=given.chain.ranked)


def _of_model(model: LocalModel) -> Shown:
    metric = model.chain.metric
    assert metric is not None, "the file has one"
    support = None
    of_values = model.target.score_of_values is not None  # then nearly all rows are support vectors
    if model.file.n_cells == 1 and model.method.shows_support and not of_values:
        support = model.file.cell(0).get("support")
    values, ranked = model.values_of_mapped, model.chain.ranked
    return Shown(metric, _numbers(model), _rows(model), support, values, model.target, _encoding(model), ranked)


def _of_learned(model: LocalModel) -> Shown:
    """The metric of the one model of a cell, to be shown; its support vectors are kept before they are mapped."""
    if model.file.n_cells > 1 or int(model.file.row_ptr["model_fold"][-1]) != 1:
        raise ModelError(
            f"{model.file.path}: several metrics, of problems, folds or cells; a picture is of one: train {opt.method} "
            f"{model.method.name} on two classes with {opt.partition('none')}"
        )
    state = model.file.cell(0)
    (metric,) = model.method.metrics(lambda name: state[name], 1)
    back = np.linalg.pinv(metric.values.astype(np.float64)) if metric.kind == MATRIX else None  # M'x = z for x = z back

    def decide(Z: Dense) -> Floats:
        assert back is not None, "a diagonal maps onto no plane"
        return model.values_of_mapped((Z @ back).astype(np.float32))

    support = np.asarray(metric.apply(state["support"])) if "support" in state else None
    return Shown(metric, _numbers(model), _rows(model), support, decide, model.target, _encoding(model))


def _encoding(model: LocalModel) -> Encoding | None:
    return None if model.table is None else model.table.encoding


def _numbers(model: LocalModel) -> NDArray[np.int64]:
    return features_of(model.chain.columns.known, model.file.config)


def _rows(model: LocalModel) -> Callable[[str | Path], Iterator[Labelled]]:
    def rows(path: str | Path) -> Iterator[Labelled]:
        for block in model.read(path, zero_based=model.zero_based):
            scaled = model.chain.scaled(block.X, read=model.table is None, in_place=True)
            yield _dense(model.chain.viewed(scaled), path), block.y

    return rows


def _dense(X: Examples, path: str | Path) -> Dense:
    X = X if isinstance(X, np.ndarray) else dense_copy(X)
    if not np.isfinite(X).all():
        raise DataError(f"{path}: some rows have values beyond float32 once they are scaled; leave them out")
    return X
