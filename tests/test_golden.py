"""Models that an earlier version wrote are read, verified and predict the same; every method has one.

Where a file of tests/golden no longer reads, change the code, or the format's version: see
scripts/develop/make_golden.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from command_line import invoke
from sklearn.base import clone

import localsvm
from develop import make_golden
from develop.make_golden import FOLDER, PARTITION, golden
from localsvm.methods import methods

GOLDEN = golden()
MODELS = sorted(set(GOLDEN) - {PARTITION})
TOLERANCE = 1e-5  # SIMD levels round differently


def read(text: str) -> tuple[str, list[str], np.ndarray]:
    """The header, the labels and the decision values (n, problems) that predict wrote."""
    header, *lines = text.splitlines()
    words = [line.split() for line in lines]
    return header, [row[0] for row in words], np.asarray([row[1:] for row in words], np.float64)


@pytest.mark.fast(60)
@pytest.mark.parametrize("level", ["baseline", None])
@pytest.mark.parametrize("name", MODELS)
def test_golden_models_predict_as_they_did(name: str, level: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if level:
        monkeypatch.setenv("LOCALSVM_SIMD", level)
    rows, model = FOLDER / GOLDEN[name][0], FOLDER / f"{name}.h5"
    header, labels, values = read(invoke("predict", "-q", "--decision-values", rows, model).stdout)
    expected = read((FOLDER / f"{name}.decisions.txt").read_text())
    assert (header, labels) == expected[:2]
    np.testing.assert_allclose(values, expected[2], rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.fast(1)
@pytest.mark.parametrize("name", MODELS)
def test_golden_models_are_described(name: str) -> None:
    path = FOLDER / f"{name}.h5"
    assert "checksums agree" in invoke("inspect", path).stdout
    report = json.loads(invoke("inspect", "--json", path).stdout)
    options = GOLDEN[name][1].split()
    assert report["config"]["method"]["name"] == options[options.index("-m") + 1]
    assert report["cells"] > 1 if "-P" in options else report["cells"] == 1


@pytest.mark.fast(1)
@pytest.mark.parametrize("name", MODELS)
def test_golden_models_become_classifiers(name: str) -> None:
    model = localsvm.load(FOLDER / f"{name}.h5")
    options = GOLDEN[name][1].split()
    assert clone(model).method.name == options[options.index("-m") + 1]


def test_the_sparse_model_is_one() -> None:
    config = json.loads(invoke("inspect", "--json", FOLDER / "svm-sparse-ava.h5").stdout)["config"]
    assert (config["dense"], config["multiclass"]) == (False, "ava")


def test_pairs_have_clusters_of_their_own_or_share_them() -> None:
    for name, separate in (("csvm-ava", True), ("kmeans-svm-shared", False)):
        with h5py.File(FOLDER / f"{name}.h5") as file:
            assert (len(file["cells/centres"]), "clusters" in file["cells"]) == (9 if separate else 3, separate)
        report = json.loads(invoke("inspect", "--json", FOLDER / f"{name}.h5").stdout)
        assert report["models"]["centres"]["largest"] == 3


def test_the_golden_partition_divides_its_rows(tmp_path: Path) -> None:
    path, model = FOLDER / f"{PARTITION}.h5", tmp_path / "model.h5"
    fast = ("-m", "linear", "-C", "1", "-j", "1")
    invoke("train", *fast, "--partition-file", path, FOLDER / GOLDEN[PARTITION][0], model)
    with h5py.File(path) as cells, h5py.File(model) as trained:
        sizes, n_cells = cells["sizes"][...], trained["cells"].attrs["n_cells"]
        assignment = np.bincount(cells["assignment"][...])
    assert n_cells == len(sizes) > 1
    np.testing.assert_array_equal(assignment, sizes)


def test_every_method_has_a_golden_model() -> None:
    remedy = "run scripts/develop/make_golden.py, and commit what it wrote"
    for name in methods():
        assert name in MODELS and (FOLDER / f"{name}.h5").exists(), f"{name} has no golden model: {remedy}"


def test_every_golden_file_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.h5")} == set(GOLDEN)
    assert {path.name.split(".")[0] for path in FOLDER.glob("*.decisions.txt")} == set(MODELS)


def test_golden_files_are_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_golden, "FOLDER", tmp_path)
    assert make_golden.main(["linear"]) == 0
    assert (tmp_path / "rows.libsvm").read_bytes() == (FOLDER / "rows.libsvm").read_bytes()
    assert (tmp_path / "rows-sparse.libsvm").read_bytes() == (FOLDER / "rows-sparse.libsvm").read_bytes()
    (tmp_path / "linear.h5").write_text("as it was")
    assert make_golden.main(["linear"]) == 0
    assert "linear.h5 is there and stays" in capsys.readouterr().err
    assert (tmp_path / "linear.h5").read_text() == "as it was"
    with pytest.raises(SystemExit):
        make_golden.main(["nearest"])
