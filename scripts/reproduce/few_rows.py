"""What intervals of few rows cover: shares of fresh rows, by the number of training rows, where 90 % were promised.

    python scripts/reproduce/few_rows.py [--draws 30]

Values are a line of two features with noise of .1, whose intervals are cut short if they end with the training values,
and a curve of three features whose noise grows with the second. The table goes to stdout.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from localsvm import LocalSVR

Floats = NDArray[np.float64]
SIZES, FRESH, PROMISED = (20, 50, 100, 200), 3000, 0.9


def line(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Rows of a line."""
    X = rng.standard_normal((n, 2))
    return X, 2.0 * X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n)


def curve(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Rows of a curve."""
    X = rng.standard_normal((n, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] * rng.standard_normal(n)


def covered(of: Callable[[np.random.Generator, int], tuple[Floats, Floats]], n: int, draws: int) -> Floats:
    """Shares (draws,) of fresh rows that are in the intervals of n rows."""
    rng = np.random.default_rng(0)
    X, y = of(rng, FRESH)
    shares = []
    for _ in range(draws):
        low, high = LocalSVR(metric="none", coverage=PROMISED).fit(*of(rng, n)).predict_interval(X).T
        shares.append(np.mean((low <= y) & (y <= high)))
    return np.asarray(shares)


def main() -> None:
    """Print a line for each kind of values and number of rows: the mean share, and the smallest and the largest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=30, help="draws of the training rows")
    draws = parser.parse_args().draws
    print("values rows mean smallest largest")
    for of in (line, curve):
        for n in SIZES:
            shares = 100.0 * covered(of, n, draws)
            print(f"{of.__name__} {n} {shares.mean():.1f} {shares.min():.1f} {shares.max():.1f}", flush=True)


if __name__ == "__main__":
    main()
