"""The chain of features: what comes out does not depend on who applies it, to which blocks, from which memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from localsvm.data.blocks.dataset import Examples, as_examples
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.libsvm import read_blocks
from localsvm.errors import DataError
from localsvm.features.chain import Chain
from localsvm.features.columns import KeptColumns
from localsvm.features.metric import Metric
from localsvm.features.moments import Moments
from localsvm.features.origin import Origin
from localsvm.features.ranks import Ranks
from localsvm.features.scaling import MODES, Scaling
from localsvm.store.pieces import Unsound

ROWS, WIDTH = 60, 6
FAR = 1e8  # in float32 its neighbours are 8 away
KEPT = np.asarray([0, 1, 3, 4])
VIEWS = ("none", "weights", "matrix", "ranks", "ranks, weights", "ranks, matrix")


def values(dense: bool) -> np.ndarray:
    """Rows in float64. Column 1 is far from 0; others have zeros where rows are to be sparse."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(ROWS, WIDTH)), 3)
    X[:, 1] += FAR
    if not dense:
        X[:, [0, 3, 4]] *= rng.random((ROWS, 3)) < 0.3
    return X


def chain_of(X: np.ndarray, mode: str, view: str, kept: np.ndarray | None, dense: bool, far: float = FAR) -> Chain:
    """A chain that is fitted on rows, with an origin for column 1 where differences of rows count."""
    ranked, metric = view.startswith("ranks"), view.removeprefix("ranks").removeprefix(", ") or "none"
    columns = KeptColumns(kept, WIDTH, dense)
    known, rng = columns.known, np.random.default_rng(1)
    origin = Origin(None if mode == "row" else np.where(known == 1, far, 0.0), kept)
    unscaled = Chain(columns, origin)
    scaling = Scaling.fit(Moments.of(unscaled.scaled(X)), mode)
    ranks = Ranks.fit(np.asarray(Chain(columns, origin, scaling).scaled(X))) if ranked else None
    viewed = len(known) if ranks is None else ranks.columns(len(known))
    shape = {"weights": (viewed,), "matrix": (viewed, 2)}
    learned = None if metric == "none" else Metric(rng.normal(size=shape[metric]).astype(np.float32))
    return Chain(columns, origin, scaling, ranks, learned)


def plain(X: Examples) -> np.ndarray:
    return X if isinstance(X, np.ndarray) else X.toarray()


CHAINS = pytest.mark.parametrize(("mode", "view"), list(product(MODES, VIEWS)))


def chains(mode: str, view: str) -> list[tuple[np.ndarray | None, bool]]:
    """Columns that are kept, and whether rows are dense."""
    sparse_too = view in ("none", "weights") or mode in ("zscore", "minmax")  # matrices and ranks are for dense rows
    return list(product((None, KEPT), (True, False) if sparse_too else (True,)))


@CHAINS
def test_rows_are_the_same_whoever_applies_it(mode: str, view: str, tmp_path: Path) -> None:
    for kept, dense in chains(mode, view):
        check_rows(mode, view, kept, dense, tmp_path / "rows")


def check_rows(mode: str, view: str, kept: np.ndarray | None, dense: bool, file: Path) -> None:
    """The chain gives the same rows for all of them, for blocks of them, in place, and as they are read from a file."""
    X = values(dense)
    chain = chain_of(X, mode, view, kept, dense)
    thin, before = sparse.csr_array(X), X.copy()
    out = chain.apply(X)
    assert_array_equal(X, before)
    assert isinstance(out, np.ndarray) == chain.dense
    assert out.shape == (ROWS, chain.mapped_columns) and out.dtype == np.float32
    expected = plain(out).copy()

    assert_array_equal(plain(chain.apply(thin)), expected)
    assert_array_equal(thin.toarray(), before)
    for first, last in ((0, 1), (1, 40), (40, ROWS)):
        assert_array_equal(plain(chain.apply(X[first:last], in_place=True)), expected[first:last])
    assert_array_equal(plain(chain.mapped(chain.scaled(before))), expected)

    file.write_text(
        "".join(f"1 {' '.join(f'{i + 1}:{v!r}' for i, v in enumerate(row.tolist()) if v)}\n" for row in before)
    )
    blocks = list(read_blocks(file, chain.reading, block_bytes=1000))
    assert len(blocks) > 1
    read = [plain(chain.apply(block.X, read=True, in_place=True)) for block in blocks]
    assert_array_equal(np.concatenate(read), expected)


