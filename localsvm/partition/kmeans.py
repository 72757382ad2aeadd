"""K-means cells: a tree whose nodes are divided by k-means on a subsample."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.partition._nearest import Matrix
from localsvm.partition.base import smallest_size
from localsvm.partition.tree import Rows, Split, Splitter, TreePartition, directions_of
from localsvm.partition.voronoi import halve

if TYPE_CHECKING:
    from localsvm.data.dataset import Examples

CLUSTERS = 32
SAMPLE_PER_CLUSTER = 256
ITERATIONS = 50


class KMeansCells(TreePartition):
    """Cells of at most cell_size rows around k-means centres.

    A node of n rows is divided among k = min(ceil(n / cell_size), 32) centres that scikit-learn's KMeans finds on a
    random subsample (256 rows a centre), each row going to the nearest; cells still too large are divided again.
    Centres with fewer than `smallest_size(cell_size)` rows are dropped and their rows go to the nearest that is left.
    Where fewer than two centres are left, the node is halved as the balanced binary Voronoi tree does it.
    """

    name: ClassVar[str] = "kmeans"

    def _splitter(self, X: Examples, matrix: Matrix, cell_size: int) -> Splitter:
        return _Clusters(X, matrix, cell_size)


@dataclass(frozen=True)
class _Clusters:
    """The splitter of a k-means tree over the rows of X."""

    X: Examples
    matrix: Matrix
    cell_size: int

    def __call__(self, rows: Rows, rng: np.random.Generator) -> Split | None:
        k = min(-(-len(rows) // self.cell_size), CLUSTERS)
        size = min(len(rows), k * SAMPLE_PER_CLUSTER)
        sample = _take(self.X, rows[np.sort(rng.choice(len(rows), size, replace=False, shuffle=False))])
        k = min(k, len(np.unique(Matrix(sample).hashes(0))))
        found = self._nearest(rows, kmeans_centres(sample, k, int(rng.integers(2**31)))) if k > 1 else None
        return halve(self.matrix, self.cell_size, rows, rng) if found is None else found

    def _nearest(self, rows: Rows, centres: NDArray[np.float32]) -> Split | None:
        """The rows with their nearest centres, those of too few rows dropped; None when fewer than two are left.

        One round is enough: the rows of dropped centres only make the others larger.
        """
        split = self._choose(rows, centres)
        sizes = np.bincount(split.child, minlength=len(centres))
        keep = sizes >= smallest_size(self.cell_size)
        if np.count_nonzero(keep) < 2:
            return None
        return split if np.all(keep) else self._choose(rows, centres[keep])

    def _choose(self, rows: Rows, centres: NDArray[np.float32]) -> Split:
        squares = np.sum(centres.astype(np.float64) ** 2, axis=1)
        thresholds = (squares - squares[0]) / 2
        return Split(centres, thresholds, self.matrix.choose(rows, directions_of(centres), thresholds))


def _take(X: Examples, rows: Rows) -> Examples:
    sample = X[rows]
    if isinstance(sample, np.ndarray):
        return np.ascontiguousarray(sample)
    # scikit-learn takes 32-bit row pointers only, and a subsample never needs more
    parts = sample.data, sample.indices.astype(np.int32), sample.indptr.astype(np.int32)
    return sparse.csr_array(parts, shape=sample.shape)


def kmeans_centres(sample: Examples, k: int, seed: int) -> NDArray[np.float32]:
    """At most k centres (k, d) float32 of the sample's rows by scikit-learn's KMeans on one thread."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        # fewer clusters than asked for (rows that differ by less than rounding) are dropped later as too small
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = KMeans(n_clusters=k, n_init=1, max_iter=ITERATIONS, random_state=seed).fit(sample)
    return np.ascontiguousarray(fitted.cluster_centers_, dtype=np.float32)
