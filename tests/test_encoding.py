"""Features of tables: numbers without gaps, levels, and what labels say of many levels without a leak."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from localsvm.data.blocks.dataset import Dataset
from localsvm.data.blocks.table import Levels, Table
from localsvm.features.encoding import FOLDS, SMOOTHING, Encoding
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation.tables import TableOptions, training_rows
from localsvm.runs.train import train
from localsvm.store.pieces import Unsound


def levels(texts: list[str]) -> Levels:
    names = tuple(sorted(set(texts) - {""}))
    return Levels(np.asarray([names.index(text) if text else -1 for text in texts], np.int32), names)


def example(n: int = 400) -> tuple[Table, np.ndarray]:
    """A table with a column of each kind, and classes 0 and 1."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=n)
    numbers[::7] = np.nan
    table = Table(
        ("x", "few", "many"),
        n,
        {"x": numbers},
        {
            "few": levels([("", "a", "b", "c")[i] for i in rng.integers(0, 4, n)]),
            "many": levels([f"level {i}" if i else "" for i in rng.integers(0, 40, n)]),
        },
    )
    return table, rng.integers(0, 2, n)


def test_numbers_are_filled_by_the_median_and_gaps_marked() -> None:
    table, codes = example()
    encoding, X = Encoding.fit(table, ["x"], codes, 0)
    known = table.numbers["x"][~np.isnan(table.numbers["x"])]
    assert encoding.names == ["x", "x is missing"]
    np.testing.assert_array_equal(
        X[::7], np.column_stack([np.full(len(X[::7]), np.median(known)), np.ones(len(X[::7]))])
    )
    np.testing.assert_array_equal(encoding.apply(table), X)


def test_few_levels_have_a_column_each() -> None:
    table, codes = example()
    encoding, X = Encoding.fit(table, ["few"], codes, 0)
    assert encoding.names == ["few=a", "few=b", "few=c"] and encoding.unscaled == [0, 1, 2]
    assert X.sum(axis=1).tolist() == [float(code >= 0) for code in table.levels["few"].codes]
    unknown = Table(("few",), 2, {}, {"few": levels(["z", "b"])})
    assert encoding.apply(unknown).tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_many_levels_are_what_other_folds_say() -> None:
    """Written out: smoothed shares of class 1 among the rows of the level in other folds."""
    table, codes = example()
    encoding, X = Encoding.fit(table, ["many"], codes, 3)
    column = table.levels["many"].codes
    folds = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(1 << 20,))).permutation(len(codes)) % FOLDS
    for i in range(0, len(codes), 13):
        others = folds != folds[i]
        same = others & (column == column[i])
        share = (codes[same].sum() + SMOOTHING * codes[others].mean()) / (same.sum() + SMOOTHING)
        assert X[i] == pytest.approx([share, np.log10(1 + (column == column[i]).sum())])
    new = encoding.apply(Table(("many",), 2, {}, {"many": levels(["never seen", ""])}))
    assert new[0].tolist() == new[1].tolist()


def test_an_encoding_is_kept_as_json() -> None:
    table, codes = example()
    encoding, _ = Encoding.fit(table, ["x", "few", "many"], codes, 0)
    again = Encoding.from_dict(json.loads(json.dumps(encoding.as_dict())))
    np.testing.assert_array_equal(again.apply(table), encoding.apply(table))
    assert again == encoding


@pytest.mark.fast(4)
@pytest.mark.parametrize(
    "columns",
    [
        None,
        [{"kind": "other", "name": "a"}],
        [{"kind": "number", "name": 3, "fill": 0.0, "gaps": False}],
        [{"kind": "number", "name": "a", "fill": "inf", "gaps": False}],
        [{"kind": "levels", "name": "a", "levels": ["x", "x"]}],
        [{"kind": "statistics", "name": "a", "levels": ["x"], "values": [[1.0]]}],
        [{"kind": "statistics", "name": "a", "levels": ["x"], "values": [[1.0], [1.0, 2.0]]}],
    ],
)
def test_a_damaged_encoding_is_refused(columns: object) -> None:
    with pytest.raises(Unsound, match="no columns of an encoding"):
        Encoding.from_dict({"columns": columns})


def test_labels_of_noise_are_not_learned_from_many_levels(tmp_path: Path) -> None:
    """A column of 1 000 levels and labels of pure noise: the error is that of other labels on the same features."""
    rng = np.random.default_rng(1)
    rows = [f"{'ab'[rng.integers(2)]},l{rng.integers(1000)}\n" for _ in range(4000)]
    (tmp_path / "t.csv").write_text("label,one\n" + "".join(rows))
    data = training_rows(str(tmp_path / "t.csv"), TableOptions(), 0, False, print)
    config = TrainingConfig(KernelSVM(gamma=(0.1, 1.0), cost=(0.1, 1.0, 10.0)), "none", metric="none")
    other = Dataset(data.X.copy(), rng.permutation(data.y))
    errors = [train(rows, config, tmp_path / "m.h5", force=True).cv_error or 0.0 for rows in (data, other)]
    assert errors[0] > errors[1] - 0.03 and min(errors) > 0.45


def test_levels_are_not_scaled(tmp_path: Path) -> None:
    """A level's column keeps 0 and 1, however rare the level is."""
    rng = np.random.default_rng(0)
    rows = [f"{i % 2},{'rare' if i % 100 == 0 else 'often'},{rng.normal()}\n" for i in range(600)]
    (tmp_path / "t.csv").write_text("y,kind,x\n" + "".join(rows))
    data = training_rows(str(tmp_path / "t.csv"), TableOptions(), 0, False, print)
    config = TrainingConfig(KernelSVM(gamma=(1.0,), cost=(1.0,)), "none", metric="none")
    train(data, config, tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        assert model.chain.scaling.factor is not None and model.chain.scaling.factor[:2].tolist() == [1.0, 1.0]
        assert model.table is not None and model.table.encoding.names == ["kind=often", "kind=rare", "x"]
