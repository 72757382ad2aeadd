"""lsvm convert: clean text in every form."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest
from command_line import error, invoke, run
from malformed import MALFORMED

from localsvm.data.readers.libsvm import read

MESSY = b"+1 qid:3 1:0.50 3:1e1 # comment\r\n\r\n-1.0 2:0\n"
CLEAN = b"1 1:0.5 3:10\n-1\n"


def test_messy_text_becomes_clean(tmp_path: Path) -> None:
    (tmp_path / "messy").write_bytes(MESSY)
    invoke("convert", tmp_path / "messy", tmp_path / "clean")
    assert (tmp_path / "clean").read_bytes() == CLEAN
    invoke("convert", tmp_path / "clean", tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == CLEAN


def test_streams_and_compression(tmp_path: Path) -> None:
    done = run("convert", "-", "-", input=bz2.compress(MESSY))
    assert (done.returncode, done.stdout, done.stderr) == (0, CLEAN, b"")
    (tmp_path / "messy").write_bytes(MESSY)
    invoke("convert", tmp_path / "messy", tmp_path / "clean.gz")
    assert gzip.decompress((tmp_path / "clean.gz").read_bytes()) == CLEAN


def test_zero_based_indices_become_one_based(tmp_path: Path) -> None:
    (tmp_path / "zero").write_text("1 0:5 2:7\n")
    invoke("convert", "--zero-based", tmp_path / "zero", tmp_path / "one")
    assert (tmp_path / "one").read_text() == "1 1:5 3:7\n"


@pytest.mark.parametrize("mode", ["std", "zscore", "minmax", "row"])
def test_scaling(mode: str, train_file: Path, tmp_path: Path) -> None:
    invoke("convert", "--scale", mode, train_file, tmp_path / "scaled")
    X, scaled = read(train_file).X.astype(np.float64), read(tmp_path / "scaled").X
    expected = {
        "std": X / X.std(axis=0),
        "zscore": (X - X.mean(axis=0)) / X.std(axis=0),
        "minmax": 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1,
        "row": X / np.linalg.norm(X, axis=1, keepdims=True),
    }[mode]
    np.testing.assert_allclose(scaled, expected, atol=1e-5)


def test_outputs_in_the_way(train_file: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    assert "exists already" in error("convert", train_file, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "precious"
    assert "would replace" in error("convert", "--force", train_file, train_file)
    invoke("convert", "--force", train_file, tmp_path / "out")
    np.testing.assert_array_equal(read(tmp_path / "out").X, read(train_file).X)


@pytest.mark.fast(1)
@pytest.mark.parametrize(("text", "message"), [(m[1], m[2]) for m in MALFORMED], ids=[m[0] for m in MALFORMED])
def test_malformed_data(text: bytes, message: str, tmp_path: Path) -> None:
    data = tmp_path / "bad.libsvm"
    data.write_bytes(text)
    assert error("convert", "-j", 1, data, tmp_path / "out").startswith(f"{data}{message}")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.libsvm"]
