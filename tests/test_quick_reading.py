"""The quick way through short entries says of every text what the plain way says: exact floats, the same mistakes."""

from __future__ import annotations

import mmap
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from localsvm.data import _text
from localsvm.data.readers.libsvm import read

PATIENT = settings(deadline=None)
AROUND = b"0 " + b" ".join(b"%d:0.12345678" % (j + 1) for j in range(12)) + b"\n"  # keeps a text's ends away

SIGNS = st.sampled_from(["", "", "-", "+"])
WHOLE = st.text("0123456789", min_size=1, max_size=25)
DECIMAL = st.builds(
    "{}{}".format,
    SIGNS,
    st.one_of(
        WHOLE,
        st.builds("{}.".format, WHOLE),
        st.builds(".{}".format, WHOLE),
        st.builds("{}.{}".format, st.text("0123456789", max_size=4), st.text("0123456789", min_size=1, max_size=11)),
        st.builds("{}.{}".format, WHOLE, WHOLE),
        st.builds("{}e{}".format, WHOLE, st.integers(-30, 10)),
    ),
)
GAPS = st.sampled_from([1, 1, 1, 1, 1, 1, 2, 9, 90, 1000, 12345])


def parse(text: bytes, width: int, zero_based: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The dense matrix and the labels, the same from the sparse form."""
    _, rows, entries, widest = _text.count(text, zero_based)
    assert widest <= width
    X, y = np.empty((rows, width), np.float32), np.empty(rows)
    _text.read_dense(text, X, y, zero_based)
    values, indices = np.empty(entries, np.float32), np.empty(entries, np.int32)
    lengths, labels = np.zeros(rows, np.int64), np.empty(rows)
    kept = _text.read_sparse(text, values, indices, lengths, labels, width, zero_based)
    dense = np.zeros_like(X)
    dense[np.repeat(np.arange(rows), lengths), indices[:kept]] = values[:kept]
    assert dense.tobytes() == X.tobytes()
    assert labels.tobytes() == y.tobytes()
    assert kept == np.count_nonzero(X)
    return X, y


def test_both_ways_refuse_the_same_largest_index() -> None:
    text = b"10.000000000000000000000000001 2147483647:10\n" * 8  # long entries are read the quick way
    rows = _text.count(text, True)[1]
    arrays = np.empty(8, np.float32), np.empty(8, np.int32), np.empty(rows, np.int64), np.empty(rows)
    with pytest.raises(_text.TextFault, match="index_too_large") as fault:
        _text.read_sparse(text, *arrays, _text.count(text, True)[3], True)
    assert fault.value.line == 1


def entries(tokens: list[str], columns: list[int], zero_based: bool = False) -> str:
    return " ".join(f"{c + (not zero_based)}:{token}" for c, token in zip(columns, tokens, strict=True))


def floats(tokens: list[str]) -> np.ndarray:
    return np.array([np.float32(float(token)) + np.float32(0) for token in tokens], np.float32)


@PATIENT
@given(st.lists(st.tuples(DECIMAL, GAPS), min_size=1, max_size=40), st.booleans(), st.booleans())
def test_any_row(pairs: list[tuple[str, int]], zero_based: bool, surrounded: bool) -> None:
    tokens, columns = [token for token, _ in pairs], (np.cumsum([gap for _, gap in pairs]) - 1).tolist()
    ends = AROUND if surrounded else b""
    line = f"-1 {entries(tokens, columns, zero_based)}\n".encode()
    width = max(columns[-1] + 1, 13)
    X, y = parse(ends + line * 3 + ends, width, zero_based)
    middle = X[len(ends) > 0 :][:3]
    assert y[len(ends) > 0 :][:3].tolist() == [-1] * 3
    assert middle[:, columns].tobytes() == floats(tokens).tobytes() * 3
    assert np.count_nonzero(middle) == 3 * np.count_nonzero(floats(tokens))


@PATIENT
@given(st.integers(0, 10**15 - 1), st.integers(0, 15), st.booleans())
@example(10**15 - 1, 0, True)
@example(10**15 - 1, 15, False)
@example(16777217, 0, False)  # between two floats
@example(999999999999999, 7, True)
def test_every_number_of_up_to_fifteen_digits(digits: int, places: int, negative: bool) -> None:
    text = f"{digits:0{places + 1}d}"
    text = "-" * negative + (text[:-places] + "." + text[-places:] if places else text)
    for columns in (list(range(20)), list(range(0, 60, 3))):  # guessed and not
        X, _ = parse(AROUND + f"1 {entries([text] * 20, columns)}\n".encode() + AROUND, 60)
        assert X[1, columns].tobytes() == floats([text] * 20).tobytes()


@pytest.mark.parametrize("form", ["%.3f", "%.9g", "%.17g", "%d", "%.18e", "-0", "0.", "-.5"])
def test_texts_of_any_length(form: str) -> None:
    """The quick way has to stop before the end of the text, whatever stands there."""
    values = np.random.default_rng(2).normal(0, 30, 40)
    tokens = [form % value if "%" in form else form for value in values.tolist()]
    for end, count in product(("", "\n", " \n", "\r\n", "# 1:2\n", "\t\n"), range(41)):
        X, y = parse(f"2 {entries(tokens[:count], list(range(count)))}{end}".encode(), 40)
        assert y.tolist() == [2]
        assert X[0, :count].tobytes() == floats(tokens[:count]).tobytes()


MISTAKES = [
    ("{}:x", "value_not_number", 1),
    ("{}:1.5.5", "value_not_number", 1),
    ("{}:-", "value_not_number", 1),
    ("{}:.", "value_not_number", 1),
    ("{}:1-5", "value_not_number", 1),
    ("{}:1:5", "value_not_number", 1),
    ("{}:", "value_missing", 1),
    ("{}:nan", "value_not_finite", 1),
    ("{}:1e39", "value_too_large", 1),
    ("{} 5", "colon_missing", 0),
    ("{}.0:5", "index_not_number", 0),
    ("-{}:5", "index_negative", 0),
    (":5", "index_not_number", 0),
    ("0:5", "index_zero", 0),
    ("1:5", "index_descending", 0),
    ("99999999999:5", "index_too_large", 0),
]


@pytest.mark.parametrize(("form", "name", "behind"), MISTAKES)
def test_a_mistake_among_quick_entries(form: str, name: str, behind: int) -> None:
    for step, at in product((1, 2), (3, 12, 19)):
        columns = list(range(0, 20 * step, step))
        before = f"1 {entries(['0.1234567'] * at, columns[:at])} "
        index = str(columns[at] + 1)
        after = entries(["0.1234567"] * (19 - at), columns[at + 1 :])
        text = AROUND + f"{before}{form.format(index)} {after}\n".encode() + AROUND
        X, y = np.empty((3, 60), np.float32), np.empty(3)
        with pytest.raises(_text.TextFault) as caught:
            _text.read_dense(text, X, y, False)
        column = len(before) + 1 + (len(index) + 1 if behind else 0)
        assert (caught.value.name, caught.value.line, caught.value.column) == (name, 2, column)
        assert caught.value.offset == len(AROUND) + column - 1


def test_columns_beyond_the_width_are_dropped_in_every_form() -> None:
    tokens = ["0.12345678"] * 30
    text = AROUND + f"1 {entries(tokens, list(range(30)))}\n".encode() + AROUND
    for width in (0, 1, 7, 12, 29, 30):
        X, y = np.full((3, width), 7, np.float32), np.empty(3)
        _text.read_dense(text, X, y, False)
        assert X[1].tobytes() == floats(tokens[:width]).tobytes()


def test_a_mapping_that_ends_with_its_last_page(tmp_path: Path) -> None:
    path, line = tmp_path / "pages.libsvm", AROUND * 200
    text = line[: 4 * mmap.PAGESIZE - 1]
    path.write_bytes(text[: text.rindex(b" ")].ljust(4 * mmap.PAGESIZE - 1) + b"\n")
    X = read(path, dense=True).X
    assert set(np.unique(X).tolist()) == {0, float(np.float32(0.12345678))}
