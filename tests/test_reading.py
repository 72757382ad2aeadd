"""Reading: every spelling of the format, exact floats, one result however a file is cut and packed."""

from __future__ import annotations

import bz2
import gzip
import io
import locale
import lzma
import os
import re
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import load_svmlight_file

from localsvm.data import _text
from localsvm.data.blocks.dataset import Dataset, as_examples, dense_rows, places_of, prefers_dense
from localsvm.data.blocks.shared import SharedExamples
from localsvm.data.readers.compression import open_source
from localsvm.data.readers.decoding import Decoder
from localsvm.data.readers.libsvm import Layout, read, read_blocks
from localsvm.data.readers.pieces import TextPiece
from localsvm.data.writers.libsvm import write
from localsvm.errors import DataError

FOLDER_OK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
DECOMPRESSED = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": zstandard.compress}


def dense_of(data: Dataset) -> np.ndarray:
    return data.X if isinstance(data.X, np.ndarray) else data.X.toarray()


def read_text(folder: Path, text: bytes, **options: Any) -> Dataset:
    path = folder / "some.libsvm"
    path.write_bytes(text)
    return read(path, **options)


def assert_same(a: Dataset, b: Dataset) -> None:
    """Assert that two data sets are equal to the bit: type, shape, dtypes and content."""
    assert type(a.X) is type(b.X)
    assert a.X.shape == b.X.shape
    names = [] if isinstance(a.X, np.ndarray) else ["data", "indices", "indptr"]
    pairs = [(getattr(a.X, name), getattr(b.X, name)) for name in names] or [(a.X, b.X)]
    for left, right in [*pairs, (a.y, b.y)]:
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes()


def some_text(rows: int = 200, columns: int = 30, density: float = 0.3) -> bytes:
    rng = np.random.default_rng(5)
    lines = []
    for row in range(rows):
        entries = [f"{j + 1}:{rng.normal():.6g}" for j in np.flatnonzero(rng.random(columns) < density)]
        lines.append(" ".join([str(row % 3), *entries]) + ("  # note" if row % 17 == 0 else ""))
    lines[3:3] = ["", "# comment", "   ", "-1.5", "2 1:0 2:-0"]
    return "\n".join(lines).encode()


SPELLINGS = [
    (b"1 1:2 3:4\n", 1, [2, 0, 4]),
    (b"+1 1:+2 3:4.\n", 1, [2, 0, 4]),
    (b"-1.5e0 1:20e-1 3:.4e+1", -1.5, [2, 0, 4]),
    (b"\t 1\t1:2 \t 3:4 \t\n", 1, [2, 0, 4]),
    (b"1 1:2 3:4\r\n", 1, [2, 0, 4]),
    (b"1 1:2 3:4\r", 1, [2, 0, 4]),
    (b"1 1:2 3:4 # 5:6\n", 1, [2, 0, 4]),
    (b"1 1:2 3:4#5:6", 1, [2, 0, 4]),
    (b"1 qid:7 1:2 3:4\n", 1, [2, 0, 4]),
    (b"1 qid:-7\t1:2 3:4\n", 1, [2, 0, 4]),
    (b"1 01:2 000000000000000000000000003:4\n", 1, [2, 0, 4]),
    (b"\n# first\n\n 1 1:2 2:0 3:4\n\n# last", 1, [2, 0, 4]),
    (b"\xef\xbb\xbf1 1:2 3:4\n", 1, [2, 0, 4]),
    (b"1 1:0000000000000000000000000000002 3:4.00000000000000000000000000\n", 1, [2, 0, 4]),
    (b"12345678901234567168 1:2 3:4\n", 12345678901234567890.0, [2, 0, 4]),
    (b"1.000000000000000000e+00 1:2.000000000000000000e+00 3:4\n", 1, [2, 0, 4]),
]


@pytest.mark.parametrize(("text", "label", "row"), SPELLINGS)
@pytest.mark.parametrize("dense", [True, False])
def test_spellings(tmp_path: Path, text: bytes, label: float, row: list[float], dense: bool) -> None:
    data = read_text(tmp_path, text, dense=dense)
    assert data.y.dtype == np.float64
    assert data.y.tolist() == [label]
    assert dense_of(data).tolist() == [row]


