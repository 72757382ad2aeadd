"""Ways to divide the rows into cells, one file each: none, chunks, Voronoi cells, k-means cells."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from localsvm.errors import OptionError
from localsvm.partition.base import Partition, TrainingCell, size_spread, smallest_size
from localsvm.partition.chunks import Chunks
from localsvm.partition.kmeans import KMeansCells
from localsvm.partition.none import NoPartition
from localsvm.partition.voronoi import Voronoi
from localsvm.store.pieces import Unsound, check

REGISTRY: dict[str, type[Partition]] = {c.name: c for c in (NoPartition, Chunks, Voronoi, KMeansCells)}

__all__ = ["REGISTRY", "Partition", "TrainingCell", "create", "restore", "size_spread", "smallest_size"]


def create(name: str) -> Partition:
    """A partition by its name, not fitted yet; OptionError for an unknown name."""
    if name not in REGISTRY:
        raise OptionError(f"-P/--partition: there is no partition {name!r}; choose one of {', '.join(REGISTRY)}")
    return REGISTRY[name]()


def restore(name: str, state: dict[str, NDArray[Any]], features: int, n_cells: int) -> Partition:
    """The partition of so many cells that a file describes by name and `state()`.

    Unsound for a name that is unknown to this version, and for arrays that are none of that partition.
    """
    if name not in REGISTRY:
        raise Unsound(f"the partition {name!r} is not known to this version")
    check("/partition", REGISTRY[name].pieces, state, {"features": features})
    partition = REGISTRY[name].from_state(state)
    if partition.n_cells != n_cells:
        raise Unsound(f"/partition has {partition.n_cells} cells, not {n_cells}")
    return partition
