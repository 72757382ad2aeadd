"""The line that `lsvm cv` calls best: `lsvm train` takes it, for every method, and it means that point."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import invoke

from localsvm.cli import method_options
from localsvm.methods import methods
from localsvm.methods.grids import parse_values
from localsvm.store.model import load_model

SMALL, COSTS = ("-j", "1", "-v", "2"), ("-C", "2^-1:2^2:4")
OPTIONS: dict[str, Sequence[str]] = {
    "kmeans-svm": ("-K", "1,2", "--start", "1,2,3"),
    "csvm": ("-K", "2", "--lambda", "1,10"),
    "llsvm": ("-K", "4", "--neighbours", "2,3"),
    "l3": ("-K", "2", "-L", "2,5"),
    "l3-kernel": ("-K", "2", "-L", "2", "-g", "0.1,1"),
    "ml3": ("--models", "2,3"),
    "linear": ("--mean-loss",),
    "svml": ("--form", "rank:1"),
    "svm-knn": ("--neighbours", "3,9"),
    "mkl": ("--widths", "0.5,2"),
    "mllkm": ("--bank-gammas", "0.1,1", "--anchors", "kmeans", "-K", "4,8"),
    "mtl": ("-K", "2", "--shrinkage", "0.1", "--groups", "1", "--coupling", "1,10"),
    "mlsvm": ("-K", "1,2", "--shrinkage", "0.1", "--start", "4,5"),
}
KERNEL = ("svm", "rbf", "lasvm", "one-class")
RUNS = [(name, ("-g", "0.1,1") if name in KERNEL else OPTIONS[name]) for name in sorted(methods())]
RUNS += [
    ("svm", ("-t", "linear", "-P", "voronoi", "-c", "2000", "--scale", "minmax")),
    ("svm", ("-w", "-1", "2.5", "-w1", "3", "--offset", "-e", "0.01")),
    ("l3", ("--projection", "rbf", "-g", "2^-1:2^1:3", "-L", "3")),
    ("l3-kernel", ("-t", "linear", "--projection", "rbf", "--projection-gamma", "0.5,1", "-L", "2", "--no-offset")),
]


@pytest.fixture(scope="module")
def few(train_file: Path) -> Path:
    """File of 60 rows."""
    path = train_file.with_name("few.libsvm")
    path.write_text("".join(train_file.read_text().splitlines(keepends=True)[:60]))
    return path


def best_words(stderr: str) -> list[str]:
    (line,) = [line for line in stderr.splitlines() if line.startswith("best ")]
    return shlex.split(line)[1:]


@pytest.mark.fast(1)
@pytest.mark.parametrize(("method", "options"), RUNS)
def test_training_takes_the_best_line(method: str, options: Sequence[str], few: Path, tmp_path: Path) -> None:
    costs = () if method == "svml" else COSTS
    done = invoke("cv", "-m", method, *SMALL, *costs, *options, few)
    point = next(row for row in csv.DictReader(io.StringIO(done.stdout)) if row["best"] == "1")
    invoke("train", "-q", "-j", 1, *best_words(done.stderr), few, tmp_path / "m.h5")
    with load_model(tmp_path / "m.h5") as model:
        config = model.config["method"]
    for name in {name for name, value in point.items() if value} - {"cell", "rows", "error", "best"}:
        option = method_options.parameter(method, name)
        assert option is not None
        assert config[option.name] == [float(point[name])]


def test_cells_with_one_grid_have_a_best_line_together(train_file: Path, tmp_path: Path) -> None:
    cells = ("-P", "voronoi", "-c", 80, "--metric", "none")
    done = invoke("cv", "-j", 1, *cells, "-g", "0.5,2", "-C", "1,10", train_file)
    words = best_words(done.stderr)
    assert words[:6] == [*map(str, cells)] and "with this point in all cells" in done.stderr
    error: dict[tuple[str, str], float] = {}
    for row in csv.DictReader(io.StringIO(done.stdout)):
        point = row["gamma"], row["cost"]
        error[point] = error.get(point, 0.0) + int(row["rows"]) * float(row["error"])
    best = min(error, key=lambda point: error[point])
    assert [float(word) for word in words[7::2]] == [float(value) for value in best]
    invoke("train", "-q", *words, train_file, tmp_path / "m.h5")
    assert "best" not in invoke("cv", "-j", 1, *cells, "-v", 2, "--kernel", "polynomial", train_file).stderr


def test_ranges_have_the_numbers_that_they_seem_to_have() -> None:
    assert parse_values("2^-2:2^10:13") == tuple(2.0**k for k in range(-2, 11))
    assert parse_values("2^-30:2^3:34") == tuple(2.0**k for k in range(-30, 4))
    assert parse_values("3:48:5") == (3.0, 6.0, 12.0, 24.0, 48.0)
    assert parse_values("5:5e6:7") == tuple(5.0 * 10**k for k in range(7))
    assert parse_values("1:2:4")[1] == pytest.approx(2 ** (1 / 3), rel=1e-15)