@pytest.mark.parametrize("dense", [True, False])
def test_rows_without_entries(tmp_path: Path, dense: bool) -> None:
    data = read_text(tmp_path, b"1\n-1 qid:3\n2 # nothing\n0", dense=dense)
    assert data.y.tolist() == [1, -1, 2, 0]
    assert data.X.shape == (4, 0)
    assert read_text(tmp_path, b"1\n-1 2:5\n2\n", dense=dense, n_features=3).X.shape == (3, 3)


COUNTED = [
    (b"1 qid:7\n", (1, 1, 0, 0)),
    (b"1 qid:7 2:3 4:5 # 6:7\n\n# 1:2 qid:3\n 1 9:1#q\r\n1 3:1\r\n", (5, 3, 4, 9)),
    (b"1 2:3" + b" " * 500 + b"# " + b":" * 500 + b"\n2 1:1\n", (2, 2, 2, 2)),
    (b"\n \n\t\r\n", (3, 0, 0, 0)),
]


@pytest.mark.parametrize(("text", "counts"), COUNTED)
def test_counts(text: bytes, counts: tuple[int, ...]) -> None:
    assert _text.count(text, False) == counts


def test_zero_based(tmp_path: Path) -> None:
    assert dense_of(read_text(tmp_path, b"1 0:5 2:7\n", zero_based=True)).tolist() == [[5, 0, 7]]


def test_largest_index(tmp_path: Path) -> None:
    X = read_text(tmp_path, b"1 2147483647:5\n2 1:1\n").X
    assert X.shape == (2, 2**31 - 1)
    assert (X.indices.tolist(), X.data.tolist()) == ([2**31 - 2, 0], [5, 1])


@pytest.mark.parametrize("dense", [True, False])
def test_n_features(tmp_path: Path, dense: bool) -> None:
    text = some_text()
    whole = dense_of(read_text(tmp_path, text))
    for width in (0, 1, 7, 30, 50):
        for block_bytes in (100, 1 << 20):
            data = read_text(tmp_path, text, n_features=width, dense=dense, block_bytes=block_bytes)
            expected = np.zeros((len(whole), width), np.float32)
            expected[:, : min(width, 30)] = whole[:, :width]
            assert np.array_equal(dense_of(data), expected)


def test_sparse_form_is_canonical(tmp_path: Path) -> None:
    X = read_text(tmp_path, b"1 1:0 2:3 9:-0\n2\n0 4:1e-60 5:2\n", dense=False).X
    assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int64)
    assert (X.data.tolist(), X.indices.tolist(), X.indptr.tolist()) == ([3, 2], [1, 4], [0, 1, 1, 2])
    assert X.shape == (3, 9)


# --- exact floats


def parsed(tokens: list[str], folder: Path) -> np.ndarray:
    text = "".join(f"0 1:{token}\n" for token in tokens)
    return read_text(folder, text.encode(), dense=True).X.ravel()


def nearest(token: str) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32(float(token)) + np.float32(0)


def assert_nearest(tokens: list[str], folder: Path) -> None:
    tokens = [token for token in tokens if np.isfinite(nearest(token))]
    expected = np.array([nearest(token) for token in tokens], np.float32)
    wrong = np.flatnonzero(parsed(tokens, folder).view(np.uint32) != expected.view(np.uint32)) if tokens else []
    assert [tokens[i] for i in wrong] == []


DIGITS = st.text("0123456789", max_size=30)
NUMBERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.tuples(DIGITS, DIGITS).filter(any).map(lambda d: f"{d[0]}.{d[1]}" if d[1] else d[0]),
    st.sampled_from(["", "e", "E"]),
    st.integers(-60, 60),
).map(lambda t: t if "e" in t.lower() else t.rstrip("-"))


@FOLDER_OK
@given(tokens=st.lists(NUMBERS, min_size=1))
def test_any_decimal_is_rounded_as_python_does(tmp_path: Path, tokens: list[str]) -> None:
    assert_nearest([t for t in tokens if _is_number(t)], tmp_path)


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return "_" not in token


