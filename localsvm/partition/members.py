"""Members of a model: repeats of a partition that see rows in geometries of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localsvm.data.blocks.dataset import Examples, as_examples


@dataclass(frozen=True)
class Members:
    """The members of a model: repeats of a partition, each with one of some geometries, in turn.

    Attributes
    ----------
    distances : of each geometry.
    width : columns that a geometry has of the mapped rows; where there is one, it has all columns, however many.
    """

    distances: tuple[str, ...]
    width: int = 0

    @property
    def several(self) -> bool:
        """True where there are different geometries."""
        return len(self.distances) > 1

    def distance(self, repeat: int) -> str:
        """Distance of a repeat."""
        return self.distances[repeat % len(self.distances)]

    def seen(self, repeat: int, X: Examples) -> Examples:
        """Columns of mapped rows that a repeat sees."""
        if not self.several:
            return X
        first = repeat % len(self.distances) * self.width
        part = X[:, first : first + self.width]
        return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else as_examples(part)
