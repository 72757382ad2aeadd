"""Runs that meet an accident at any moment: nothing finished is lost, and a resumed run gives the same model.

`make accidents` tries 25 moments, and the first 40 calls of each kind; here are a few of each.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import clean_environment, command, session, start, wait_until
from test_train import content

from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write

pytestmark = pytest.mark.whole  # each takes seconds

KILLS = int(os.environ.get("LOCALSVM_KILLS", "4"))
FAULTS = int(os.environ.get("LOCALSVM_FAULTS", "3"))  # so many calls of each kind fail, one in each run
OPTIONS = ("-g", "1", "-C", "0.3,3", "-v", "3", "-c", "1500", "--metric", "none")
LARGE = 1 << 16  # bytes, such as arrays have
CC = shutil.which(os.environ.get("CC", "cc"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "rows.libsvm"
    write(path, *banana(12000, np.random.default_rng(5)))
    return path


@pytest.fixture(scope="module")
def whole(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of a run without accidents."""
    model = tmp_path_factory.mktemp("whole") / "m.h5"
    subprocess.run(command("train", "-q", "-j", 2, *OPTIONS, rows, model), check=True, timeout=120)
    return model


def resumed(rows: Path, model: Path) -> dict[str, object]:
    """The content of the model of a run that goes on, if there is no model yet."""
    if not model.exists():
        done = subprocess.run(command("train", "-q", "--resume", "-j", 1, *OPTIONS, rows, model), capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
    assert [path.name for path in model.parent.iterdir()] == [model.name]
    return content(model)


def test_runs_killed_at_random_moments_resume_to_the_same_model(rows: Path, whole: Path, tmp_path: Path) -> None:
    begun = time.monotonic()
    subprocess.run(command("train", "-q", "-j", 2, *OPTIONS, rows, tmp_path / "timed.h5"), check=True, timeout=120)
    length = time.monotonic() - begun
    moments = random.Random(25)
    for i in range(KILLS):
        model = tmp_path / str(i) / "m.h5"
        model.parent.mkdir()
        process = start("train", "-q", "-j", 1 + i % 2, *OPTIONS, rows, model)
        try:
            process.communicate(timeout=length * moments.random())
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        wait_until(lambda leader=process.pid: not session(leader))  # type: ignore[misc]
        assert resumed(rows, model) == content(whole)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if CC is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("shim") / "faults.so"
    source = Path(__file__).parent.parent / "faults.c"
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def moments(kind: str) -> list[str]:
    """Values of LSVM_FAULT, each for a run in which another call fails."""
    if kind == "memory":  # a run allocates tens of thousands of times
        chance = random.Random(16)
        return [f"memory:{round(30000 ** chance.random())}:1" for _ in range(FAULTS)]
    return [f"{kind.removeprefix('large ')}:{i}:{LARGE}" for i in range(1, 1 + FAULTS)]


def is_fault_of_numpy(done: subprocess.CompletedProcess[str]) -> bool:
    """True where numpy has ended the process while columns are scaled, where no C code of ours runs.

    numpy does so where it has no memory for the buffer of an operation that repeats a row for all others.
    """
    place = re.search(r'most recent call first\):\n  File "([^"]+)"', done.stderr)
    columns = ("localsvm/features/moments.py", "localsvm/features/scaling.py")
    return done.returncode == -signal.SIGSEGV and place is not None and place[1].endswith(columns)


@pytest.mark.parametrize(
    ("kind", "jobs", "armed"),
    [
        ("write", 1, None),
        ("sync", 1, None),
        ("large memory", 1, "open:rows.libsvm"),
        ("memory", 1, "open:rows.libsvm"),
        ("fork", 2, None),
        ("thread", 2, "open:rows.libsvm"),
        ("thread", 2, "memfd_create:localsvm"),  # those of the pool of processes
    ],
)
def test_a_failed_call_is_one_message_or_nothing(
    kind: str, jobs: int, armed: str | None, shim: Path, rows: Path, whole: Path, tmp_path: Path
) -> None:
    for i, fault in enumerate(moments(kind)):
        model = tmp_path / str(i) / "m.h5"
        model.parent.mkdir()
        faulty = clean_environment(LD_PRELOAD=str(shim), LSVM_FAULT=fault, PYTHONFAULTHANDLER="1")
        line = command("train", "-q", "-j", jobs, *OPTIONS, rows, model)
        armed_at = {"LSVM_ARMED": armed} if armed else {}
        done = subprocess.run(line, env=faulty | armed_at, capture_output=True, text=True, timeout=120)
        numpys = "memory" in kind and is_fault_of_numpy(done)
        assert done.returncode in (0, 1) or numpys, f"{fault}: {done.stderr}"
        assert model.exists() == (done.returncode == 0)
        # for their small things, libraries say in words of their own that they have no memory
        if kind != "memory" and not numpys:
            assert len(done.stderr.splitlines()) == done.returncode, f"{fault}: {done.stderr}"
            assert "Traceback" not in done.stderr, f"{fault}: {done.stderr}"
        assert resumed(rows, model) == content(whole)


def test_openblas_needs_no_threads(shim: Path, rows: Path, whole: Path, tmp_path: Path) -> None:
    """Commands leave OpenBLAS one thread: where it cannot start more, it ends the process with lines of its own."""
    alone = clean_environment(LD_PRELOAD=str(shim), LSVM_FAULT="thread:1")
    line = command("train", "-q", "-j", 1, *OPTIONS, rows, tmp_path / "m.h5")
    done = subprocess.run(line, env=alone, capture_output=True, text=True, timeout=120)
    assert len(done.stderr.splitlines()) == done.returncode <= 1, done.stderr
    assert "OpenBLAS" not in done.stderr
    assert resumed(rows, tmp_path / "m.h5") == content(whole)


@pytest.mark.parametrize(
    ("armed", "deadly", "cells", "left"),
    [
        ("open:rows.libsvm", "kill", None, set()),  # reading
        ("memfd_create:localsvm", "kill", None, {"m.h5.journal"}),  # the partition
        ("open:.journal", "kill write:1", None, {"m.h5.journal"}),  # training, before and after a finished cell
        ("open:.journal", "kill write:4", 2, {"m.h5.journal"}),
        ("open:.tmp", "kill write:5", 9, {"m.h5.journal", "temporary"}),  # writing the model
        ("rename:.tmp", "kill", 9, {"m.h5.journal", "temporary"}),
        ("unlink:.journal", "kill", 9, {"m.h5.journal", "m.h5"}),
    ],
)
def test_runs_killed_in_each_phase_resume_to_the_same_model(
    armed: str, deadly: str, cells: int | None, left: set[str], shim: Path, rows: Path, whole: Path, tmp_path: Path
) -> None:
    model = tmp_path / "m.h5"
    fault = deadly if ":" in deadly else f"{deadly}:1"
    killed = clean_environment(LD_PRELOAD=str(shim), LSVM_FAULT=fault, LSVM_ARMED=armed)
    line = command("train", "-q", "-j", 1, *OPTIONS, rows, model)
    done = subprocess.run(line, env=killed, capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, b"")
    assert {path.name if path.suffix != ".tmp" else "temporary" for path in tmp_path.iterdir()} == left
    again = command("train", "--resume", "--force", "-j", 1, *OPTIONS, rows, model)
    completed = subprocess.run(again, capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0, completed.stderr
    match = re.search(r"resumed: (\d+) of 9 cells", completed.stderr)
    assert (match and int(match[1])) == cells
    assert [path.name for path in tmp_path.iterdir()] == ["m.h5"]
    assert content(model) == content(whole)


FULL = """
mount -t tmpfs -o size=$1 none "$2" && cd "$2" || exit 9
shift 2
"$@"; code=$?
ls -A
mount -o remount,size=100m . && "$@" --resume || exit 8
test "$(ls -A)" = m.h5 && cp m.h5 "$OLDPWD/resumed.h5" || exit 7
exit $code
"""


@pytest.mark.parametrize(
    ("pages", "left"),
    [(1, set()), (10, {"m.h5.journal"}), (40, {"m.h5.journal"})],
    ids=["first cell", "journal", "model"],
)
def test_training_on_a_full_file_system(pages: int, left: set[str], rows: Path, whole: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    line = [*privately(), "sh", "-c", FULL, "sh", f"{4 * pages}k", full, *command("train", "-q", "-j", 1, *OPTIONS)]
    done = subprocess.run([*line, rows, "m.h5"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "no space left" in done.stderr.lower()
    assert set(done.stdout.split()) == left
    assert content(tmp_path / "resumed.h5") == content(whole)


@pytest.mark.parametrize("name", ["predict", "convert"])
def test_results_on_a_full_file_system(name: str, rows: Path, whole: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    args = {"predict": ("predict", "-q", rows, whole, full / "out"), "convert": ("convert", rows, full / "out")}[name]
    script = 'mount -t tmpfs -o size=8k none "$1" && cd "$1" || exit 9; shift; "$@"; code=$?; ls -A; exit $code'
    line = [*privately(), "sh", "-c", script, "sh", full, *command(*args)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), done.stderr
    assert "no space left" in done.stderr.lower()


def privately() -> list[str]:
    """The beginning of a command that may mount file systems, which nobody else sees."""
    prefix = ["unshare", "-m"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*prefix, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode
    ):
        pytest.skip("no right to mount a file system")
    return prefix


LIMITED = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); size = int(sys.argv.pop(1)); "
LIMITED += "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)); from localsvm.__main__ import lsvm; lsvm()"


@pytest.mark.parametrize("name", ["predict", "convert"])
def test_a_full_disk(name: str, rows: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    args = {"predict": ("predict", "-q", rows, whole, out), "convert": ("convert", rows, out)}[name]
    line = [sys.executable, "-c", LIMITED, "4096", *map(str, args)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "no space left" in done.stderr or "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("options", "why"), [("ro", "Read-only file system"), ("size=4k", "No space left on device")])
def test_workers_need_semaphores_and_one_job_none(
    options: str, why: str, rows: Path, whole: Path, tmp_path: Path
) -> None:
    prefix = [*privately(), "sh", "-c", f'mount -t tmpfs -o {options} none /dev/shm && exec "$@"', "sh"]
    line = [*prefix, *command("train", "-q", *OPTIONS, rows, tmp_path / "m.h5")]
    done = subprocess.run([*line, "-j", "2"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert f"worker processes cannot be started ({why}); use fewer jobs (-j 1 needs none)" in done.stderr
    done = subprocess.run([*line, "-j", "1", "--force"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert content(tmp_path / "m.h5") == content(whole)
