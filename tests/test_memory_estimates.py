"""Estimates of the memory of a cell are what its work takes, within a factor of 1.5: dense, sparse and wide rows.

The same holds for learning a metric.
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from localsvm.methods import methods

pytestmark = pytest.mark.whole  # each takes seconds

PROGRAM, LEARNING = (Path(__file__).with_name(name) for name in ("cell_memory.py", "metric_memory.py"))
FACTOR = 1.5
NOISE = 3 << 20  # what the allocator may keep or have left

# (rows, columns, entries a row)
DENSE, SPARSE, WIDE = (20_000, 100, 0), (20_000, 10_000, 10), (3_000, 200_000, 60)
FEW: dict[str, tuple[int, int, int]] = {"dense": (2500, 100, 0), "sparse": (2500, 2000, 30), "wide": (600, 100_000, 60)}
COMPONENTS: dict[str, tuple[int, int, int]] = {"dense": DENSE, "sparse": (5000, 2000, 10), "wide": (600, 30_000, 60)}
LINEAR = {"cost": [1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3], "solver": "sdca", "tolerance": 0.5}
KERNEL = {"cost": [0.1, 1.0], "gamma": [0.1, 1.0]}
MIXTURE = {"cost": [0.1, 1.0], "clusters": [4], "shrinkage": [0.1], "covariance": "diag", "tolerance": 0.5}
OPTIONS: dict[str, dict[str, Any]] = {
    "linear": LINEAR,
    "kmeans-svm": LINEAR | {"clusters": [4]},
    "csvm": LINEAR | {"clusters": [4], "common": [5.0]},
    "llsvm": LINEAR | {"clusters": [4]},
    "l3": LINEAR | {"clusters": [4], "landmarks_count": [50]},
    "svm": KERNEL,
    "rbf": KERNEL,
    "lasvm": KERNEL,
    "one-class": KERNEL,
    "l3-kernel": KERNEL | {"landmarks_count": [50]},
    "ml3": {"models": [4], "tolerance": 0.01},
    "svml": {"form": "diag"},
    "svm-knn": {"neighbours": [20], "cost": [0.1, 1.0]},
    "mllkm": {"cost": [0.01, 0.03], "tolerance": 0.4},
    "mlsvm": MIXTURE,
    "mkl": {"cost": [0.1, 1.0], "bank": "whole", "tolerance": 0.1},
    "mtl": MIXTURE | {"groups": [2], "coupling": [10.0]},
}
ROWS = {
    "linear": {"dense": DENSE, "sparse": SPARSE, "wide": WIDE},
    "svml": {"dense": (1500, 50, 0), "sparse": (1200, 1500, 10), "wide": (300, 30_000, 60)},
    "ml3": {"dense": (8000, 50, 0), "sparse": (2000, 1500, 10), "wide": (500, 50_000, 60)},
    "svm-knn": {"dense": (6000, 100, 0), "sparse": (3000, 2000, 10), "wide": (600, 30_000, 60)},
    "mllkm": {"dense": (5000, 60, 0), "sparse": (1500, 1200, 10), "wide": (300, 10_000, 40)},
    **dict.fromkeys(("mtl", "mlsvm"), COMPONENTS),
    **dict.fromkeys(("svm", "rbf", "lasvm", "one-class", "l3-kernel"), FEW),
    "mkl": {"dense": (1500, 100, 0), "sparse": (1000, 1000, 30), "wide": (400, 50_000, 60)},
}


def test_no_method_is_missing() -> None:
    assert set(OPTIONS) == set(methods())


@pytest.mark.parametrize(("name", "kind"), list(product(OPTIONS, ["dense", "sparse", "wide"])))
def test_estimates_are_what_is_taken(name: str, kind: str) -> None:
    rows = ROWS.get(name, ROWS["linear"])[kind]
    arguments = [name, "dense" if kind == "dense" else "sparse", *map(str, rows), json.dumps(OPTIONS[name])]
    assert_like(PROGRAM, *arguments)


def test_estimates_for_narrow_rows_whose_distances_are_not_kept() -> None:
    assert_like(PROGRAM, "svm", "dense", "2500", "20", "0", json.dumps(KERNEL))


@pytest.mark.parametrize("name", ["kmeans-svm", "csvm", "llsvm"])
def test_estimates_for_pairs_of_classes_with_clusters_of_their_own(name: str) -> None:
    assert_like(PROGRAM, name, "4 classes", *map(str, DENSE), json.dumps(OPTIONS[name]))


def test_estimates_for_many_pairs_of_few_rows_each() -> None:
    options = {"clusters": [2], "cost": [1e-4, 1e-3, 1e-2], "solver": "sdca", "tolerance": 0.5}
    assert_like(PROGRAM, "kmeans-svm", "16 classes", "6000", "10", "0", json.dumps(options))


# metric, kind, rows, columns, entries a row, threads
METRICS = (
    ("diag", "dense", 20_000, 100, 0, 1), ("full", "dense", 20_000, 100, 0, 1), ("full", "dense", 1500, 500, 0, 1),
    ("rank:3", "dense", 20_000, 100, 0, 1), ("auto", "dense", 10_000, 60, 0, 2), ("auto", "dense", 40_000, 20, 0, 1),
    ("diag", "sparse", 10_000, 3000, 10, 1), ("diag", "sparse", 3000, 20_000, 60, 1),
    ("nca", "dense", 4000, 10, 0, 1),
)  # fmt: skip


@pytest.mark.parametrize("case", METRICS, ids=str)
def test_learning_a_metric_takes_what_is_estimated(case: tuple[Any, ...]) -> None:
    assert_like(LEARNING, *map(str, case))


def assert_like(program: Path, *arguments: str) -> None:
    """The program prints an estimate, and what was taken."""
    done = subprocess.run([sys.executable, str(program), *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    estimate, taken = map(int, done.stdout.split())
    assert taken / FACTOR - NOISE <= estimate <= FACTOR * taken + NOISE, (estimate >> 20, taken >> 20)
