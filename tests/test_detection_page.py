"""The script that measures false alarms: the peers' thresholds, how mistakes are counted, and the page."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pytest
from scipy.stats import binom

from reproduce import detection
from reproduce.detection import BOUNDS, METHODS, Detection, careful, page, plain, wrong


@pytest.mark.parametrize("n", [59, 300, 1000])
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.fast(9)
def test_a_careful_threshold_is_the_lowest_that_keeps_the_bound(n: int, bound: float) -> None:
    """Of so many rows, as few as are above it are so by chance at most one time in twenty."""
    quiet = np.random.default_rng(0).standard_normal(n)
    threshold = careful(quiet, bound)
    if threshold is None:
        assert (1.0 - bound) ** n > 0.05
        return
    above = int((quiet > threshold).sum())
    assert binom.cdf(above, n, bound) <= 0.05 < binom.cdf(above + 1, n, bound)
    assert threshold in quiet and threshold >= plain(quiet, bound)


def test_mistakes_are_shares_of_their_own_class() -> None:
    alarm, positive = np.asarray([True, True, False, False, False]), np.asarray([True, False, True, False, False])
    assert wrong(alarm, positive) == (pytest.approx(1 / 3), 0.5)


def test_the_page_counts_runs_above_the_bound() -> None:
    runs = [
        Detection("magic", METHODS[0], seed, (5000, 14_020), [None, 0.04, share], [None, 0.5, 0.2])
        for seed, share in enumerate((0.08, 0.12))
    ]
    text = page(runs, Namespace(quick=False))
    assert "| localsvm | 0 of 0 | 0 of 2 | 1 of 2 |" in text
    assert "| magic | localsvm | — | 4.00 / 50.0 | 10.00 / 20.0 (1) |" in text
    assert "5 000 are drawn for training" in text and "with 2 seeds" in text


def test_a_split_has_no_row_twice() -> None:
    X = np.arange(100.0)[:, None]
    split = detection.drawn(X, X[:, 0], 0, 60)
    drawn = np.concatenate([split.train[1], split.test[1]])
    assert len(split.train[1]) == 60 and sorted(drawn.tolist()) == X[:, 0].tolist()
