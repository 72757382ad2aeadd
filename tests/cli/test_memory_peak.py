"""Whole runs keep within --memory, all their processes together, and what does not suffice is refused in one line."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from localsvm.data.blocks.dataset import sparse_examples
from localsvm.data.writers.libsvm import write

pytestmark = pytest.mark.whole  # each takes seconds

MIB = 1 << 20
SAMPLED = 0.005  # seconds
shared_pages = pytest.mark.skipif(
    not os.path.exists("/proc/self/smaps_rollup"), reason="the system does not tell of shared pages"
)
LEARN = ("-m", "linear", "-C", "0.01", "--scale", "std")


def family(process: int) -> list[int]:
    """Ids of a process and of all that it started."""
    members = [process]
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        members += [member for child in thread.read_text().split() for member in family(int(child))]
    return members


def share(process: int) -> int:
    """Bytes of memory of a process; pages that several processes map count in part."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def works(process: int) -> bool:
    """Check whether a process is a worker of the pool."""
    return b"popen_loky" in Path(f"/proc/{process}/cmdline").read_bytes()


class Peak(threading.Thread):
    """Watches the memory of a process and all that it started."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.bytes, self.workers, self.ended = process, 0, 0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(SAMPLED):
            total = 0
            try:
                members = family(self.process)
                workers = sum(map(works, members))
                for member in members:
                    total += share(member)
            except OSError:  # a process has ended meanwhile
                continue
            self.bytes, self.workers = max(self.bytes, total), max(self.workers, workers)


def run(*arguments: object) -> tuple[int, str, int]:
    """Exit code, stderr and peak of memory in bytes of `lsvm arguments`."""
    code, stderr, peak = watched(*arguments)
    return code, stderr, peak.bytes


def watched(*arguments: object) -> tuple[int, str, Peak]:
    """Exit code and stderr of `lsvm arguments`, and its peak of memory and of workers."""
    command = [sys.executable, "-m", "localsvm", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        peak = Peak(process.pid)
        peak.start()
        stderr = process.communicate(timeout=120)[1]
        peak.ended.set()
        peak.join()
    return process.returncode, stderr, peak


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("peak"), np.random.default_rng(0)
    X = np.round(rng.standard_normal((30_000, 120)).astype(np.float32), 2)
    write(folder / "dense", X, np.where(X[:, 0] > 0, 1.0, -1.0))
    (folder / "dense.gz").write_bytes(gzip.compress((folder / "dense").read_bytes(), 1))
    n, d, k = 30_000, 50_000, 60
    indices = np.sort(rng.integers(0, d - k, (n, k)), axis=1) + np.arange(k)
    values = np.round(rng.random((n, k)) + 0.1, 2).astype(np.float32)
    S = sparse_examples(values.ravel(), indices.astype(np.int32).ravel(), np.arange(0, n * k + 1, k), d)
    write(folder / "sparse", S, np.where((values * np.sin(indices)).sum(axis=1) > 0, 1.0, -1.0))
    return folder


@shared_pages
def test_workers_keep_within_memory_together(folder: Path) -> None:
    narrow = folder / "narrow"
    X = np.random.default_rng(1).standard_normal((12_000, 10)).astype(np.float32)
    write(narrow, X, np.where(X[:, 0] > 0, 1.0, -1.0), precision=4)
    learn = ("--metric", "none", "-P", "chunks", "-c", 2000, "-g", 0.1, "-C", "0.1,1", "-v", 2, "-j", 2, narrow)
    code, stderr, peak = watched("train", "--force", "--memory", "440M", *learn, folder / "narrow.h5")
    assert code == 0 and "workers fit" not in stderr, stderr
    assert peak.workers == 2 and peak.bytes <= 440 * MIB, (peak.workers, peak.bytes / MIB)
    code, stderr, peak = watched("train", "--force", "--memory", "380M", *learn, folder / "narrow.h5")
    assert code == 0 and "1 of 2 workers fit" in stderr, stderr
    assert peak.workers == 0 and peak.bytes <= 380 * MIB, (peak.workers, peak.bytes / MIB)


@shared_pages
def test_streams_keep_within_memory(folder: Path) -> None:
    learn = ("train", "-q", "--force", "--stream", "-s", "sgd", "--passes", 1, *LEARN, "-j", 2)
    code, stderr, peak = run(*learn, "--memory", "160M", folder / "sparse", folder / "s.h5")
    assert code == 1 and stderr.count("\n") == 1 and "its blocks of text need" in stderr and peak <= 160 * MIB, stderr
    code, stderr, peak = run(*learn, "--memory", "300M", folder / "sparse", folder / "s.h5")
    assert code == 0 and peak <= 300 * MIB, (peak / MIB, stderr)


@shared_pages
def test_conversion_keeps_within_memory(folder: Path) -> None:
    code, stderr, peak = run(
        "convert", "-j", 2, "--scale", "std", "--memory", "180M", folder / "dense.gz", folder / "out"
    )
    assert code == 0 and peak <= 180 * MIB, (peak / MIB, stderr)
    code, stderr, _ = run("convert", "--scale", "std", "--memory", "126M", folder / "dense", folder / "more.out")
    assert code == 1 and stderr.count("\n") == 1 and "--memory allows 126.0 MiB; give more --memory" in stderr


@shared_pages
@pytest.mark.parametrize("name", ["dense", "sparse", "dense.gz"])
def test_runs_keep_within_memory(folder: Path, name: str) -> None:
    model = folder / f"{name}.h5"
    learn = ("train", "-q", "--force", *LEARN)
    code, stderr, peak = run(*learn, "-j", 1, "--memory", "126M", folder / name, model)
    assert code == 1 and stderr.count("\n") == 1 and "its rows need" in stderr and peak <= 126 * MIB, stderr
    code, stderr, peak = run(*learn, "-j", 1, "--memory", "240M", folder / name, model)
    assert code == 0 and peak <= 240 * MIB, (peak / MIB, stderr)
    code, stderr, peak = run("predict", "-q", "-j", 2, "--memory", "180M", folder / name, model, folder / f"{name}.out")
    assert code == 0 and peak <= 180 * MIB, (peak / MIB, stderr)
    assert len((folder / f"{name}.out").read_text().splitlines()) == 30_000
