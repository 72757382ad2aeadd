"""Features of tables: numbers without gaps, levels, and what labels say of many levels without a leak."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsvm.data.blocks.dataset import Dataset
from localsvm.data.blocks.table import Levels, Table
from localsvm.errors import DataError
from localsvm.features.encoding import Encoding
from localsvm.features.survey import FOLDS, SMOOTHING, NumberSurvey, TableSurvey
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.representations.metric_learning import MetricLearner
from localsvm.representations.metric_rows import MetricRows
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation.tables import TableOptions, TrainingTable, training_rows
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


def fitted(
    table: Table, names: list[str], codes: np.ndarray, seed: int, encode: str = "auto", blocks: int = 1
) -> tuple[Encoding, np.ndarray, np.ndarray]:
    """An encoding, the features of the rows that it was learned from, and their folds; the table in some blocks."""
    survey, parts = TableSurvey(seed), np.array_split(np.arange(table.rows), blocks)
    for part in parts:
        survey.add(table.taken(np.isin(np.arange(table.rows), part)), names, codes[part], None)
    encoding = survey.encoding(names, np.arange(codes.max() + 1), encode, True, lambda name, why: None)
    folds = survey.folds.of(0, table.rows, None)
    return encoding, encoding.apply(table, folds), folds


def test_numbers_are_filled_by_the_median_and_gaps_marked() -> None:
    table, codes = example()
    encoding, X, _ = fitted(table, ["x"], codes, 0)
    known = table.numbers["x"][~np.isnan(table.numbers["x"])]
    assert encoding.names == ["x", "x is missing"]
    np.testing.assert_array_equal(
        X[::7], np.column_stack([np.full(len(X[::7]), np.median(known)), np.ones(len(X[::7]))])
    )
    np.testing.assert_array_equal(encoding.apply(table), X)


def test_few_levels_have_a_column_each() -> None:
    table, codes = example()
    encoding, X, _ = fitted(table, ["few"], codes, 0)
    assert encoding.names == ["few=a", "few=b", "few=c"] and encoding.unscaled == [0, 1, 2]
    assert X.sum(axis=1).tolist() == [float(code >= 0) for code in table.levels["few"].codes]
    unknown = Table(("few",), 2, {}, {"few": levels(["z", "b"])})
    assert encoding.apply(unknown).tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_many_levels_are_what_other_folds_say() -> None:
    """Written out: smoothed shares of class 1 among the rows of the level in other folds."""
    table, codes = example()
    encoding, X, folds = fitted(table, ["many"], codes, 3)
    column = table.levels["many"].codes
    assert set(folds.tolist()) == set(range(FOLDS))
    for i in range(0, len(codes), 13):
        others = folds != folds[i]
        same = others & (column == column[i])
        share = (codes[same].sum() + SMOOTHING * codes[others].mean()) / (same.sum() + SMOOTHING)
        assert X[i] == pytest.approx([share, np.log10(1 + (column == column[i]).sum())])
    new = encoding.apply(Table(("many",), 2, {}, {"many": levels(["never seen", ""])}))
    assert new[0].tolist() == new[1].tolist()


def test_an_encoding_is_kept_as_json() -> None:
    table, codes = example()
    encoding, *_ = fitted(table, ["x", "few", "many"], codes, 0)
    again = Encoding.from_dict(json.loads(json.dumps(encoding.as_dict())))
    np.testing.assert_array_equal(again.apply(table), encoding.apply(table))
    assert again == encoding


@pytest.mark.parametrize("encode", ["auto", "one-hot", "target", "ordinal"])
def test_blocks_do_not_matter(encode: str) -> None:
    table, codes = example()
    whole, X, _ = fitted(table, ["x", "few", "many"], codes, 0, encode)
    parts, Z, _ = fitted(table, ["x", "few", "many"], codes, 0, encode, blocks=7)
    assert whole == parts
    np.testing.assert_array_equal(X, Z)


def test_levels_are_encoded_as_asked() -> None:
    table, codes = example()
    names = {encode: fitted(table, ["few"], codes, 0, encode)[0].names for encode in ("one-hot", "target", "ordinal")}
    assert names["one-hot"] == ["few=a", "few=b", "few=c"]
    assert names["target"] == ["few: share of class 1", "few: frequency"] and names["ordinal"] == ["few"]
    encoding, X, _ = fitted(table, ["few"], codes, 0, "ordinal")
    known = table.levels["few"].codes >= 0
    np.testing.assert_array_equal(X[known, 0], table.levels["few"].codes[known])
    assert set(X[~known, 0]) == {encoding.codings[0].fill}  # type: ignore[union-attr]


def test_groups_are_in_one_fold() -> None:
    table, _ = example()
    group = np.arange(table.rows) // 10
    folds = TableSurvey(0).folds.of(0, table.rows, group)
    assert all(len(set(folds[group == number])) == 1 for number in range(40))


def test_shares_are_those_of_other_blocks(tmp_path: Path) -> None:
    """With blocks, rows of one level in one stretch alone say nothing of each other."""
    rows = "".join(f"{i % 2},l{i // 20}\n" for i in range(400))
    (tmp_path / "t.csv").write_text("label,many\n" + rows)
    note: list[str] = []
    table = TrainingTable(str(tmp_path / "t.csv"), TableOptions(), 0, False, note.append, blocks=True)
    X = table.look(keep=False).read().X
    assert len(np.unique(X[:, 0])) == 1 and X[0, 0] == pytest.approx(0.5)
    at_random = training_rows(str(tmp_path / "t.csv"), TableOptions(), 0, False, note.append)
    assert len(np.unique(at_random.X[:, 0])) > 5


def test_dates_become_their_parts() -> None:
    texts = ["2024-02-29", "", "2023-12-31 23:30", "2024-02-29"]
    table = Table(("day",), 4, {}, {"day": levels(texts)})
    encoding, X, _ = fitted(table, ["day"], np.asarray([0, 1, 0, 1]), 0)
    assert encoding.names == ["day: year", "day: month", "day: weekday", "day: hour", "day is missing"]
    assert X[0].tolist() == [2024, 2, 3, 0, 0] and X[2].tolist() == [2023, 12, 6, 23, 0] and X[1, 4] == 1
    assert Encoding.from_dict(json.loads(json.dumps(encoding.as_dict()))) == encoding
    with pytest.raises(DataError, match="column 'day' has dates, and here 'soon'; write YYYY-MM-DD"):
        encoding.apply(Table(("day",), 1, {}, {"day": levels(["soon"])}))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.integers(1, 5))
def test_a_median_is_that_of_all_rows(values: list[float], blocks: int) -> None:
    survey = NumberSurvey()
    for part in np.array_split(np.asarray(values), blocks):
        survey.add(part, np.arange(len(part), dtype=np.uint64))
    assert survey.coding("x").fill == np.median(values)


def test_one_weight_is_learned_for_the_levels_of_a_column() -> None:
    """The weights of tied features are equal, and a column that says something has more than one that does not."""
    rng = np.random.default_rng(0)
    kind, noise = rng.integers(0, 3, 600), rng.integers(0, 3, 600)
    X = np.hstack([np.eye(3)[kind], np.eye(3)[noise]]).astype(np.float32)
    Y = np.where(kind == 0, 1.0, -1.0)[:, None].astype(np.float32)
    ties = np.repeat([0, 1], 3)
    learner = MetricLearner(MetricRows(X, Y, np.ones(600), ties), np.arange(600), sample=100)
    weights = learner.steps(learner.beginning(rng), 60, rng).values
    assert len(set(weights[:3])) == len(set(weights[3:])) == 1 and weights[0] > 1.5 * abs(weights[3])


@pytest.mark.fast(4)
@pytest.mark.parametrize(
    "columns",
    [
        None,
        [{"kind": "other", "name": "a"}],
        [{"kind": "number", "name": 3, "fill": 0.0, "gaps": False}],
        [{"kind": "number", "name": "a", "fill": "inf", "gaps": False}],
        [{"kind": "levels", "name": "a", "levels": ["x", "x"]}],
        [{"kind": "ordinal", "name": "a", "levels": ["x"], "fill": "nan"}],
        [{"kind": "dates", "name": "a", "parts": ["minute"], "fill": [1.0], "gaps": False}],
        [{"kind": "dates", "name": "a", "parts": ["year"], "fill": [], "gaps": False}],
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
