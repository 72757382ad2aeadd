"""The random numbers of a cell: a stream for each purpose.

A stream is the same whatever else is drawn, so that settings share what was drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

CENTRES, LANDMARKS, KERNELS, EPOCHS, MADE_UP = 0, 1, 2, 3, 4  # purposes


def stream(random: np.random.SeedSequence, which: int) -> np.random.Generator:
    """A random generator of the cell for one purpose, `which`."""
    import numpy as np

    return np.random.default_rng(np.random.SeedSequence(random.entropy, spawn_key=(*random.spawn_key, which)))


def starting(random: np.random.SeedSequence, start: int) -> np.random.Generator:
    """A random generator for a start of k-means in the cell, counted from 1."""
    import numpy as np

    key = (*random.spawn_key, CENTRES, start) if start > 1 else (*random.spawn_key, CENTRES)
    return np.random.default_rng(np.random.SeedSequence(random.entropy, spawn_key=key))
