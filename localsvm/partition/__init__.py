"""Ways to divide the rows into cells, one file each: none, chunks, Voronoi cells, k-means cells; repeats, two steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import OptionError
from localsvm.naming import opt
from localsvm.partition.base import Partition, TrainingCell, size_spread, smallest_size
from localsvm.partition.chunks import Chunks
from localsvm.partition.duplicates import copies, summed
from localsvm.partition.kmeans import KMeansCells, ManhattanKMeans
from localsvm.partition.members import Members
from localsvm.partition.none import NoPartition
from localsvm.partition.repeated import Repeated
from localsvm.partition.two_step import POINTER, SHARE, Maker, TwoStep
from localsvm.partition.voronoi import ManhattanVoronoi, Voronoi
from localsvm.store.checking import check
from localsvm.store.pieces import Unsound

REGISTRY: dict[str, type[Partition]] = {
    kind.name: kind for kind in (NoPartition, Chunks, Voronoi, KMeansCells, ManhattanVoronoi, ManhattanKMeans)
}

__all__ = [
    "REGISTRY", "Partition", "TrainingCell", "copies", "create", "inside", "measured_by", "names_of", "restore",
    "size_spread", "smallest_size", "summed",
]  # fmt: skip


def create(
    name: str, repeats: int = 1, coarse_size: int | None = None, members: Members | None = None
) -> Partition:  # fmt: skip
    """A partition by its name, or several that answer together, not fitted yet; OptionError for an unknown name.

    Parameters
    ----------
    repeats : number of partitions that answer together; 1 for a single one.
    coarse_size : rows of the coarse cells that it divides; None for none.
    members : distances of the repeats, and the columns that they see; None where all have those of the name.
    """
    if name not in REGISTRY:
        raise OptionError(f"{opt.partition}: there is no partition {name!r}; choose one of {', '.join(REGISTRY)}")
    names = names_of(name, repeats, members)
    parts = [_made(REGISTRY[each], number, coarse_size) for number, each in enumerate(names)]
    return parts[0] if repeats == 1 else Repeated(parts, members)


def _made(kind: type[Partition], repeat: int, coarse_size: int | None) -> Partition:
    if coarse_size is None:
        return kind.further() if repeat else kind()
    return TwoStep(kind.further, coarse_size, SHARE) if repeat else TwoStep(kind, coarse_size)


def inside(name: str, repeat: int) -> Maker:
    """Maker of the partitions inside the coarse cells of a repeat, by their name; OptionError for an unknown one.

    repeat : number of the repeat, from 0.
    """
    create(name)
    return REGISTRY[name].further if repeat else REGISTRY[name]


def measured_by(name: str, distance: str) -> str:
    """Name of the partition that differs from another by its distance alone; the same one where it measures by none."""
    plain = name.removesuffix("-manhattan")
    measured = f"{plain}-{distance}"
    return measured if measured in REGISTRY else plain


def names_of(name: str, repeats: int, members: Members | None) -> list[str]:
    """Name of the partition of each repeat, which measures by the distance of its member; None for no members."""
    return [name if members is None else measured_by(name, members.distance(i)) for i in range(repeats)]


def restore(
    name: str, state: dict[str, NDArray[Any]], features: int, n_cells: int, members: Members | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Partition:  # fmt: skip
    """The partition of n_cells cells that a file describes by name and `state()`; rows have `features` columns.

    members, weights : of repeats with geometries of their own; `features` columns are those of one of them.

    Unsound for a name that is unknown to this version, and for arrays that are none of that partition.
    """
    if name not in REGISTRY:
        raise Unsound(f"the partition {name!r} is not known to this version")
    kind, parts = REGISTRY[name], _numbered(state)
    if members is not None and not state:  # of repeats of one cell, which have nothing to say
        parts = [{}] * n_cells
    if members is not None and len(parts) < 2:
        raise Unsound("/partition has no repeats, which members are")
    names = names_of(name, len(parts), members)
    repeats = [_restored(f"/partition/{i}", REGISTRY[names[i]], part, features) for i, part in enumerate(parts)]
    partition = Repeated(repeats, members, weights) if repeats else _restored("/partition", kind, state, features)
    if partition.n_cells != n_cells:
        raise Unsound(f"/partition has {partition.n_cells} cells, not {n_cells}")
    if weights is not None and len(weights) != len(partition.cells_by_repeat):
        raise Unsound("/@config: the option learned has not a weight for each repeat")
    return partition


def _restored(place: str, kind: type[Partition], state: dict[str, NDArray[Any]], features: int) -> Partition:
    if POINTER in state:
        return TwoStep.restored(place, kind, state, features)
    check(place, kind.pieces, state, {"features": features})
    return kind.from_state(state)


def _numbered(state: dict[str, NDArray[Any]]) -> list[dict[str, NDArray[Any]]]:
    """The states of repeats, in order; none where the state is that of one partition."""
    parts: dict[int, dict[str, NDArray[Any]]] = {}
    for key, array in state.items():
        number, slash, name = key.partition("/")
        if slash:
            parts.setdefault(int(number) if number.isdecimal() else -1, {})[name] = array
    if sorted(parts) != list(range(len(parts))) or (parts and any("/" not in key for key in state)):
        raise Unsound("/partition: its repeats are not numbered from 0")
    return [parts[number] for number in range(len(parts))]
