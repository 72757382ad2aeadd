"""Paths along the costs of losses that SMO solves: where they begin and where they end."""

from __future__ import annotations

import numpy as np
import pytest
from value_cells import cell_of_values, examples

from localsvm.kernels import Kernel
from localsvm.kernels.gram import Gram
from localsvm.kernels.scratch import Scratch
from localsvm.methods.cell import Job
from localsvm.methods.kernel.systems import duals
from localsvm.methods.kernel.systems.duals import DualSystem
from localsvm.targets.loss_names import ABSOLUTE
from localsvm.targets.losses import Loss


def test_costs_that_take_too_many_steps_have_the_solution_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """And smaller costs, which a search may ask for afterwards, their own."""
    monkeypatch.setattr(duals, "MOST_STEPS", 1000)
    monkeypatch.setattr(duals, "MOST_STEPS_A_ROW", 0)
    X, _ = examples(200, 2)
    losses = (Loss(ABSOLUTE),)
    cell = cell_of_values(X, np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2, losses=losses)
    kernel = Kernel("gaussian", 0.5)
    system = DualSystem(cell, Gram(cell.X, Scratch()).matrix(kernel, False), kernel, 1e-3, losses)
    ((small, *_, last),) = system.solve([Job(0, 0, np.asarray([0.1, 0.2, 1e3, 1e5]))], [None], 1.0)
    assert last.ended and not small.ended
    ((larger,),) = system.solve([Job(0, 0, np.asarray([1e6]))], [last], 1.0)
    assert larger is last
    ((again,),) = system.solve([Job(0, 0, np.asarray([0.1]))], [last], 1.0)
    assert not again.ended and np.abs(again.held_out - small.held_out).max() < 0.1
    assert np.abs(again.held_out - last.held_out).max() > 0.1
    monkeypatch.setattr(duals, "MOST_STEPS", 1)
    ((unsolved, still),) = system.solve([Job(0, 0, np.asarray([0.1, 0.15]))], [last], 1.0)
    assert unsolved is still and unsolved.ended and unsolved.end is not None and unsolved.end[0] == 0.1
    monkeypatch.setattr(duals, "MOST_STEPS", 1000)
    ((cold,),) = system.solve([Job(0, 0, np.asarray([1e5]))], [None], 1.0)
    ((*_, warm),) = system.solve([Job(0, 0, np.append(np.geomspace(1.0, 1e5, 9, endpoint=False), 1e5))], [None], 1.0)
    assert cold.ended
    np.testing.assert_array_equal(cold.held_out, warm.held_out)


def test_a_grid_of_the_most_costs_has_a_ramp_all_the_same() -> None:
    """Where they begin at the largest cost that is allowed, too."""
    X, y = examples(40)
    losses = (Loss(ABSOLUTE),)
    cell = cell_of_values(X, y, losses=losses)
    kernel = Kernel("gaussian", 0.5)
    system = DualSystem(cell, Gram(cell.X, Scratch()).matrix(kernel, False), kernel, 1e-3, losses)
    for first in (20.0, 1e49):
        (path,) = system.solve([Job(0, 0, np.geomspace(first, 1e50, 64))], [None], 1.0)
        assert len(path) == 64 and all(np.isfinite(solution.held_out).all() for solution in path)
