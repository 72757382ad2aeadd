"""A table in parts has the rows of the whole, in any format, whoever reads a part."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest
from test_delimited import PLAIN

from localsvm.data import _csv
from localsvm.data.blocks.table import Table, together
from localsvm.data.readers.delimited import TableForm
from localsvm.data.readers.tables import TablePart, format_of, open_table, parts_of
from localsvm.errors import DataError

KNOWN = {"a": _csv.NUMBER, "t": _csv.LEVEL}
TEXT = "\ufeff\n\r\na,t,unused\n" + "".join(f'{i},"of {i % 7},\n""{i % 3}""",x\r\n' for i in range(500))


def parts(path: Path, size: int, form: TableForm = PLAIN) -> list[TablePart]:
    """The parts of a file, as another process gets them."""
    with open_table(str(path), form, known=KNOWN) as source:
        made = parts_of(source, str(path), format_of(str(path)), size)
    return list(pickle.loads(pickle.dumps(made)))


def whole(path: Path) -> Table:
    with open_table(str(path), PLAIN, known=KNOWN) as source:
        return together(list(source.blocks()))


def assert_rows_are_those_of_the_whole(made: list[TablePart], path: Path) -> None:
    read, expected = together([table for part in made for table in part.blocks()]), whole(path)
    np.testing.assert_array_equal(read.numbers["a"], expected.numbers["a"])
    assert read.levels["t"].texts() == expected.levels["t"].texts()
    assert read.names == expected.names and "unused" not in read.levels


@pytest.mark.parametrize(("size", "count"), [(1, 500), (700, range(15, 40)), (1 << 20, 1)])
def test_delimited_text_is_cut_at_rows(size: int, count: int | range, tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text(TEXT, newline="")
    made = parts(path, size)
    assert len(made) == count if isinstance(count, int) else len(made) in count
    assert_rows_are_those_of_the_whole(made, path)


def test_compressed_text_is_one_part(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    made = parts(path, 100)
    assert len(made) == 1
    assert_rows_are_those_of_the_whole(made, path)


def test_parquet_arrow_and_arrays_are_cut_where_they_can_be(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("pyarrow.feather")
    columns = {"a": np.arange(1000.0), "t": [f"of {i % 7}" for i in range(1000)], "unused": ["x"] * 1000}
    table = pa.table(columns)
    pa.parquet.write_table(table, parquet := tmp_path / "t.parquet", row_group_size=90)
    pa.feather.write_feather(table, str(arrow := tmp_path / "t.feather"), chunksize=150)
    np.savez(arrays := tmp_path / "t.npz", **columns)
    for path, most in ((parquet, 12), (arrow, 7), (arrays, 1000)):
        made = parts(path, 1)
        assert len(made) == most
        assert_rows_are_those_of_the_whole(made, path)
        assert 1 < len(parts(path, path.stat().st_size // 3)) < 6
        assert len(parts(path, 1 << 30)) == 1


def test_a_mistake_is_told_with_its_line_in_the_file(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text(TEXT + "\nx,of,x\n", newline="")
    made = parts(path, 1000)
    with pytest.raises(DataError) as expected:
        whole(path)
    with pytest.raises(DataError, match=r":1005: column 'a' has numbers, and here 'x'") as told:
        list(made[-1].blocks())
    assert str(told.value) == str(expected.value)


def test_a_row_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "t.csv").write_text("a,t\n" + "1,x\n" * 5 + '2,"' + "y" * 200 + '"\n')
    with open_table(str(path), PLAIN, known=KNOWN) as source:
        monkeypatch.setattr("localsvm.data.readers.delimited.LONGEST_LINE", 100)
        with pytest.raises(DataError, match=r"t\.csv:\d: the line is longer than"):
            source.stretches(50)