@FOLDER_OK
@given(bits=st.lists(st.integers(0, 0x7F7FFFFF), min_size=1))
@example(bits=[0, 1, 2, 0x007FFFFF, 0x00800000, 0x00800001, 0x7F7FFFFE, 0x7F7FFFFF])
def test_decimals_next_to_the_borders_between_floats(tmp_path: Path, bits: list[int]) -> None:
    low = np.array(bits, np.uint32).view(np.float32).astype(np.float64)
    high = np.array(np.minimum(np.array(bits) + 1, 0x7F7FFFFF), np.uint32).view(np.float32).astype(np.float64)
    middle = (low + high) / 2
    around = [*low, *middle, *np.nextafter(middle, 0), *np.nextafter(middle, np.inf)]
    tokens = [form % value for value in around for form in ("%.17g", "%.18e", "%.60e", "%.9g", "%.6g")]
    assert_nearest(tokens, tmp_path)


def test_random_decimals(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    values = rng.standard_normal(4000) * 10.0 ** rng.integers(-46, 38, 4000)
    forms = ["%.3f", "%.6g", "%.9g", "%.17g", "%.18e", "%.25e", "%r"]
    assert_nearest([forms[i % len(forms)] % value for i, value in enumerate(values.tolist())], tmp_path)


def test_very_long_numbers(tmp_path: Path) -> None:
    tiny = "0." + "0" * 500 + "1" + "7" * 300 + "e501"
    border = f"{1 + 2.0**-24:.24f}"
    assert_nearest([tiny, border, border + "0" * 400, border + "0" * 400 + "1", "9" * 35 + ".5"], tmp_path)


@FOLDER_OK
@given(labels=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_labels_are_exact_doubles(tmp_path: Path, labels: list[float]) -> None:
    text = "".join(f"{label!r} 1:1\n{label:.25e}\n" for label in labels)
    expected = [value + 0.0 for label in labels for value in (label, float(f"{label:.25e}"))]
    assert read_text(tmp_path, text.encode()).y.tolist() == expected


@FOLDER_OK
@given(number=st.integers(-(10**308), 10**308))
def test_whole_labels_are_taken_where_float64_holds_them(tmp_path: Path, number: int) -> None:
    held = int(float(number))
    assert read_text(tmp_path, b"%d 1:1\n+00%d 1:1\n" % (held, abs(held))).y.tolist() == [held, abs(held)]
    if number != held:
        with pytest.raises(DataError, match="a whole number that float64 does not hold"):
            read_text(tmp_path, b"%d 1:1\n" % number)


def test_the_decimal_comma_of_a_locale_changes_nothing(tmp_path: Path) -> None:
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
            break
        except locale.Error:
            continue
    else:
        pytest.skip("no locale with a decimal comma is installed")
    try:
        assert_nearest([f"{1 + 2.0**-24:.24f}1", "1.5"], tmp_path)  # the first goes through the slow path
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


# --- one result, however it is read


@pytest.mark.parametrize("dense", [True, False, None])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_blocks_and_jobs_change_nothing(tmp_path: Path, dense: bool | None, end: bytes) -> None:
    text = some_text() + end
    expected = read_text(tmp_path, text, dense=dense)
    assert len(expected.y) == 202
    for block_bytes in (1, 50, 777, 1 << 20):
        for jobs in (1, 2, 5):
            assert_same(read_text(tmp_path, text, dense=dense, block_bytes=block_bytes, jobs=jobs), expected)


@pytest.mark.parametrize("kind", DECOMPRESSED)
@pytest.mark.parametrize("dense", [True, False])
def test_compressed(tmp_path: Path, kind: str, dense: bool) -> None:
    text, pack = some_text(), DECOMPRESSED[kind]
    expected = read_text(tmp_path, text, dense=dense)
    half = text.index(b"\n", 3000) + 5  # two members, cut within a line
    for packed in (pack(text), pack(text[:half]) + pack(text[half:])):
        for block_bytes, jobs in ((33, 1), (1000, 3), (1 << 20, 2)):
            assert_same(read_text(tmp_path, packed, dense=dense, block_bytes=block_bytes, jobs=jobs), expected)


PADDING = {
    "gzip": bytes(700),
    "bzip2": b"",
    "xz": bytes(8),
    "zstd": b"\x53\x2a\x4d\x18\x05\0\0\0hello",
}  # between streams
NOTHING_LOST = "the {kind} data (end too early|are damaged)|come others that are not {kind} data"


def decoded_by_others(kind: str, packed: bytes) -> bytes:
    """Bytes that the format's own program decodes; for gzip, which refuses zeros between members, Python's module."""
    if kind == "gzip":
        return gzip.decompress(packed)
    program = shutil.which(kind)
    if program is None:
        pytest.skip(f"{kind} is not installed")
    done = subprocess.run([program, "-dc"], input=packed, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def decoded(path: Path, packed: bytes, step: int) -> bytes:
    path.write_bytes(packed)
    with open_source(path) as source:
        return b"".join(iter(lambda: source.read(step), b""))


@pytest.mark.parametrize("kind", DECOMPRESSED)
def test_all_streams_of_a_file_are_read(tmp_path: Path, kind: str) -> None:
    pack, between, text = DECOMPRESSED[kind], PADDING[kind], some_text()
    noise = np.random.default_rng(1).bytes(100_000)  # longer than what is read at once
    files = {
        "two": pack(text) + pack(text),
        "empty first": pack(b"") + pack(text) + pack(b""),
        "padded": pack(text) + between + pack(text) + between,
        "long": pack(noise) + between + pack(noise[:70_000]),
        "many": pack(text) + 400 * (pack(b"") + between) + pack(text),
    }
    for packed in files.values():
        expected = decoded_by_others(kind, packed)
        for step in (997, 1 << 22):
            assert decoded(tmp_path / "some", packed, step) == expected


@pytest.mark.parametrize("kind", DECOMPRESSED)
def test_no_stream_is_dropped(tmp_path: Path, kind: str) -> None:
    checked = zstandard.ZstdCompressor(write_checksum=True).compress  # as the program zstd does
    pack, path = checked if kind == "zstd" else DECOMPRESSED[kind], tmp_path / "some.libsvm"
    text = some_text() + b"\n"
    refused, first = 0, pack(text)
    second = first
    for at in (0, 1, 2, 5, 20, len(second) // 2, len(second) - 1):  # in the magic bytes, the header, the data, the end
        damaged = first + second[:at] + bytes([second[at] ^ 0xFF]) + second[at + 1 :]
        try:
            assert decoded(path, damaged, 1000) == 2 * text  # the byte has no meaning, such as a time of making
        except DataError as error:
            refused += 1
            assert re.search(NOTHING_LOST.format(kind=kind), str(error))
    assert refused > 4
    for length in (1, 2, 5, 20, len(second) // 2, len(second) - 1):
        path.write_bytes(first + PADDING[kind] + second[:length])
        with pytest.raises(DataError, match=f"the {kind} data end too early; copy the file again"):
            read(path)


@pytest.mark.parametrize("kind", DECOMPRESSED)
def test_what_is_left_over_is_an_error(tmp_path: Path, kind: str) -> None:
    path, packed = tmp_path / "some.libsvm", DECOMPRESSED[kind](some_text())
    left_over = [b"x", b"no stream", bytes(3) + b"x", bytes(70_000) + b"x"]
    left_over += [] if kind == "gzip" else [bytes(1), bytes(70_001)]
    left_over += [] if kind in ("gzip", "xz") else [bytes(4)]
    for more in left_over:
        path.write_bytes(packed + more)
        with pytest.raises(DataError) as caught:
            read(path)
        assert str(caught.value) == (
            f"{path}: after {len(packed)} bytes come others that are not {kind} data; "
            f"cut the file there (head -c {len(packed)}), or copy it again"
        )


def test_a_zstd_file_may_begin_with_a_skippable_frame(tmp_path: Path) -> None:
    packed = PADDING["zstd"] + zstandard.compress(some_text())
    assert_same(read_text(tmp_path, packed), read_text(tmp_path, some_text()))


@pytest.mark.parametrize("kind", DECOMPRESSED)
def test_decoding_takes_little_memory(kind: str) -> None:
    packed = io.BytesIO(DECOMPRESSED[kind](bytes(40 << 20)))
    decoder = Decoder(kind, packed)
    tracemalloc.start()
    assert sum(map(len, iter(lambda: decoder.read(1 << 20), b""))) == 40 << 20
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 16 << 20


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_stdin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    text = some_text()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pack(text))))
    assert_same(read("-"), read_text(tmp_path, text))


def test_a_pipe_that_cannot_seek(tmp_path: Path) -> None:
    text = some_text()
    expected = read_text(tmp_path, text)
    command = "from localsvm.data.readers.libsvm import read; d = read('-'); print(d.X.sum().item(), d.X.shape)"
    done = subprocess.run([sys.executable, "-c", command], input=gzip.compress(text), capture_output=True)
    assert done.stdout.decode().strip() == f"{expected.X.sum()} {expected.X.shape}", done.stderr


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("packed", [True, False])
def test_read_blocks(tmp_path: Path, dense: bool, packed: bool) -> None:
    text = some_text()
    expected = dense_of(read_text(tmp_path, text, n_features=20))
    path = tmp_path / "some.libsvm"
    path.write_bytes(gzip.compress(text) if packed else text)
    for block_bytes in (1, 500, 1 << 20):
        blocks = list(read_blocks(path, block_bytes=block_bytes, layout=Layout(n_features=20, dense=dense)))
        assert all(isinstance(block.X, np.ndarray) is dense and len(block.y) > 0 for block in blocks)
        assert np.array_equal(np.concatenate([dense_of(block) for block in blocks]), expected)
    assert len(list(read_blocks(path, block_bytes=500, layout=Layout(n_features=20, dense=dense)))) > 20


def test_read_blocks_is_lazy(tmp_path: Path) -> None:
    path = tmp_path / "late.libsvm"
    path.write_bytes(some_text() + b"\nlate 1:1\n")
    blocks = read_blocks(path, block_bytes=500, layout=Layout(n_features=20, dense=True))
    assert len(next(blocks).y) > 0
    with pytest.raises(DataError, match=r"late\.libsvm:206:1"):
        list(blocks)


def test_every_element_of_a_dense_matrix_is_written(tmp_path: Path) -> None:
    text = some_text()
    expected = read_text(tmp_path, text, dense=True)
    X, y = np.full_like(expected.X, 7), np.full_like(expected.y, 7)
    TextPiece("text", text, 1, False).read_dense(X, y)
    assert np.array_equal(X, expected.X) and np.array_equal(y, expected.y)


# --- against another reader


@FOLDER_OK
@given(data=st.data())
def test_equals_scikit_learn(tmp_path: Path, data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 12))
    X = sp.random_array((rows, 9), density=0.4, random_state=data.draw(st.integers(0, 99)), dtype=np.float32)
    y = data.draw(st.lists(st.integers(-5, 5), min_size=rows, max_size=rows))
    path = tmp_path / "some.libsvm"
    write(path, X, y)
    assert_equals_scikit_learn(path, 9)


def assert_equals_scikit_learn(path: Path, n_features: int | None) -> None:
    X, y = load_svmlight_file(str(path), n_features=n_features, zero_based=False)
    data = read(path, n_features=n_features, jobs=2)
    assert data.X.shape == X.shape
    X.eliminate_zeros()
    ours = data.X if sp.issparse(data.X) else sp.csr_array(data.X)
    assert np.array_equal(ours.indptr, X.indptr)
    assert np.array_equal(ours.indices, X.indices)
    assert np.array_equal(ours.data, X.data.astype(np.float32))
    assert np.array_equal(data.y, y)


REAL = ["svmguide1.train", "a9a.test", "usps.test", "crx.train", "letter.test", "w8a.test", "magic.test"]


@pytest.mark.parametrize("name", REAL)
def test_equals_scikit_learn_on_real_files(tmp_path: Path, name: str) -> None:
    folder = os.environ.get("LOCALSVM_DATA")
    if not folder:
        pytest.skip("LOCALSVM_DATA names no folder with *.libsvm.xz files")
    packed = Path(folder) / f"{name}.libsvm.xz"
    path = tmp_path / f"{name}.libsvm"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    assert_equals_scikit_learn(path, None)
    assert_same(read(packed), read(path))


# --- dense or sparse, and memory


def test_the_rule_for_dense() -> None:
    assert prefers_dense(1_000_000, 28, 28_000_000)
    assert prefers_dense(10_000, 2_000, 5_000_000)
    assert not prefers_dense(10_000, 2_000, 4_999_999)
    assert prefers_dense(16_384, 1_024, 0)
    assert not prefers_dense(16_385, 1_024, 0)
    assert not prefers_dense(1, 1_025, 1)


def test_as_examples() -> None:
    dense = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert as_examples(dense) is dense
    assert as_examples(dense.astype(np.float64).T).flags.c_contiguous
    coo = sp.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [2, 2, 0])), shape=(2, 3))
    X = as_examples(coo)
    assert (X.data.tolist(), X.indices.tolist(), X.indptr.tolist()) == ([3, 4], [2, 0], [0, 1, 2])
    assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int64)
    for bad in (np.nan, np.inf, 1e300):
        with pytest.raises(DataError, match="NaN, infinities or values beyond float32"):
            as_examples([[bad]])
        for X in (np.array([[0.0, 2.0], [bad, 1.0]]), sp.csr_array([[0.0, 2.0], [bad, 1.0]])):
            with pytest.raises(DataError, match="the first in row 1, column 0 from 0"):
                as_examples(X)
    with pytest.raises(DataError, match=r"shape \(2,\)"):
        as_examples([1, 2])


