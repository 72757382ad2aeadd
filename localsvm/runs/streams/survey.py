"""The first pass over a file that does not fit in memory: its labels, its scaling, and a sample of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Examples, as_examples, thinned
from localsvm.engines.stream import Stream
from localsvm.features.chain import Chain
from localsvm.features.columns import KeptColumns
from localsvm.features.moments import Moments, merge
from localsvm.features.origin import Origin
from localsvm.features.scaling import MEASURED, Scaling
from localsvm.targets.base import Observed


@dataclass(frozen=True)
class Survey:
    """Result of the first pass over a file.

    Attributes
    ----------
    labels : (classes,) float64
        Sorted and distinct.
    class_rows : (classes,) int64
        Number of rows of each label.
    class_mass : (classes,) float64
        Their weights, summed.
    chain : Chain
    sample : Examples
        A random sample of the rows, scaled.
    """

    labels: NDArray[np.float64]
    class_rows: NDArray[np.int64]
    class_mass: NDArray[np.float64]
    chain: Chain
    sample: Examples

    @property
    def observed(self) -> Observed:
        """What it has found of the labels."""
        return Observed.of_classes(self.labels, self.class_rows.tolist())

    def scaled(self, X: Examples) -> Examples:
        """Rows of the file, which are overwritten where that can be."""
        return self.chain.scaled(X, read=True, in_place=True)


@dataclass
class _Labels:
    """Rows, and their weights summed, of each label."""

    rows: dict[float, int] = field(default_factory=dict)
    mass: dict[float, float] = field(default_factory=dict)

    def add(self, y: NDArray[np.float64], weight: NDArray[np.float64]) -> None:
        labels, code, counts = np.unique(y, return_inverse=True, return_counts=True)
        for label, count, mass in zip(labels.tolist(), counts, np.bincount(code, weight), strict=True):
            self.rows[label] = self.rows.get(label, 0) + int(count)
            self.mass[label] = self.mass.get(label, 0.0) + float(mass)


def surveyed(stream: Stream, scale: str, sample: int, rng: np.random.Generator) -> Survey:
    """Make one pass over the rows and keep a random sample of at most `sample` of them."""
    chosen = np.sort(rng.choice(stream.rows, min(sample, stream.rows), replace=False))
    sampled_blocks: list[Examples] = []
    moments: Moments | None = None
    counted = _Labels()
    for first, X, y, weight in stream.blocks():
        counted.add(y, weight)
        sampled_blocks.append(X[chosen[slice(*np.searchsorted(chosen, [first, first + len(y)]))] - first])
        if scale in MEASURED:
            block_moments = Moments.of(X)
            moments = block_moments if moments is None else merge(moments, block_moments)
    columns = KeptColumns(stream.columns, stream.width, stream.dense)
    origin = Origin.fit(stream.shift, stream.columns, stream.features)
    chain = Chain(columns, origin, Scaling.fit(moments, scale))
    labels = np.asarray(sorted(counted.rows))
    rows = np.concatenate(sampled_blocks) if stream.dense else as_examples(sparse.vstack(sampled_blocks, format="csr"))
    class_rows, class_mass = (np.asarray([of[label] for label in labels]) for of in (counted.rows, counted.mass))
    return Survey(labels, class_rows, class_mass, chain, thinned(chain.scaled(rows, read=True)))
