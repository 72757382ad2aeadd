"""Plain files that workers read in parts by themselves give the text of one machine."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localsvm.data.readers.pieces import BOM
from localsvm.errors import DataError, RunError
from localsvm.runs.prediction import part_files
from localsvm.runs.prediction.part_files import head, pieces, text_of

LINES = b"".join(b"%d 1:%d\n" % (i % 2, i) for i in range(500))


class Engine:
    """An engine that gives back the parts, and their text."""

    cores = 2

    def text(self, path: str) -> str:
        return path

    def of_parts(
        self, name: str, parts: list[Any], cut: Callable[[Iterable[Any]], Iterator[bytes]], head: Callable[[int], bytes]
    ) -> tuple[list[Any], list[bytes], bytes]:
        return parts, [b"".join(cut([part])) for part in parts], head(3)


@pytest.mark.parametrize("end", [b"\n", b""], ids=["ended", "not ended"])
def test_parts_together_are_the_text(end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_files, "PIECE_BYTES", 64)
    (tmp_path / "rows").write_bytes(LINES.removesuffix(b"\n") + end)
    parts, texts, first = text_of(Engine(), str(tmp_path / "rows"))
    assert len(parts) >= 8 and all(text.endswith(b"\n") for text in texts)
    assert b"".join(texts) == LINES and first == b"".join(LINES.splitlines(keepends=True)[:3])
    assert max(map(len, pieces(parts))) < 100
    (tmp_path / "empty").touch()
    assert text_of(Engine(), str(tmp_path / "empty")) == ([], [], b"")


def test_files_of_a_folder_follow_each_other_by_name(tmp_path: Path) -> None:
    lines = LINES.splitlines(keepends=True)
    for name, part in (("b", lines[100:]), ("a", lines[:100]), ("_SUCCESS", []), (".a.crc", [b"\0"])):
        (tmp_path / name).write_bytes(b"".join(part).removesuffix(b"\n"))  # a last line without an end
    _, texts, first = text_of(Engine(), str(tmp_path))
    assert b"".join(texts) == LINES and first == b"".join(lines[:3])
    assert head([str(tmp_path / "a"), str(tmp_path / "b")], 1000) == LINES


def test_a_folder_inside_is_told(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(LINES)
    (tmp_path / "_temporary").mkdir()
    assert text_of(Engine(), str(tmp_path))[0]
    (tmp_path / "more").mkdir()
    with pytest.raises(RunError, match=r"more: a folder in the input folder, whose files are not read; move them up"):
        text_of(Engine(), str(tmp_path))


def test_links_count_by_their_names(tmp_path: Path) -> None:
    """Links have the order of their own names, not of the files that they lead to, as in shared stores."""
    (blobs := tmp_path / "blobs").mkdir()
    (folder := tmp_path / "rows").mkdir()
    lines = LINES.splitlines(keepends=True)
    for name, blob, part in (("a", "9", lines[:10]), ("b", "_1", lines[10:20]), ("c", "2", lines[20:])):
        (blobs / blob).write_bytes(b"".join(part))
        (folder / name).symlink_to(blobs / blob)
    assert b"".join(text_of(Engine(), str(folder))[1]) == LINES
    (blobs / "packed").write_bytes(gzip.compress(LINES))
    (folder / "d.gz").symlink_to(blobs / "packed")
    for path in (folder, folder / "d.gz"):
        assert text_of(Engine(), str(path)) == str(path)


def test_each_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    lines = LINES.splitlines(keepends=True)
    for name, part in (("a", lines[:2]), ("b", lines[2:])):
        (tmp_path / name).write_bytes(BOM + b"".join(part))
    _, texts, first = text_of(Engine(), str(tmp_path))
    assert b"".join(texts) == LINES and first == b"".join(lines[:3])


def test_compressed_text_is_known_by_its_name_alone(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(gzip.compress(LINES))
    with pytest.raises(RunError, match=r"rows: this is gzip data, .*; rename it to NAME\.gz$"):
        text_of(Engine(), str(tmp_path / "rows"))


def test_what_is_no_plain_text_is_left_to_the_engine(tmp_path: Path) -> None:
    (tmp_path / "rows.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "rows.parquet").touch()
    (folder := tmp_path.with_name(f"{tmp_path.name}-none")).mkdir()
    for path in (tmp_path / "rows.gz", tmp_path / "rows.parquet", tmp_path, folder, "hdfs://host/rows"):
        assert text_of(Engine(), str(path)) == str(path)


def test_a_file_that_goes_or_shrinks_is_told(tmp_path: Path) -> None:
    (rows := tmp_path / "rows").write_bytes(LINES)
    parts, _, _ = text_of(Engine(), str(rows))
    rows.write_bytes(LINES[:100])
    with pytest.raises(DataError, match="the file changed while it was read"):
        list(pieces(parts[1:]))
    rows.unlink()
    with pytest.raises(RunError, match="do not see this input"):
        list(pieces(parts))
