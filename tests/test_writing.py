"""Writing: it reads back to the bit, in the fewest digits, and nothing half-written is left behind."""

from __future__ import annotations

import io
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from localsvm.data.readers.decoding import FORMATS
from localsvm.data.readers.libsvm import read
from localsvm.data.writers import libsvm as writing
from localsvm.data.writers.libsvm import write
from localsvm.errors import DataError, RunError

FOLDER_OK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
LABELS = st.floats(allow_nan=False, allow_infinity=False)


def text_of(X: object, y: object, **options: object) -> str:
    stream = io.BytesIO()
    write(stream, X, y, **options)
    return stream.getvalue().decode("ascii")


@FOLDER_OK
@given(data=st.data(), zero_based=st.booleans(), sparse=st.booleans())
def test_round_trip(tmp_path: Path, data: st.DataObject, zero_based: bool, sparse: bool) -> None:
    X = data.draw(hnp.arrays(np.float32, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=FLOATS))
    y = data.draw(hnp.arrays(np.float64, len(X), elements=LABELS))
    path = tmp_path / "some.libsvm"
    write(path, sp.csr_array(X) if sparse else X, y, zero_based=zero_based)
    back = read(path, zero_based=zero_based, n_features=X.shape[1], dense=not sparse)
    values = back.X.toarray() if sparse else back.X
    assert values.tobytes() == (X + np.float32(0)).tobytes()
    assert back.y.tobytes() == (y + 0.0).tobytes()


@settings(deadline=None)
@given(values=hnp.arrays(np.float32, st.integers(1, 50), elements=FLOATS))
@example(values=np.array([1e-38, 3.4028235e38, 1.1754944e-38, 9.999999e-6, 1e-5, 999999.94, 16777216], np.float32))
@example(values=(10.0 ** np.arange(-37, 39)).astype(np.float32))
@example(values=np.nextafter((10.0 ** np.arange(-37, 39)).astype(np.float32), np.float32(0)))
def test_values_have_the_fewest_digits(values: np.ndarray) -> None:
    values = values[np.abs(values) >= np.finfo(np.float32).tiny]
    for line, value in zip(text_of(values[:, None], np.zeros(len(values))).splitlines(), values, strict=True):
        token = line.split(":")[1]
        assert np.float32(float(token)) == value
        digits = token.lower().split("e")[0].strip("-").replace(".", "").strip("0")
        expected = np.format_float_scientific(value, unique=True, trim="-").split("e")[0].strip("-").replace(".", "")
        assert len(digits) <= max(len(expected), 1)


LAYOUTS = """
1 1, -1 -1, 0.5 0.5, 0.1 0.1, -2.25 -2.25, 100 100, 123456784 123456780, 1e9 1e9, 3.4028235e38 3.4028235e38,
1.5e-5 0.000015, 1.5e-6 1.5e-6, 1e-45 1.4013e-45
"""


@pytest.mark.parametrize("case", LAYOUTS.split(","))
def test_layout(case: str) -> None:
    value, text = case.split()
    assert text_of([[float(value)]], [1]) == f"1 1:{text}\n"


def test_zeros_are_left_out() -> None:
    X = np.array([[0, 2, -0.0], [0, 0, 0], [1, 0, 3]], np.float32)
    expected = "1 2:2\n-1\n0.5 1:1 3:3\n"
    assert text_of(X, [1, -1, 0.5]) == expected
    stored = sp.csr_array((X.ravel(), np.tile(np.arange(3), 3), [0, 3, 6, 9]), shape=(3, 3))
    assert text_of(stored, [1, -1, 0.5]) == expected
    assert text_of(X, [1, -1, 0.5], zero_based=True) == "1 1:2\n-1\n0.5 0:1 2:3\n"


def test_labels() -> None:
    labels = [1, -1, 0, -0.0, 3.25, 1e15, 2.0**53, 1e300, -1e-7, 0.1 + 0.2, -(2.0**53) - 2, 12345678901234567168.0]
    lines = text_of(np.zeros((len(labels), 1)), labels).split()
    assert lines[:6] == ["1", "-1", "0", "0", "3.25", "1000000000000000"]
    assert lines[-2:] == ["-9007199254740994", "12345678901234567168"]  # as files have them
    assert [float(line) for line in lines] == labels


