"""Ways to divide the rows into cells, one file each: none, chunks, Voronoi cells, k-means cells."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from localsvm.errors import ModelError, OptionError
from localsvm.partition.base import Partition, TrainingCell, size_spread, smallest_size
from localsvm.partition.chunks import Chunks
from localsvm.partition.duplicates import summed
from localsvm.partition.kmeans import KMeansCells
from localsvm.partition.none import NoPartition
from localsvm.partition.repeated import Repeated
from localsvm.partition.voronoi import Voronoi

REGISTRY: dict[str, type[Partition]] = {c.name: c for c in (NoPartition, Chunks, Voronoi, KMeansCells)}

__all__ = ["REGISTRY", "Partition", "TrainingCell", "create", "restore", "size_spread", "smallest_size", "summed"]


def create(name: str, repeats: int = 1) -> Partition:
    """A partition by its name, or so many that answer together, not fitted yet; OptionError for an unknown name."""
    if name not in REGISTRY:
        raise OptionError(f"-P/--partition: there is no partition {name!r}; choose one of {', '.join(REGISTRY)}")
    kind = REGISTRY[name]
    return kind() if repeats == 1 else Repeated([kind(), *(kind.further() for _ in range(repeats - 1))])


def restore(name: str, state: dict[str, NDArray[Any]]) -> Partition:
    """The partition that a file describes by name and `state()`; ModelError for a name unknown to this version."""
    if name not in REGISTRY:
        raise ModelError(f"the file's partition {name!r} is not known to this version")
    kind, parts = REGISTRY[name], _numbered(state)
    return Repeated([kind.from_state(part) for part in parts]) if parts else kind.from_state(state)


def _numbered(state: dict[str, NDArray[Any]]) -> list[dict[str, NDArray[Any]]]:
    """The states of repeats, in order; none where the state is that of one partition."""
    parts: dict[int, dict[str, NDArray[Any]]] = {}
    for key, array in state.items():
        number, slash, name = key.partition("/")
        if slash:
            parts.setdefault(int(number) if number.isdecimal() else -1, {})[name] = array
    if sorted(parts) != list(range(len(parts))):
        raise ModelError("the file's repeated partitions are not numbered from 0; make it anew")
    return [parts[number] for number in range(len(parts))]
