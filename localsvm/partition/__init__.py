"""Ways to divide the rows into cells, one file each: none, chunks, Voronoi cells, k-means cells."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from localsvm.errors import ModelError, OptionError
from localsvm.partition.base import Partition, TrainingCell, size_spread, smallest_size
from localsvm.partition.chunks import Chunks
from localsvm.partition.kmeans import KMeansCells
from localsvm.partition.none import NoPartition
from localsvm.partition.voronoi import Voronoi

REGISTRY: dict[str, type[Partition]] = {c.name: c for c in (NoPartition, Chunks, Voronoi, KMeansCells)}

__all__ = ["REGISTRY", "Partition", "TrainingCell", "create", "restore", "size_spread", "smallest_size"]


def create(name: str) -> Partition:
    """A partition by its name, not fitted yet; OptionError for an unknown name."""
    if name not in REGISTRY:
        raise OptionError(f"-P/--partition: there is no partition {name!r}; choose one of {', '.join(REGISTRY)}")
    return REGISTRY[name]()


def restore(name: str, state: dict[str, NDArray[Any]]) -> Partition:
    """The partition that a file describes by name and `state()`; ModelError for a name unknown to this version."""
    if name not in REGISTRY:
        raise ModelError(f"the file's partition {name!r} is not known to this version")
    return REGISTRY[name].from_state(state)
