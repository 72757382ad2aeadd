"""Binary problems from classes, and decisions from their values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsvm.targets.classification import Classification

LABELS = np.asarray([-3.0, 0.5, 7.0])


def test_two_classes_are_one_problem_with_the_larger_label_positive() -> None:
    scheme = Classification(np.asarray([2.0, 4.0]), "ava")
    np.testing.assert_array_equal(scheme.encode(np.asarray([4.0, 2.0])), [[1], [-1]])
    np.testing.assert_array_equal(scheme.decide(np.asarray([[0.1], [0.0], [-3]])), [4, 2, 2])


def test_one_vs_all() -> None:
    scheme = Classification(LABELS, "ova")
    np.testing.assert_array_equal(scheme.encode(LABELS), 2 * np.eye(3) - 1)
    np.testing.assert_array_equal(scheme.decide(np.asarray([[-1, -0.5, -2], [1, 1, 0]])), [0.5, -3])


def test_all_vs_all() -> None:
    scheme = Classification(LABELS, "ava")
    assert scheme.pairs == [(0, 1), (0, 2), (1, 2)]
    np.testing.assert_array_equal(scheme.encode(LABELS), [[-1, -1, 0], [1, 0, -1], [0, 1, 1]])
    # the middle class wins both pairs; a cycle is won by the largest sum; silence by the smallest label
    decisions = np.asarray([[0.2, 0.9, -0.1], [0.1, -0.9, 0.2], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(scheme.decide(decisions), [0.5, -3.0, -3.0])


@given(k=st.integers(2, 8), seed=st.integers(0, 2**32 - 1))
def test_votes_outrank_any_sum_of_values(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scheme = Classification(np.arange(float(k)), "ava")
    decisions = rng.uniform(-50, 50, (20, len(scheme.pairs)))
    votes = np.zeros((20, k))
    for p, (i, j) in enumerate(scheme.pairs):
        votes[np.arange(20), np.where(decisions[:, p] > 0, j, i)] += 1
    chosen = scheme.decide(decisions).astype(int)
    np.testing.assert_array_equal(votes[np.arange(20), chosen], votes.max(axis=1))


@pytest.mark.parametrize("kind", ["ova", "ava"])
def test_perfect_values_give_the_classes_back(kind: str) -> None:
    scheme = Classification(np.arange(6.0), kind)
    y = np.arange(6.0)
    np.testing.assert_array_equal(scheme.decide(scheme.encode(y)), y)


def test_the_largest_part_of_the_rows_that_a_problem_takes() -> None:
    labels = np.arange(3.0)
    assert Classification(labels, "ava").largest_part([5, 90, 40]) == 130
    assert Classification(labels, "ova").largest_part([5, 90, 40]) == 0
    assert Classification(labels[:2], "ava").largest_part([5, 90]) == 0
