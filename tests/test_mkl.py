"""Multiple kernel learning: the bank, both solvers against scipy and each other, and the method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dividing import divide
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from selecting import fitted

from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.engines.base import CoarseRows, Drawn
from localsvm.errors import OptionError
from localsvm.estimators import MultipleKernelSVMClassifier
from localsvm.kernels.bank import KernelBank
from localsvm.memory import PROCESS_BYTES
from localsvm.methods.base import Purpose
from localsvm.methods.cell import Cell, Job
from localsvm.methods.cell_size import CellSize
from localsvm.methods.kernel.mkl import MultipleKernelSVM
from localsvm.methods.kernel.systems import mkl as mkl_method
from localsvm.methods.kernel.systems.mkl import PreparedBank
from localsvm.runs.cells import schedule as scheduling
from localsvm.runs.cells.schedule import CellMemory, Resources
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.train import train
from localsvm.solvers import active_set, mixed_svm
from localsvm.solvers.mkl import ActiveMatrices, KernelMixture, sequential_mkl, simple_mkl
from localsvm.targets.classification import Classification

SOLVERS = (sequential_mkl, simple_mkl)
SMALL = MultipleKernelSVM(widths=(0.5, 2.0), cost=(2.0,), tolerance=1e-4)


def rows_of(n: int = 60, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d)).astype(np.float32)
    return X, np.where(X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * random.standard_normal(n) > 0, 1.0, -1.0)


def bank_of(n: int = 60, d: int = 4, **options: Any) -> tuple[KernelBank, np.ndarray]:
    X, y = rows_of(n, d)
    return KernelBank(X, replace(SMALL, **options).kinds, each=True), y


def cell_of(X: Any, y: np.ndarray) -> Cell:
    ones = np.ones(len(y))
    return Cell(X, y, Classification(np.unique(y), "ova"), ones, ones, np.sort(np.arange(len(y)) % 3))


class Listed:
    """A bank of given matrices."""

    def __init__(self, matrices: list[np.ndarray]) -> None:
        self.matrices, self.size = matrices, len(matrices)

    def matrix(self, name: int) -> np.ndarray:
        return self.matrices[name]

    def prefer(self, names: Iterable[int]) -> None:
        """Do nothing: all matrices are there."""


def listed(bank: KernelBank) -> Listed:
    return Listed([bank.matrix(m) for m in range(bank.size)])


def scores(bank: Any, b: np.ndarray) -> np.ndarray:
    return np.asarray([0.5 * b @ bank.matrix(m) @ b for m in range(bank.size)])


def check_certificate(bank: Any, y: np.ndarray, cost: np.ndarray, mixture: KernelMixture) -> None:
    """Check both objectives: P by the norms of the functions of the kernels, D by the largest score of all."""
    assert np.all((mixture.b * y >= 0) & (mixture.b * y <= cost * (1 + 1e-12)))
    assert mixture.beta.min() > 0 and mixture.beta.sum() == pytest.approx(1)
    parts = np.stack([beta * bank.matrix(m) @ mixture.b for m, beta in zip(mixture.names, mixture.beta, strict=True)])
    assert_allclose(mixture.f, parts.sum(axis=0), atol=1e-8)
    norms = np.sqrt([beta * part @ mixture.b for beta, part in zip(mixture.beta, parts, strict=True)])
    primal = 0.5 * norms.sum() ** 2 + cost @ np.maximum(0, 1 - y * mixture.f)
    dual = np.abs(mixture.b).sum() - scores(bank, mixture.b).max()
    assert primal <= mixture.primal * (1 + 1e-9)
    assert mixture.dual == pytest.approx(dual, rel=1e-9)
    assert dual <= primal


def test_matrices_are_the_kernels_by_their_mean_diagonal() -> None:
    X, _ = rows_of(40, 3)
    X += np.float32(50)
    bank = KernelBank(X, SMALL.kinds, each=True)
    assert bank.size == 5 * 4
    assert [bank.what(m) for m in (0, 4, 5, 19)] == [(-1, 0), (-1, 4), (0, 0), (2, 4)]
    for m in range(bank.size):
        variable, kind = bank.what(m)
        Z = X.astype(np.float64) if variable < 0 else X[:, [variable]].astype(np.float64)
        squares = np.square(Z[:, None] - Z[None]).sum(axis=2)
        plain = np.exp(-squares / (2 * SMALL.widths[kind] ** 2)) if kind < 2 else (Z @ Z.T + 1) ** (kind - 1)
        K = bank.matrix(m)
        assert np.trace(K) / 40 == pytest.approx(1)
        assert_allclose(K * bank.scale(m), plain, rtol=1e-5)


def test_what_is_not_kept_is_computed_again_to_the_same_bits() -> None:
    X, y = rows_of()
    banks = [KernelBank(X, SMALL.kinds, True, kept) for kept in (0, 5 * 8 * 60**2, 1 << 30)]
    mixtures = [sequential_mkl(bank, y, np.full(60, 2.0), 1e-3) for bank in banks]
    for other in mixtures[:2]:
        assert_array_equal(other.b, mixtures[2].b)
        assert_array_equal(other.beta, mixtures[2].beta)
    assert len(banks[0]._kept) <= 1 and len(banks[1]._kept) <= 5


@pytest.mark.parametrize(("memory", "kept"), [(None, 25), (200 << 20, 25), (0, 1), (1 << 20, 6)])
def test_memory_says_how_many_matrices_are_kept(
    memory: int | None, kept: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows_of(120)
    banks: list[KernelBank] = []

    class Watched(KernelBank):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            banks.append(self)

    monkeypatch.setattr(mkl_method, "KernelBank", Watched)
    config = TrainingConfig(SMALL, "none", folds=3)
    divided = divide(Dataset(X, y), config)
    needed = CellMemory(divided.trainer, divided.only, Resources()).worker_bytes()
    given = None if memory is None else memory + needed + divided.only.nbytes + PROCESS_BYTES
    rows = CoarseRows(0, Drawn(np.arange(120), X.copy(), y))
    events = [name for _, name, _ in divided.trainer.records([rows], Resources(memory=given))]
    assert [name for name in events if "/" not in name] == ["0", "division"]
    assert min(banks[0]._room, banks[0].size) == (
        kept if kept != 8 else int(scheduling.SPARE_SHARE * (1 << 20)) // 115200
    )


def test_sparse_rows_have_the_kernels_of_the_columns_that_occur() -> None:
    X, _ = rows_of(30, 6)
    X[:, [1, 4]] = 0
    dense, thin = (KernelBank(Z, SMALL.kinds, True) for Z in (X, as_examples(sparse.csr_array(X))))
    assert_array_equal(thin.variables, [0, 2, 3, 5])
    names = {dense.what(m): m for m in range(dense.size)}
    for m in range(thin.size):
        assert_allclose(thin.matrix(m), dense.matrix(names[thin.what(m)]), rtol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("cost", [0.1, 10.0])
def test_optima_are_scipys(solver: Any, cost: float) -> None:
    bank, y = bank_of(30, 3, widths=(1.0,))
    costs = cost * np.random.default_rng(1).uniform(0.5, 1.5, 30)
    mixture = solver(bank, y, costs, 1e-5)
    signed = [y[:, None] * bank.matrix(m) * y for m in range(bank.size)]
    best = minimize(  # (a, t): max sum a - t, where t is at least each score
        lambda v: v[-1] - v[:-1].sum(),
        np.append(0.5 * costs, 100.0),
        jac=lambda v: np.append(-np.ones(30), 1.0),
        bounds=[*((0, c) for c in costs), (0, None)],
        constraints={
            "type": "ineq",
            "fun": lambda v: v[-1] - np.asarray([0.5 * v[:-1] @ K @ v[:-1] for K in signed]),
            "jac": lambda v: np.stack([np.append(-K @ v[:-1], 1.0) for K in signed]),
        },
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-10},
    )
    assert mixture.converged
    check_certificate(bank, y, costs, mixture)
    assert mixture.primal == pytest.approx(-best.fun, rel=1e-4)
    assert mixture.dual == pytest.approx(-best.fun, rel=1e-4)


@pytest.mark.parametrize("cost", [0.3, 100.0])
def test_both_reach_one_optimum_where_active_kernels_share_one_score(cost: float) -> None:
    bank, y = bank_of()
    costs = np.full(60, cost)
    mixtures = [solver(bank, y, costs, 1e-5) for solver in SOLVERS]
    assert mixtures[0].primal == pytest.approx(mixtures[1].primal, rel=1e-4)
    for one in mixtures:
        assert one.converged and 0 <= one.gap <= 1e-5
        assert 1 < len(one.names) < bank.size
        check_certificate(bank, y, costs, one)
        q = scores(bank, one.b)
        active = q[one.names]
        assert np.all(one.beta * (active.max() - active) <= 2e-5 * one.primal)
        assert q.max() <= active.max() + 2e-5 * one.primal


@pytest.mark.parametrize("cost", [0.3, 100.0])
def test_kernels_that_are_seen_once_come_near_the_optimum(cost: float, monkeypatch: pytest.MonkeyPatch) -> None:
    bank, y = bank_of(80, 6)
    parts, costs, looked = bank.parts(np.random.default_rng(0)), np.full(80, cost), []
    look = ActiveMatrices.look

    def watched(self: ActiveMatrices, kernels: np.ndarray) -> float:
        looked.append(kernels)
        return look(self, kernels)

    best = sequential_mkl(bank, y, costs, 1e-4)
    monkeypatch.setattr(ActiveMatrices, "look", watched)
    mixture = sequential_mkl(bank, y, costs, 1e-4, parts=parts)
    assert mixture.rounds == len(looked) == 8
    assert_array_equal(np.sort(np.concatenate(looked[:-1])), np.arange(bank.size))
    assert_array_equal(looked[-1], np.arange(bank.size))
    assert best.primal * (1 - 1e-4) <= mixture.primal <= 1.03 * best.primal
    check_certificate(bank, y, costs, mixture)
    assert mixture.converged == (mixture.gap <= 1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_duplicated_kernel_changes_nothing(solver: Any) -> None:
    bank, y = bank_of(40, 3)
    plain, costs = listed(bank), np.full(40, 2.0)
    alone = solver(plain, y, costs, 1e-6)
    best = int(alone.names[np.argmax(alone.beta)])
    twice = solver(Listed([*plain.matrices, plain.matrices[best]]), y, costs, 1e-6)
    assert twice.primal == pytest.approx(alone.primal, rel=1e-5)
    assert_allclose(twice.f, alone.f, atol=2e-2)
    both = dict(zip(twice.names.tolist(), twice.beta, strict=True))
    together = both.get(best, 0.0) + both.get(plain.size, 0.0)
    assert together == pytest.approx(alone.beta.max(), abs=2e-2)


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_without_target_or_cost_take_no_part(solver: Any) -> None:
    bank, y = bank_of()
    out = np.arange(60) % 4 == 0
    part = Listed([bank.matrix(m)[np.ix_(~out, ~out)] for m in range(bank.size)])
    expected = solver(part, y[~out], np.full(45, 2.0), 1e-4)
    for targets, costs in ((y * ~out, np.full(60, 2.0)), (y, 2.0 * ~out)):
        mixture = solver(bank, targets, costs, 1e-4)
        assert mixture.primal == pytest.approx(expected.primal, rel=1e-4)
        assert not mixture.b[out].any()
        assert_allclose(mixture.f[~out], expected.f, atol=0.05)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_start_saves_solves_and_what_was_not_reached_is_said(solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bank, y = bank_of()
    before = solver(bank, y, np.full(60, 2.0), 1e-4)
    again = solver(bank, y, np.full(60, 2.0), 1e-4, before)
    assert again.solves < before.solves / 2
    warm, cold = (solver(bank, y, np.full(60, 2.2), 1e-4, start) for start in (before, None))
    assert warm.primal == pytest.approx(cold.primal, rel=2e-4)
    monkeypatch.setattr(mixed_svm, "MOST_STEPS", 1)
    monkeypatch.setattr(active_set, "MOST_ROUNDS", 1)
    stopped = solver(bank, y, np.full(60, 2.0), 1e-4)
    assert not stopped.converged and stopped.gap > 1e-4
    check_certificate(bank, y, np.full(60, 2.0), stopped)


def test_models_decide_as_they_were_fitted() -> None:
    X, y = rows_of()
    predictor, state = fitted(SMALL, cell_of(X, y))
    direct = sequential_mkl(KernelBank(X, SMALL.kinds, True), y, np.full(60, 2.0), 1e-4)
    assert_allclose(predictor.decision_function(X)[:, 0], direct.f, atol=1e-4)
    assert_allclose(state["kernel_weight"], direct.beta)
    assert state["model_gap"][0] == direct.gap <= 1e-4
    one_by_one = np.concatenate([predictor.decision_function(X[i : i + 1]) for i in range(60)])
    assert_array_equal(one_by_one, predictor.decision_function(X))
    thin, _ = fitted(SMALL, cell_of(as_examples(sparse.csr_array(X)), y))
    assert_allclose(thin.decision_function(as_examples(sparse.csr_array(X))), predictor.decision_function(X), atol=1e-3)


def test_held_out_values_are_those_of_models_without_the_fold() -> None:
    X, y = rows_of(90)
    cell, method = cell_of(X, y), replace(SMALL, tolerance=1e-6)
    system = PreparedBank(method, cell).at({}, Purpose(2.0))
    jobs = [Job(0, fold, np.asarray([2.0])) for fold in range(3)]
    out = np.zeros((1, 1, 90))
    system.held_out(jobs, system.solve(jobs, [None] * 3, 1.0), out)
    bank = KernelBank(X, method.kinds, True)
    for fold in range(3):
        kept = cell.folds != fold
        part = Listed([bank.matrix(m)[np.ix_(kept, kept)] for m in range(bank.size)])
        alone = sequential_mkl(part, y[kept], np.full(60, 2.0), 1e-6)
        K = np.tensordot(alone.beta, np.stack([bank.matrix(m) for m in alone.names]), 1)
        assert_allclose(out[0, 0, ~kept], K[np.ix_(~kept, kept)] @ alone.b, atol=1e-2)


@pytest.mark.parametrize(("online", "tolerance"), [("none", 1e-2), ("kernels", 0.5)])
def test_models_do_not_depend_on_the_jobs_or_on_what_is_kept(
    online: str, tolerance: float, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows_of(90)
    y = y + 2 * (X[:, 3] > 0.5)
    method = replace(SMALL, cost=(0.1, 1.0), tolerance=tolerance, online=online)
    config = TrainingConfig(method, "none", folds=3, scale="zscore")
    decisions = []
    for jobs, kept in ((1, 1 << 30), (2, 1 << 30), (1, 0)):
        monkeypatch.setattr(scheduling, "SPARE_BYTES", kept)
        train(Dataset(X.copy(), y), config, tmp_path / f"{jobs}{kept}.h5", resources=Resources(jobs=jobs))
        with LocalModel(tmp_path / f"{jobs}{kept}.h5") as model:
            decisions.append(model.decision_function(X))
    assert_array_equal(decisions[1], decisions[0])
    assert_array_equal(decisions[2], decisions[0])
    options = {"widths": [0.5, 2.0], "cost": [0.1, 1.0], "tolerance": tolerance, "online": online}
    same = MultipleKernelSVMClassifier(**options, folds=3, scale="zscore").fit(X, y)
    assert_array_equal(same.decision_function(X), decisions[0])


def test_a_bank_that_is_too_large_is_refused() -> None:
    size = CellSize(rows=100, features=5000, weight=1.0, solutions=5, part=0)
    with pytest.raises(OptionError, match="--bank whole"):
        SMALL.check(size)
    assert replace(SMALL, bank="whole").memory(size) > 0


@pytest.mark.parametrize("cost", [0.1, 100.0])
def test_rows_that_are_equal_to_a_kernel_leave_no_gap_open(cost: float) -> None:
    """Many coefficients are best where a kernel maps rows to one point, and only some of them certify the optimum."""
    random = np.random.default_rng(5)
    X = (random.random((40, 3)) * (random.random((40, 3)) < 0.4)).round(1).astype(np.float32)
    y = np.where(random.random(40) < 0.5, 1.0, -1.0)
    bank = KernelBank(X, MultipleKernelSVM().kinds, each=True)
    costs = np.full(40, cost)
    for solver in SOLVERS:
        mixture = solver(bank, y, costs, 1e-3)
        assert mixture.converged
        check_certificate(bank, y, costs, mixture)


@pytest.mark.parametrize(("before", "cost"), [(1e-3, 100.0), (1e-3, 1000.0), (0.1, 1000.0)])
def test_a_start_of_small_coefficients_leads_to_large_ones(before: float, cost: float) -> None:
    """A ridge that is measured by the coefficients must not keep them small."""
    bank, y = bank_of(widths=(0.5, 2.0, 8.0))
    start = sequential_mkl(bank, y, np.full(60, before), 1e-2)
    mixture = sequential_mkl(bank, y, np.full(60, cost), 1e-2, start)
    assert mixture.converged
    check_certificate(bank, y, np.full(60, cost), mixture)


def test_a_cost_that_cannot_be_solved_ends(tmp_path: Path) -> None:
    """Labels of noise at a cost of 1e50 end unconverged; without a bound on the work they take minutes."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 20)).astype(np.float32), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    config = TrainingConfig(MultipleKernelSVM(cost=(1e50,)), "none")
    assert train(Dataset(X, y), config, tmp_path / "m.h5").not_converged == 1


def test_rows_of_one_side_have_its_constant() -> None:
    X, _ = rows_of(12)
    predictor, state = fitted(SMALL, cell_of(X, np.ones(12)))
    assert len(state["kernel_weight"]) == 0
    assert len(set(predictor.decision_function(X)[:, 0])) == 1
