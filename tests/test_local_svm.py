"""Linear SVMs on a handful of rows: large costs, against the linear program that they tend to, and where they end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from localsvm.solvers import local_svm
from localsvm.solvers.local_svm import decision_values


def overlapping(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) and labels (n,) of two classes that no plane separates."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + rng.standard_normal(n) > 0.0, 1.0, -1.0)


def least_hinge(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The smallest sum of hinges of any w and b, and |w|^2 where it is reached."""
    n, d = X.shape
    price = np.concatenate([np.zeros(d + 1), np.ones(n)])
    margins = -np.hstack([y[:, None] * X, y[:, None], np.eye(n)])
    solution = linprog(price, margins, -np.ones(n), bounds=[(None, None)] * (d + 1) + [(0.0, None)] * n)
    return float(solution.fun), float(solution.x[:d] @ solution.x[:d])


@pytest.mark.parametrize("cost", [1e4, 1e6, 1e8])
def test_large_costs_are_solved(cost: float) -> None:
    X, y = overlapping(60, 10, 0)
    least, square = least_hinge(X, y)
    rows = np.vstack([X, np.zeros(10), np.eye(10)])
    values, violation = decision_values(X, y[:, None], np.ones(60), np.asarray([cost]), rows, 1e-6)
    assert violation[0, 0] == 0.0
    w, hinge = values[0, 61:, 0] - values[0, 60, 0], np.maximum(0.0, 1.0 - y * values[0, :60, 0]).sum()
    objective = 0.5 * w @ w + cost * hinge
    assert cost * least <= objective * (1.0 + 1e-9)
    assert objective <= 0.5 * square + cost * least + 60 * 1e-6 * cost


def test_the_solution_is_that_of_many_steps_on_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = overlapping(60, 10, 1)
    several = X, y[:, None], np.ones(60), np.asarray([10.0, 1000.0]), X, 1e-6
    expected, _ = decision_values(*several)
    monkeypatch.setattr(local_svm, "PAIRS", 10)
    values, violations = decision_values(*several)
    assert not violations.any()
    np.testing.assert_allclose(values, expected, atol=1e-4)


def test_what_cannot_be_solved_is_told() -> None:
    X, y = overlapping(60, 10, 2)
    cost = np.asarray([1.0, 1e50])
    values, violations = decision_values(1e6 * X, y[:, None], np.ones(60), cost, X[:3], 1e-12)
    assert np.isfinite(values).all() and (violations >= 0.0).all() and violations[1, 0] > 1e-12
