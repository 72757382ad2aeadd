"""lsvm-train --out-of-core as a program keeps within its address space and leaves no scratch files behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import pytest

pytestmark = pytest.mark.whole  # each takes seconds

MIB = 1 << 20
LIMIT = 360 * MIB  # of address space
COLUMNS = 256
OPTIONS = ["-m", "linear", "-C", "0.001", "-e", "0.1", "--scale", "none", "-j", "1"]


def lsvm(*arguments: object, scratch: Path, limit: int | None = None, **extra: Any) -> subprocess.Popen[str]:
    """Start `lsvm` with temporary files in `scratch`, within `limit` bytes of address space."""

    def bound() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    command = [sys.executable, "-m", "localsvm", *map(str, arguments)]
    options = {"env": os.environ | {"TMPDIR": str(scratch)}, "preexec_fn": bound, "text": True, **extra}
    return subprocess.Popen(command, stderr=subprocess.PIPE, **options)


def ended(run: subprocess.Popen[str], code: int = 0) -> str:
    """Stderr of a program, which has to end with this exit code."""
    _, stderr = run.communicate()
    assert run.returncode == code, stderr
    return str(stderr)


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def written(path: Path, rows: int) -> int:
    """Write rows with values in a quarter of the columns; returns the bytes of their dense matrix."""
    block = []
    for i in range(1000):
        columns = sorted({1 + (i * 31 + j * (3 + i % 2)) % COLUMNS for j in range(COLUMNS // 4 + 8)} | {1, COLUMNS})
        block.append(f"{i % 2} " + " ".join(f"{c}:{1 + (i + c) % 9}" for c in columns))
    text = "\n".join(block) + "\n"
    with open(path, "w") as file:
        for _ in range(-(-rows // 1000)):
            file.write(text)
    return 4 * COLUMNS * 1000 * -(-rows // 1000)


def test_a_matrix_of_four_times_the_addresses(tmp_path: Path, scratch: Path) -> None:
    size = written(tmp_path / "rows.txt", 4 * LIMIT // (4 * COLUMNS))
    assert size >= 4 * LIMIT
    command = "train", *OPTIONS, "-P", "chunks", "-c", 5000, "--out-of-core"
    ended(lsvm(*command, tmp_path / "rows.txt", tmp_path / "m.h5", scratch=scratch, limit=LIMIT))
    with h5py.File(tmp_path / "m.h5") as file:
        assert file["cells"].attrs["n_cells"] == -(-(size // (4 * COLUMNS)) // 5000)
    assert os.listdir(scratch) == []


def test_it_is_chosen_and_noted_where_memory_is_too_small(tmp_path: Path, scratch: Path) -> None:
    written(tmp_path / "rows.txt", 30_000)
    command = "train", *OPTIONS, "-P", "voronoi", "-c", 500, "--coarse-size", 3000, tmp_path / "rows.txt"
    assert "scratch" not in ended(lsvm(*command, tmp_path / "one.h5", scratch=scratch))
    stderr = ended(lsvm(*command, tmp_path / "two.h5", "--memory", "180M", scratch=scratch))
    assert "scratch files (--out-of-core)" in stderr
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


def test_a_killed_run_leaves_no_scratch_and_is_resumed(tmp_path: Path, scratch: Path) -> None:
    written(tmp_path / "rows.txt", 10_000)
    command = "train", *OPTIONS, "-P", "voronoi", "-c", 50, "--coarse-size", 1000, tmp_path / "rows.txt"
    ended(lsvm(*command, tmp_path / "one.h5", scratch=scratch))
    killed = lsvm(*command, tmp_path / "two.h5", "--out-of-core", scratch=scratch)
    journal = tmp_path / "two.h5.journal"
    while killed.poll() is None:  # until something is finished
        if journal.exists() and journal.stat().st_size > 20_000:
            killed.kill()
            break
    ended(killed, -signal.SIGKILL)
    assert os.listdir(scratch) == []
    ended(lsvm(*command, tmp_path / "two.h5", "--out-of-core", "--resume", scratch=scratch))
    assert manifest(tmp_path / "one.h5") == manifest(tmp_path / "two.h5")


def test_what_does_not_go_together_is_refused(tmp_path: Path, scratch: Path) -> None:
    written(tmp_path / "rows.txt", 1000)
    command = "train", "-m", "linear", "--stream", "-s", "sgd", "--out-of-core", tmp_path / "rows.txt"
    assert "leave --out-of-core out" in ended(lsvm(*command, scratch=scratch), 2)


def test_other_commands_choose_it_as_well(tmp_path: Path, scratch: Path) -> None:
    """lsvm-cv and lsvm-partition give the same results out of core, and name a remedy where a run has one cell."""
    file, few = tmp_path / "rows.txt", ["--memory", "180M"]
    written(file, 30_000)
    cells = ["-P", "voronoi", "-c", 500, "--coarse-size", 3000]
    tables, divided = [], ["--scale", "none", "--metric", "none", *cells, "-j", 1]
    for number, memory in enumerate(([], few)):
        run = lsvm("cv", *OPTIONS, "-v", 2, *cells, *memory, file, scratch=scratch, stdout=subprocess.PIPE)
        table, stderr = run.communicate()
        tables.append(table)
        assert run.returncode == 0 and ("scratch files (--out-of-core)" in stderr) == bool(memory)
        cells_file = tmp_path / f"{number}.h5"
        run = lsvm("partition", *divided, *memory, file, cells_file, scratch=scratch, stdout=subprocess.DEVNULL)
        stderr = ended(run)
        assert ("scratch files (--out-of-core)" in stderr) == bool(memory)
    assert tables[0] == tables[1] and manifest(tmp_path / "0.h5") == manifest(tmp_path / "1.h5")
    for command in (["train", *OPTIONS], ["cv", *OPTIONS], ["partition", "-P", "none", "--metric", "none"]):
        output = [] if command[0] == "cv" else [tmp_path / "m.h5"]
        stderr = ended(lsvm(*command, "-q", "--memory", "150M", file, *output, scratch=scratch), 1)
        assert "give more --memory, or keep the rows in scratch files (-P voronoi --out-of-core)" in stderr
    with file.open() as rows:  # which a pipe does not keep
        run = lsvm("train", *OPTIONS, "--memory", "150M", "-", tmp_path / "m.h5", scratch=scratch, stdin=rows)
        stderr = ended(run, 1)
    assert stderr.endswith("give more --memory, or write the rows to a file, for --out-of-core\n")
    assert os.listdir(scratch) == []


def test_a_scratch_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A missing scratch folder is not replaced by another one, which may be in memory."""
    written(tmp_path / "t", 1000)
    coarse = "-P", "voronoi", "--coarse-size", 2000, "--out-of-core"
    run = lsvm("train", *OPTIONS, *coarse, tmp_path / "t", tmp_path / "m", scratch=tmp_path / "missing")
    assert "missing: no scratch file can be written there; name a folder that is there, with room" in ended(run, 1)
    assert not (tmp_path / "m").exists()


def test_a_pipe_is_refused(scratch: Path) -> None:
    run = lsvm("train", "--out-of-core", "-", "m.h5", scratch=scratch, stdin=subprocess.DEVNULL)
    assert ended(run, 2).startswith("error: --out-of-core reads a file twice")
