"""Helpers for tests of scripts: small data sets in the form of the real ones, and commands without a process."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from command_line import invoke

from localsvm.data.writers.libsvm import write


def put(folder: Path, name: str, part: str, X: Any, y: Any) -> None:
    """Write rows and labels as NAME.PART.libsvm.xz."""
    with lzma.open(folder / f"{name}.{part}.libsvm.xz", "wb") as file:
        write(file, np.asarray(X, np.float32), np.asarray(y, np.float64))


def draw(
    folder: Path, name: str, labels: Callable[[Any], Any], train: int = 70, test: int = 30, columns: int = 3
) -> None:
    """Write both parts of a set of normal rows, with the labels (n,) that `labels` gives to rows (n, columns)."""
    rng = np.random.default_rng(0)
    for part, rows in (("train", train), ("test", test)):
        X = rng.standard_normal((rows, columns))
        put(folder, name, part, X, labels(X))


def within(name: str, arguments: list[str]) -> tuple[Any, dict[str, float]]:
    """Result of `lsvm` as the scripts' harness gives it, without a process."""
    return json.loads(invoke(name, "--json", "--force", "-q", *arguments).stdout), {"cpu": 1.0}