def test_sparse_rows_are_gathered_without_scipy() -> None:
    X = as_examples(sp.random_array((30, 12), density=0.3, random_state=np.random.default_rng(0), dtype=np.float32))
    for rows in (np.asarray([7, 7, 0, 29, 3]), np.arange(4, 20), np.empty(0, np.int64)):
        counts, places = places_of(X, rows)
        assert_array_equal(counts, np.diff(X.indptr)[rows])
        assert_array_equal(X.data[places], X[rows].data)
        assert_array_equal(dense_rows(X, rows), X.toarray()[rows])
        if len(rows):
            kept = SharedExamples(X, rows)
            cell = kept.handle().rows(slice(1, len(rows)))
            assert_array_equal(cell.toarray(), X.toarray()[rows[1:]])
            assert cell.indices.dtype == np.int32
            assert not cell.data.flags.owndata


LIMITED = """
import resource, sys
import numpy as np
from localsvm.data.readers.libsvm import read
path, limit, jobs, dense = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "True"
small = path + ".small"
open(small, "wb").write(b"1 1:1\\n" * 10)
read(small, jobs=jobs, dense=dense, block_bytes=5)  # what imports and threads take
used = {l.split(":")[0]: int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmData")}
resource.setrlimit(resource.RLIMIT_DATA, (1024 * used["VmData"] + limit,) * 2)
data = read(path, jobs=jobs, dense=dense)
print(data.X.shape)
"""
STACKS = 1 << 23


