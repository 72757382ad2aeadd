"""The chain of transforms between a row of the data and what a method sees.

Training fits it step by step; prediction, partition files, pictures and machines of a cluster apply it. The first steps
are done by readers already, where rows come from a file: they know `reading`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dataset import Examples
from localsvm.data.blocks.shift import Shift
from localsvm.data.readers.libsvm import Layout
from localsvm.errors import DataError
from localsvm.features.base import Transform
from localsvm.features.columns import KeptColumns
from localsvm.features.joint import Joint
from localsvm.features.metric import Metric
from localsvm.features.origin import Origin
from localsvm.features.ranks import Ranks
from localsvm.features.scaling import CENTRED, Scaling
from localsvm.store.pieces import Unsound

ORIGIN = "origin"  # an array of the group /scaling
State = tuple[str, Mapping[str, NDArray[Any]]]


@dataclass(frozen=True)
class Chain:
    """Fitted transforms, in the order in which rows go through them.

    Attributes
    ----------
    origin, columns : those that readers do.
    scaling : of the columns that are left.
    ranks : beside the scaled columns; None where there are none.
    metric : None for the Euclidean one.
    """

    columns: KeptColumns
    origin: Origin = field(default_factory=Origin)
    scaling: Scaling = field(default_factory=lambda: Scaling("none"))
    ranks: Ranks | None = None
    metric: Metric | Joint | None = None

    @classmethod
    def of(cls, columns: KeptColumns, shift: Shift | None, scaling: Scaling) -> Self:
        """A chain up to the scaling of rows of which these columns are left."""
        return cls(columns, Origin.fit(shift, columns.kept, columns.columns(columns.width)), scaling)

    @property
    def steps(self) -> tuple[Transform, ...]:
        """All transforms, in their order."""
        views = (self.ranks, self.metric)
        return (self.origin, self.columns, self.scaling, *(view for view in views if view is not None))

    @property
    def width(self) -> int:
        """Number of columns of the data."""
        return self.columns.width

    @property
    def features(self) -> int:
        """Number of columns of the data that are known, and scaled."""
        return self.columns.columns(self.width)

    @property
    def viewed_columns(self) -> int:
        """Number of columns before the metric."""
        return self.features if self.ranks is None else self.ranks.columns(self.features)

    @property
    def mapped_columns(self) -> int:
        """Number of columns that methods see."""
        return self.viewed_columns if self.metric is None else self.metric.columns(self.viewed_columns)

    @property
    def dense(self) -> bool:
        """True where methods see dense rows."""
        return self.columns.dense or self.scaling.mode in CENTRED

    @property
    def reading(self) -> Layout:
        """Layout of the rows, which a reader has to know."""
        return Layout(self.width, self.columns.dense, self.columns.kept, self.origin.shift)

    def apply(self, X: Examples, *, read: bool = False, in_place: bool = False) -> Examples:
        """Rows that methods see of rows X (n, width). A row's result depends on that row alone.

        Parameters
        ----------
        X : dense or of scipy, in float64 where values lie far from 0. DataError for rows of another width.
        read : the rows come from a reader that did the first steps; see `reading`.
        in_place : whether a dense X may be overwritten. A sparse X is never changed.
        """
        scaled = self.scaled(X, read=read, in_place=in_place)
        return self.mapped(scaled, in_place=in_place or apart(scaled, X))

    def scaled(self, X: Examples, *, read: bool = False, in_place: bool = False) -> Examples:
        """Rows that `apply` gives, but without ranks and metric."""
        kept = X if read else self.as_read(X, in_place=in_place)
        return self.scaling.apply(kept, in_place=in_place or apart(kept, X))

    def as_read(self, X: Examples, *, in_place: bool = False) -> Examples:
        """Rows after the first steps, as readers give them; arguments as of `apply`."""
        if X.shape[1] != self.width:
            raise DataError(f"the examples have {X.shape[1]} features, those of training {self.width}")
        return self.columns.apply(self.origin.apply(X, in_place=in_place), in_place=in_place)

    def mapped(self, X: Examples, *, in_place: bool = False) -> Examples:
        """Scaled rows after ranks and metric."""
        seen = self.viewed(X)
        return seen if self.metric is None else self.metric.apply(seen, in_place=in_place or seen is not X)

    def viewed(self, X: Examples) -> Examples:
        """Scaled rows with their ranks, which the metric is of."""
        return X if self.ranks is None else self.ranks.apply(X)

    @property
    def ranked(self) -> NDArray[np.int64]:
        """Columns, among those that are known, that have ranks."""
        return np.empty(0, np.int64) if self.ranks is None else self.ranks.ranked

    def read_from(self, shift: Shift | None) -> Self:
        """Chain for rows that were read from another origin, which the scaling makes up for.

        Where it does not centre, scaled rows are shifted all alike, and so are the knots of the ranks.
        """
        origin = Origin.fit(shift, self.columns.kept, self.features)
        before, after = (np.zeros(self.features) if o.values is None else o.values for o in (self.origin, origin))
        ranks = self.ranks
        if ranks is not None and self.scaling.offset is None:
            factor = 1.0 if self.scaling.factor is None else self.scaling.factor
            ranks = ranks.moved((before - after) * factor)
        return replace(self, origin=origin, scaling=self.scaling.moved(after - before), ranks=ranks)

    def state(self) -> dict[str, Any]:
        """State that a file keeps, by the names of `store.model.write_model`: columns, scaling, ranks, metric."""
        return {
            "columns": self.columns.kept,
            "scaling": (self.scaling.mode, self.scaling.state() | self.origin.state()),
            "ranks": None if self.ranks is None else self.ranks.state(),
            "metric": None if self.metric is None else (self.metric.kind, self.metric.state()),
        }

    def as_dict(self) -> dict[str, Any]:
        """Options of a model's config that describe the chain."""
        width = {} if self.columns.kept is None else {"width": self.width}
        return {"features": self.features, "dense": self.dense} | width

    @classmethod
    def from_state(
        cls, columns: KeptColumns, scaling: State, ranks: Ranks | None = None, metric: Metric | Joint | None = None
    ) -> Self:
        """The chain that a file keeps. scaling: its mode and arrays. Unsound if they do not fit."""
        mode, arrays = scaling
        features = columns.columns(columns.width)
        origin_values = None if mode == "row" else arrays.get(ORIGIN)  # rows of length 1 have none
        scaling_arrays = {name: array for name, array in arrays.items() if name != ORIGIN or mode == "row"}
        origin = Origin.from_state(origin_values, columns.kept, features)
        chain = cls(columns, origin, Scaling.from_state(mode, scaling_arrays, features), ranks, metric)
        if not chain.dense and metric is not None and metric.mixes:
            raise Unsound("/metric: sparse rows have weights alone")
        if not chain.dense and ranks is not None:
            raise Unsound("/ranks: sparse rows have none")
        return chain


def apart(rows: Examples, X: Any) -> bool:
    """True where rows lie in memory of their own, not in that of X."""
    dense = isinstance(rows, np.ndarray)
    return dense and not (isinstance(X, np.ndarray) and np.may_share_memory(rows, X))
