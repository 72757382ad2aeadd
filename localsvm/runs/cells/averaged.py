"""The mean of members with geometries of their own: its weights, and the error that it has on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.runs.cells.records import Record, unpack
from localsvm.selection.averaging import member_weights
from localsvm.store.journal import Journal
from localsvm.targets.classification import Classification, known_recalls, recalls

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Averaged:
    """The mean of members.

    Attributes
    ----------
    weights : (members,) of their values, whose sum is 1; None where all weigh the same.
    wrong, mass : (parts,) weight of the held-out rows that the mean decides wrongly, and of all; see `Target.wrong`.
    """

    weights: Floats | None
    wrong: Floats
    mass: Floats

    @property
    def error(self) -> float | None:
        """Share of the held-out rows that the mean decides wrongly; None where no row counts."""
        return float(self.wrong.sum() / self.mass.sum()) if self.mass.sum() else None

    @property
    def recalls(self) -> list[float | None] | None:
        """Share of right rows of each class, where they are scored class by class; else None."""
        return known_recalls(recalls(self.wrong, self.mass)) if len(self.mass) > 1 else None


def averaged(
    target: Classification, class_weights: Mapping[float, float], journal: Journal, repeats: Sequence[Sequence[str]],
    rows: int,
) -> Averaged:  # fmt: skip
    """Find the weights of members by their held-out values.

    Parameters
    ----------
    repeats : names of the records of each member's cells.
    rows : of the run.
    """
    values = np.full((len(repeats), target.n_problems, rows), np.nan, np.float32)
    y, weight = np.zeros(rows), np.zeros(rows)
    for member, names in enumerate(repeats):
        for name in names:
            record = journal[name]
            numbers = record["held/numbers"]
            values[member][:, numbers] = unpack(record).values
            y[numbers], weight[numbers] = record["held/y"], _weight(record)
    # rows that some member has merged into copies of them, or whose values count in no error, say nothing
    known = np.flatnonzero((weight > 0) & ~np.isnan(values[:, 0]).any(axis=0))
    y, weight = y[known], weight[known]
    for label, cost in class_weights.items():
        weight[y == label] *= cost
    held = np.clip(values[:, :, known], -1.0, 1.0).astype(np.float64)
    Y = target.encode(y)
    weights = member_weights(held, Y, weight)
    mean = np.tensordot(np.full(len(held), 1.0 / len(held)) if weights is None else weights, held, 1)
    return Averaged(weights, target.wrong(mean[None], y, Y, weight)[0][0], target.mass(y, weight))


def _weight(record: Record) -> Floats:
    fresh = record.get("held/fresh")
    return np.asarray(record["held/mass"] if fresh is None else record["held/mass"] * fresh)
