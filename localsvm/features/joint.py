"""Several metrics of the same rows, for a model whose members have a geometry each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Examples, as_examples
from localsvm.features.base import Transform
from localsvm.features.metric import Metric, mean_importance
from localsvm.store.pieces import Unsound

JOINT = "members"  # its kind


@dataclass(frozen=True)
class Joint(Transform):
    """Maps rows (n, d) by each of some metrics; what these give stands side by side: (n, d times members).

    Attributes
    ----------
    parts : the metrics, each of d columns, to d columns.
    """

    parts: tuple[Metric, ...]
    kind = JOINT

    @property
    def width(self) -> int:
        """Number of columns of the rows, and of what each metric makes of them."""
        return self.parts[0].features

    @property
    def mixes(self) -> bool:
        """True where a metric is a matrix."""
        return any(part.mixes for part in self.parts)

    def importance(self) -> NDArray[np.float64]:
        """Importance (d,) float64 of each feature: the mean over the metrics; see `Metric.importance`."""
        return mean_importance(self.parts)

    def columns(self, width: int) -> int:
        """Number of columns of the mapped rows; see `Transform`."""
        return width * len(self.parts)

    def apply(self, X: Examples, *, in_place: bool = False) -> Examples:
        """The mapped rows. A row's result depends on that row alone; see `Metric.apply`."""
        if not isinstance(X, np.ndarray):
            return as_examples(sparse.hstack([part.apply(X) for part in self.parts], format="csr"))
        out = np.empty((X.shape[0], self.columns(self.width)), np.float32)
        for number, part in enumerate(self.parts):
            out[:, number * self.width : (number + 1) * self.width] = part.apply(X)
        return out

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays to store besides `kind`: those of each metric in a group of its number."""
        return {f"{number}/{part.kind}": part.values for number, part in enumerate(self.parts)}

    @classmethod
    def from_state(cls, kinds: Sequence[str], state: Mapping[str, NDArray[Any]], features: int) -> Self:
        """The metrics of these kinds, of so many features; Unsound if the arrays do not fit."""
        names = {f"{number}/{kind}" for number, kind in enumerate(kinds)}
        if names != state.keys():
            raise Unsound("/metric does not have the metrics of all members")
        arrays = [{kind: state[f"{number}/{kind}"]} for number, kind in enumerate(kinds)]
        parts = tuple(Metric.from_state(kind, of, features) for kind, of in zip(kinds, arrays, strict=True))
        if any(part.rank != features for part in parts):
            raise Unsound("/metric: a member has other columns than the others")
        return cls(parts)


def widened(metric: Metric | None, before: int, features: int) -> Metric:
    """A metric of the first columns alone, as one of all, of which the others are multiplied by 0.

    metric : of `before` columns; None for the Euclidean one.
    """
    values = np.ones(before, np.float32) if metric is None else metric.values
    more = features - len(values)
    return Metric(np.ascontiguousarray(np.pad(values, (0, more)), np.float32))
