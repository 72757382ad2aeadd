"""K-means cells: a tree whose nodes are divided by k-means on a random sample."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import size_of
from localsvm.partition._nearest import Matrix
from localsvm.partition.base import smallest_size
from localsvm.partition.centre_tree import vectors_of
from localsvm.partition.growing import RowIndices, Split, sampled, subsample, take
from localsvm.partition.tree import TreePartition
from localsvm.partition.voronoi import halve

if TYPE_CHECKING:
    from localsvm.data.blocks.dataset import Examples

CLUSTERS = 32  # children of a node at most
SAMPLE_PER_CLUSTER = 256  # rows
ITERATIONS = 50
COPIES = 4  # of the sample: ours, scikit-learn's, and what it computes with them
ROUTED = 24  # bytes of a feature of a centre, and of its direction from the first one
ELKAN_CLUSTERS = 256  # Elkan's algorithm keeps a bound for each row and cluster


class KMeansCells(TreePartition):
    """Cells of at most cell_size rows around k-means centres.

    A node of n rows is divided among k = min(ceil(n / cell_size), 32) centres, which scikit-learn's KMeans finds on a
    random sample of 256 k rows. Each row goes to its nearest centre, and children that are still too large are divided
    again. Centres with fewer than `smallest_size(cell_size)` rows are dropped, and their rows go to the nearest
    remaining centre. If fewer than two centres remain, the node is halved as in the Voronoi tree.
    """

    name = "kmeans"
    threaded: ClassVar[bool] = False  # the limit on scikit-learn's threads holds for the whole process

    @classmethod
    def fitting_bytes(cls, X: Examples, cell_size: int) -> int:
        rows, features = X.shape
        sample = size_of(X) // max(1, rows) * min(rows, CLUSTERS * SAMPLE_PER_CLUSTER)
        return int(super().fitting_bytes(X, cell_size) + COPIES * sample + CLUSTERS * ROUTED * features)

    def split(self, matrix: Matrix, rows: RowIndices, cell_size: int, rng: np.random.Generator) -> Split | None:
        k = min(-(-len(rows) // cell_size), CLUSTERS)
        centres = _cluster(matrix, subsample(rows, sampled(rows, k * SAMPLE_PER_CLUSTER, self.share), rng), k, rng)
        split = None if centres is None else _nearest(matrix, rows, centres, smallest_size(cell_size), self.manhattan)
        return halve(matrix, rows, cell_size, rng, self.share, self.manhattan) if split is None else split


class ManhattanKMeans(KMeansCells):
    """K-means cells by the Manhattan distance.

    K-means finds the centres, and a row goes to the one with the smallest sum of absolute differences.
    """

    name = "kmeans-manhattan"
    manhattan = True


def _cluster(matrix: Matrix, rows: RowIndices, k: int, rng: np.random.Generator) -> NDArray[np.float32] | None:
    """Centres of some rows, at most k; None if all rows are equal."""
    sample = take(matrix.X, rows)
    distinct, seed = len(np.unique(Matrix(sample).hashes(0))), int(rng.integers(2**31))
    return kmeans_centres(sample, min(k, distinct), seed) if distinct > 1 else None


def _nearest(
    matrix: Matrix, rows: RowIndices, centres: NDArray[np.float32], smallest: int, manhattan: bool
) -> Split | None:
    """Divide the rows among their nearest centres, without centres of fewer than `smallest` rows.

    None if fewer than two remain. The rows of dropped centres only enlarge the others, but where columns are of very
    different widths: distances are rounded anew then, and a centre may lose its rows.
    """
    while len(centres) > 1:
        split = _choose(matrix, rows, centres, manhattan)
        keep = np.bincount(split.child, minlength=len(centres)) >= smallest
        if np.all(keep):
            return split
        centres = centres[keep]
    return None


def _choose(matrix: Matrix, rows: RowIndices, centres: NDArray[np.float32], manhattan: bool) -> Split:
    wide = centres.astype(np.float64)
    size = np.abs(wide).sum(axis=1) if manhattan else np.sum(wide**2, axis=1) / 2
    thresholds = size - size[0]
    return Split(centres, thresholds, matrix.choose(rows, vectors_of(centres, manhattan), thresholds, manhattan))


def kmeans_centres(sample: Examples, k: int, seed: int) -> NDArray[np.float32]:
    """Centres, at most k, (k, d) float32, of the rows of `sample`, by scikit-learn's KMeans on one thread.

    A CSR sample needs 32-bit indices and row pointers, as `take` makes them.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # sparse products are slow in scikit-learn; Elkan's bounds save most of them, for memory of rows x k
    algorithm = "elkan" if not isinstance(sample, np.ndarray) and 1 < k <= ELKAN_CLUSTERS else "lloyd"
    with threadpool_limits(1), warnings.catch_warnings():
        # rows that are equal up to rounding give fewer clusters than k; _nearest drops the empty ones
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(n_clusters=k, n_init=1, max_iter=ITERATIONS, random_state=seed, algorithm=algorithm)
        fitted = means.fit(sample)
    return np.ascontiguousarray(fitted.cluster_centers_, dtype=np.float32)