@CHAINS
def test_rows_in_float32_are_changed_only_where_they_may_be(mode: str, view: str) -> None:
    for kept, dense in chains(mode, view):
        chain = replace(chain_of(values(dense), mode, view, kept, dense), origin=Origin())
        X = values(dense).astype(np.float32)
        thin, before = as_examples(sparse.csr_array(X)), X.copy()
        expected = plain(chain.apply(X)).copy()
        assert_array_equal(X, before)
        assert_array_equal(plain(chain.apply(thin, in_place=True)), expected)  # sparse rows may never be
        assert_array_equal(plain(thin), before)
        assert_array_equal(plain(chain.apply(X, in_place=True)), expected)


@CHAINS
def test_a_file_keeps_it(mode: str, view: str) -> None:
    for kept, dense in chains(mode, view):
        X = values(dense)
        chain = chain_of(X, mode, view, kept, dense)
        state, config = chain.state(), chain.as_dict()
        columns = KeptColumns.from_state(state["columns"], config["features"], config.get("width"), config["dense"])
        ranks = state["ranks"] and Ranks.from_state(state["ranks"], config["features"])
        learned = state["metric"] and Metric.from_state(*state["metric"], chain.viewed_columns)
        again = Chain.from_state(columns, state["scaling"], ranks, learned)
        widths = [(each.width, each.features, each.viewed_columns, each.mapped_columns) for each in (again, chain)]
        assert widths[0] == widths[1] and (widths[0][2] > widths[0][1]) == view.startswith("ranks")
        assert_array_equal(plain(again.apply(X)), plain(chain.apply(X)))


def test_it_keeps_the_digits_that_float32_would_lose() -> None:
    X = values(dense=True)
    out = plain(chain_of(X, "none", "none", KEPT, dense=True).apply(X))
    assert_array_equal(out[:, 1], (X[:, 1] - FAR).astype(np.float32))
    assert_array_equal(out[:, [0, 2, 3]], X[:, [0, 3, 4]].astype(np.float32))


@pytest.mark.parametrize("mode", ["std", "none", "zscore", "minmax"])
def test_from_another_origin_rows_are_shifted_all_alike(mode: str) -> None:
    X = values(dense=True)
    chain = chain_of(X, mode, "none", KEPT, dense=True)
    moved = chain.read_from(None)
    assert chain.reading.shift is not None and moved.reading.shift is None
    apart = plain(chain.scaled(X)).astype(np.float64) - plain(moved.scaled(X))
    assert_array_equal(apart[:, [0, 2, 3]], 0)
    factor = 1.0 if chain.scaling.factor is None else float(chain.scaling.factor[1])
    lost = 16 * factor  # digits of rows and of what is subtracted from them
    expected = 0.0 if chain.scaling.offset is not None else -FAR * factor
    assert np.abs(apart[:, 1] - expected).max() < lost


@pytest.mark.parametrize("mode", ["std", "none", "zscore", "minmax"])
def test_from_another_origin_ranks_stay_the_same(mode: str) -> None:
    X, far = values(dense=True), 100.0  # of which float32 keeps digits enough
    X[:, 1] += far - FAR
    chain = chain_of(X, mode, "ranks", KEPT, dense=True, far=far)
    assert chain.ranks is not None and chain.ranks.ranked.tolist() == [0, 1, 2, 3]
    for shift in (None, Shift(np.asarray([1]), np.asarray([far - 7.0]))):
        moved = chain.read_from(shift)
        assert_allclose(plain(moved.apply(X))[:, 4:], plain(chain.apply(X))[:, 4:], atol=2e-3)
        read = X if shift is None else X - np.where(np.arange(WIDTH) == 1, far - 7.0, 0.0)
        of_reader = moved.apply(read[:, KEPT].astype(np.float32), read=True)
        assert_allclose(plain(of_reader), plain(moved.apply(X)), atol=1e-3)


def test_sparse_rows_have_no_ranks() -> None:
    chain = chain_of(values(dense=True), "std", "ranks", KEPT, dense=True)
    state = chain.state()
    with pytest.raises(Unsound, match="/ranks: sparse rows have none"):
        Chain.from_state(KeptColumns(KEPT, WIDTH, False), state["scaling"], chain.ranks)


def test_rows_of_another_width_are_refused() -> None:
    X = values(dense=True)
    chain = chain_of(X, "std", "none", KEPT, dense=True)
    with pytest.raises(DataError, match="the examples have 5 features, those of training 6"):
        chain.apply(as_examples(X[:, :5].astype(np.float32)))