@pytest.mark.whole
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("jobs", "share", "fits"), [(1, 1.5, True), (2, 1.5, True), (1, 0.9, False)])
def test_private_memory_stays_within_the_matrix(
    tmp_path: Path, dense: bool, jobs: int, share: float, fits: bool
) -> None:
    """Allocations fit in 1.5 times the matrix; the last case shows that this limit would be noticed."""
    rows, columns = 150_000, 50
    path = tmp_path / "large.libsvm"
    row = b"1 " + b" ".join(b"%d:0.5" % (j + 1) for j in range(columns)) + b"\n"
    path.write_bytes(row * rows)
    matrix = rows * columns * 4 if dense else rows * (columns * 8 + 8)
    limit = str(int(share * matrix) + (jobs - 1) * jobs * STACKS)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, path, limit, str(jobs), str(dense)], capture_output=True, text=True
    )
    assert (done.stdout.strip() == f"({rows}, {columns})") is fits, done.stderr
    assert fits or "MemoryError" in done.stderr


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_has_a_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    for module in ("libsvm", "faults"):
        monkeypatch.setattr(f"localsvm.data.readers.{module}.LONGEST_LINE", 1 << 20)
    path = tmp_path / "long.libsvm"
    path.write_bytes(pack(b"1 1:1\n" * 7 + b"1 2:1" + b" " * (2 << 20) + b"\n1 1:1\n"))
    for block_bytes in (500, 5000, 1 << 18):
        with pytest.raises(DataError, match=r"long.libsvm:8: the line is longer than 1 MiB; end each row"):
            read(path, block_bytes=block_bytes)
    path.write_bytes(pack(b"1 1:1\n" * 7 + b"1 2:1" + b" " * (1 << 19) + b"\n1 1:1\n"))
    assert read(path, block_bytes=5000).X.shape == (9, 2)


def test_zeros_without_an_end_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "zeros.libsvm.zst"
    path.write_bytes(zstandard.compress(bytes(600 << 20)))  # 32 KB
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    with pytest.raises(DataError, match=r"zeros.libsvm.zst:1: the line is longer than 256 MiB"):
        read(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 300 << 20
