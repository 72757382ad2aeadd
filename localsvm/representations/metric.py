"""Names by which a metric can be asked for, and those of geometries that are chosen."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

from localsvm.errors import OptionError
from localsvm.naming import opt

EUCLIDEAN, AUTO = "none", "auto"
METRICS = (EUCLIDEAN, AUTO, "diag", "full", "nca", "itml", "lmnn")
_LABEL = re.compile(r"(manhattan|laplacian)?\+?(ranks)?\+?(?:(diag|full)(?:\^(0\.\d+))?)?")
RANK = re.compile(r"rank:([1-9][0-9]{0,8})")


def check_metric(asked: str) -> int | None:
    """The rank of "rank:R", None for another metric; OptionError for a name of none."""
    match = RANK.fullmatch(asked)
    if asked not in METRICS and not match:
        raise OptionError(f"{opt.metric(asked)}: choose one of {', '.join(METRICS)}, or rank:R with a whole number R")
    return int(match[1]) if match else None


class Geometry(NamedTuple):
    """What rows are measured by.

    Attributes
    ----------
    distance : "euclidean", "manhattan", or "laplacian": Euclidean with another kernel; see `representations.distances`.
    ranks : whether columns have their normal scores beside them.
    form : of the learned metric, "diag" or "full"; "" for none.
    strength : power that the learned metric is raised to, above 0.
    """

    distance: str = "euclidean"
    ranks: bool = False
    form: str = ""
    strength: float = 1.0

    @property
    def label(self) -> str:
        """Name of the geometry, as "manhattan+ranks+diag^0.5"; "none" for the Euclidean one."""
        power = "" if self.strength == 1.0 else f"^{self.strength:g}"
        parts = [self.distance] * (self.distance != "euclidean") + ["ranks"] * self.ranks
        return "+".join(parts + ([self.form + power] if self.form else [])) or EUCLIDEAN

    @classmethod
    def named(cls, label: str) -> Self:
        """The geometry of a label."""
        geometry = cls.of(label)
        assert geometry is not None, "a label"
        return geometry

    @classmethod
    def of(cls, label: str) -> Self | None:
        """The geometry of a name; None for a name of none."""
        match = _LABEL.fullmatch("" if label == EUCLIDEAN else label)
        if match is None:
            return None
        distance, ranks, form, power = match.groups()
        geometry = cls(distance or "euclidean", bool(ranks), form or "", float(power or 1.0))
        return geometry if geometry.label == label else None
