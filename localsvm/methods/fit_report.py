"""What a method reports of a fitted cell, for the summary of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FitReport:
    """Summary of a fitted cell.

    Attributes
    ----------
    models, iterations : in all; iterations in the solver's own unit.
    not_converged, largest_gap : models that did not reach their tolerance; duality gap in the method's `gap_unit`.
    support_vectors : rows that are one in any model.
    support : those of each class, in the order of the target's labels; () where that is not known.
    """

    models: int = 0
    iterations: int = 0
    not_converged: int = 0
    largest_gap: float = 0.0
    support_vectors: int = 0
    support: tuple[int, ...] = ()
