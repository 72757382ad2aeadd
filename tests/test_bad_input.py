"""Every malformed input is refused with its own message, wherever and however it is read."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from malformed import GOOD, MALFORMED

from localsvm.data.readers.libsvm import Layout, read, read_blocks
from localsvm.errors import DataError, RunError

CASES = [pytest.param(content, message, id=name) for name, content, message in MALFORMED]


def refusal(path: Path | str, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(path, **options)
    return str(caught.value)


def test_the_table_is_large_and_without_repetitions() -> None:
    names = [name for name, _, _ in MALFORMED]
    assert len(names) >= 40
    assert len(set(names)) == len(names)


@pytest.mark.fast(40)
@pytest.mark.parametrize(("content", "message"), CASES)
def test_a_malformed_file_is_refused_however_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    path = tmp_path / "train.libsvm"
    path.write_bytes(content)
    assert refusal(path).startswith(f"{path}{message}")
    for dense in (True, False):
        with pytest.raises(DataError) as caught:
            list(read_blocks(path, block_bytes=7, layout=Layout(n_features=4, dense=dense)))
        assert str(caught.value).startswith(f"{path}{message}")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert refusal("-").startswith(f"<stdin>{message}")


@pytest.mark.parametrize("dense", [True, False])
def test_the_first_mistake_is_reported(tmp_path: Path, dense: bool) -> None:
    path = tmp_path / "two.libsvm"
    path.write_bytes(GOOD * 20 + b"1 1:x\n" + GOOD * 20 + b"\n1 0:1\n")
    for jobs, block_bytes in product((1, 3), (1, 10, 1 << 20)):
        message = refusal(path, jobs=jobs, block_bytes=block_bytes, dense=dense)
        assert message.startswith(f"{path}:41:5: expected a number as value, found 'x'")


def test_zero_based_limits(tmp_path: Path) -> None:
    path = tmp_path / "zero.libsvm"
    path.write_bytes(b"1 2147483647:1\n")
    assert "beyond 2147483646 (2^31 - 2)" in refusal(path, zero_based=True)
    path.write_bytes(b"1 -1:1\n")
    assert "is negative" in refusal(path, zero_based=True)


def test_mistakes_in_dropped_columns_count(tmp_path: Path) -> None:
    path = tmp_path / "wide.libsvm"
    path.write_bytes(b"1 1:1 9:1 8:1\n")
    for dense in (True, False):
        assert ":1:11: the index in '8:1'" in refusal(path, n_features=2, dense=dense)


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.libsvm"
    assert refusal(path) == f"{path}: no such file; check the name"


def test_directory(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: this is a directory; name a file in it"


def test_path_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(GOOD)
    path = tmp_path / "file" / "train.libsvm"
    assert refusal(path).startswith(f"{path}: cannot be opened (Not a directory)")


UNPRIVILEGED = """
import os, sys
from localsvm.data.readers.libsvm import read
os.chdir(sys.argv[1])
if os.geteuid() == 0:  # root may read everything
    os.seteuid(65534)
try:
    read("locked.libsvm")
except Exception as error:
    print(type(error).__name__, error)
"""


def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "locked.libsvm"
    path.write_bytes(GOOD)
    path.chmod(0)
    done = subprocess.run([sys.executable, "-c", UNPRIVILEGED, tmp_path], capture_output=True, text=True)
    expected = "DataError locked.libsvm: no permission to read it; change its mode or its owner"
    assert done.stdout.strip() == expected, done.stderr


def test_a_matrix_too_large_for_memory(tmp_path: Path) -> None:
    path = tmp_path / "wide.libsvm"
    path.write_bytes(b"1 2147483647:1\n" * 100_000)
    with pytest.raises(RunError, match=r"wide\.libsvm: no memory for a dense matrix of 800000\.0 GiB"):
        read(path, dense=True)


def test_a_pipe_that_ends_within_the_first_bytes() -> None:
    out, into = os.pipe()
    os.write(into, b"\x1f\x8b")
    os.close(into)
    with open(out, "rb") as pipe:
        assert "the gzip data end too early" in refusal(f"/dev/fd/{pipe.fileno()}")


SHRINKING = """
import os, sys
from localsvm.data.readers.libsvm import read
from localsvm.memory import Budget

path, size = sys.argv[1], int(sys.argv[2])

class Shrinking(Budget):
    def check(self, *_):  # between counting and parsing
        os.truncate(path, size)

try:
    read(path, dense=True, budget=Shrinking(1 << 40))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("size", [0, 8192, 1 << 20, 1 << 21])
def test_a_file_that_changes_its_size_while_it_is_read(size: int, tmp_path: Path) -> None:
    path = tmp_path / "train.libsvm"
    path.write_bytes(GOOD * ((1 << 20) // len(GOOD) + 1))
    done = subprocess.run([sys.executable, "-c", SHRINKING, path, str(size)], capture_output=True, text=True)
    expected = f"DataError {path}: the file changed while it was read; run again when nothing writes to it\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_blocks_of_a_file_that_is_still_written(tmp_path: Path) -> None:
    path = tmp_path / "train.libsvm"
    path.write_bytes(GOOD * 100)
    blocks = read_blocks(path, block_bytes=100, layout=Layout(n_features=4, dense=True))
    next(blocks)
    with path.open("ab") as file:
        file.write(GOOD)
    with pytest.raises(DataError, match="the file changed while it was read"):
        list(blocks)
