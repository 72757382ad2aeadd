"""Where solutions without a fold begin: methods/kernel/systems/seeds.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selecting import cell_of, examples

from localsvm.kernels import Kernel
from localsvm.kernels.blocks import BlockGram
from localsvm.kernels.gram import Gram
from localsvm.kernels.scratch import Scratch
from localsvm.methods.cell import Job
from localsvm.methods.kernel.systems.binary_rows import BinaryRows
from localsvm.methods.kernel.systems.paths import PathEnd
from localsvm.methods.kernel.systems.seeds import Seeds, Solver
from localsvm.solvers._smo import KernelDual
from localsvm.solvers.blocks import BlockDual
from localsvm.threads import Threads

GAUSSIAN = Kernel("gaussian", 0.5)
ROUGH = 1e-2


@contextmanager
def problem(
    folds: int = 5, offset: bool = False, blocks: bool = False, n: int = 150
) -> Iterator[tuple[Solver, BinaryRows]]:
    X, y = examples(n)
    cell = cell_of(X, y, folds=folds)
    rows = BinaryRows(cell, 0, not blocks)
    with Threads(1) as threads:
        if blocks:
            yield BlockDual(BlockGram(cell.X, threads, Scratch()).matrix(GAUSSIAN), rows.y, offset), rows
        else:
            yield KernelDual(Gram(cell.X, Scratch()).matrix(GAUSSIAN), rows.y, offset, True), rows


def jobs_of(costs: Sequence[float]) -> list[Job]:
    return [Job(0, fold, np.asarray([cost, 10 * cost])) for fold, cost in enumerate(costs)]


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("offset", [False, True])
@given(folds=st.integers(2, 7), cost=st.sampled_from([1e-3, 0.1, 5.0, 300.0]))
def test_a_seed_is_feasible_for_its_fold(blocks: bool, offset: bool, folds: int, cost: float) -> None:
    with problem(folds, offset, blocks) as (solver, rows):
        jobs = jobs_of([cost * (1.0 + 0.01 * fold) for fold in range(folds)])  # folds have not all as many rows
        for job, seed in zip(jobs, Seeds(solver, rows, ROUGH, not offset, True).of(jobs), strict=True):
            assert seed is not None and seed[0] == job.costs[0]
            b, most = seed[1], job.costs[0] * rows.weight_without(job.fold)
            assert not b[rows.held(job.fold)].any()
            assert (b * rows.y >= 0.0).all() and (np.abs(b) <= most * (1 + 1e-9)).all()
            assert not offset or abs(b.sum()) <= 1e-6 * most.sum()
            np.testing.assert_allclose(seed[2], solver.multiply(b), atol=1e-3 * max(1.0, float(np.abs(b).sum())))


def test_a_small_cost_begins_at_the_bounds_and_a_large_one_with_few_rows() -> None:
    with problem() as (solver, rows):
        small, large = (Seeds(solver, rows, ROUGH, True, True).of(jobs_of([cost] * 5)) for cost in (1e-3, 300.0))
        for fold in range(5):
            few, bounds = large[fold], small[fold]
            assert few is not None and bounds is not None
            np.testing.assert_array_equal(bounds[1], 1e-3 * rows.weight_without(fold) * rows.y)
            assert 0 < np.count_nonzero(few[1]) < 0.5 * rows.n


def test_a_large_cost_takes_fewer_iterations_from_its_seeds() -> None:
    with problem(n=800) as (solver, rows):
        jobs = jobs_of([10.0] * 5)
        ends = {
            "seeds": Seeds(solver, rows, ROUGH, True, True).of(jobs),
            "zero": Seeds(solver, rows, ROUGH, True, False).of(jobs),
            "bounds": [bounds(solver, rows, job) for job in jobs],
        }
        steps = {
            kind: sum(
                solver.path(rows.weight_without(job.fold), None, job.costs[:1], ROUGH, end)[2][0].iterations
                for job, end in zip(jobs, found, strict=True)
            )
            for kind, found in ends.items()
        }
        assert steps["seeds"] < 0.7 * steps["zero"] and steps["seeds"] < 0.7 * steps["bounds"], steps


def bounds(solver: Solver, rows: BinaryRows, job: Job) -> PathEnd:
    b = job.costs[0] * rows.weight_without(job.fold) * rows.y
    return float(job.costs[0]), b, solver.multiply(b)
