"""The first pass over a file that does not fit in memory: labels or values, scaling, and a sample of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Examples, as_examples, thinned
from localsvm.engines.base import Block, Labels, ValueStatistic
from localsvm.engines.stream import Stream
from localsvm.features.chain import Chain
from localsvm.features.columns import KeptColumns
from localsvm.features.moments import Moments, merge
from localsvm.features.origin import Origin
from localsvm.features.scaling import MEASURED, Scaling
from localsvm.runs.preparation.prepare import found_classes, found_values
from localsvm.targets.base import Observed
from localsvm.targets.losses import Loss


@dataclass(frozen=True)
class StreamSurvey:
    """Result of the first pass over a file.

    Attributes
    ----------
    observed : Observed
        Of the labels or values.
    y, mass : (classes,) float64
        The labels, ascending, and the weights of their rows, summed; of values their mean, and that of all rows.
    chain : Chain
    sample : Examples
        A random sample of the rows, scaled.
    """

    observed: Observed
    y: NDArray[np.float64]
    mass: NDArray[np.float64]
    chain: Chain
    sample: Examples

    def scaled(self, X: Examples) -> Examples:
        """Rows of the file, which are overwritten where that can be."""
        return self.chain.scaled(X, read=True, in_place=True)


def surveyed(
    stream: Stream, scale: str, sample: int, rng: np.random.Generator, losses: Sequence[Loss] = ()
) -> StreamSurvey:
    """Make one pass over the rows and keep a random sample of at most `sample` of them."""
    chosen = np.sort(rng.choice(stream.rows, min(sample, stream.rows), replace=False))
    sampled_blocks: list[Examples] = []
    moments: Moments | None = None
    statistic: Any = ValueStatistic(stream.rows) if losses else Labels()
    found: Any = None
    for first, X, y, weight in stream.blocks():
        of_block = statistic.of(Block(first, X, y, weight))
        found = of_block if found is None else statistic.merge(found, of_block)
        sampled_blocks.append(X[chosen[slice(*np.searchsorted(chosen, [first, first + len(y)]))] - first])
        if scale in MEASURED:
            block_moments = Moments.of(X)
            moments = block_moments if moments is None else merge(moments, block_moments)
    columns = KeptColumns(stream.columns, stream.width, stream.dense)
    origin = Origin.fit(stream.shift, stream.columns, stream.features)
    chain = Chain(columns, origin, Scaling.fit(moments, scale))
    rows = np.concatenate(sampled_blocks) if stream.dense else as_examples(sparse.vstack(sampled_blocks, format="csr"))
    observed = found_values(found, losses) if losses else found_classes(found)
    y = observed.labels if observed.values is None else np.asarray([observed.values.mean])
    mass = np.asarray([found.mass] if losses else [found[label][1] for label in y.tolist()])
    return StreamSurvey(observed, y, mass, chain, thinned(chain.scaled(rows, read=True)))
