"""What a run knows of the metric of its rows, and of the ranks before it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples
from localsvm.data.blocks.numbering import Hashes, contents
from localsvm.engines.base import Drawn
from localsvm.features.joint import Joint
from localsvm.features.learned import members_of
from localsvm.features.metric import Metric
from localsvm.features.ranks import Ranks
from localsvm.partition.members import Members
from localsvm.representations.metric import EUCLIDEAN, Geometry
from localsvm.targets.base import Observed

ALL_ROWS = "the metric is from a file, so the error is of all rows, also of those that it was learned from"


@dataclass(frozen=True)
class Measured:
    """A metric and the ranks before it, and what a run knows of them.

    Attributes
    ----------
    metric : None for the Euclidean one; several where members have different ones.
    ranks : None where columns have none.
    description : how it was chosen, for the summary; None where none was asked for.
    fresh : (n,) bool, the rows of this run that neither learned nor chose it; None where all rows count, or
    learned : ascending, the `contents` of the rows that did, mapped, or the groups of rows that have some, where it was
        learned from a sample; or, where folds are blocks of rows,
    fresh_from : the first number of the rows that did not.
    from_file : this run did not learn it.
    """

    metric: Metric | Joint | None = None
    ranks: Ranks | None = None
    description: dict[str, Any] | None = None
    fresh: NDArray[np.bool_] | None = None
    learned: Hashes | None = None
    fresh_from: int | None = None
    from_file: bool = False

    def fresh_of(self, rows: Drawn) -> NDArray[np.bool_] | None:
        """Mask (n,) of the mapped rows that are fresh; None where all count."""
        if self.fresh is not None:
            return self.fresh[rows.numbers]
        if self.fresh_from is not None:
            return rows.numbers >= self.fresh_from
        if self.learned is None:
            return None
        hashes = contents(rows.X) if rows.group is None else rows.group.view(np.uint64)
        place = np.searchsorted(self.learned, hashes)
        return np.asarray(self.learned[np.minimum(place, len(self.learned) - 1)] != hashes)

    @property
    def told(self) -> dict[str, Any] | None:
        """`description`, and a note on the error where the metric is from a file."""
        return (
            {**(self.description or {}), "note": ALL_ROWS}
            if self.from_file and self.metric is not None
            else self.description
        )

    @property
    def distance(self) -> str | None:
        """The distance that was chosen; None where none was."""
        chosen = Geometry.of(self.description["name"]) if self.description and "best" in self.description else None
        return None if chosen is None else chosen.distance

    @property
    def error(self) -> float | None:
        """Share of fresh rows that the chosen geometry decides wrongly; None where no choice of classes says it."""
        record = self.description or {}
        if "score" in record or not record.get("error"):
            return None
        return float(record["error"][record["name"] == record["best"]])  # that of plain distances is the first

    def weighed(self, weights: NDArray[np.float64] | None) -> Measured:
        """What is known, with the weights that members have; None for equal ones."""
        if weights is None:
            return self
        return replace(self, description={**(self.description or {}), "weights": weights.tolist()})

    def answering(self, observed: Observed) -> Observed:
        """What was found of the labels, and that the problems learn roots of values where these were chosen."""
        mean, deviation = (self.description or {}).get("root", (None, None))
        if observed.values is None or observed.values.low < 0.0:  # as other data than those of a metric file may be
            return observed
        return replace(observed, values=replace(observed.values, root_mean=mean, root_deviation=deviation))

    @property
    def members(self) -> Members | None:
        """The geometries of a model whose members have different ones; None where all have the same."""
        return members_of(self.metric, self.description)

    def mapped(self, X: Examples) -> Examples:
        """Scaled rows after ranks and metric."""
        X = X if self.ranks is None else self.ranks.apply(X)
        return X if self.metric is None else self.metric.apply(X)

    @property
    def asked(self) -> str:
        """The metric that was asked for when it was learned."""
        if self.description is None:
            return EUCLIDEAN
        return "auto" if "best" in self.description else str(self.description["name"])

    def as_dict(self) -> dict[str, Any]:
        """Entries of a file's config about the metric."""
        return {} if self.description is None else {"metric": self.asked, "learned": self.description}
