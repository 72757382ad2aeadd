"""The figures of the L3-SVM paper, a module for each kind.

Decision regions are in l3_regions.py, small sets in l3_small.py, and choosing landmarks in l3_landmarks.py. Each module
has `cases`, `measure` and `section`, its part of the page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.runlog import Run

COSTS = tuple(10.0**k for k in range(-3, 3))  # the paper's grid
Key = tuple[int, str, str, int, int]  # the first five fields of a measurement


@dataclass(frozen=True)
class Measurement(Run):
    """A measurement: what was measured (the first five fields), and figures, whose meaning is their module's."""

    KEY = ("figure", "name", "variant", "clusters", "seed")
    figure: int
    name: str
    variant: str
    clusters: int
    seed: int
    figures: dict[str, Any] = field(default_factory=dict)