@pytest.mark.parametrize("precision", range(1, 10))
def test_precision(precision: int) -> None:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((500, 1)) * 10.0 ** rng.integers(-30, 30, (500, 1))).astype(np.float32)
    for line, value in zip(text_of(X, np.zeros(500), precision=precision).splitlines(), X.ravel(), strict=True):
        token = Decimal(line.split(":")[1])
        best = Decimal(f"{value:.{precision - 1}e}")
        assert len(token.normalize().as_tuple().digits) <= precision
        assert abs(token - Decimal(float(value))) == abs(best - Decimal(float(value)))  # ties go either way


@pytest.mark.parametrize("precision", range(1, 10))
def test_precision_never_rounds_beyond_the_largest_float(tmp_path: Path, precision: int) -> None:
    path = tmp_path / "largest.libsvm"
    write(path, [[3.4028235e38]], [1], precision=precision)
    assert read(path).X[0, 0] > 2.9e38


@pytest.mark.parametrize("sparse", [True, False])
def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    dense = sp.random_array((300, 20), density=0.2, random_state=np.random.default_rng(3), dtype=np.float32).toarray()
    dense[40:60] = 0
    X, y = sp.csr_array(dense) if sparse else dense, np.arange(300) / 4
    expected = text_of(X, y)
    assert expected.count("\n") == 300
    for entries in (1, 7, 100):
        monkeypatch.setattr(writing, "BLOCK_ENTRIES", entries)
        assert text_of(X, y) == expected


def test_scikit_learn_reads_it(tmp_path: Path) -> None:
    dense = sp.random_array((50, 12), density=0.3, random_state=np.random.default_rng(4), dtype=np.float32).toarray()
    X = sp.csr_array(dense)  # with the indices of 32 bits that older versions of scikit-learn write
    y = np.arange(50.0) - 25
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write(ours, X, y)
    back, labels = load_svmlight_file(str(ours), n_features=12, dtype=np.float32, zero_based=False)
    assert (back != X).nnz == 0
    assert np.array_equal(labels, y)
    dump_svmlight_file(X, y, str(theirs), zero_based=False)
    assert np.array_equal(read(theirs, n_features=12).X, dense)


@pytest.mark.parametrize(("suffix", "kind"), [(".gz", "gzip"), (".bz2", "bzip2"), (".xz", "xz"), (".zst", "zstd")])
def test_compressed_by_suffix(tmp_path: Path, suffix: str, kind: str) -> None:
    path, X = tmp_path / f"some.libsvm{suffix}", np.eye(3, dtype=np.float32)
    write(path, X, [1, 2, 3])
    content = path.read_bytes()
    assert content.startswith(FORMATS[kind].magic)
    assert np.array_equal(read(path).X, X)
    write(path, X, [1, 2, 3])
    assert path.read_bytes() == content


def test_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out))
    write("-", [[1, 2]], [1])
    assert out.getvalue() == b"1 1:1 2:2\n"


def test_a_file_appears_complete_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.libsvm"
    path.write_text("before\n")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(writing._text, "write_dense", fail)
        with pytest.raises(RunError, match=r"some\.libsvm: cannot be written \(No space left on device\)"):
            write(path, [[1]], [1])
    assert path.read_text() == "before\n"
    assert [p.name for p in tmp_path.iterdir()] == ["some.libsvm"]


def test_links_and_special_files_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write(tmp_path / "link", [[1]], [1])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "1 1:1\n"
    write("/dev/null", [[1]], [1])
    assert Path("/dev/null").is_char_device()


def test_what_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "some.libsvm"
    with pytest.raises(DataError, match="NaN, infinities"):
        write(path, [[np.nan]], [1])
    with pytest.raises(DataError, match="the label of example 2 is inf"):
        write(path, [[1], [2]], [1, np.inf])
    with pytest.raises(DataError, match="2 examples need as many labels"):
        write(path, [[1], [2]], [1])
    with pytest.raises(ValueError, match="precision"):
        write(path, [[1]], [1], precision=10)
    with pytest.raises(RunError, match="does not exist; make it first"):
        write(tmp_path / "no" / "folder", [[1]], [1])
    assert list(tmp_path.iterdir()) == []
    write(path, [[1]], [1], precision=9)  # the most digits that float32 has
