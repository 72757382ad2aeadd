"""Reading delimited text: Python's csv and float are the oracles; mistakes are refused with their place."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from localsvm.data.blocks.table import Table, together
from localsvm.data.readers.delimited import TableForm, open_delimited
from localsvm.errors import DataError
from localsvm.naming import on_command_line

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r", exclude_categories=["Cs"]), max_size=12)
PLAIN = TableForm()
BLOCK = 64  # bytes, so that rows are cut everywhere


def table_of(
    path: Path, form: TableForm = PLAIN, text: tuple[str, ...] = (), jobs: int = 1, block: int = BLOCK
) -> Table:
    with open_delimited(str(path), form, lambda names, header: text) as reader:
        return together(list(reader.blocks(jobs, block)))


def message(path: Path, form: TableForm = PLAIN, text: tuple[str, ...] = ()) -> str:
    with pytest.raises(DataError) as refused:
        table_of(path, form, text)
    return on_command_line(str(refused.value)).removeprefix(str(path))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=30),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    end=st.sampled_from(["\n", "\r\n"]),
    delimiter=st.sampled_from(",;\t|"),
    jobs=st.sampled_from([1, 2]),
)
@example(rows=[("", "", "")], quoting=csv.QUOTE_MINIMAL, end="\n", delimiter="\t", jobs=1)
@example(rows=[("1", "", ""), ("", "", "")], quoting=csv.QUOTE_MINIMAL, end="\r\n", delimiter="\t", jobs=1)
def test_fields_are_those_of_the_csv_module(
    rows: list[tuple[str, str, str]], quoting: int, end: str, delimiter: str, jobs: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    """Quotes, line ends in them and delimiters; blanks around a field are no part of it, with quotes or without."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=quoting, lineterminator=end, delimiter=delimiter)  # type: ignore[arg-type]
    writer.writerow(["a", "b", "c"])
    writer.writerows(rows)
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(out.getvalue().encode())
    form = TableForm(delimiter=delimiter, header=True, missing=())
    table = table_of(path, form, ("a", "b", "c"), jobs)
    expected = list(csv.reader(io.StringIO(out.getvalue(), newline=""), delimiter=delimiter))[1:]
    for i, name in enumerate("abc"):
        texts = [row[i].strip(" \t") for row in expected]
        assert table.levels[name].texts() == texts
        assert list(table.levels[name].names) == sorted(set(texts) - {""})


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40),
    style=st.sampled_from(["{!r}", "{:.6g}", "{:.3f}", "{:e}", " {!r} "]),
)
def test_numbers_are_the_nearest_doubles(
    values: list[float], style: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    texts = [style.format(value) for value in values]
    path = tmp_path_factory.mktemp("n") / "n.csv"
    path.write_text("x,y\n" + "".join(f"{text},NA\n" for text in texts))
    table = table_of(path)
    assert table.numbers["x"].tolist() == [float(text) for text in texts]
    assert np.isnan(table.numbers["y"]).all()


def test_the_result_does_not_depend_on_blocks_threads_or_compression(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f'{rng.normal():.4f},"level, {rng.integers(30)}",{rng.integers(5)}\n' for _ in range(3000)]
    (tmp_path / "t.csv").write_text("\ufeffx,text,n\n" + "".join(rows))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    first = table_of(tmp_path / "t.csv")
    for name, jobs, block in (("t.csv", 2, 1000), ("t.csv", 1, 1 << 22), ("t.csv.gz", 2, 77)):
        other = table_of(tmp_path / name, jobs=jobs, block=block)
        assert other.names == first.names == ("x", "text", "n")
        assert other.levels["text"].texts() == first.levels["text"].texts()
        for column in ("x", "n"):
            np.testing.assert_array_equal(other.numbers[column], first.numbers[column])


@pytest.mark.fast(4)
@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("a;b\n1;2\n", ("a", "b"), 1),
        ("a\tb\n1\t2\n3\t4", ("a", "b"), 2),
        ("1,2\n3,4\n", ("1", "2"), 2),
        ("x,x\ny,x\n", ("1", "2"), 2),
        (",b\n1,2\n", ("column 1", "b"), 1),
        ('"a,1","b"\n1,2\n\n3,4\n\n', ("a,1", "b"), 2),
        ('"a\nb",c\n1,2\n', ("a\nb", "c"), 1),
        ("only\n1\n2\n", ("only",), 2),
        ('a,b\n5" nail,2\n', ("a", "b"), 1),
    ],
)
def test_delimiter_and_header_are_found(text: str, names: tuple[str, ...], rows: int, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    table = table_of(tmp_path / "t.csv")
    assert (table.names, table.rows) == (names, rows)


@pytest.mark.fast(4)
@pytest.mark.parametrize(
    ("text", "start"),
    [
        (b"a,b\n1,2\n3\n", ":3: the row has 1 fields, and there are 2 columns; a field that contains ',' needs quotes"),
        (b"a,b\n1,2\n3,4,5\n", ":3: the row has 3 fields, and there are 2 columns"),
        (b'a,b\n1,2\n3,"4\n', ":3: column 'b': the quote that begins this field has no end"),
        (b'a,b\n1,"2"x\n', ":2: column 'b': text behind the quote that ends a field"),
        (b"a,b\nx,2\ny\0z,2\n", ":3: column 'a': a NUL byte"),
        (b"a,a\n1,2\n", ":1: two columns are called 'a'"),
        (b"a,b\r1,2\r", ": a carriage return that no line feed follows"),
        (b"a;b\n1,5;2\n2,5;3\n", ": column 'a' has numbers with commas, as 1,5; write decimal points"),
        (b"a,b\n", ": there are no rows, only the names of 2 columns"),
        (b"", ": the file is empty"),
        (b"a,b\nx,\xff\xfe\n", ":2: b'x,\\xff\\xfe' is not UTF-8 text"),
        (b"a,b\n" + b"1,2\n" * 30 + b"n/a!,3\n", ": row 31: column 'a' has numbers, and here 'n/a!'; if it stands for"),
    ],
)  # fmt: skip
def test_mistakes_have_a_place_and_a_remedy(text: bytes, start: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(text)
    assert message(tmp_path / "t.csv").startswith(start)


def test_a_text_among_numbers_after_the_first_rows_is_refused(tmp_path: Path) -> None:
    """Kinds of columns are those of the first MiB; what is read later never changes them."""
    lines = ["x,y\n", *("0.123456789,1\n" for _ in range(100_000)), "oops,1\n"]
    (tmp_path / "t.csv").write_text("".join(lines))
    expected = ":100002: column 'x' has numbers, and here 'oops'; if it stands for no value, give --missing WORD"
    assert message(tmp_path / "t.csv").startswith(expected)
    table = table_of(tmp_path / "t.csv", TableForm(missing=("oops",)), block=1 << 20)
    assert np.flatnonzero(np.isnan(table.numbers["x"])).tolist() == [100_000]
    levels = table_of(tmp_path / "t.csv", TableForm(categorical=frozenset({"x"})), block=1 << 20).levels["x"]
    assert levels.names == ("0.123456789", "oops")


def test_a_name_that_no_column_has_gets_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("colour,size\nred,2\n")
    assert message(tmp_path / "t.csv", TableForm(ignored=frozenset({"color"}))) == (
        ": no column is called 'color'; perhaps 'colour' is meant"
    )


@pytest.mark.parametrize("size", [1 << 20, 3 << 20])
def test_a_field_may_be_longer_than_the_first_look(size: int, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n1,"' + "é\n" * (size // 3) + '"\n2,x\n')
    table = table_of(tmp_path / "t.csv", block=1 << 18)
    assert table.numbers["a"].tolist() == [1.0, 2.0]
    assert [len(name) for name in table.levels["b"].texts()] == [2 * (size // 3), 1]


def test_a_quote_without_an_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n1,"' + "x\n" * (1 << 20))
    assert "no end" in message(tmp_path / "t.csv")


def test_blank_lines_before_the_header_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("\n" * 60 + "a,b\n1,2\n3\n")
    assert message(tmp_path / "t.csv").startswith(":63: the row has 1 fields")


def test_a_number_may_stand_for_no_value(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n-999,2\n3,-999\n")
    table = table_of(tmp_path / "t.csv", TableForm(missing=("-999",)))
    assert np.isnan([table.numbers["a"][0], table.numbers["b"][1]]).all() and table.numbers["a"][1] == 3.0


def test_lines_may_be_longer_than_the_csv_module_allows(tmp_path: Path) -> None:
    names = [f"column {i}" for i in range(20_000)]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    assert table_of(tmp_path / "t.csv").names == tuple(names)


@pytest.mark.parametrize("rows", [1, 49, 50, 51, 500])
def test_line_ends_may_be_crlf(rows: int, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\r\n" + b"1,x\r\n" * rows)
    with open_delimited(str(tmp_path / "t.csv"), TableForm()) as reader:
        table = next(reader.blocks())
    assert table.rows == rows and table.levels["b"].names == ("x",) and (table.numbers["a"] == 1).all()
