"""Runs that meet an accident at any moment: nothing finished is lost, and a resumed run gives the same model.

`make accidents` tries 25 moments, and the first 40 calls of each kind; here are a few of each.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import clean_environment, command, session, start, wait_until
from test_train import content

from localsvm.data.synthetic import banana
from localsvm.data.writing import write

KILLS = int(os.environ.get("LOCALSVM_KILLS", "4"))
FAULTS = int(os.environ.get("LOCALSVM_FAULTS", "3"))  # so many calls of each kind fail, one in each run
OPTIONS = ("-g", "1", "-C", "0.3,3", "-v", "3", "-c", "1500")
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


@pytest.mark.slow
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
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["write", "sync"])
def test_a_failed_call_is_one_message_or_nothing(
    kind: str, shim: Path, rows: Path, whole: Path, tmp_path: Path
) -> None:
    for i in range(1, 1 + FAULTS):
        model = tmp_path / str(i) / "m.h5"
        model.parent.mkdir()
        faulty = clean_environment(LD_PRELOAD=str(shim), LSVM_FAULT=f"{kind}:{i}")
        line = command("train", "-q", "-j", 1, *OPTIONS, rows, model)
        done = subprocess.run(line, env=faulty, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, 1), done.stderr
        assert model.exists() == (done.returncode == 0)
        assert len(done.stderr.splitlines()) == done.returncode and "Traceback" not in done.stderr
        assert resumed(rows, model) == content(whole)


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


@pytest.mark.parametrize("options", ["ro", "size=4k"])
def test_workers_need_no_files_in_shared_memory(options: str, rows: Path, whole: Path, tmp_path: Path) -> None:
    own = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o {options} none /dev/shm && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*own, "true"], capture_output=True).returncode:
        pytest.skip("no right to mount a file system")
    line = [*own, *command("train", "-q", "-j", 2, *OPTIONS, rows, tmp_path / "m.h5")]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert content(tmp_path / "m.h5") == content(whole)
