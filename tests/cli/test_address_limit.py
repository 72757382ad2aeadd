"""Commands under `ulimit -v`: no hang, no traceback, and advice that helps."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.whole  # each takes seconds

MIB = 1 << 20


def run(limit: int | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `lsvm` with so many bytes of address space."""

    def bound() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    command = [sys.executable, "-m", "localsvm", *arguments]
    return subprocess.run(command, preexec_fn=bound, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 8))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    path = tmp_path_factory.mktemp("rows") / "rows.libsvm"
    path.write_text(
        "".join(
            f"{a} " + " ".join(f"{i + 1}:{v:.4f}" for i, v in enumerate(b)) + "\n" for a, b in zip(y, X, strict=True)
        )
    )
    return path


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("limit", [90, 180, 205, 260, 300, 420, 900])
def test_a_run_ends_with_a_model_or_with_advice(rows: Path, tmp_path: Path, limit: int, jobs: int) -> None:
    model = tmp_path / "model.h5"
    options = ["-q", "-P", "voronoi", "-c", "1000", "-g", "0.5", "-C", "1,10", "--metric", "none", "-j", str(jobs)]
    done = run(limit * MIB, "train", *options, str(rows), str(model))
    assert "Traceback" not in done.stderr
    if done.returncode == 0:
        assert model.exists() and limit > 200
        return
    assert done.returncode == 1 and limit < 420
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert "(ulimit -v)" in done.stderr and "--memory" not in done.stderr


def test_a_cell_too_large_for_the_addresses(rows: Path, tmp_path: Path) -> None:
    done = run(
        450 * MIB,
        "train",
        "-q",
        "-P",
        "none",
        "-g",
        "0.1,1",
        "-C",
        "1,10",
        "-e",
        "1e-5",
        str(rows),
        str(tmp_path / "m.h5"),
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "use smaller cells (-P voronoi -c 1000) or more addresses (ulimit -v)" in done.stderr


def test_help_needs_little() -> None:
    done = run(90 * MIB, "train", "--help")
    assert done.returncode == 0 and "TRAIN_FILE" in done.stdout


def test_a_file_larger_than_the_addresses_is_learned_in_one_pass(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 8))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    rows = [
        f"{a} " + " ".join(f"{i + 1}:{v:.4000f}" for i, v in enumerate(b)) + "\n" for a, b in zip(y, X, strict=True)
    ]
    with open(tmp_path / "rows", "w") as file:
        while file.tell() <= 430 * MIB:
            file.writelines(rows)
    options = ["-m", "mllkm", "--online", "full", "--kept-rows", "300", "-C", "1", "--bank-gammas", "0.2,1"]
    done = run(420 * MIB, "train", *options, "-j", "1", str(tmp_path / "rows"), str(tmp_path / "m.h5"))
    assert done.returncode == 0, done.stderr
    assert "15,000 rows" in done.stderr and "all converged" in done.stderr
    (tmp_path / "rows").write_text("".join(rows))
    done = run(None, "predict", str(tmp_path / "rows"), str(tmp_path / "m.h5"), str(tmp_path / "labels"))
    assert float(done.stderr.split("Accuracy = ")[1].split("%")[0]) > 85.0
