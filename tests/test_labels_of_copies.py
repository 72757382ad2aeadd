"""Rows that equal training rows get the labels of these, where that is clearly better than what models answer."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from parts_of_text import Parts
from scipy import sparse
from selecting import observed_of
from strangers import Damage, attributes, damaged
from strangers import replace as replaced

from localsvm.cli.group import lsvm
from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.blocks.numbering import contents, signatures
from localsvm.data.readers.libsvm import read
from localsvm.data.writers.libsvm import write
from localsvm.engines.disk import Disk
from localsvm.engines.memory import Memory
from localsvm.engines.spark import Spark
from localsvm.errors import ModelError, OptionError, RunError
from localsvm.estimators import LocalSVC, LocalSVR
from localsvm.memory import PROCESS_BYTES, Budget
from localsvm.methods.kernel.one_class import OneClassSVM
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.runs import copies
from localsvm.runs.config import TrainingConfig
from localsvm.runs.copies import CopiedRows
from localsvm.runs.cross_validate import cross_validate
from localsvm.runs.predict import LocalModel
from localsvm.runs.preparation import prepare as preparing
from localsvm.runs.train import train
from localsvm.targets.classification import Classification
from localsvm.targets.copies import Copies

FAST = KernelSVM(gamma=(0.5, 4.0), cost=(0.3, 3.0))
ASKED = TrainingConfig(FAST, "voronoi", 120, metric="none", copies="auto")


def twice(n: int = 400, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows with labels that are hard to learn, of which half occur a second time with the same label."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)).astype(np.float32)
    y = np.clip(np.floor(X[:, 0] + rng.standard_normal(n) + classes / 2), 0.0, classes - 1.0) + 0.0  # 0.0, not -0.0
    order = rng.permutation(n + n // 2)
    return np.concatenate([X, X[: n // 2]])[order], np.concatenate([y, y[: n // 2]])[order]


# signatures


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6))
def test_a_signature_is_that_of_the_values_however_they_are_stored(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((30, 7)) < 0.5, rng.standard_normal((30, 7)), 0).astype(np.float32)
    X[:, [2, 5]], X[0, 0], X[1] = 0, -0.0, X[3]
    whole, kept = signatures(X), np.flatnonzero(X.any(axis=0))
    thin = as_examples(sparse.csr_array(X))
    np.testing.assert_array_equal(signatures(thin), whole)
    np.testing.assert_array_equal(signatures(X[:, kept], kept), whole)
    np.testing.assert_array_equal(signatures(as_examples(sparse.csr_array(X[:, kept])), kept), whole)
    assert len(np.unique(whole)) == len(np.unique(X + np.float32(0), axis=0))


def test_few_different_values_have_different_signatures() -> None:
    """All rows of 0 and 1 with up to three ones: sums of values times columns would be equal for many of them."""
    rows = [places for k in range(4) for places in combinations(range(24), k)]
    X = np.zeros((len(rows), 24), np.float32)
    for row, places in enumerate(rows):
        X[row, list(places)] = 1.0
    assert len(np.unique(signatures(X))) == len(rows) > len(np.unique(contents(X)))


# which rows have copies, and what these say


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.booleans()), min_size=1, max_size=40), st.data())
def test_copies_say_what_others_of_a_row_agree_on(rows: list[tuple[int, int, bool]], data: Any) -> None:
    marks, y = np.asarray([row[0] for row in rows], np.uint64), np.asarray([float(row[1]) for row in rows])
    weighted = np.asarray([row[2] for row in rows]) | (np.arange(len(rows)) == 0)
    cut = data.draw(st.integers(0, len(rows)))
    shown = np.where(weighted, y, np.nan)
    said, known = {}, {}
    for i in np.flatnonzero(weighted):
        alike = [j for j in np.flatnonzero(weighted) if marks[j] == marks[i]]
        others = {y[j] for j in alike if j != i}
        if len(others) == 1:
            said[int(i)] = others.pop()
        if len({y[j] for j in alike}) == 1:
            known[int(marks[i])] = y[i]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "LEAST", 0)
        patch.setattr(copies, "SHARE", np.inf)
        parts = [(marks[:cut], shown[:cut]), (marks[cut:], shown[cut:])]
        of = observed_of(np.append(y, [7.0, 8.0]))  # guessing is wrong sometimes
        found = CopiedRows.of(parts, of)
    assert found is not None and np.array_equal(np.unique(found.kind), np.arange(len(np.unique(marks[found.rows]))))
    assert len(set(zip(found.kind.tolist(), marks[found.rows].tolist(), strict=True))) == len(np.unique(found.kind))
    assert dict(zip(found.rows.tolist(), found.said.tolist(), strict=True)) == said
    assert dict(zip(found.signatures.tolist(), found.labels.tolist(), strict=True)) == known
    assert np.all(np.diff(found.signatures.astype(object)) > 0) and np.all(np.diff(found.rows) > 0)
    wrong = [np.mean([said[i] != y[i] for i in said if marks[i] == mark]) for mark in {marks[i] for i in said}]
    assert found.error == pytest.approx(np.mean(wrong) if wrong else 0.0)


def test_few_copies_or_copies_that_disagree_are_not_judged() -> None:
    X, y = twice()
    marks, observed = signatures(X), observed_of(y)
    assert (found := CopiedRows.of([(marks, y)], observed)) is not None and len(found.rows) == 400
    assert found.error == 0.0 and found.kind.max() == 199
    once = np.unique(marks, return_index=True)[1]
    assert CopiedRows.of([(marks[once], y[once])], observed) is None
    assert CopiedRows.of([(marks, np.where(np.arange(len(y)) % 2, y, 1 - y))], observed) is None


# what models do with them


@pytest.mark.parametrize("scheme", ["ova", "ava"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_known_row_gets_its_label_and_no_other_row_changes(classes: int, scheme: str, tmp_path: Path) -> None:
    X, y = twice(classes=classes)
    config = replace(ASKED, multiclass=scheme, probability=True)
    summary = train(Dataset(X.copy(), y), config, tmp_path / "m.h5")
    assert train(Dataset(X.copy(), y), replace(config, copies="none"), tmp_path / "none.h5").copies is None  # type: ignore[union-attr]
    assert (
        summary is not None
        and summary.copies is not None
        and summary.copies["rows"] == 400
        and summary.copies["values"] == 200
    )
    assert summary.copies["error"] == 0.0 and summary.copies["model_error"] > 0.15
    new = twice(seed=1)[0][:50]
    with LocalModel(tmp_path / "m.h5") as model, LocalModel(tmp_path / "none.h5") as plain:
        np.testing.assert_array_equal(model.predict(X), y)
        np.testing.assert_array_equal(model.predict(as_examples(sparse.csr_array(X)).toarray().astype(np.float64)), y)
        np.testing.assert_array_equal(np.unique(model.decision_function(X)), np.unique(model.classes.encode(y)))
        assert np.mean(plain.predict(X) != y) > 0.15
        np.testing.assert_array_equal(model.decision_function(new), plain.decision_function(new))
        np.testing.assert_array_equal(model.probabilities(new), plain.probabilities(new))
        p = model.probabilities(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_allclose(p[np.arange(len(y)), y.astype(int)], 1.0 - 1.0 / 202.0)
        both = np.concatenate([new, X[:30]])
        (block,) = model.predict_blocks([Dataset(both, np.zeros(len(both)))])
        assert block.copies is not None and block.copies.tolist() == list(range(50, 80))
        np.testing.assert_array_equal(block.labels, model.predict(both))


def test_labels_of_noise_are_not_taken_from_copies(tmp_path: Path) -> None:
    X, y = twice()
    rng = np.random.default_rng(3)
    flipped = np.where(rng.random(len(y)) < 0.35, 1 - y, y)
    summary = train(Dataset(X.copy(), flipped), ASKED, tmp_path / "m.h5")
    assert summary is not None and summary.copies is None
    with h5py.File(tmp_path / "m.h5") as file:
        assert "copies" not in file


def test_one_value_that_recurs_is_one_witness(tmp_path: Path) -> None:
    """A value that a model gets wrong says nothing of single rows, however often it recurs."""
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.standard_normal((600, 3)), np.tile([[2.0, 0.0, 0.0]], (60, 1))]).astype(np.float32)
    y = np.append(np.where((X[:600, 0] > 0) ^ (rng.random(600) < 0.3), 1.0, 0.0), np.zeros(60))
    summary = train(Dataset(X.copy(), y), replace(ASKED, partition="none", cell_size=None), tmp_path / "m.h5")
    assert summary is not None and summary.copies is None


@pytest.mark.parametrize(
    ("classes", "scheme", "kernel"), [(2, "ova", "linear"), (4, "ova", "linear"), (4, "ava", "auto")]
)
def test_the_error_of_models_is_the_cross_validated_one_where_all_rows_have_copies(
    classes: int, scheme: str, kernel: str, tmp_path: Path
) -> None:
    X, y = twice(classes=classes)
    X, y = np.concatenate([X[:300], X[:300]]), np.concatenate([y[:300], y[:300]])
    X, places = np.unique(np.round(X, 4), axis=0, return_index=True)
    X, y = np.concatenate([X, X]), np.concatenate([y[places], y[places]])
    config = TrainingConfig(KernelSVM(kernel=kernel, cost=(0.3, 3.0)), metric="none", copies="auto", multiclass=scheme)
    summary = train(Dataset(X.copy(), y), config, tmp_path / "m.h5")
    assert summary is not None and summary.copies is not None
    assert summary.copies["model_error"] == pytest.approx(summary.cv_error)


def test_rows_of_equal_values_and_different_labels_are_left_to_the_model(tmp_path: Path) -> None:
    X, y = twice()
    X, y = np.concatenate([X, X[:1], X[:1]]), np.concatenate([y, y[:1], 1 - y[:1]])
    train(Dataset(X.copy(), y), ASKED, tmp_path / "m.h5")
    train(Dataset(X.copy(), y), replace(ASKED, copies="none"), tmp_path / "none.h5")
    odd = (X[0] == X).all(axis=1)
    with LocalModel(tmp_path / "m.h5") as model, LocalModel(tmp_path / "none.h5") as plain:
        assert model.copies is not None
        known = model.copies.known(signatures(X)).rows
        np.testing.assert_array_equal(known, np.flatnonzero(~odd))
        np.testing.assert_array_equal(model.decision_function(X[odd]), plain.decision_function(X[odd]))


def test_a_set_of_labels_holds_that_of_the_copy(tmp_path: Path) -> None:
    X, y = twice(classes=3)
    train(Dataset(X.copy(), y), replace(ASKED, coverage=0.8), tmp_path / "m.h5")
    with LocalModel(tmp_path / "m.h5") as model:
        np.testing.assert_array_equal(model.sets(X, 0.8), np.arange(3) == y[:, None])


@pytest.mark.parametrize("options", [{}, {"coarse_size": 250}, {"partition": "kmeans", "repeats": 2}, {"scale": "row"}])
def test_engines_and_readers_know_the_same_rows(options: dict[str, Any], tmp_path: Path) -> None:
    """Values far from 0, a column without any, and one that only the rows to predict have."""
    X, y = twice()
    file, config = tmp_path / "rows", replace(ASKED, **options)
    wide = np.insert(np.round(X + np.asarray([0.0, 3e4, 0.0]), 3), 1, 0.0, axis=1)
    file.write_text(
        "".join(f"{label:g} 1:{a} 3:{b} 4:{c}\n" for label, (a, _, b, c) in zip(y, wide.tolist(), strict=True))
    )
    how = {"shifts": config.shifts}
    engines = {
        "memory": Memory(read(file, **how)),
        "disk": Disk(file, **how),
        "spark": Spark(Parts(file, [90], 70), **how),
    }
    manifests = set()
    for kind, engine in engines.items():
        summary = train(engine, config, tmp_path / f"{kind}.h5")
        assert summary is not None and summary.copies is not None, kind
        with h5py.File(tmp_path / f"{kind}.h5") as model_file:
            manifests.add(bytes(model_file.attrs["manifest"]))
    assert len(manifests) == 1
    with LocalModel(tmp_path / "disk.h5") as model:
        blocks = list(model.predict_blocks(model.read(file)))
        np.testing.assert_array_equal(np.concatenate([block.labels for block in blocks]), y)
        assert sum(len(block.copies) for block in blocks if block.copies is not None) == len(y)
        np.testing.assert_array_equal(model.predict(wide), y)


def test_members_are_judged_by_their_mean(tmp_path: Path) -> None:
    Z = np.random.default_rng(0).standard_normal((400, 5))
    y = np.where((Z[:, 0] * Z[:, 1] + 0.7 * Z[:, 2] > 0.0) ^ (Z[:, 4] > 1.5), 1.0, 0.0)
    Z[:, 2] = np.exp(2 * Z[:, 2])  # which matters by its ranks
    X, y = np.concatenate([Z, Z[:200]]).astype(np.float32), np.concatenate([y, y[:200]])
    summary = train(Dataset(X.copy(), y), TrainingConfig(), tmp_path / "m.h5")
    assert summary is not None and summary.copies is not None
    assert summary.metric is not None and len(summary.metric["members"]) == 2
    with LocalModel(tmp_path / "m.h5") as model:
        np.testing.assert_array_equal(model.predict(X), y)
        np.testing.assert_array_equal(model.decision_function(X)[:, 0], 2 * y - 1)


# where it is asked for


def test_it_is_the_default_where_a_metric_is_chosen_and_a_point() -> None:
    assert TrainingConfig().tries_copies and not TrainingConfig(copies="none").tries_copies
    assert not TrainingConfig(metric="none").tries_copies and TrainingConfig(metric="none", copies="auto").tries_copies
    assert not TrainingConfig(KernelSVM(gamma=(1.0,), cost=(1.0,))).tries_copies
    for other in ({"effort": "low"}, {"blocks": True}, {"scoring": "npl", "false_alarm": 0.1}):
        assert not TrainingConfig(**other).tries_copies  # type: ignore[arg-type]
    assert (
        not TrainingConfig(KernelSVM(loss="least-squares")).tries_copies
        and not TrainingConfig(OneClassSVM()).tries_copies
    )


@pytest.mark.parametrize(
    "options",
    [
        {"blocks": True},
        {"roc": True},
        {"method": KernelSVM(loss="least-squares")},
        {"method": OneClassSVM(), "metric": "none"},
        {"copies": "all"},
    ],
)
def test_what_it_does_not_go_with_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="copies"):
        TrainingConfig(**{"copies": "auto", **options})


def test_copies_are_not_looked_for_among_very_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = twice()
    monkeypatch.setattr(preparing, "MOST_COPIES", len(y))
    summary = train(Dataset(X.copy(), y), ASKED, tmp_path / "m.h5")
    assert summary is not None and summary.copies is not None
    monkeypatch.setattr(preparing, "MOST_COPIES", len(y) - 1)
    with pytest.raises(OptionError, match="among 599 rows at most"):
        train(Dataset(X.copy(), y), ASKED, tmp_path / "n.h5")
    summary = train(Dataset(X.copy(), y), replace(ASKED, copies=None, metric="auto"), tmp_path / "n.h5")
    assert summary is not None and summary.copies is None


def test_the_memory_for_copies_is_asked_for(tmp_path: Path) -> None:
    X, y = twice(40_000)
    write(tmp_path / "rows", X, y)
    some = Budget(PROCESS_BYTES + (6 << 20))
    config = replace(ASKED, partition="chunks")
    for name, engine in (
        ("memory", Memory(Dataset(X.copy(), y), some)),
        ("disk", Disk(tmp_path / "rows", budget=some)),
    ):
        with pytest.raises(RunError, match=r"looking for copies of rows needs .*copies"):
            train(engine, config, tmp_path / f"{name}.h5")


def test_the_point_of_a_table_of_scores_is_found_without_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = twice()
    monkeypatch.setattr(preparing, "Signed", None)
    cross_validate(Dataset(X.copy(), y, group=np.arange(len(y))), ASKED)


def test_new_groups_have_no_copies(tmp_path: Path) -> None:
    X, y = twice()
    group = np.arange(len(y)) // 5
    with pytest.raises(OptionError, match="does not go with groups"):
        train(Dataset(X.copy(), y, group=group), ASKED, tmp_path / "m.h5")
    summary = train(Dataset(X.copy(), y, group=group), replace(ASKED, copies=None, metric="auto"), tmp_path / "m.h5")
    assert summary is not None and summary.copies is None


def test_the_programs_say_what_copies_do(tmp_path: Path) -> None:
    X, y = twice()
    write(tmp_path / "rows", X, y)
    write(tmp_path / "new", np.concatenate([X[:20], twice(seed=1)[0][:20]]), np.concatenate([y[:20], np.ones(20)]))
    run = CliRunner().invoke
    model, out = str(tmp_path / "m.h5"), str(tmp_path / "out")
    trained = run(lsvm, ["train", "--metric", "none", "--copies", "auto", str(tmp_path / "rows"), model])
    assert "\ncopies      get the label of their training row: wrong on 0.00% of 400 rows (models: " in trained.stderr
    predicted = run(lsvm, ["predict", "--json", str(tmp_path / "new"), model, out])
    note = "note: 20 of 40 rows equal training rows and get their labels; accuracy of the others"
    assert note in predicted.stderr and json.loads(predicted.stdout)["copies"] == {"rows": 20, "right": 20, "total": 20}
    assert "get the labels of 400 different training rows" in run(lsvm, ["inspect", model]).stdout
    (tmp_path / "one").write_text((tmp_path / "rows").read_text().splitlines()[0] + "\n")
    one = run(lsvm, ["predict", str(tmp_path / "one"), model])
    assert "note: 1 of 1 rows equals a training row and gets its label\n" in one.stderr
    alone = run(lsvm, ["predict", str(tmp_path / "rows"), model])
    assert "note: 600 of 600 rows equal training rows and get their labels\n" in alone.stderr
    refused = run(lsvm, ["train", "--copies", "auto", "-v", "blocks", str(tmp_path / "rows"), str(tmp_path / "b.h5")])
    assert refused.exit_code and "--copies auto is for new rows" in refused.stderr


def test_a_point_is_cross_validated_for_labels_of_copies_alone(tmp_path: Path) -> None:
    X, y = twice()
    write(tmp_path / "rows", X, y)
    words = ["train", "--metric", "none", "-g", "1", "-C", "1", str(tmp_path / "rows"), str(tmp_path / "m.h5")]
    assert "none (one point)" in CliRunner().invoke(lsvm, words).stderr
    asked = CliRunner().invoke(lsvm, [*words, "--force", "--copies", "auto"])
    assert "one point, cross-validated for the labels of copies: error" in asked.stderr
    shown = CliRunner().invoke(lsvm, ["inspect", str(tmp_path / "m.h5")]).stdout
    assert "none (one point), 5 folds for the labels of copies" in shown


def test_a_classifier_has_the_parameter() -> None:
    X, y = twice()
    fitted = LocalSVC(metric="none", copies="auto", cell_size=None).fit(X, y)
    assert fitted.score(X, y) == 1.0
    assert 0.6 < LocalSVC(metric="none").fit(X, y).score(X, y) < 0.9
    assert "copies" in LocalSVC().get_params() and "copies" not in LocalSVR().get_params()


# the file


def test_a_damaged_group_is_refused_in_a_line(tmp_path: Path) -> None:
    """Other signatures, labels and shares are those of another model, which could have been trained."""
    X, y = twice(200)
    base, path, refused = tmp_path / "base.h5", tmp_path / "m.h5", set()
    train(Dataset(X.copy(), y), ASKED, base)
    with h5py.File(base) as file:
        marks = file["copies/signatures"][...]
    every = [each for each in [*damaged(base, set()), *attributes(base)] if each.place.startswith("/copies")]
    every.append(Damage("/copies/signatures", "descending", lambda f: replaced(f, "/copies/signatures", marks[::-1])))
    for damage in every:
        damage.make(base, path)
        try:
            with LocalModel(path) as model:
                model.predict(X)
        except ModelError as error:
            assert str(error).startswith(f"{path}: ") and str(error).isprintable(), (damage.place, damage.kind)
            refused.add((damage.place, damage.kind))
        else:
            assert (
                damage.kind in ("missing", "all 0", "all largest", "largest", "negative")
                or damage.place == "/copies/error"
            )
    assert {("/copies/signatures", "descending"), ("/copies@kind", "unknown")} <= refused


def test_known_rows_are_found_by_their_signatures() -> None:
    target = Classification(np.asarray([0.0, 1.0]))
    some = Copies(np.asarray([3, 7], np.uint64), np.asarray([1, 0], np.int32), 0.1)
    values, p = np.full((4, 1), 0.3), np.full((4, 2), 0.5)
    known = some.known(np.asarray([7, 1, 3, 9], np.uint64))
    known.decide(target, values)
    known.expect(p)
    np.testing.assert_array_equal(values[:, 0], [-1.0, 0.3, 1.0, 0.3])
    np.testing.assert_allclose(p, [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9], [0.5, 0.5]])
