"""Conventions of csrc: one prefix, one choice of the SIMD level, one way from a status code to an exception."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from localsvm._core import LEVELS, simd_level
from localsvm.errors import OptionError
from localsvm.kernels._kernels import aligned
from localsvm.partition._nearest import Matrix
from localsvm.solvers._linear import LinearRows
from localsvm.solvers._ml3 import ML3Model, ML3Training
from localsvm.solvers._smo import KernelDual

CSRC = Path(__file__).parent.parent / "csrc"
RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(400, 13)).astype(np.float32)
SPARSE = sp.csr_array(np.where(RANDOM.random(X.shape) < 0.4, X, 0).astype(np.float32))
BODIES = ("_hot.h", "level.h", "level_unfused.h", "vec.h")  # what they define is static in the levels' files


def code(path: Path) -> str:
    """A header without comments, texts and what stands in braces of functions."""
    return re.sub(r'/\*.*?\*/|"[^"\n]*"', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("path", sorted(CSRC.glob("*.h")), ids=lambda path: path.name)
def test_names_in_headers_have_the_prefix(path: Path) -> None:
    if path.name.endswith(BODIES):
        return
    text = code(path)
    names = re.findall(r"^(?:struct|enum|union) (\w+) \{", text, re.MULTILINE)
    names += re.findall(r"^typedef .*?\(?\*?(\w+)\)?(?:\([^)]*\))?;", text, re.MULTILINE)
    names += re.findall(r"^[a-z][\w *]*?\*?(\w+)\([^;{]*\);", text, re.MULTILINE)
    assert not [name for name in names if not name.startswith("lsvm_")]
    constants = re.findall(r"^#define (\w+)", text, re.MULTILINE)
    for body in re.findall(r"^enum \w* ?\{(.*?)\}", text, re.MULTILINE | re.DOTALL):
        constants += re.findall(r"(\w+)(?:\s*=[^,]*)?(?:,|\s*$)", body)
    assert constants and not [name for name in constants if not name.startswith("LSVM_")]
    assert f"LSVM_{path.stem.upper()}_H" in constants


def trained(rows: np.ndarray | sp.csr_array) -> np.ndarray:
    """Weights and scores of an epoch, as bytes in a row."""
    model, n = ML3Model(3, 5, X.shape[1], 3.0), len(X)
    training = ML3Training(model, rows, (np.arange(n) % 3).astype(np.int32), np.ones(n), 1.5, 0.01, 10.0, 7)
    order = np.random.default_rng(2).permutation(n)
    training.epoch(order, 0, initial=True)
    average = training.epoch(order, n, average=True)
    assert average is not None
    return np.concatenate([average.astype(np.float64).ravel(), model.scores(rows).ravel()])


def searched(rows: np.ndarray | sp.csr_array) -> np.ndarray:
    """Centres of two clusters and projections on them."""
    matrix, sample = Matrix(rows), np.arange(len(X))
    pair, far = matrix.pair(sample, 2, 5, 20)
    return np.concatenate([pair.ravel(), far.ravel(), matrix.project(sample, pair[0]), matrix.squares(sample)])


@pytest.mark.parametrize("answer", [trained, searched])
@pytest.mark.parametrize("rows", [X, SPARSE], ids=["dense", "sparse"])
def test_unfused_loops_give_the_same_bits_at_every_level(
    answer: Callable[[np.ndarray | sp.csr_array], np.ndarray],
    rows: np.ndarray | sp.csr_array,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = answer(rows).tobytes()
    for level in LEVELS[: simd_level() + 1]:
        monkeypatch.setenv("LOCALSVM_SIMD", level)
        assert answer(rows).tobytes() == expected


def test_one_variable_chooses_the_level_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSVM_SIMD", "neon2")
    for make in (lambda: Matrix(X), lambda: ML3Model(2, 1, 3, 2.0), lambda: LinearRows(X)):
        with pytest.raises(OptionError, match="LOCALSVM_SIMD=neon2"):
            make()


class Stopped(Exception):
    """Exception that the handler of the alarm raises."""


@pytest.fixture
def alarm() -> Iterator[Callable[[], object]]:
    """Function that sets off a signal soon, whose handler raises, as that of Ctrl-C does."""

    def handle(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, handle)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.3)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_ends_coordinate_ascent(alarm: Callable[[], object]) -> None:
    y = np.where(RANDOM.random(len(X)) < 0.5, -1.0, 1.0)
    with pytest.raises(Stopped):
        alarm()
        LinearRows(X).sdca(y, np.full(len(X), 1e6), False, 0.0, max_passes=10**9)


def test_a_signal_ends_smo(alarm: Callable[[], object]) -> None:
    rows = RANDOM.normal(size=(1024, 13))
    K = aligned((len(rows), len(rows)), np.float64)
    K[:] = rows @ rows.T  # of low rank and with costs without bound: the loop has no end
    problem = KernelDual(K, np.where(RANDOM.random(len(rows)) < 0.5, -1.0, 1.0), max_iterations=10**12)
    with pytest.raises(Stopped):
        alarm()
        problem.solve(np.full(len(rows), -1e9), np.full(len(rows), 1e9), 0.0)
